"""Forced positions and calls left: counted by hand, and by other engines on longer texts; and what is told."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.lab.kinds.telling import Told
from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds.saved_calls import KIND, complete, follow_texts, follow_tokens, measure
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES = [{"backend": "token_index"}, {"backend": "tokens_dfa"}]
INPUTS = Path(__file__).parents[3] / "experiments" / "inputs"


def rows_of(pattern, *texts, tokenizer="bytes", engines=ENGINES, **settings):
    return measure(
        {"tokenizer": tokenizer, "label": "one", "regex": pattern, "texts": {"one": list(texts)}, "engines": engines}
        | settings,
        seed=0,
    )


def test_counts_of_a_text_with_one_choice():
    # a, b: forced; c: or d; e: forced; the end: forced
    for row in rows_of("ab(c|d)e", "abce"):
        assert row["status"] == "ok"
        assert json.loads(row["allowed"]) == [1, 1, 2, 1]
        assert (row["positions"], row["forced"], row["forced_text"], row["forced_002"]) == (4, 3, 3, 3)
        assert (row["end_forced"], row["calls"], row["runs"], row["longest_run"]) == (1, 1, 2, 2)


def test_the_end_is_an_alternative():
    # after ab the text may end, or go on with c; after abc only end; at the end of ab there is a choice
    whole, part, *_ = rows_of("ab(c)?", "abc", "ab")
    assert json.loads(whole["allowed"]) == [1, 1, 2]
    assert (whole["forced"], whole["forced_text"], whole["end_forced"], whole["calls"]) == (2, 3, 1, 1)
    assert (part["forced"], part["forced_text"], part["end_forced"], part["calls"]) == (2, 2, 0, 1)
    assert (whole["runs"], whole["longest_run"], part["runs"], part["longest_run"]) == (2, 2, 1, 2)


def test_tokens_of_the_byte_fallback_are_left_out_as_published():
    # x is a token and the byte 0x78 another; a line end is a byte token only, so it is forced in any count
    letter, line_end = rows_of("x|\n", "x", "\n", tokenizer="mistral-v1", engines=ENGINES)[:2]
    assert json.loads(letter["allowed"]) == json.loads(line_end["allowed"]) == [3]
    assert (letter["forced_text"], letter["forced_002"]) == (0, 1)
    assert (line_end["forced_text"], line_end["forced_002"]) == (0, 0)  # x is left, and the token of the sequence
    (alone, _) = rows_of("\n", "\n", tokenizer="mistral-v1")
    assert (alone["forced"], alone["forced_002"], alone["calls"]) == (1, 1, 0)


def test_several_end_tokens_force_the_end():
    (row, _) = rows_of("[ab]", "a", tokenizer="llama3")
    assert len(load_tokenizer("llama3").vocabulary.end_tokens) > 1
    assert (json.loads(row["allowed"]), row["end_forced"], row["calls"]) == ([2], 1, 1)


def test_other_engines_count_the_same():
    texts = yaml.safe_load((INPUTS / "proper_texts.yaml").read_text())["call_one_of_three"][:4]
    engines = [{"backend": name} for name in ("token_index", "brute_force", "llguidance")]
    pattern = r'\{"name": ("get_time", "arguments": \{"timezone": "[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+"\}|"set_alarm".*)\}'
    rows = rows_of(pattern, *texts, tokenizer="mistral-v1", engines=engines)
    keys = ("text", "status", "positions", "forced", "forced_text", "forced_002", "calls", "runs", "allowed")
    by_engine = [[[row[key] for key in keys] for row in rows if row["engine"] == one["backend"]] for one in engines]
    assert by_engine[0] == by_engine[1] == by_engine[2]
    for row in rows:
        assert row["forced"] <= row["forced_text"] <= row["forced_002"] <= row["positions"]
        assert row["calls"] == row["positions"] + 1 - row["forced"] - row["end_forced"]
    assert sum(row["forced_002"] for row in rows) > 0


def test_a_choice_needs_its_texts():
    settings = {"tokenizer": "bytes", "label": "colour", "choice": ["red", "green"], "engines": ENGINES}
    rows = measure(settings | {"texts": {"colour": ["red", "green"]}}, seed=0)
    assert [row["text"] for row in rows] == ["red", "green"] * 2
    assert [row["calls"] for row in rows] == [1] * 4
    with pytest.raises(OptionError, match="no texts for the constraint 'colour'"):
        measure(settings | {"texts": {"other": ["red"]}}, seed=0)


def test_refusals_are_rows_with_their_place():
    (refused, end, *_) = rows_of("ab+", "aab", "a")
    assert (refused["status"], refused["text"]) == ("wrong_refusal", "aab")
    assert refused["message"] == "token 97 b'a' is refused at position 1 of 3"
    assert (end["status"], end["message"]) == ("wrong_refusal", "the end is refused after 1 tokens")
    assert "forced" not in refused


def test_an_engine_that_cannot_compile_has_one_row():
    lazy = {"backend": "token_index", "options": {"lazy": True}, "label": "on demand"}
    rows = rows_of("(a|b)*a(a|b){17}", "a" * 18, "b" + "a" * 20, engines=[lazy, ENGINES[0]])  # 2^18 states
    assert [(row["engine"], row["status"], bool(row["text"])) for row in rows] == [
        ("on demand", "ok", True), ("on demand", "ok", True), ("token_index", "memory", False),
    ]  # fmt: skip
    assert "max_states" in rows[-1]["message"]


def test_a_text_that_the_tokenizer_changes_is_not_followed():
    compiled = create_backend("token_index", load_tokenizer("bytes").vocabulary).compile(Regex("[a-zA-Z]+"))
    upper = SimpleNamespace(encode=lambda text: list(text.upper().encode()), vocabulary=compiled.vocab)
    none = masks.allocate_mask(257)
    (row,) = follow_texts(compiled, ["abc"], upper, none, none)
    assert (row["status"], row["text"]) == ("changed", "abc")


def test_an_empty_text_has_an_end_only():
    compiled = create_backend("token_index", load_tokenizer("bytes").vocabulary).compile(Regex("a*"))
    row = follow_tokens(compiled, [], masks.mask_from_ids([256], 257), masks.allocate_mask(257))
    assert (row["positions"], row["forced"], row["end_forced"], row["calls"], row["allowed"]) == (0, 0, 0, 1, "[]")


def test_settings_are_checked():
    for settings, error, message in (
        ({"engines": ENGINES}, OptionError, "texts, with constraints, or schemas"),
        ({"engines": ENGINES[:1], "schemas": "x"}, OptionError, "engines"),
        ({"engines": [*ENGINES, ENGINES[0]], "schemas": "x"}, OptionError, "same label"),
        ({"engines": [{"backend": "token_indx"}, *ENGINES], "schemas": "x"}, UnknownNameError, "token_indx"),
        ({"engines": ENGINES, "schemas": "x", "limit": 3}, OptionError, r"settings\.limit"),
    ):
        with pytest.raises(error, match=message):
            complete(settings)
    with pytest.raises(OptionError, match="leave one of the two out"):
        rows_of("a", "a", schemas="somewhere")
    with pytest.raises(OptionError, match="needs the setting schemas"):
        measure({"tokenizer": "bytes", "engines": ENGINES, "texts": {"one": ["a"]}}, seed=0)


def test_what_is_told_counts_texts_that_all_engines_went_through():
    engines = [{"backend": "token_index", "label": "plain"}, {"backend": "brute_force", "label": "proper"}]
    rows = []
    for label, choice in (("colour", ["red", "green"]), ("answer", ["yes", "no"])):
        rows += measure(
            {"tokenizer": "bytes", "label": label, "choice": choice, "texts": {label: choice}} | {"engines": engines}, 0
        )
    place = {"tokenizer": "bytes", "constraint": "colour"}
    rows.append(
        place
        | {
            "engine": "plain",
            "text": "blue",
            **{name: rows[0][name] for name in ("positions", "forced", "allowed", "status", "message")},
        }
    )
    rows.append(place | {"engine": "proper", "text": "blue", "status": "wrong_refusal", "message": "refused"})
    rows.append(place | {"engine": "", "constraint": "s", "text": "", "status": "too_large", "message": "large"})
    told = Told(KIND, rows)
    overview = told.tables["saved_calls"].set_index("engine")
    # red, green: the first byte is free; the others, and the end, are forced
    shown = ["texts", "positions", "forced", "calls left", "of", "median allowed"]
    assert overview.loc["plain", shown].tolist() == [4, 13, 2 + 4 + 2 + 1, 4, 17, 1]
    assert overview["share"].tolist() == pytest.approx([9 / 13] * 2)
    assert told.tables["saved_calls_constraints"]["plain"].tolist() == pytest.approx([6 / 8, 3 / 5])
    assert told.tables["saved_calls_refusals"]["kind"].tolist() == ["wrong refusal"]
    assert told.tables["saved_calls_skipped"]["schemas"].tolist() == [1]
    assert told.sentences[0].startswith("bytes, plain: one token is allowed at 9 of 13 positions (69.2%) of 4 texts")
    assert told.sentences[-2].startswith("proper: 1 walks did not go through (wrong refusal)")
    assert [len(points) for points in told.panels["saved_calls"].values()] == [4]


def test_the_shipped_experiment_takes_all_that_is_shaped_like_json_and_yaml():
    loaded = yaml.safe_load((INPUTS.parent / "saved_calls.yaml").read_text())
    (constraints,) = loaded["constraints"]
    labels = [entry["label"] for entry in yaml.safe_load((INPUTS.parent / constraints["file"]).read_text())]
    assert constraints["only"] == labels[: labels.index("iso_date")]
    texts = yaml.safe_load((INPUTS.parent / loaded["settings"]["texts"]["file"]).read_text())
    assert set(constraints["only"]) <= set(texts)
    assert loaded["settings"]["engines"][0] == {"backend": "token_index"}

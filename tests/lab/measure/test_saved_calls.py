"""Forced positions and calls left: counted by hand on short texts, and by other engines on longer ones."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.errors import MissingDependency, OptionError, UnknownNameError
from tokdfa.lab.kinds import saved_calls
from tokdfa.lab.kinds.saved_calls import SKIPPED, check_settings, follow_tokens, read_texts, run_item, schema_cases
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES = [{"backend": "token_index"}, {"backend": "tokens_dfa"}]
INPUTS = Path(__file__).parents[3] / "experiments" / "inputs"


def rows_of(pattern, *texts, tokenizer="bytes", engines=ENGINES, **settings):
    return run_item(
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
    texts = read_texts(INPUTS / "proper_texts.yaml")[0]["call_one_of_three"][:4]
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


def test_choices_and_a_file_of_texts(tmp_path):
    (tmp_path / "texts.yaml").write_text("colour: [red, green]\n")
    settings = {"tokenizer": "bytes", "label": "colour", "choice": ["red", "green"], "engines": ENGINES}
    rows = run_item(settings | {"texts": str(tmp_path / "texts.yaml")}, seed=0)
    assert [row["text"] for row in rows] == ["red", "green"] * 2
    assert [row["calls"] for row in rows] == [1] * 4
    assert {len(row["inputs"]) for row in rows} == {10}
    with pytest.raises(OptionError, match="no texts for the constraint 'colour'"):
        run_item(settings | {"texts": {"other": ["red"]}}, seed=0)
    for content in ("[a]", "colour: red", "colour: [1]", "a: ["):
        (tmp_path / "texts.yaml").write_text(content)
        with pytest.raises(OptionError, match=r"texts\.yaml"):
            read_texts(tmp_path / "texts.yaml")
    with pytest.raises(OptionError, match="relative to the current folder"):
        read_texts(tmp_path / "nowhere.yaml")


def test_refusals_are_rows_with_their_place():
    (refused, end, *_) = rows_of("ab+", "aab", "a")
    assert (refused["status"], refused["text"]) == ("wrong_refusal", "aab")
    assert refused["message"] == "token 97 b'a' is refused at position 1 of 3"
    assert (end["status"], end["message"]) == ("wrong_refusal", "the end is refused after 1 tokens")
    assert "forced" not in refused


def test_an_engine_that_cannot_compile_has_one_row(monkeypatch):
    lazy = {"backend": "token_index", "options": {"lazy": True}, "label": "on demand"}
    rows = rows_of("(a|b)*a(a|b){17}", "a" * 18, "b" + "a" * 20, engines=[lazy, ENGINES[0]])  # 2^18 states
    assert [(row["engine"], row["status"], bool(row["text"])) for row in rows] == [
        ("on demand", "ok", True), ("on demand", "ok", True), ("token_index", "memory", False),
    ]  # fmt: skip
    assert "max_states" in rows[-1]["message"]

    def missing(name, vocab, **options):
        if name == "tokens_dfa":
            raise MissingDependency("some-package", "", "it")
        return create_backend(name, vocab, **options)

    monkeypatch.setattr(saved_calls, "create_backend", missing)
    rows = rows_of("[ab]", "a", "b")
    assert [row["status"] for row in rows] == ["ok", "ok", "error"]
    assert "some-package" in rows[-1]["message"]


def test_a_text_that_the_tokenizer_changes_is_not_followed():
    backend = create_backend("token_index", load_tokenizer("bytes").vocabulary)
    upper = SimpleNamespace(encode=lambda text: list(text.upper().encode()), vocabulary=backend.vocab)
    none = masks.allocate_mask(257)
    (row,) = saved_calls._follow_case(backend, Regex("[a-zA-Z]+"), ["abc"], upper, none, none)
    assert (row["status"], row["text"]) == ("changed", "abc")


def test_an_empty_text_has_an_end_only():
    compiled = create_backend("token_index", load_tokenizer("bytes").vocabulary).compile(Regex("a*"))
    row = follow_tokens(compiled, [], masks.mask_from_ids([256], 257), masks.allocate_mask(257))
    assert (row["positions"], row["forced"], row["end_forced"], row["calls"], row["allowed"]) == (0, 0, 0, 1, "[]")


def write(folder, name, schema, *instances):
    tests = [{"description": "", "valid": valid, "data": data} for valid, data in instances]
    (folder / f"{name}.json").write_text(json.dumps({"description": name, "schema": schema, "tests": tests}))


def person(**kinds):
    return {"type": "object", "properties": {key: {"type": kind} for key, kind in kinds.items()}, "required": [*kinds]}


@pytest.fixture
def schemas(tmp_path):
    """A folder with a schema for each thing that can happen."""
    ada, bob = {"name": "Zoë", "age": 3}, {"name": "Bob", "age": 1}
    write(tmp_path, "a_person", person(name="string", age="integer"), (True, ada), (False, {}), (True, bob))
    write(tmp_path, "b_order", person(name="string", age="integer"), (True, {"age": 1, "name": "Eve"}))
    write(tmp_path, "c_invalid", person(name="string"), (False, {"name": 1}))
    write(tmp_path, "d_refused", {"not": {}}, (True, 1))
    write(tmp_path, "e_large", {"type": "string", "maxLength": 900}, (True, "x"))
    (tmp_path / "f_broken.json").write_text('{"schema": {}')
    (tmp_path / "g_other.json").write_text('{"schema": {}, "examples": []}')
    write(tmp_path, "h_surrogate", {"type": "string"}, (True, "\ud800"))
    (tmp_path / "notes.txt").write_text("not a schema")
    return tmp_path


def test_schemas_become_constraints_or_a_reason(schemas):
    settings = check_settings({"engines": ENGINES, "schemas": str(schemas), "max_states": 600})
    cases = {case.name: case for case in schema_cases(settings)}
    assert cases["a_person"].texts == ('{"name": "Zoë", "age": 3}', '{"name": "Bob", "age": 1}')
    status = {name: [one[0] for one in case.skipped] for name, case in cases.items()}
    assert status == {
        "a_person": [], "b_order": ["not_matched"], "c_invalid": ["no_instance"], "d_refused": ["refused"],
        "e_large": ["too_large"], "f_broken": ["unreadable"], "g_other": ["unreadable"], "h_surrogate": ["not_matched"],
    }  # fmt: skip
    assert [name for name, case in cases.items() if case.constraint] == ["a_person"]
    assert cases["b_order"].skipped[0][2] == '{"age": 1, "name": "Eve"}'


def test_limits_on_schemas(schemas):
    def statuses(**limits):
        settings = check_settings({"engines": ENGINES, "schemas": str(schemas), **limits})
        return [(case.name, *(one[0] for one in case.skipped)) for case in schema_cases(settings)]

    half = statuses(max_schemas=4)
    assert [name for name, *status in half if "not_asked" not in status] == [
        "a_person", "c_invalid", "e_large", "g_other",
    ]  # fmt: skip
    assert len(half) == 8
    assert statuses(max_instances=1)[0] == ("a_person", "not_asked")
    assert statuses(max_pattern=10)[0] == ("a_person", "too_large")
    assert {status for _, status in statuses(seconds=1e-9)} == {"not_asked"}
    with pytest.raises(OptionError, match="no files"):
        statuses(schemas=str(schemas / "nowhere"))


def test_instances_are_written_as_the_regex_wants_them(tmp_path, monkeypatch):
    from outlines_core import json_schema

    build = json_schema.build_regex_from_schema
    monkeypatch.setattr(json_schema, "build_regex_from_schema", lambda schema: build(schema, whitespace_pattern=""))
    write(tmp_path, "compact", person(name="string", age="integer"), (True, {"name": "Ada", "age": 36}))
    rows = run_item({"tokenizer": "mistral-v1", "engines": ENGINES, "schemas": str(tmp_path)}, seed=0)
    assert [row["text"] for row in rows] == ['{"name":"Ada","age":36}'] * 2
    assert {row["status"] for row in rows} == {"ok"}


def test_rows_of_schemas(schemas):
    rows = run_item({"tokenizer": "bytes", "engines": ENGINES, "schemas": str(schemas)}, seed=0)
    measured = [row for row in rows if row["engine"]]
    mine = [row["engine"] for row in measured if row["constraint"] == "a_person"]
    assert mine == ["token_index", "token_index", "tokens_dfa", "tokens_dfa"]
    assert {row["status"] for row in rows if not row["engine"]} <= set(SKIPPED)
    # {, ", then n, a, m, e, ", ... are forced but for the optional spaces: `{"` or `{ "`, and so on
    first = json.loads(measured[0]["allowed"])
    assert first[:8] == [1, 2, 1, 1, 1, 1, 1, 2]
    assert np.array(first).min() >= 1


def test_settings_are_checked():
    assert check_settings({"engines": ENGINES, "texts": "x.yaml"}).engines[1].name == "tokens_dfa"
    with pytest.raises(OptionError, match="texts, with constraints, or schemas"):
        check_settings({"engines": ENGINES})
    with pytest.raises(OptionError, match="engines"):
        check_settings({"engines": ENGINES[:1], "texts": "x"})
    with pytest.raises(OptionError, match="same label"):
        check_settings({"engines": [*ENGINES, ENGINES[0]], "texts": "x"})
    with pytest.raises(UnknownNameError, match="token_indx"):
        check_settings({"engines": [{"backend": "token_indx"}, *ENGINES], "texts": "x"})
    with pytest.raises(UnknownNameError, match="lasy"):
        check_settings({"engines": [{"backend": "token_index", "options": {"lasy": True}}, *ENGINES], "texts": "x"})
    with pytest.raises(OptionError, match=r"settings\.limit"):
        check_settings({"engines": ENGINES, "texts": "x", "limit": 3})
    with pytest.raises(OptionError, match="leave one of the two out"):
        rows_of("a", "a", schemas="somewhere")
    with pytest.raises(OptionError, match="needs the setting schemas"):
        run_item({"tokenizer": "bytes", "engines": ENGINES, "texts": {"one": ["a"]}}, seed=0)

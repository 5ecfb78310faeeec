"""Forced steps and calls left along given texts, counted by hand."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.errors import ConfigError, OptionError
from tokdfa.lab.kinds.saved_calls import KIND, measure
from tokdfa.lab.measure.forced_steps import follow_text
from tokdfa.vocabulary.tokenizers import load_tokenizer

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
GIVEN = [{"backend": "token_index"}, {"backend": "tokens_dfa"}]


def given(pattern, *texts, tokenizer="bytes", engines=GIVEN, **settings):
    one = {"tokenizer": tokenizer, "label": "one", "regex": pattern, "texts": {"one": list(texts)}, "engines": engines}
    return measure(one | settings, 0)


@pytest.mark.parametrize(
    ("pattern", "text", "calls", "forced_text"),
    [
        ("ab(c|d)e", "abce", 1, 3),  # a, b, e and the end are forced
        ("ab(c)?", "abc", 1, 3),  # after ab the text may end, or go on with c
        ("ab(c)?", "ab", 1, 2),  # at the end there is a choice
        ("a*", "", 1, 0),  # a text without tokens has an end only
    ],
)
def test_counts_by_hand(pattern, text, calls, forced_text):
    for row in given(pattern, text):
        counts = (len(text), len(text) + 1, calls, forced_text, forced_text)
        assert tuple(row[name] for name in ("tokens", "steps", "calls", "forced_text", "forced_002")) == counts


def test_tokens_of_the_byte_fallback_are_left_out_as_published():
    # x is a token and the byte 0x78 another; a line end is a byte token only, so it is forced in any count
    for row in given("x\n", "x\n", tokenizer="mistral-v1"):
        assert (row["status"], row["tokens"]) == ("ok", 2)
        assert (row["forced_text"], row["forced_002"]) == (1, 2)


def test_refusals_and_failures_are_rows():
    (row, _) = given("ab", "ac")
    assert (row["status"], row["text"]) == ("wrong_refusal", "ac")
    assert "is refused at position 1 of 2" in row["message"]
    (row, _) = given("abc", "ab")
    assert row["message"] == "the end is refused after 2 tokens"
    small = {"backend": "token_index", "options": {"max_states": 1}, "label": "small"}
    assert [row["status"] for row in given("abc", "abc", engines=[small, *GIVEN])] == ["memory", "ok", "ok"]
    compiled = create_backend("token_index", load_tokenizer("bytes").vocabulary).compile(Regex("[a-zA-Z]+"))
    upper = SimpleNamespace(encode=lambda text: list(text.upper().encode()), vocabulary=compiled.vocab)
    assert follow_text(compiled, "abc", upper)["status"] == "changed"


def test_texts_of_the_constraint_itself():
    settings = {"tokenizer": "bytes", "engines": GIVEN, "label": "flag", "json_schema": {"type": "boolean"}}
    rows = measure(settings | {"max_nesting": 1, "whitespace": "compact", "texts": ["true", "false"]}, 0)
    assert [(row["constraint"], row["text"], row["calls"]) for row in rows] == [
        ("flag", "true", 1), ("flag", "false", 1)
    ] * 2  # fmt: skip
    with pytest.raises(OptionError, match="has no texts"):
        measure(settings, 0)
    with pytest.raises(ConfigError, match="has none of regex"):
        measure({"tokenizer": "bytes", "engines": GIVEN, "texts": ["a"]}, 0)


def test_what_is_told_of_given_texts():
    rows = given("(red|green)", "red", "green", "blue")  # blue is refused
    told = Told(KIND, rows)
    overview = told.tables["saved_calls"].set_index("engine")
    # the first byte is free; the others, and the end, are forced
    assert overview.loc["tokens_dfa", ["texts", "steps", "forced", "calls left"]].tolist() == [2, 10, 8, 2]
    assert overview["share as published"].tolist() == pytest.approx([6 / 8] * 2)
    assert told.tables["saved_calls_constraints"]["token_index"].tolist() == pytest.approx([8 / 10])
    assert told.tables["not_measured"]["kind"].tolist() == ["wrong refusal"] * 2
    # who vouches for "blue" hears that it is refused
    assert told.values("refused", "engine", "texts", "proper tokenizations forbidden")[0] == ("token_index", 3, 1 / 3)


def test_muted_literals_forbid_proper_tokenizations():
    muted = {"backend": "tokens_dfa", "options": {"mute_literals": True}, "label": "muted"}
    settings = {"tokenizer": "mistral-v1", "label": "https", "regex": "(https?://)?[a-z]{1,9}"}
    settings |= {"engines": [GIVEN[1], muted], "texts": ["https://abc", "!", "abc"]}
    rows = measure(settings, 3)
    assert [(row["engine"], row["text"], row["status"]) for row in rows] == [  # "!" is no text of it
        ("tokens_dfa", "https://abc", "ok"),
        ("tokens_dfa", "abc", "ok"),
        ("muted", "https://abc", "wrong_refusal"),  # "https" is one token of this vocabulary
        ("muted", "abc", "ok"),
    ]
    assert rows[2]["literals"] == 2
    told = Told(KIND, rows)
    assert told.values("refused", "engine", "literals", "proper tokenizations forbidden") == [("muted", 2, 0.5)]

"""The experiment on growth: families and parts of vocabularies are what they claim, and no size goes missing."""

from __future__ import annotations

import re
import sys
from typing import Any

import pandas as pd
import pytest

from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.kinds import scaling
from tokdfa.lab.kinds.scaling import KIND, Settings
from tokdfa.lab.measure import growing
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

SMALL = Vocabulary([b"ab", b"", b"a", b"abc", b"b", b"ab", b"bc", b"abcd"], end_tokens=[1])
TWO = [{"label": "plain", "backend": "token_index"}, {"label": "classes", "backend": "tokens_dfa"}]


def run(**changes: Any) -> list[dict[str, Any]]:
    settings = {"tokenizer": "bytes", "label": "letters", "regex": "[a-z]{1,n}", "states": {"letters": [2, 5]}}
    return scaling.measure({"repeats": 1, "engines": TWO, **settings, **changes}, seed=3)


def spelled(vocab: Vocabulary) -> list[bytes]:
    return [vocab.token_bytes(token) for token in range(vocab.size)]


def test_templates_are_filled() -> None:
    assert growing.fill_template("a{n}b{1,n}c{2}{n}", 7, seed=0) == "a{7}b{1,7}c{2}{7}"
    few, many = (growing.fill_template("x(<words>)y", n, seed=1) for n in (3, 5))
    assert many.startswith(few[:-2])
    assert re.fullmatch(r"x\([a-z]{4,10}(\|[a-z]{4,10}){4}\)y", many)
    with pytest.raises(OptionError, match="no template"):
        growing.fill_template("a{1,2}n", 3, seed=0)


def test_random_words_are_distinct_and_repeatable() -> None:
    words = growing.random_words(2000, seed=5)
    assert len(set(words)) == 2000
    assert words[:50] == growing.random_words(50, seed=5) != growing.random_words(50, seed=6)


def test_first_tokens_are_the_first_that_spell() -> None:
    vocab = growing.first_tokens(SMALL, 3)
    assert spelled(vocab)[:3] == [b"ab", b"a", b"abc"]
    assert sorted(spelled(vocab)[3:-1]) == [bytes([byte]) for byte in range(256) if byte != ord("a")]
    assert vocab.end_tokens == (vocab.size - 1,)
    whole = growing.first_tokens(SMALL, 99)
    assert {*spelled(SMALL)} <= {*spelled(whole)}
    assert whole.single_byte_tokens.all()


def test_samples_hold_short_tokens_and_share_them() -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    samples = {longest: growing.sample_by_length(vocab, longest, 1500, seed=2) for longest in (1, 2, 3, 8)}
    assert {longest: sample.size - 1 for longest, sample in samples.items()} == {1: 256, 2: 1500, 3: 1500, 8: 1500}
    for longest, sample in samples.items():
        assert sample.lengths.max() == longest
        assert sample.single_byte_tokens.all()
        assert {*spelled(sample)} <= {*spelled(vocab)}
    long, short = ({token for token in spelled(samples[longest]) if len(token) == 3} for longest in (8, 3))
    assert long < short  # the shuffled list is one: what the wider sample takes of length 3, the narrower does too
    assert spelled(samples[3]) != spelled(growing.sample_by_length(vocab, 3, 1500, seed=4))


def test_a_family_has_a_row_for_each_size_and_engine() -> None:
    engines = [*TWO, {"label": "peer", "backend": "outlines_core"}]
    rows = run(engines=engines, repeats=3)
    assert [(row["parameter"], row["engine"]) for row in rows] == [
        (n, label) for n in (2, 5) for label in ("plain", "classes", "peer")
    ]
    for row in rows:
        assert (row["axis"], row["family"], row["status"], row["message"]) == ("states", "letters", "ok", "")
        assert row["states"] == row["parameter"] + 1
        assert (row["vocab_tokens"], row["mean_token_bytes"], row["repeats"]) == (256, 1.0, 3)
        own = row["engine"] != "peer"
        assert 0 < row["index_s"] < row["compile_s"] if own else row["index_s"] == row["compile_s"] > 0
        assert 0 < row["fixed_index_s"] <= row["fixed_compile_s"]
    assert rows[1]["token_classes"] == 1  # on single bytes, all letters do the same
    assert rows[1]["bytes"] > 0
    assert rows[0]["token_classes"] is None


def test_other_constraints_get_parts_of_the_vocabulary() -> None:
    rows = run(
        tokenizer="mistral-v1",
        regex="[0-9]{3}",
        label="digits",
        vocabulary=[100, 2000, 90_000, 100_000],
        token_length={"tokens": 2600, "lengths": [1, 2, 4]},
    )
    plain = [row for row in rows if row["engine"] == "plain"]
    assert [(row["axis"], row["parameter"]) for row in plain] == [
        *(("vocabulary", size) for size in (100, 2000, 31_997)),  # what it has; asked for once
        *(("token_length", length) for length in (1, 2, 4)),
    ]
    assert {row["states"] for row in rows} == {4}
    assert [row["vocab_tokens"] for row in plain] == [256, 2000, 31_997, 256, 2328, 2600]
    means = [row["mean_token_bytes"] for row in plain[3:]]
    assert means == sorted(means)
    assert means[0] == 1
    assert {row["status"] for row in rows} == {"ok"}


def test_a_slow_engine_is_not_asked_for_more() -> None:
    rows = run(seconds=1e-9, repeats=4, engines=TWO[:1])
    assert [(row["status"], row.get("repeats")) for row in rows] == [("ok", 1), ("not_asked", None)]
    assert re.fullmatch(r"a compile took [\d.e-]+ s, more than 1e-09 s, at 2", rows[1]["message"])


def test_a_broken_limit_ends_the_series_of_one_engine() -> None:
    tight = {"label": "tight", "backend": "token_index", "options": {"max_transitions": 60}}
    rows = run(engines=[tight, *TWO], states={"letters": [2, 5, 6]})
    mine = [row for row in rows if row["engine"] == "tight"]
    assert [row["status"] for row in mine] == ["ok", "memory", "not_asked"]
    assert "more than 60 transitions" in mine[1]["message"]
    assert mine[2]["message"] == "failed (memory) at 5"
    assert {row["status"] for row in rows if row["engine"] != "tight"} == {"ok"}


def test_a_missing_package_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    rows = run(engines=[{"label": "peer", "backend": "outlines_core"}])
    assert [row["status"] for row in rows] == ["error", "error"]
    assert all("pip install" in row["message"] for row in rows)


def test_an_engine_that_cannot_is_asked_again() -> None:
    rows = run(regex="(?=b)[a-z]{1,n}", engines=[{"label": "peer", "backend": "outlines_core"}])
    assert [row["status"] for row in rows] == ["unsupported", "unsupported"]
    assert all(row["states"] == row["parameter"] + 1 for row in rows)


def test_constraints_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match=r"needs values of n: give settings\.states an entry 'other'"):
        run(label="other")
    with pytest.raises(OptionError, match="no template"):
        run(regex="[a-z]+")
    with pytest.raises(OptionError, match="takes regexes"):
        scaling.measure({"tokenizer": "bytes", "choice": ["a"]}, seed=0)


def test_an_automaton_with_too_many_states_is_left_to_the_engines() -> None:
    rows = run(regex="(a|b)*a(a|b){n}", states={"letters": [17]})
    assert [(row["states"], row["status"]) for row in rows] == [(None, "memory")] * 2


GOOD: dict[str, Any] = {
    "states": {"letters": [1, 2]},
    "vocabulary": [10, 20],
    "token_length": {"tokens": 300, "lengths": [1, 2]},
    "repeats": 3,
    "seconds": 0.5,
    "engines": [{"label": "x", "backend": "token_index", "options": {"walk": "per_token"}}],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vocabularies": [1]}, "vocabularies"),
        ({"states": {"letters": [2, 1]}}, r"states\.letters: .*rising"),
        ({"vocabulary": []}, "vocabulary"),
        ({"token_length": {"tokens": 300, "length": [1]}}, r"token_length\.length"),
        ({"repeats": 0}, "repeats"),
        ({"seconds": float("nan")}, "seconds"),
        ({"engines": [{"label": "x"}]}, r"engines\.0\.backend"),
        ({"engines": [{"label": "x", "backend": "token_indx"}]}, "did you mean 'token_index'"),
        ({"engines": [{**TWO[0], "options": {"wlk": "trie"}}]}, "did you mean 'walk'"),
        ({"engines": [{**TWO[0], "options": {"walk": "run"}}]}, "per_token"),
        ({"engines": [TWO[0], TWO[0]]}, "same label"),
        ({"states": {}, "vocabulary": None, "token_length": None}, "at least one"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], said: str) -> None:
    typed_settings(Settings, GOOD)
    with pytest.raises(TokdfaError, match=said):
        typed_settings(Settings, {**GOOD, **change})


def test_the_report_tells_exponents_of_what_is_above_the_fixed_cost() -> None:
    rows = pd.DataFrame(
        {
            "engine": engine, "tokenizer": "t", "family": "f", "axis": "states", "parameter": n, "states": n,
            "vocab_tokens": 256, "mean_token_bytes": 1.0, "compile_s": cost, "index_s": cost, "fixed_index_s": 1.0,
            "status": "ok", "message": "",
        }
        for engine, power in (("square", 2), ("flat", 0))
        for n in (2, 4, 8, 16)
        for cost in (1.0 * n**power,)
    )  # fmt: skip
    results = KIND.results(rows, {})
    said = [line for sentence in KIND.sentences for line in sentence.sentences(results)]
    assert said[0] == "Compile cost against DFA states, exponent (median of 1 series): square 2.00."
    assert KIND.charts[0].build(results).panels
    assert KIND.charts[1].build(results).reason

"""What grows: templates and parts of vocabularies are what they claim, no size goes missing, and growth is told."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import lark
import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.kinds.scaling import KIND, Settings, measure
from tokdfa.lab.measure import growing
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

SMALL = Vocabulary([b"ab", b"", b"a", b"abc", b"b", b"ab", b"bc", b"abcd"], end_tokens=[1])
TWO = [{"label": "plain", "backend": "token_index"}, {"label": "classes", "backend": "tokens_dfa"}]
PROPER = [{"backend": "direct_merge"}, {"backend": "cartesian_merge"}, {"backend": "token_index"}]


def run(**changes: Any) -> list[dict[str, Any]]:
    settings = {"tokenizer": "bytes", "label": "letters", "regex": "[a-z]{1,n}", "states": {"letters": [2, 5]}}
    return measure({"repeats": 1, "engines": TWO, **settings, **changes}, seed=3)


def spelled(vocab: Vocabulary) -> list[bytes]:
    return [vocab.token_bytes(token) for token in range(vocab.size)]


def test_templates_are_filled() -> None:
    assert growing.fill_template("a{n}b{1,n}c{2}{n}", 7, seed=0) == "a{7}b{1,7}c{2}{7}"
    few, many = (growing.fill_template("x(<words>)y", n, seed=1) for n in (3, 5))
    assert many.startswith(few[:-2])
    assert re.fullmatch(r"x\([a-z]{4,10}(\|[a-z]{4,10}){4}\)y", many)
    with pytest.raises(OptionError, match="no template"):
        growing.fill_template("a{1,2}n", 3, seed=0)
    with pytest.raises(OptionError, match="hardly 20 distinct words of 1 letters"):
        growing.random_words(20, 0, (1, 1))


def test_members_are_those_of_json() -> None:
    few, many = (growing.fill_template(r"\{<members>\}", count, seed=1) for count in (3, 5))
    assert many.startswith(few[:-2])
    names = re.findall('"([a-z]{4,10})": ', many)
    members = dict(zip(names, [True, "red", -12, "any, text", False], strict=True))
    assert re.fullmatch(many, json.dumps(members))
    assert not re.fullmatch(many, json.dumps(members | {names[1]: "pink"}))


@pytest.mark.parametrize("template", ["start: (<alternatives>)+\n", "start: <sequence>"])
@pytest.mark.parametrize("count", [2, growing.MOST])
def test_lark_reads_the_texts_of_grammars(template: str, count: int) -> None:
    grammar, text = growing.fill_grammar(template, count)
    tree = lark.Lark(grammar, parser="lalr", keep_all_tokens=True).parse(text)
    assert [token.type for token in tree.children] == [f"T{number}" for number in range(count)]


def test_first_tokens_are_the_first_that_spell() -> None:
    vocab = growing.first_tokens(SMALL, 3)
    assert spelled(vocab)[:3] == [b"ab", b"a", b"abc"]
    assert sorted(spelled(vocab)[3:-1]) == [bytes([byte]) for byte in range(256) if byte != ord("a")]
    assert vocab.end_tokens == (vocab.size - 1,)
    assert growing.first_tokens(SMALL, 99).single_byte_tokens.all()


def test_samples_hold_short_tokens_and_share_them() -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    samples = {longest: growing.sample_by_length(vocab, longest, 1500, seed=2) for longest in (1, 2, 3, 8)}
    assert {longest: sample.size - 1 for longest, sample in samples.items()} == {1: 256, 2: 1500, 3: 1500, 8: 1500}
    for longest, sample in samples.items():
        assert sample.lengths.max() == longest
        assert {*spelled(sample)} <= {*spelled(vocab)}
    long, short = ({token for token in spelled(samples[longest]) if len(token) == 3} for longest in (8, 3))
    assert long < short  # the shuffled list is one: what the wider sample takes of length 3, the narrower does too


def test_a_family_has_a_row_for_each_size_and_engine() -> None:
    rows = run(engines=[*TWO, {"label": "peer", "backend": "outlines_core"}], repeats=3)
    assert [(row["parameter"], row["engine"]) for row in rows] == [
        (n, label) for n in (2, 5) for label in ("plain", "classes", "peer")
    ]
    for row in rows:
        assert (row["axis"], row["family"], row["status"], row["message"]) == ("states", "letters", "ok", "")
        assert row["states"] == row["parameter"] + 1
        assert (row["vocab_tokens"], row["mean_token_bytes"], row["repeats"]) == (256, 1.0, 3)
        assert row["engine"] == "peer" or 0 < row["own_s"] < row["compile_s"]
        assert row["fixed_own_s"] > 0
    assert rows[1]["token_classes"] == 1  # on single bytes, all letters do the same
    assert rows[1]["bytes"] > 0


def test_proper_backends_grow_too() -> None:
    rows = run(tokenizer="mistral-v1", regex="([0-9]{1,2}:){n}", states={"letters": [1, 3]}, engines=PROPER)
    assert {row["status"] for row in rows} == {"ok"}
    for row in rows:
        assert row["states"] == 3 * row["parameter"] + 1
        assert min(row["transitions"], row["bytes"], row["index_states"] - row["parameter"]) > 0


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
    assert {(row["states"], row["status"]) for row in rows} == {(4, "ok")}
    assert [row["vocab_tokens"] for row in plain] == [256, 2000, 31_997, 256, 2328, 2600]
    means = [row["mean_token_bytes"] for row in plain[3:]]
    assert means == sorted(means)


def test_a_slow_engine_or_a_broken_limit_ends_the_series_of_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run(seconds=1e-9, repeats=4, engines=TWO[:1])
    assert [(row["status"], row.get("repeats")) for row in rows] == [("ok", 1), ("not_asked", None)]
    assert re.fullmatch(r"a compile took [\d.e-]+ s, more than 1e-09 s, at 2", rows[1]["message"])
    tight = {"label": "tight", "backend": "token_index", "options": {"max_transitions": 60}}
    rows = run(engines=[tight, *TWO], states={"letters": [2, 5, 6]})
    mine = [row for row in rows if row["engine"] == "tight"]
    assert [row["status"] for row in mine] == ["ok", "memory", "not_asked"]
    assert mine[2]["message"] == "failed (memory) at 5"
    assert {row["status"] for row in rows if row["engine"] != "tight"} == {"ok"}
    # one that cannot take a constraint, or is not there, is asked again
    peer = [{"label": "peer", "backend": "outlines_core"}]
    assert [row["status"] for row in run(regex="(?=b)[a-z]{1,n}", engines=peer)] == ["unsupported", "unsupported"]
    assert [(row["states"], row["status"]) for row in run(regex="(a|b)*a(a|b){n}", states={"letters": [17]})] == [
        (None, "memory")
    ] * 2
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    assert all("pip install" in row["message"] for row in run(engines=peer))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "other"}, r"needs values of n: give settings\.states an entry 'other'"),
        ({"regex": "[a-z]+"}, "no template"),
        ({"states": {"letters": [2, 1]}}, r"states\.letters: .*rising"),
        ({"token_length": {"tokens": 300, "length": [1]}}, r"token_length\.length"),
        ({"seconds": float("nan")}, "seconds"),
        ({"engines": [{"label": "x", "backend": "token_indx"}]}, "did you mean 'token_index'"),
        ({"engines": [{**TWO[0], "options": {"wlk": "trie"}}]}, "did you mean 'walk'"),
        ({"engines": [TWO[0], TWO[0]]}, "same label"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TokdfaError, match=said):
        run(**change)
    with pytest.raises(TokdfaError, match="at least one"):
        typed_settings(Settings, {"engines": TWO})


def test_the_report_tells_ends_and_exponents() -> None:
    """Direct needs time and memory as the cube of the states, lazy in proportion; direct ends at 4 in one family."""
    rows = []
    for family in ("letters", "words"):
        for n in (1, 2, 4, 8):
            place = {"tokenizer": "small", "axis": "states", "family": family, "parameter": n, "states": 10 * n}
            place |= {"vocab_tokens": 9, "mean_token_bytes": 1.0, "fixed_own_s": 1e-6}
            cost = {"status": "ok", "own_s": 1e-3 * n**3, "bytes": 100 * n**3, "index_states": n, "transitions": 7 * n}
            lost = {"status": "memory" if n == 4 else "not_asked"}
            rows.append({**place, "engine": "direct", **(lost if family == "letters" and n >= 4 else cost)})
            rows.append({**place, "engine": "lazy", **cost, "own_s": 1e-3 * n, "bytes": 50 * n})
            rows.append({**place, "engine": "flat", **cost, "own_s": 1e-6})
    told = Told(KIND, rows)
    letters, words = told.built["ends"].rows
    assert [(cell.text, cell.detail) for cell in letters[3:5]] == [("2", "2 states, then memory"), ("8", "8 states")]
    assert words[3].value == 8
    (_, *few), (_, *many) = told.values("growth_time", "family", "direct", "lazy", "flat")
    assert few == pytest.approx([float("nan"), 1, float("nan")], nan_ok=True)
    assert many == pytest.approx([3, 1, float("nan")], nan_ok=True)
    assert told.sentences[0] == "direct: 1 of 2 series finished up to the largest size."
    grows = "direct: time grows with DFA states to the power of 3.00 (median of 1 series"
    assert any(grows in sentence for sentence in told.sentences)
    assert told.sentences[-1] == "22 of 24 measurements succeeded; the others: 1 memory, 1 not asked."
    assert len(told.charts["time_states"].panels) == 2
    lost = Told(KIND, [{**rows[0], "status": "memory", "own_s": None}])
    assert lost.sentences[-1] == "0 of 1 measurements succeeded; the others: 1 memory."

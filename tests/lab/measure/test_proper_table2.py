"""The experiment on 002's Table 2: every step has its rows, and nothing that fails goes missing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tokdfa.backends.proper_merge.cartesian_merge import CartesianMergeMatcher
from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds import proper_table2
from tokdfa.mask import clear_token, mask_to_ids
from tokdfa.vocabulary.tokenizers import load_tokenizer

ENGINES: list[dict[str, Any]] = [
    {"label": "index", "backend": "token_index", "step": 2},
    {"label": "fixpoint", "backend": "cartesian_merge", "step": 3},
    {"label": "pairs", "backend": "cartesian_merge", "step": 3, "options": {"relevance": "pairs"}},
    {"label": "direct", "backend": "direct_merge", "step": 3},
]
TEXTS = ["2024-05", "1999-12"]


def run(**changes: Any) -> list[dict[str, Any]]:
    settings = {"tokenizer": "mistral-v1", "label": "month", "regex": "[0-9]{4}-(0[1-9]|1[0-2])", "engines": ENGINES}
    settings |= {"texts": {"month": TEXTS}, "repeats": 2, "walks": 2, "steps": 5}
    return proper_table2.run_item(settings | changes, seed=1)


def test_every_step_has_its_rows() -> None:
    rows = run(table_with="month")
    assert [(row["step"], row["engine"], row["status"]) for row in rows] == [
        (1, "ours, built", "ok"), (1, "ours, from disk", "ok"), (2, "index", "ok"), (3, "fixpoint", "ok"),
        (3, "pairs", "ok"), (3, "direct", "ok"), (4, "fixpoint", "ok"), (4, "pairs", "ok"), (4, "direct", "ok"),
    ]  # fmt: skip
    assert {row["constraint"] for row in rows[:2]} == {""}
    for row in rows[2:6]:
        assert row["constraint"] == "month"
        assert 0 < row["seconds"] <= row["compile_s"]
        assert row["repeats"] == 2
    assert rows[2]["seconds"] == rows[2]["compile_s"]  # 002's step 2 is all of it
    assert rows[4]["pairs"] == 9
    tokens = [len(load_tokenizer("mistral-v1").encode(text)) for text in TEXTS]
    for row in rows[6:]:
        assert row["differing"] == 0
        assert row["masks"] > 2 * sum(count + 1 for count in tokens)  # both times round, and the walks
        assert 0 < row["seconds"] <= row["p99_s"]
        assert row["again_s"] > 0
        assert row["call_s"] > 0


def test_the_table_of_the_tokenizer_comes_with_one_constraint_only() -> None:
    assert {row["step"] for row in run(table_with="year")} == {2, 3, 4}


def test_the_replay_is_compared_with_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay itself takes 15 s and has tests of its own."""
    from tokdfa.lab.measure.canonicity_replay import ReplayResult

    found = ReplayResult(15.0, 10, 128, 32_000, 3)
    monkeypatch.setattr(proper_table2, "compare_with_replay", lambda _: found)
    row = run(table_with="month", replay=["mistral-v1"], engines=ENGINES[1:2], repeats=1)[2]
    assert (row["engine"], row["seconds"], row["status"], row["bytes"]) == ("002's replay", 15.0, "mismatch", 128)
    assert row["message"] == "3 of 32000 rows differ from the lists"


def test_engines_of_other_tokenizers_are_left_out() -> None:
    engines = [ENGINES[1], {**ENGINES[2], "tokenizers": ["llama3"]}]
    assert {row["engine"] for row in run(engines=engines)} == {"fixpoint"}


def test_limits_are_rows_in_both_steps() -> None:
    limits = {
        "pairs": ("cartesian_merge", {"relevance": "pairs", "max_seconds": 0}, "timeout"),
        "few": ("cartesian_merge", {"relevance": "pairs", "max_pairs": 3}, "memory"),
        "direct": ("direct_merge", {"max_transitions": 3}, "memory"),
    }
    engines = [ENGINES[1]]
    engines += [
        {"label": label, "backend": backend, "step": 3, "options": options}
        for label, (backend, options, _) in limits.items()
    ]
    rows = {(row["step"], row["engine"]): row for row in run(engines=engines, regex="[a-z]{1,5}", texts={})}
    for label, (_, _, status) in limits.items():
        for step in (3, 4):
            assert rows[step, label]["status"] == status
            assert rows[step, label]["message"]
            assert "seconds" not in rows[step, label]
    assert rows[4, "fixpoint"]["status"] == "ok"


def test_a_mask_that_differs_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CartesianMergeMatcher.fill_mask

    def wrong(self: CartesianMergeMatcher, out: Any) -> None:
        right(self, out)
        if type(self.states).__name__ == "PairStates":
            clear_token(out, int(mask_to_ids(out)[0]))

    monkeypatch.setattr(CartesianMergeMatcher, "fill_mask", wrong)
    found = {row["engine"]: row for row in run() if row["step"] == 4}
    assert found["pairs"]["status"] == "mismatch"
    assert found["pairs"]["differing"] > 0
    assert "1 tokens differ from fixpoint after b''" in found["pairs"]["message"]
    assert found["direct"]["status"] == found["fixpoint"]["status"] == "ok"


def test_a_refused_encoding_is_a_failure() -> None:
    found = {row["engine"]: row for row in run(texts={"month": ["2024-13"]}, walks=0) if row["step"] == 4}
    assert {row["status"] for row in found.values()} == {"wrong_refusal"}
    assert "b'2024-1'" in found["fixpoint"]["message"]


def test_a_missing_package_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    peer = {"label": "peer", "backend": "outlines_core", "step": 2}
    rows = run(engines=[*ENGINES[1:2], peer])
    assert [row["status"] for row in rows] == ["ok", "error", "ok"]
    assert "pip install" in rows[1]["message"]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"engines": []}, OptionError, r"settings\.engines"),
        ({"engines": [ENGINES[0], ENGINES[0]]}, OptionError, "same label"),
        ({"engines": [{**ENGINES[0], "step": 4}]}, OptionError, r"engines\.0\.step"),
        ({"engines": [{**ENGINES[0], "backend": "token_indx"}]}, UnknownNameError, "token_index"),
        ({"engines": [{**ENGINES[2], "options": {"relevanc": "pairs"}}]}, UnknownNameError, "relevance"),
        ({"engines": [{**ENGINES[2], "options": {"relevance": "pair"}}]}, OptionError, "fixpoint"),
        ({"seconds": 0}, OptionError, r"settings\.seconds"),
        ({"text": {}}, OptionError, r"settings\.text"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], error: type[TokdfaError], said: str) -> None:
    with pytest.raises(error, match=said):
        proper_table2.check_settings({"engines": ENGINES, **change})


def test_a_schema_brings_its_own_texts() -> None:
    schema = {"enum": ["celsius", "fahrenheit"]}
    texts = ['"celsius"', '"fahrenheit"']
    own = {"label": "unit", "json_schema": schema, "whitespace": "compact", "escapes": "needed", "texts": texts}
    settings = {"tokenizer": "mistral-v1", "engines": ENGINES, "repeats": 1, "walks": 1, "steps": 9}
    rows = proper_table2.run_item(settings | own, seed=1)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["constraint"] for row in rows} == {"unit"}
    assert {row["step"]: row["differing"] for row in rows if row["step"] == 4} == {4: 0}
    assert all(row["states"] > 0 for row in rows if row["step"] < 4)
    refused = proper_table2.run_item(settings | own | {"texts": ['"kelvin"'], "walks": 0}, seed=1)
    assert {row["status"] for row in refused if row["step"] == 4} == {"wrong_refusal"}


@pytest.mark.parametrize("constraint", [{"grammar": 'start: "a"'}, {}, {"regex": "a", "choice": ["b"]}])
def test_what_has_no_automaton_is_refused(constraint: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="regexes, choices and JSON schemas"):
        proper_table2.run_item({"tokenizer": "mistral-v1", "engines": ENGINES} | constraint, seed=0)

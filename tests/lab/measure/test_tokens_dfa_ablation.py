"""The experiment on the parts of the tokens DFA: which variants there are, what is measured, and that faults show."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.run.fake_backends import journal
from tokdfa.backends import registry
from tokdfa.backends.tokens_dfa.strategy import TokensDfa
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import tokens_dfa_ablation as ablation
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

SHIPPED = Path(__file__).parents[3] / "experiments" / "tokens_dfa_ablation.yaml"
#: What the fake backend can read, too.
PATTERN = "ab|abcd|x*"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The backend "fake" of `tests.lab.run.fake_backends` can be named."""
    monkeypatch.setitem(registry.BUILT_IN, "fake", "tests.lab.run.fake_backends:Fake")
    registry._targets.cache_clear()
    journal.clear()
    yield
    registry._targets.cache_clear()


def run(grids: list[dict[str, Any]], baselines: list[dict[str, Any]], **changes: Any) -> dict[str, dict[str, Any]]:
    """The rows of an item on bytes, by variant."""
    plain = {
        "tokenizer": "bytes",
        "label": "small",
        "regex": PATTERN,
        "repeats": 2,
        "rounds": 2,
        "walks": 6,
        "steps": 6,
    }
    rows = ablation.run_item({**plain, "grids": grids, "baselines": baselines, **changes}, seed=7)
    return {row["variant"]: row for row in rows}


def labels(grids: list[dict[str, Any]], baselines: list[dict[str, Any]] | None = None) -> list[str]:
    return [entry.label for entry in ablation.entries({"grids": grids, "baselines": baselines or []})]


def test_grids_give_each_combination_once() -> None:
    grids = [{"byte_classes": [True, False], "threads": [1, 2]}, {}, {"threads": 2, "token_classes": "strings"}]
    assert labels(grids) == [
        "tokens_dfa",
        "tokens_dfa, threads=2",
        "tokens_dfa, no byte_classes",
        "tokens_dfa, no byte_classes, threads=2",
        "tokens_dfa, strings, threads=2",
    ]
    defaults = {option.name: option.default for option in TokensDfa.options}
    entries = ablation.entries({"grids": grids})
    assert entries[0].options == defaults
    assert entries[4].options == {**defaults, "threads": 2, "token_classes": "strings"}
    assert [entry.label for entry in entries[5:]] == ["token_index", "token_index, per_token", "outlines_core"]


def test_the_shipped_experiment_has_every_combination_that_makes_sense() -> None:
    settings = load_config(SHIPPED).settings
    ablation.check_settings(settings)
    entries = ablation.entries(settings)
    assert entries[0].options == {option.name: option.default for option in TokensDfa.options}
    found = {json.dumps(entry.options, sort_keys=True) for entry in entries if entry.backend == "tokens_dfa"}

    def combinations(names: str, **fixed: Any) -> Iterator[str]:
        values = {"threads": (1, 2)}
        for chosen in itertools.product(*(values.get(name, (True, False)) for name in names.split())):
            yield json.dumps(
                {**entries[0].options, **dict(zip(names.split(), chosen, strict=True)), **fixed}, sort_keys=True
            )

    wanted = {*combinations("byte_classes mute_literals threads")}
    for classes in ("strings", "none"):
        names = "dead_bytes byte_classes prefix_graphs mute_literals threads"
        wanted |= {*combinations(names, token_classes=classes)}
    for classes in ("strings", "none", "transformations"):
        wanted |= {*combinations("reduce ready_masks", token_classes=classes)}
        wanted |= {*combinations("", token_classes=classes, minimal=False)}
    assert found == wanted
    assert len(entries) == len(wanted) + 3 == 87


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"repeat": 3}, UnknownNameError, "did you mean 'repeats'"),
        ({"repeats": 0}, OptionError, "settings.repeats must be a positive int, not 0"),
        ({"repeats": 1.5}, OptionError, "settings.repeats must be a positive int"),
        ({"rounds": True}, OptionError, "settings.rounds"),
        ({"seconds": math.nan}, OptionError, "settings.seconds must be a positive float"),
        ({"grids": []}, OptionError, "settings.grids must be a list"),
        ({"grids": {"threads": 1}}, OptionError, "settings.grids must be a list"),
        ({"grids": [["threads"]]}, OptionError, "settings.grids must be a list"),
        ({"grids": [{"threads": []}]}, OptionError, r"settings.grids\[0\] has 0 combinations"),
        (
            {"grids": [{}, {"threads": list(range(1, 1002))}]},
            OptionError,
            r"settings.grids\[1\] has 1,001 combinations",
        ),
        ({"grids": [{"thread": 1}]}, UnknownNameError, "option of backend tokens_dfa 'thread'; did you mean 'threads'"),
        ({"grids": [{5: 1}]}, UnknownNameError, "option of backend tokens_dfa '5'"),
        ({"grids": [{"threads": [1, 0]}]}, OptionError, "must be at least 1"),
        ({"grids": [{"token_classes": "string"}]}, OptionError, "must be one of transformations, strings, none"),
        ({"baselines": "token_index"}, OptionError, r"settings.baselines\[0\] must be a mapping"),
        (
            {"baselines": [{"options": {}}]},
            OptionError,
            r"settings.baselines\[0\] must be a mapping with the key backend",
        ),
        ({"baselines": [{"backend": "token_indx"}]}, UnknownNameError, "did you mean 'token_index'"),
        ({"baselines": [{"backend": "token_index", "optoins": {}}]}, UnknownNameError, "did you mean 'options'"),
        ({"baselines": [{"backend": "token_index", "label": 3}]}, OptionError, r"baselines\[0\].label must be a str"),
        ({"baselines": [{"backend": "token_index", "options": {"lazi": 1}}]}, UnknownNameError, "did you mean 'lazy'"),
        ({"baselines": [{"backend": "tokens_dfa"}]}, OptionError, "two contenders are called 'tokens_dfa'"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(changes: dict[str, Any], error: type[Exception], said: str) -> None:
    good = {"grids": [{}], "baselines": []}
    ablation.check_settings(good)
    with pytest.raises(error, match=said):
        ablation.check_settings({**good, **changes})


def test_rows_hold_options_phases_and_sizes() -> None:
    grids = [{"token_classes": ["transformations", "strings"], "threads": [1, 2], "mute_literals": [False, True]}]
    rows = run(grids, [{"backend": "token_index"}], repeats=3, walks=3, steps=4)
    vocab = load_tokenizer("bytes").vocabulary
    assert len(rows) == 9
    for row in rows.values():
        assert (row["tokenizer"], row["vocab_size"], row["constraint"]) == ("bytes", 257, "small")
        assert (row["status"], row["message"], row["compiles"]) == ("ok", "", 3)
        phases = [value for name, value in row.items() if name.startswith("phase_")]
        assert len(phases) >= 4
        assert all(0 < value < row["compile_s"] for value in phases)
        assert row["masks"] == 2 * row["positions"] > 0
        assert row["advances"] == row["masks"]
        assert row["mask_ns"] > 0 < row["advance_ns"]
        backend = registry.create_backend(row["backend"], vocab, **json.loads(row["options"]))
        sizes = {name.removeprefix("size_"): value for name, value in row.items() if name.startswith("size_")}
        assert sizes == backend.compile(Regex(PATTERN)).sizes
        for option in TokensDfa.options:
            assert row[option.name] == (backend.settings[option.name] if row["backend"] == "tokens_dfa" else None)
    assert rows["tokens_dfa, mute_literals"]["size_literals"] > 0
    assert "phase_walks" in rows["tokens_dfa, strings"]
    assert "phase_walks" not in rows["tokens_dfa"]


def test_muted_variants_have_walks_of_their_own() -> None:
    # a vocabulary in which muting forbids most spellings: they could not follow the walk of the others
    rows = run(
        [{"mute_literals": [False, True]}],
        [{"backend": "token_index"}],
        tokenizer="mistral-v1",
        regex="transformation( transformation){0,2}",
        steps=99,
    )
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert rows["tokens_dfa"]["positions"] == rows["token_index"]["positions"]
    assert rows["tokens_dfa"]["positions"] != rows["tokens_dfa, mute_literals"]["positions"]


def test_who_has_used_up_its_seconds_sits_out_the_rest() -> None:
    rows = run([{"threads": [1, 2]}], [], repeats=4, seconds=1e-9)
    assert [row["compiles"] for row in rows.values()] == [1, 1]
    assert [row["masks"] for row in rows.values()] == [row["positions"] for row in rows.values()]


def test_compiles_take_turns_in_changing_order(fake: None) -> None:
    crowd = [{"backend": "fake", "options": {"tag": tag}} for tag in range(6)]
    run([{}], crowd, repeats=3)
    compiles = [tag for tag, what in journal if what == "compile"]
    rounds = [tuple(compiles[begin : begin + 6]) for begin in range(0, len(compiles), 6)]
    assert len(rounds) == 4  # the first is untimed
    assert all(sorted(one) == list("012345") for one in rounds)
    assert len(set(rounds)) > 1
    journal.clear()
    run([{}], crowd, repeats=3)
    assert [tag for tag, what in journal if what == "compile"] == compiles


@pytest.mark.parametrize(
    ("trick", "status", "said"),
    [
        ({"how": "unsupported"}, "unsupported", "does not take this one"),
        ({"how": "limit"}, "memory", "too many states"),
        ({"how": "panic"}, "crash", "the engine broke down"),
        ({"how": "panic", "where": "mask"}, "crash", "the engine broke down"),
        ({"how": "raise", "where": "init"}, "error", "on purpose"),
        ({"how": "raise", "where": "advance"}, "error", "on purpose"),
        ({"how": "missing", "where": "init"}, "error", "pip install"),
        ({"how": "wide"}, ablation.MASKS_DIFFER, "the first at position 0"),
        ({"how": "strict"}, ablation.MASKS_DIFFER, "a token of the walk is refused"),
    ],
)
def test_one_that_fails_has_a_row_and_holds_up_nobody(
    fake: None, trick: dict[str, str], status: str, said: str
) -> None:
    rows = run([{"reduce": [True, False]}], [{"backend": "fake", "options": trick, "label": "bad"}])
    assert rows["bad"]["status"] == status
    assert said in rows["bad"]["message"]
    assert [rows[name]["status"] for name in ("tokens_dfa", "tokens_dfa, no reduce")] == ["ok", "ok"]
    assert rows["tokens_dfa"]["masks"] == 2 * rows["tokens_dfa"]["positions"]


def test_limits_of_variants_are_rows_too() -> None:
    rows = run([{"max_states": [100, 2]}], [])
    assert rows["tokens_dfa, max_states=2"]["status"] == "memory"
    assert rows["tokens_dfa, max_states=2"]["compile_s"] is None
    assert rows["tokens_dfa, max_states=100"]["status"] == "ok"


def test_a_walk_needs_only_one_that_compiles() -> None:
    rows = run([{"max_states": [2, 100]}], [])
    assert [row["status"] for row in rows.values()] == ["memory", "ok"]
    assert rows["tokens_dfa, max_states=100"]["masks"] > 0
    rows = run([{"max_states": 2}], [])
    assert [(row["status"], row["positions"]) for row in rows.values()] == [("memory", 0)]


def test_other_constraints_are_refused() -> None:
    with pytest.raises(OptionError, match="each constraint needs a regex"):
        ablation.run_item({"tokenizer": "bytes", "choice": ["a"], "grids": [{}]}, seed=0)

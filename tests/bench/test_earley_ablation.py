"""The experiment on the parts of the Earley engine: its variants, its sorts of rows, and what holds between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokdfa.backends.earley_trie import EarleyTrie
from tokdfa.bench import earley_ablation as ablation
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.runs.config import load_config

SHIPPED = Path(__file__).parents[2] / "experiments" / "earley_ablation.yaml"
ITEM: dict[str, Any] = {
    "tokenizer": "mistral-v1",
    "label": "words",
    "grammar": 'start: WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore / +/\n',
    "texts": ["one, two, three", "one,one"],
    "walks": 2,
    "steps": 8,
    "rounds": 2,
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return ablation.run_item({**ITEM, "points": 5}, seed=1)


def test_variants_are_options_of_the_backend() -> None:
    options = {option.name: option for option in EarleyTrie.options}
    for variant in ablation.VARIANTS.values():
        for name, value in variant.items():
            assert options[name].check(value) == value
    assert set(ablation.DRAWN) <= set(ablation.VARIANTS)


def test_the_shipped_experiment_can_be_run() -> None:
    config = load_config(SHIPPED)
    ablation.check_settings(config.settings)
    assert all(entry.grammar and entry.texts for entry in config.constraints)
    assert len(config.constraints) == 9


def test_there_is_a_row_for_each_path_and_variant(rows: list[dict[str, Any]]) -> None:
    found = [row for row in rows if row["row"] == "variant"]
    assert [(row["path"], row["variant"]) for row in found] == [
        (path, variant) for path in ("random walks", "texts") for variant in ablation.VARIANTS
    ]
    for row in found:
        assert (row["status"], row["message"], row["rounds"]) == ("ok", "", 2)
        assert (row["tokenizer"], row["vocab_size"], row["constraint"]) == ("mistral-v1", 32_000, "words")
        assert 0 < row["mask_ns_p50"] <= row["mask_ns_p99"]
        assert row["advance_ns_mean"] > 0 < row["compile_s"]
        assert row["lexeme_ends"] <= row["nodes_visited"]
        assert 0 < row["mask_scans"] <= row["rows_scanned"]


def test_variants_differ_in_their_work_as_they_should(rows: list[dict[str, Any]]) -> None:
    for path in ("random walks", "texts"):
        found = {row["variant"]: row for row in rows if row["row"] == "variant" and row["path"] == path}
        for name in ("no mask memo", "partition", "slices", "walk", "one_byte walk"):
            assert found[name]["masks_made"] == found[name]["masks"]
        for name in ("all on", "cold partitions", "no step memo", "one_byte"):
            assert found[name]["masks_made"] == found[name]["situations"] < found[name]["masks"]
        walk, partition, ready = (found[name]["nodes_visited"] for name in ("walk", "partition", "all on"))
        assert walk > partition >= ready
        assert found["slices"]["nodes_visited"] <= walk
        assert found["walk"]["rows"] == found["all on"]["rows"]


def test_masks_are_told_one_by_one_for_some_variants(rows: list[dict[str, Any]]) -> None:
    masks = [row for row in rows if row["row"] == "mask"]
    assert {row["variant"] for row in masks} == set(ablation.DRAWN)
    for variant in ablation.DRAWN:
        mine = [row for row in masks if row["variant"] == variant and row["path"] == "texts"]
        assert len(mine) == 5
        assert mine[0]["position"] == 0
        assert all(row["ns"] > 0 and 0 < row["allowed"] <= 32_000 for row in mine)
    first = {row["variant"]: row["allowed"] for row in masks if row["path"] == "texts" and row["position"] == 0}
    assert len(set(first.values())) == 1  # the same positions, the same masks


def test_positions_are_spread_evenly() -> None:
    assert ablation.spread_out(range(10), 4) == [0, 2, 5, 7]
    assert ablation.spread_out(range(3), 9) == [0, 1, 2]


def test_a_variant_that_fails_has_a_row_that_says_so() -> None:
    rows = ablation.run_item({**ITEM, "variants": ["walk"], "seconds": 1e-9}, seed=1)
    assert [(row["status"], row["mask_ns_mean"]) for row in rows] == [("timeout", None)] * 2


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"variants": ["wolk"]}, UnknownNameError, "did you mean 'walk'"),
        ({"points": 0}, OptionError, "settings.points must be a positive int, not 0"),
        ({"point": 3}, UnknownNameError, "setting of earley_ablation 'point'"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ablation.check_settings(settings)

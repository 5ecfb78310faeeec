"""The experiment on slices: its engines, its rows, and the counts that follow from the claims themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokdfa.backends.registry import backend_class
from tokdfa.errors import UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import slices

SHIPPED = Path(__file__).parents[3] / "experiments" / "slices.yaml"
OURS = ("walk", "slices", "general slices", "partition")


def run(pattern: str, texts: list[str], **changes: Any) -> dict[str, dict[str, Any]]:
    """Engine -> its row along the texts."""
    plain = {"tokenizer": "mistral-v1", "label": "string", "regex": pattern, "walks": 1, "steps": 3, "rounds": 2}
    rows = slices.run_item({**plain, "texts": texts, **changes}, seed=1)
    return {row["engine"]: row for row in rows if row["path"] == "texts"}


def test_engines_have_options_of_their_backends() -> None:
    for engine in slices.ENGINES.values():
        options = {option.name: option for option in backend_class(engine.backend).options}
        for name, value in engine.options.items():
            assert options[name].check(value) == value
        assert slices.ENGINES[slices.WALK_OF[engine.label]].language == engine.language


def test_the_shipped_experiment_can_be_run() -> None:
    config = load_config(SHIPPED)
    slices.check_settings(config.settings)
    assert all(entry.texts for entry in config.constraints)
    with pytest.raises(UnknownNameError, match="did you mean 'slices'"):
        slices.check_settings({"engines": ["slice"]})


def test_slices_apply_inside_a_string_and_leave_less_to_walk() -> None:
    rows = run('"([^"\\\\\\x00-\\x1F]|\\\\["\\\\nt])*"', ['"two words and some more"'])
    assert set(rows) == set(slices.ENGINES)
    for row in rows.values():
        assert (row["status"], row["message"], row["rounds"]) == ("ok", "", 2)
        assert row["masks"] == rows["walk"]["masks"]
        # all but the one before the first quote and the one after the last allow nearly all tokens
        assert row["wide_masks"] == row["masks"] - 2
        assert 0 < row["mask_ns_p50"] <= row["mask_ns_p99"]
        assert row["wide_ns_mean"] > 0 < row["first_ns_mean"]
    for name in ("slices", "general slices"):
        assert rows[name]["applied"] == rows[name]["wide_applied"] == rows[name]["wide_masks"]
        assert 0 < rows[name]["slice_proofs"] < rows[name]["masks"] * 10
        assert rows[name]["wide_nodes"] < rows["walk"]["wide_nodes"] / 4
    assert rows["walk"]["applied"] == rows["partition"]["applied"] == rows["walk"]["slice_proofs"] == 0
    assert rows["partition"]["nodes_visited"] < rows["slices"]["nodes_visited"] < rows["walk"]["nodes_visited"]


def test_a_length_that_no_slice_keeps_leaves_the_walk() -> None:
    rows = run('"[^"\\\\\\x00-\\x1F\\x7F]{0,5}"', ['"abc"'], engines=["walk", "slices", "partition"])
    assert list(rows) == ["walk", "slices", "partition"]
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert rows["slices"]["applied"] == 0
    assert rows["slices"]["nodes_visited"] == rows["walk"]["nodes_visited"]
    assert rows["partition"]["nodes_visited"] < rows["walk"]["nodes_visited"]


def test_an_engine_that_fails_has_a_row_that_says_so() -> None:
    rows = run('"a*"', ['"a"'], engines=["walk"], seconds=1e-9)
    assert (rows["walk"]["status"], rows["walk"]["mask_ns_mean"], rows["walk"]["wide_ns_mean"]) == (
        *("timeout", None, None),
    )

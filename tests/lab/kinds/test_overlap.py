"""Masks beside a forward pass: a row for each batch and arrangement, what is hidden, and batches too large."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.kinds.overlap import AFTER, DURING, KIND, frames
from tokdfa.models.table import TableModel


def measured(**changes: Any) -> list[dict[str, Any]]:
    models = [{"name": "table?seed=1", "tokenizer": "bytes", "label": "m"}]
    settings = {"models": models, "tasks": ["dates", "topics"], "sizes": [1, 3], "steps": 4, **changes}
    assert KIND.measure is not None
    return KIND.measure(settings, 0)


def test_steps_take_turns_and_ask_the_model_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[tuple[int, ...]]] = []
    rows_of = TableModel.log_probabilities

    def listen(self: TableModel, prefixes: Any) -> Any:
        asked.append([tuple(prefix) for prefix in prefixes])
        return rows_of(self, prefixes)

    monkeypatch.setattr(TableModel, "log_probabilities", listen)
    rows = [row for row in measured() if row["part"] == "batch"]
    assert [(row["size"], row["arrangement"]) for row in rows] == [(n, how) for n in (1, 3) for how in (AFTER, DURING)]
    for row in rows:
        assert row["status"] == "ok"
        assert row["step_s"] >= row["pass_s"] > 0
        assert row["wait_s"] >= 0
    batches = [prefixes for prefixes in asked if len(prefixes) == 3]
    assert len(batches) == 1 + 4  # the prompts, then the steps
    for before, after in pairwise(batches):
        assert [prefix[:-1] for prefix in after] == before


def test_what_is_hidden_is_a_share_of_the_masks() -> None:
    place = {"model": "m", "size": 8}
    rows = [
        {**place, "arrangement": AFTER, "step_s": 1.5, "pass_s": 1.0, "wait_s": 0.5},
        {**place, "arrangement": DURING, "step_s": 1.225, "pass_s": 1.1, "wait_s": 0.125},
    ]
    (both,) = frames({"": pd.DataFrame(rows)})["sizes"].to_dict("records")
    assert (both["mask_s"], both["added"], both["hidden"]) == (0.5, 0.5, 0.75)


def test_too_few_references_are_an_error() -> None:
    with pytest.raises(OptionError, match="213 references of more than 4 tokens, and a batch is to have 500"):
        measured(sizes=[1, 500])

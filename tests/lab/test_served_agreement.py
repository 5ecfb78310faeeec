"""The check of a MaskBench page against an outside measurement, on made-up ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.lab.kinds.test_maskbench import MADE_UP, row
from tests.lab.served_agreement import agreement, disagreements, outside_rows
from tokdfa.lab.kinds.maskbench import KIND


def outside(factor: float = 1.0, longest: float = 1.0) -> list[dict[str, Any]]:
    """What an outside check says of the cases of "ours" in `MADE_UP`: in µs, and one that it could not measure."""
    tbm = [factor * micros for micros in range(1, 101)]
    tbm[-1] *= longest
    cases: list[dict[str, Any]] = [
        {"id": f"{name}.json", "ok": True, "ttfm": factor * 1500.0, "tbm": tbm} for name in ("A---1", "A---2", "B---2")
    ]
    return [*cases, {"id": "B---1.json", "ok": True, "err": "timeout", "tbm": []}]


def ours() -> Any:
    return pd.DataFrame([one for one in MADE_UP if one["engine"] == "ours"])


def test_equal_measurements_agree_in_everything() -> None:
    found = agreement(ours(), outside_rows(outside(), "ours"))
    assert {one.what: one.ratio for one in found} == {one.what: pytest.approx(1.0, rel=1e-6) for one in found}
    by_name = {one.what: one for one in found}
    assert by_name["TTFM, p50"].base == 1.5e6
    assert by_name["TBM, p99"].base == pytest.approx(1e3 * float(np.percentile(np.arange(1, 101), 99)))
    assert by_name["whole cases, sum"].base == pytest.approx(3 * (1.5e6 + 1e3 * 5050))
    assert disagreements([found]) == []


def test_what_differs_is_named() -> None:
    slower = disagreements([agreement(ours(), outside_rows(outside(1.2), "ours"))])
    assert "TBM, p50" in slower
    assert "TTFM, sum" in slower
    assert disagreements([agreement(ours(), outside_rows(outside(1.05), "ours"))]) == []
    found = agreement(ours(), outside_rows(outside(longest=1.5), "ours"))
    assert {one.what for one in found if one.ratio > 1.4} == {"TBM, p99.9", "TBM, longest"}
    assert disagreements([found]) == [], "single samples are printed only"


def test_the_first_engine_says_first_where_it_is_slower() -> None:
    peer = [row("peer", "A---1", micros=0.5), row("peer", "A---2", micros=0.5)]
    rows = pd.DataFrame([*(one for one in MADE_UP if one["engine"] == "ours"), *peer])
    results = KIND.results(rows, {})
    said = [line for sentence in KIND.sentences for line in sentence.sentences(results)]
    assert said[0].startswith("ours is slower than another engine here")
    assert "as peer takes for whole case, p50 2.0 times" in said[0]
    engines = [{"backend": "one", "label": "ours"}, {"backend": "one", "label": "peer"}]
    itself = KIND.results(rows, {"settings": {"engines": engines}})
    assert not KIND.sentences[0].sentences(itself), "an engine is not set against itself with other options"

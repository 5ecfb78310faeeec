"""Reports on runs of kind ``canonicity``, of made-up figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.report import canonicity
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

#: tokenizer -> how many times the figures of the first.
SCALE = {"mistral-v1": 1.0, "large": 4.0}


def figure(tokenizer: str, group: str, name: str, value: float | None, unit: str = "", **more: Any) -> dict[str, Any]:
    place = {"item_id": tokenizer, "tokenizer": tokenizer, "vocab_size": 100, "group": group, "name": name}
    return {
        **place,
        "value": value,
        "unit": unit,
        "samples": 3,
        "at": None,
        "note": "",
        "status": "ok",
        "message": "",
        **more,
    }


def figures(mismatches: int = 0) -> list[dict[str, Any]]:
    rows = []
    for tokenizer, scale in SCALE.items():
        parts = {"rules": 0.02, "derivations": 0.03, "forest": 0.01, "interval lists": 0.14, "total": 0.2}
        rows += [figure(tokenizer, "build", name, value * scale, "s") for name, value in parts.items()]
        rows += [figure(tokenizer, "disk", "load", 0.03 * scale, "s"), figure(tokenizer, "disk", "file", 5e6, "B")]
        rows += [figure(tokenizer, "mask", "wide first", 8e-6 * scale, "s")]
        rows += [figure(tokenizer, "count", "most forbidden", 12_260 * scale, note="' '")]
        rows += [figure(tokenizer, "forbidden", "quantile", 10.0**k * scale, at=k / 4) for k in range(5)]
        for kind in ("pieces", "texts"):
            counts = {"judged": 1_000, "proper": 600, "improper": 400, "mismatches": 0, "disputed": 0}
            rows += [figure(tokenizer, kind, name, value) for name, value in counts.items()]
            rows += [figure(tokenizer, kind, "seconds", 2.0, "s")]
    replay = {"rules": 58_876, "rows compared": 32_000, "rows that differ": mismatches}
    rows += [figure("mistral-v1", "replay", name, value) for name, value in replay.items()]
    return [*rows, figure("mistral-v1", "replay", "seconds", 12.0, "s")]


def run(rows: list[dict[str, Any]]) -> RunData:
    frames = {"results": pd.DataFrame(rows)}
    fake = FakeRun(Path("made-up"), config(name="proper", kind="canonicity", reference=""), dict(PROVENANCE), frames)
    return RunData.read(fake)


@pytest.fixture(scope="module")
def data() -> RunData:
    return run(figures())


def test_tables(data: RunData) -> None:
    tables = {table.name: table for table in build_tables(data)}
    assert list(tables) == [
        *("canonicity_judged", "canonicity_build", "canonicity_disk", "canonicity_count", "canonicity_mask"),
        *("canonicity_replay", "environment"),
    ]
    judged = tables["canonicity_judged"].frame
    assert judged["sequences"].tolist() == ["pieces", "texts"] * 2
    assert judged["mismatches"].tolist() == [0] * 4
    build = tables["canonicity_build"]
    assert build.columns == ("tokenizer", "rules", "derivations", "forest", "interval lists", "total")
    assert [cell.text for cell in build.rows[1]] == ["large", "80.0 ms", "120 ms", "40.0 ms", "560 ms", "800 ms"]
    assert [cell.text for cell in tables["canonicity_disk"].rows[0]] == ["mistral-v1", "30.0 ms", "5.00 MB"]
    assert tables["canonicity_count"].rows[0][1].detail == "after ' '"
    assert [row[0].text for row in tables["canonicity_replay"].rows] == ["mistral-v1"]


def test_headlines(data: RunData) -> None:
    assert build_headlines(data) == [
        "4,000 sequences judged (2,000 as pieces, 2,000 as texts) with 2 tokenizers: "
        "0 mismatches with the reference libraries.",
        "Tables built: mistral-v1 200 ms, large 800 ms.",
        "mistral-v1: 002 reports 20.9 s for the same table, on another machine, 104 times as long.",
        "mistral-v1: 002's replay of 58,876 rules takes 12.0 s on this machine, 60 times our whole build; "
        "0 of 32,000 rows of the two tables differ.",
        "Read from the disk, checked and verified: mistral-v1 30.0 ms, large 120 ms.",
        "First mask of a wide list: mistral-v1 8.00 µs, large 32.0 µs.",
        "Most tokens forbidden after one token: mistral-v1 12,260 (after ' '), large 49,040 (after ' ').",
    ]


def test_mismatches_and_failures_are_said() -> None:
    rows = [row for row in figures(mismatches=7) if (row["tokenizer"], row["name"]) != ("large", "mismatches")]
    rows += [figure("large", kind, "mismatches", 3) for kind in ("pieces", "texts")]
    rows.append(figure("large", "texts", "example", None, note="[1, 2]: proper, but the reference says improper"))
    rows.append(figure("large", "replay", "failure", None, status="memory", message="too large"))
    found = run(rows)
    sentences = build_headlines(found)
    assert "with 2 tokenizers: 6 mismatches with" in sentences[0]
    assert any("7 of 32,000 rows of the two tables differ" in sentence for sentence in sentences)
    assert sentences[-1] == "1 part was not measured or not finished: 1 memory."
    tables = {table.name: table for table in build_tables(found)}
    assert [cell.text for cell in tables["canonicity_mismatches"].rows[0]] == [
        *("large", "texts", "example", "[1, 2]: proper, but the reference says improper"),
    ]
    assert [cell.text for cell in tables["canonicity_not_measured"].rows[0]] == [
        *("large", "replay", "failure", "too large"),
    ]


def test_plots(data: RunData) -> None:
    bars, curves = build_plots(data)
    axes = bars.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["mistral-v1", "large"]
    widths = [patch.get_width() for patch in axes.patches]
    assert widths == pytest.approx([0.02, 0.03, 0.01, 0.14, 0.08, 0.12, 0.04, 0.56])
    assert [patch.get_x() for patch in axes.patches[:4]] == pytest.approx([0, 0.02, 0.05, 0.06])
    assert [text.get_text() for text in axes.texts] == ["200 ms", "800 ms"]
    one, other = curves.figure.axes[0].lines
    assert list(one.get_ydata()) == [0, 0.25, 0.5, 0.75, 1]
    assert list(other.get_xdata()) == [4, 40, 400, 4_000, 40_000]
    assert one.get_color() != other.get_color()


def test_runs_without_figures() -> None:
    assert build_headlines(run([])) == ["The run has no results yet."]
    assert [plot.reason for plot in build_plots(run([]))] == ["the run has no results yet"]
    nothing = run([figure("t", "forbidden", "quantile", 0.0, at=0.5)])
    assert [plot.reason for plot in build_plots(nothing)] == ["no building was timed", "no token forbids another"]
    assert canonicity.headlines(nothing) == []

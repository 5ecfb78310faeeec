"""Reports on cold starts, from a made-up run in which every time is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

PHASES = {"python": 20, "import": 30, "tokenizer": 400, "code": 100}


def row(start: str, first_ms: float | None) -> dict[str, Any]:
    times = {f"ns_{phase}": 1e6 * value if first_ms else None for phase, value in PHASES.items()}
    until = sum(PHASES.values()) + first_ms if first_ms else None
    return {
        **{"tokenizer": "llama", "vocab_size": 100_000, "constraint": "json", "start": start},
        **{"backend": start.split(maxsplit=1)[0], "from_disk": "disk" in start, "processes": 3, **times},
        **{"status": "ok" if first_ms else "timeout", "message": "" if first_ms else "longer than 120 s"},
        **{"ns_first": 1e6 * first_ms if first_ms else None, "ns_again": 2e5 if first_ms else None},
        "ns_until_first": 1e6 * until if until else None,
    }


def read(rows: list[dict[str, Any]]) -> RunData:
    settings = config(name="cold_start", kind="cold_start", reference="")
    return RunData.read(FakeRun(Path("made-up"), settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)}))


def test_phases_and_failures() -> None:
    data = read([row("pushdown_trie", 300.0), row("pushdown_trie from disk", 30.0), row("glrmask", None)])
    tables = {table.name: table for table in build_tables(data)}
    lines = [[cell.text for cell in line] for line in tables["cold_start"].rows]
    assert lines[0] == [
        *("llama", "json", "pushdown_trie", "20.0 ms", "30.0 ms", "400 ms", "100 ms", "300 ms", "850 ms", "200 µs")
    ]
    assert [line[7] for line in lines] == ["300 ms", "30.0 ms"]
    assert [line[7].best for line in tables["cold_start"].rows] == [False, True]
    assert [cell.text for cell in tables["broken"].rows[0]][2:] == ["glrmask", "timeout", "longer than 120 s"]
    (plot,) = build_plots(data)
    assert plot.figure is not None
    assert sum(len(axes.patches) for axes in plot.figure.axes) == 2 * 5
    sentences = build_headlines(data)
    assert sentences[0].startswith(
        "llama, json: compiling, tables and the first mask: pushdown_trie from disk 30.0 ms (code 100 ms, the same "
        "constraint again 200 µs); pushdown_trie 300 ms"
    )
    assert "From asking for a process to its first mask: 580 ms to 850 ms." in sentences
    assert "Of 3 starts these failed: 1 timeout." in sentences


def test_nothing_to_show() -> None:
    (plot,) = build_plots(read([row("glrmask", None)]))
    assert plot.figure is None

"""Cold starts: a process for each sample, failures as rows, and what the report says of a made-up run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds import cold_start
from tokdfa.lab.kinds.cold_start import KIND, STARTS, Settings, Start, measure
from tokdfa.lab.measure.cold_start_process import PHASES
from tokdfa.lab.measure.settings import typed_settings

REGEX = {"tokenizer": "bytes", "label": "word", "regex": '"[a-z]{1,9}"'}


def test_a_process_for_each_sample() -> None:
    rows = measure({**REGEX, "starts": ["pushdown_trie", "earley_trie"], "processes": 1}, seed=0)
    assert [(row["start"], row["status"]) for row in rows] == [("pushdown_trie", "ok"), ("earley_trie", "ok")]
    for row in rows:
        times = [row[f"ns_{phase}"] for phase in PHASES]
        assert min(times) > 0
        assert row["ns_until_first"] == pytest.approx(sum(times[:-1]))
        assert (row["vocab_size"], row["constraint"], row["processes"]) == (257, "word", 1)


def test_failures_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STARTS, "refuses", Start("earley_trie", {"patience": -1}))
    monkeypatch.setitem(STARTS, "dies", Start("nothing"))
    refused, died = measure({**REGEX, "starts": ["refuses", "dies"], "processes": 2}, seed=0)
    assert (refused["status"], refused["processes"], refused["ns_first"]) == ("error", 0, None)
    assert "patience" in refused["message"]
    assert re.search("no backend .*nothing", died["message"])
    monkeypatch.setattr(cold_start, "PROCESS_SECONDS", 0.01)
    (late,) = measure({**REGEX, "starts": ["pushdown_trie"], "processes": 2}, seed=0)
    assert (late["status"], late["message"]) == ("timeout", "a process took longer than 0.01 s")


def test_faults_name_their_setting() -> None:
    with pytest.raises(OptionError, match=r"settings\.process: "):
        typed_settings(Settings, {"process": 3})
    with pytest.raises(OptionError, match=r"settings\.processes: "):
        typed_settings(Settings, {"processes": 0})
    with pytest.raises(UnknownNameError, match=r"entry of settings\.starts"):
        typed_settings(Settings, {"starts": ["pushdown"]})


def row(start: str, first_ms: float | None) -> dict[str, Any]:
    before = {"python": 20.0, "import": 30.0, "tokenizer": 400.0, "code": 100.0}
    first = first_ms or 0.0
    times = {**before, "first": first, "again": 0.2, "until_first": 550 + first}
    return {
        **{"tokenizer": "llama", "constraint": "json", "start": start, "backend": start},
        **{"status": "ok" if first_ms else "timeout", "message": ""},
        **{f"ns_{phase}": 1e6 * value if first_ms else None for phase, value in times.items()},
    }


def test_the_report_tells_phases() -> None:
    starts = {"pushdown_trie": 300.0, "earley_trie": 30.0, "llguidance": 600.0, "glrmask": None}
    told = Told(KIND, [row(start, first) for start, first in starts.items()])
    tables, said = told.tables, told.sentences
    assert tables["cold_start"]["start"].tolist() == ["pushdown_trie", "earley_trie", "llguidance"]
    assert tables["cold_start"]["compile, tables, first mask"].tolist() == pytest.approx([0.3, 0.03, 0.6])
    assert tables["cold_start"]["all until the first mask"].tolist() == pytest.approx([0.85, 0.58, 1.15])
    assert tables["broken"]["start"].tolist() == ["glrmask"]
    assert "580 ms to 1.15 s" in said[0]
    assert "20x faster" in next(one for one in said if one.startswith("earley_trie against llguidance"))
    assert len(told.panels["cold_start"]["llama, json"]) == 3 * 5

"""Cold starts: a process for each sample, failures as rows, and what the report says of a made-up run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.lab.kinds import cold_start
from tokdfa.lab.kinds.cold_start import KIND, measure
from tokdfa.lab.measure.cold_start_process import PHASES

REGEX = {"tokenizer": "bytes", "label": "word", "regex": '"[a-z]{1,9}"', "processes": 1}


def test_a_process_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = {"backend": "token_index", "label": "refuses", "options": {"max_states": 1}}
    engines = [{"backend": "pushdown_trie"}, {"backend": "earley_trie"}, refuses]
    *rows, refused = measure({**REGEX, "engines": engines}, seed=0)
    assert [(row["engine"], row["status"]) for row in rows] == [("pushdown_trie", "ok"), ("earley_trie", "ok")]
    for row in rows:
        times = [row[f"ns_{phase}"] for phase in PHASES]
        assert min(times) > 0
        assert row["ns_stored"] > 0
        assert row["ns_until_first"] == pytest.approx(sum(times[:-1]))
        assert (row["vocab_size"], row["constraint"], row["processes"]) == (257, "word", 1)
    assert (refused["engine"], refused["processes"], "ns_first" in refused) == ("refuses", 0, False)
    assert refused["status"] == "memory"
    monkeypatch.setattr(cold_start, "PROCESS_SECONDS", 0.01)
    (late,) = measure({**REGEX, "engines": engines[:1]}, seed=0)
    assert (late["status"], late["message"]) == ("timeout", "a process took longer than 0.01 s")


def row(engine: str, first_ms: float | None) -> dict[str, Any]:
    before = {"python": 20.0, "import": 30.0, "tokenizer": 400.0, "code": 100.0}
    first = first_ms or 0.0
    times = {**before, "first": first, "again": 0.2, "stored": 7.0, "until_first": 550 + first}
    return {
        **{"tokenizer": "llama", "constraint": "json", "engine": engine},
        **{"status": "ok" if first_ms else "timeout", "message": ""},
        **{f"ns_{phase}": 1e6 * value if first_ms else None for phase, value in times.items()},
    }


def test_the_report_tells_phases() -> None:
    engines = {"pushdown_trie": 300.0, "earley_trie": 30.0, "llguidance": 600.0, "glrmask": None}
    told = Told(KIND, [row(engine, first) for engine, first in engines.items()])
    tables, said = told.tables, told.sentences
    assert tables["cold_start"]["engine"].tolist() == ["pushdown_trie", "earley_trie", "llguidance"]
    assert tables["cold_start"]["compile, tables, first mask"].tolist() == pytest.approx([0.3, 0.03, 0.6])
    assert tables["cold_start"]["from disk"].tolist() == pytest.approx([0.007] * 3)
    assert tables["cold_start"]["all until the first mask"].tolist() == pytest.approx([0.85, 0.58, 1.15])
    assert tables["broken"]["engine"].tolist() == ["glrmask"]
    assert "580 ms to 1.15 s" in said[0]
    assert "20x faster" in next(one for one in said if one.startswith("earley_trie against llguidance"))
    assert len(told.panels["cold_start"]["llama, json"]) == 3 * 5

"""Cold starts: a process for each sample, in homes that are empty and used, and failures as rows."""

from __future__ import annotations

import pytest

from tokdfa.lab.kinds import cold_start
from tokdfa.lab.kinds.cold_start import measure
from tokdfa.lab.measure.cold_start_process import PHASES

REGEX = {"tokenizer": "bytes", "label": "word", "regex": '"[a-z]{1,9}"', "processes": 1}


def test_a_process_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = {"backend": "token_index", "label": "refuses", "options": {"max_states": 1}}
    engines = [{"backend": "token_index", "options": {"lazy": True}}, {"backend": "llguidance"}, refuses]
    *rows, refused = measure({**REGEX, "engines": engines}, seed=0)
    assert [(row["engine"], row["home"]) for row in rows] == [
        (engine, home) for engine in ("token_index", "llguidance") for home in cold_start.HOMES
    ]
    for row in rows:
        for unit in ("ns", "clock_ns"):
            times = [row[f"{unit}_{phase}"] for phase in PHASES]
            assert min(times) > 0
            assert row[f"{unit}_until_first"] == pytest.approx(sum(times[:-1]))
        assert ("ns_stored" in row) == (row["home"] == "used home")
        assert (row["status"], row["vocab_size"], row["constraint"], row["processes"]) == ("ok", 257, "word", 1)
    assert (refused["engine"], refused["processes"], "ns_mask" in refused) == ("refuses", 0, False)
    assert refused["status"] == "memory"
    monkeypatch.setattr(cold_start, "PROCESS_SECONDS", 0.01)
    (late,) = measure({**REGEX, "engines": engines[:1]}, seed=0)
    assert (late["status"], late["message"]) == ("timeout", "a process took longer than 0.01 s")

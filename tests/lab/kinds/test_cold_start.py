"""Cold starts: a process for each sample, and failures as rows."""

from __future__ import annotations

import pytest

from tokdfa.lab.kinds import cold_start
from tokdfa.lab.kinds.cold_start import measure
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

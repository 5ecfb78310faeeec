from __future__ import annotations

import re

import pytest

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds import cold_start
from tokdfa.lab.kinds.cold_start import STARTS, Start, check_settings, run_item
from tokdfa.lab.measure.cold_start_process import PHASES

REGEX = {"tokenizer": "bytes", "label": "word", "regex": '"[a-z]{1,9}"'}


def test_a_process_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []
    sample = cold_start._sample

    def spy(one, tokenizer, constraint, folder, save=False):
        asked.append((one.label, save))
        return sample(one, tokenizer, constraint, folder, save)

    monkeypatch.setattr(cold_start, "_sample", spy)
    rows = run_item({**REGEX, "starts": ["pushdown_trie", "pushdown_trie from disk"], "processes": 1}, seed=0)
    assert asked == [("pushdown_trie from disk", True), ("pushdown_trie", False), ("pushdown_trie from disk", False)]
    assert [(row["start"], row["from_disk"], row["status"]) for row in rows] == [
        ("pushdown_trie", False, "ok"), ("pushdown_trie from disk", True, "ok"),
    ]  # fmt: skip
    for row in rows:
        times = [row[f"ns_{phase}"] for phase in PHASES]
        assert min(times) > 0
        assert row["ns_until_first"] == pytest.approx(sum(times[:-1]))
        assert row["ns_again"] < row["ns_first"]
        assert (row["vocab_size"], row["constraint"], row["processes"]) == (257, "word", 1)


def test_failures_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STARTS, "refuses", Start("earley_trie", {"disk_partitions": True, "shared_partitions": False}))
    monkeypatch.setitem(STARTS, "dies", Start("nothing"))
    refused, died = run_item({**REGEX, "starts": ["refuses", "dies"], "processes": 2}, seed=0)
    assert (refused["status"], refused["processes"], refused["ns_first"]) == ("error", 0, None)
    assert "leave shared_partitions on" in refused["message"]
    assert re.search("no backend .*nothing", died["message"])
    monkeypatch.setattr(cold_start, "PROCESS_SECONDS", 0.01)
    (late,) = run_item({**REGEX, "starts": ["pushdown_trie"], "processes": 2}, seed=0)
    assert (late["status"], late["message"]) == ("timeout", "a process took longer than 0.01 s")


def test_settings_are_checked() -> None:
    check_settings({"starts": ["glrmask"], "processes": 1})
    with pytest.raises(UnknownNameError, match="setting of cold_start"):
        check_settings({"process": 3})
    with pytest.raises(UnknownNameError, match=r"entry of settings.starts"):
        check_settings({"starts": ["pushdown"]})
    with pytest.raises(OptionError, match="positive int"):
        check_settings({"processes": 0})

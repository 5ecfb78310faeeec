"""Whole runs in worker processes: nobody's failure harms another, and nothing is lost or doubled."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from tests.lab.run.experiments import children, experiment, run_all, trick
from tokdfa.errors import ClusterError, OptionError, StoreError
from tokdfa.lab import kinds
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.run import execute
from tokdfa.lab.run.plan import describe
from tokdfa.lab.run.store import open_run


def test_every_way_to_fail_is_a_row_and_the_others_are_measured(tmp_path):
    config = experiment(
        tmp_path,
        "fake",
        *(trick(how) for how in ("raise", "panic", "limit", "unsupported", "no_memory", "segfault", "exit", "kill")),
        *(trick(how, "init", f"init {how}") for how in ("raise", "missing", "segfault")),
        *(trick(how, "warm", f"warm {how}") for how in ("raise", "exit")),
        *(trick(how, "mask", f"mask {how}") for how in ("raise", "segfault")),
        *(trick(how, "advance", f"advance {how}") for how in ("panic", "exit")),
        "fake_peer",
    )
    summary, rows, samples = run_all(config)
    found = {label: row["status"] for label, row in rows.items()}
    assert found == {
        **{"fake": "ok", "raise": "error", "panic": "crash", "limit": "memory", "unsupported": "unsupported"},
        **{"no_memory": "memory", "segfault": "crash", "exit": "crash", "kill": "crash"},
        **{"init raise": "error", "init missing": "unavailable", "init segfault": "crash"},
        **{"warm raise": "ok", "warm exit": "crash"},
        **{"mask raise": "error", "mask segfault": "crash", "advance panic": "crash", "advance exit": "crash"},
        **{"fake_peer": "ok"},
    }
    assert rows["raise"]["message"] == "RuntimeError: on purpose"
    assert "SIGSEGV during 'compile'" in rows["segfault"]["message"]
    assert "exit code 7" in rows["exit"]["message"]
    assert "so long" in rows["exit"]["message"]  # its last words
    assert "killed from outside" in rows["kill"]["message"]
    assert "SIGSEGV during 'first mask'" in rows["mask segfault"]["message"]
    assert "exit code 7 during 'warm up'" in rows["warm exit"]["message"]
    assert "pip install 'tokdfa[peers]'" in rows["init missing"]["message"]
    assert summary.measured == len(rows) == len(config.backends)
    assert summary.statuses == Counter(found.values())
    for label in ("fake", "warm raise", "fake_peer"):
        own = samples[samples["item_id"] == rows[label]["item_id"]]
        counts = own["measure"].value_counts()
        assert counts["compile"] == counts["first_mask"] == 2
        assert counts["mask"] == counts["advance"] == rows[label]["steps"] > 0
        assert rows[label]["memory_peak_bytes"] >= 0
        assert rows[label]["compile_s"] <= rows[label]["first_mask_s"]
        assert own.loc[own["measure"] == "mask", "differs"].eq(0).all()
    # the same walks for all: so the same counts of allowed tokens
    walks = [
        samples.loc[(samples["item_id"] == rows[label]["item_id"]) & (samples["measure"] == "mask")]
        for label in ("fake", "fake_peer")
    ]
    assert walks[0]["allowed"].tolist() == walks[1]["allowed"].tolist()


def test_time_limits(tmp_path):
    config = experiment(
        tmp_path,
        "fake",
        trick("sleep"),
        trick("sleep", "mask", "sleep mask"),
        trick("nap", "mask", "nap"),
        limits={"seconds": 0.8},
        workloads=[{"kind": "strings", "texts": ["ab", "ac", "b"] * 3}],
        measures=["compile", "mask"],
    )
    summary, rows, _ = run_all(config)
    assert {label: row["status"] for label, row in rows.items()} == {
        **{"fake": "ok", "sleep": "timeout", "sleep mask": "timeout", "nap": "timeout"},
    }
    assert rows["sleep"]["message"] == "'compile' took longer than 0.8 s"
    assert rows["sleep mask"]["message"] == "'mask' took longer than 0.8 s"
    assert "masks and advances took more than 0.8 s" in rows["nap"]["message"]
    assert rows["nap"]["steps"] > 0
    assert summary.statuses == {"ok": 1, "timeout": 3}


def test_memory_limits(tmp_path):
    config = experiment(
        tmp_path,
        "fake",
        trick("hog"),
        trick("hog", "advance", "hog advance"),
        limits={"seconds": 20, "memory_mb": 150},
    )
    summary, rows, _ = run_all(config)
    assert {label: row["status"] for label, row in rows.items()} == {
        "fake": "ok",
        "hog": "memory",
        "hog advance": "memory",
    }
    assert "more than 150 MiB" in rows["hog"]["message"]
    assert "'compile' took" in rows["hog"]["message"]
    assert "'advance' took" in rows["hog advance"]["message"]
    assert summary.statuses == {"ok": 1, "memory": 2}


def test_nobody_can_decide_the_walks(tmp_path):
    config = experiment(
        tmp_path,
        trick("raise", "mask"),
        trick("nap", "mask"),
        limits={"seconds": 0.5},
        measures=["mask"],
        constraints=[{"label": "long", "choice": ["a" * 20]}],
        workloads=[{"kind": "random_walk", "walks": 1}],
    )
    _, rows, _ = run_all(config)
    assert rows["raise"]["message"] == "while deciding the walks: RuntimeError: on purpose"
    assert rows["nap"]["status"] == "timeout"
    assert rows["nap"]["message"] == "the walks were not decided within 0.5 s"


@pytest.mark.parametrize("measures", [["first_mask"], ["compile", "advance"], ["memory"]])
def test_only_what_is_asked_for_is_kept(tmp_path, measures):
    _, rows, samples = run_all(experiment(tmp_path, "fake", measures=measures))
    assert set(samples["measure"]) == {*measures} - {"memory"}
    row = rows["fake"]
    assert (row["compile_s"] == row["compile_s"]) == ("compile" in measures)  # NaN otherwise
    assert (row["first_mask_s"] == row["first_mask_s"]) == ("first_mask" in measures)
    assert isinstance(row["memory_peak_bytes"], int) == ("memory" in measures)


THREE = [{"label": text, "choice": [text, text * 2]} for text in "abc"]


def test_a_finished_run_is_not_measured_again_until_asked(tmp_path, monkeypatch):
    config = experiment(tmp_path, "fake", constraints=THREE)
    first, rows, samples = run_all(config)
    assert (first.found, first.measured, first.interrupted) == (0, 3, False)
    with monkeypatch.context() as patch:
        patch.setattr(execute, "Slots", None)  # no worker may be started
        second, again, same = run_all(config)
    assert (second.found, second.measured) == (3, 0)
    assert "3 were there already" in str(second)
    assert again.keys() == rows.keys()
    assert same.equals(samples)
    with monkeypatch.context() as patch:

        def nobody(*_, **__):
            raise ClusterError("no scheduler answers")

        patch.setattr(execute, "Slots", nobody)
        with pytest.raises(ClusterError):
            run_all(config, fresh=True)
    assert open_run(first.folder).samples().equals(samples)  # nothing is dropped that nobody will measure
    third, _, fresh = run_all(config, fresh=True)
    assert (third.found, third.measured) == (0, 3)
    assert fresh["allowed"].tolist() == samples["allowed"].tolist()  # the same walks
    assert fresh["ns"].tolist() != samples["ns"].tolist()


def test_what_is_missing_is_measured_and_the_rest_left_alone(tmp_path):
    config = experiment(tmp_path, "fake", constraints=THREE)
    summary, _, samples = run_all(config)
    parts = sorted((summary.folder / "items").iterdir())
    before = {part.name: part.read_bytes() for part in parts}
    parts[1].write_bytes(b"damaged")
    with pytest.raises(StoreError, match=rf"{parts[1].name} is damaged .*; delete .*{parts[1].name} and start"):
        execute.run(config)
    with pytest.raises(StoreError, match="is damaged"):
        describe(config)
    parts[1].unlink()
    assert describe(config).finished == 2
    summary, _, again = run_all(config)
    assert (summary.found, summary.measured) == (2, 1)
    after = {part.name: part.read_bytes() for part in parts}
    assert [after[part.name] == before[part.name] for part in parts] == [True, False, True]
    assert again["item_id"].tolist() == samples["item_id"].tolist()


def test_earlier_starts_are_kept_and_changes_since_are_said(tmp_path):
    config = experiment(tmp_path, "fake", constraints=THREE)
    summary, _, _ = run_all(config)
    provenance = open_run(summary.folder).provenance
    assert provenance["ended"] >= provenance["started"]
    assert provenance["interrupted"] is False
    assert provenance["tokenizers"]["bytes"]["size"] == 257
    assert provenance["earlier"] == []
    store = execute.RunStore.locate(config)
    store.write_provenance({**provenance, "tokdfa": "0.0.1"})
    again, _, _ = run_all(config)
    assert "since the earlier items were measured: tokdfa was 0.0.1" in again.notes[0]
    found = open_run(summary.folder).provenance
    assert found["earlier"] == [{**{k: v for k, v in provenance.items() if k != "earlier"}, "tokdfa": "0.0.1"}]
    assert found["tokenizers"] == provenance["tokenizers"]


def test_events_tell_a_progress_bar_all_it_needs(tmp_path):
    config = experiment(tmp_path, "fake", trick("raise"), constraints=THREE)
    events = []
    execute.run(config, progress=events.append)
    assert [event.event for event in events if event.event not in ("working", "note")] == [
        "started",
        *(["group_started", "group_finished"] * 3),
        "ended",
    ]
    assert [event.done for event in events if event.event == "group_finished"] == [2, 4, 6]
    assert {event.total for event in events} == {6}
    assert all(event.message.startswith("bytes / ") for event in events if event.event == "working")
    assert events[0].remaining is None
    assert events[-1].remaining == 0
    assert all(first.elapsed <= second.elapsed for first, second in itertools.pairwise(events))
    assert (
        "bytes / a / random_walk 2x4 / raise: error: RuntimeError"
        in next(e for e in events if e.event == "note").message
    )


def test_an_error_of_the_callback_ends_the_workers(tmp_path):
    def refuse(event):
        if event.event == "working":
            raise ZeroDivisionError

    with pytest.raises(OptionError, match="at least one worker"):
        execute.run(experiment(tmp_path, "fake"), workers=0)
    with pytest.raises(ZeroDivisionError):
        execute.run(experiment(tmp_path, trick("sleep")), progress=refuse)
    assert not children(recursive=True)
    execute.run(experiment(tmp_path, "fake"))  # the lock is free again


def test_a_tokenizer_that_fails_in_the_worker_fails_its_items(tmp_path):
    config = experiment(tmp_path, "fake")
    missing = config.model_copy(update={"tokenizers": ["bytes", "hf:/nowhere/tokenizer.json"]})
    missing._source = config.source
    summary = execute.run(missing)
    items = open_run(summary.folder).items()
    assert items["status"].tolist() == ["ok", "error"]
    assert "there is no such file" in items["message"].tolist()[1]


def write_special(tmp_path, monkeypatch, settings):
    monkeypatch.setitem(kinds.ADDED, "dice", "tests.lab.run.fake_kind:KIND")
    path = tmp_path / "special.yaml"
    constraints = "[{label: a, choice: [a]}, {label: b, choice: [b]}]"
    path.write_text(
        "name: dice\nkind: dice\ntokenizers: [bytes]\nlimits: {seconds: 0.5}\n"
        f"constraints: {constraints}\nsettings: {settings}\n"
    )
    return load_config(path)


def test_a_special_kind(tmp_path, monkeypatch):
    config = write_special(tmp_path, monkeypatch, "{sides: 6}")
    summary = execute.run(config)
    stored = open_run(summary.folder)
    results = stored.results()
    assert list(results.columns) == ["item_id", "tokenizer", "constraint", "throw", "points", "note"]
    assert results["constraint"].tolist() == ["a"] * 3 + ["b"] * 3
    assert results["points"].between(1, 6).all()
    assert results["note"].tolist()[1] == '{"n": 1}'
    items = stored.items()
    assert items["label"].tolist() == items["backend"].tolist() == ["dice", "dice"]
    assert items["status"].tolist() == ["ok", "ok"]
    again = execute.run(config, fresh=True)
    assert open_run(again.folder).results().equals(results)  # from the seed alone


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [("raise", "error", "cast away"), ("die", "crash", "exit code 5"), ("sleep", "timeout", "'run' took longer")],
)
def test_a_special_kind_that_fails(tmp_path, monkeypatch, name, status, said):
    summary = execute.run(write_special(tmp_path, monkeypatch, f"{{sides: 6, trick: {name}}}"))
    items = open_run(summary.folder).items()
    assert items["status"].tolist() == [status] * 2
    assert all(said in message for message in items["message"])
    assert open_run(summary.folder).results().empty

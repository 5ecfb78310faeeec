"""A task's decisions, driven by hand-made answers; no process is started."""

from __future__ import annotations

import json

import pytest

from tests.lab.run.experiments import experiment, trick
from tokdfa.backends.base import BUDGET_OPTIONS
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.measure import Outcome, Sample
from tokdfa.lab.measure.workloads import Walk
from tokdfa.lab.run.jobs import GroupJob, GroupResult, MemoryJob, MemoryResult
from tokdfa.lab.run.tasks import GroupTask
from tokdfa.lab.run.watch import Answer

#: The options that every backend has.
BUDGETS = {option.name: option.default for option in BUDGET_OPTIONS}

WALKS = (Walk((97,), None, False, False),)


@pytest.fixture
def task(tmp_path):
    config = experiment(tmp_path, "fake", trick("wide"), trick("lax"))
    return GroupTask(config, expand_groups(config)[0])


def labels(job):
    return [entry.label for entry in job.entries]


def measured(job, **statuses):
    outcomes = [Outcome(label, status=statuses.get(label, "ok")) for label in labels(job)]
    return Answer(result=GroupResult(tuple(outcomes), WALKS, 257, "f"))


def finish(task):
    statuses = task.statuses()
    return {item.label: statuses[item.item_id] for item in task.group.items}


def test_the_way_of_an_undisturbed_group(task):
    job = task.next_job()
    assert isinstance(job, GroupJob)
    assert labels(job) == ["fake", "wide", "lax"]
    task.take(measured(job))
    for number, label in enumerate(labels(job)):
        memory = task.next_job()
        assert isinstance(memory, MemoryJob)
        assert labels(memory) == [label]
        assert memory.walks == WALKS
        task.take(Answer(result=MemoryResult(number, number + 1)))
    assert task.next_job() is None
    assert finish(task) == {"fake": "ok", "wide": "ok", "lax": "ok"}
    assert [row["memory_retained_bytes"] for row in task.tables()["items"]] == [1, 2, 3]


def test_who_breaks_a_limit_is_left_out_and_the_others_start_again(task):
    first = task.next_job()
    task.take(Answer(failure=Failure("timeout", "too long"), contender=1))
    second = task.next_job()
    assert labels(second) == ["fake", "lax"]
    assert (second.seed, second.constraint) == (first.seed, first.constraint)
    task.take(Answer(failure=Failure("crash", "SIGSEGV"), contender=1))  # its number in this job
    third = task.next_job()
    assert labels(third) == ["fake"]
    task.take(measured(third))
    assert labels(task.next_job()) == ["fake"]
    task.take(Answer(result=MemoryResult(1, 1)))
    assert task.next_job() is None
    assert finish(task) == {"fake": "ok", "wide": "timeout", "lax": "crash"}


@pytest.mark.parametrize("fails", [False, True])
def test_who_takes_part_again_has_no_rows_and_its_failure_harms_nobody(task, fails):
    again, *new = task.group.items
    task.group = task.group.left({again.item_id: "ok"}, "fake")
    job = task.next_job()
    assert labels(job) == ["fake", "wide", "lax"]
    if fails:
        task.take(Answer(failure=Failure("timeout", "too long"), contender=0))
        job = task.next_job()
        assert labels(job) == ["wide", "lax"]
    task.take(measured(job))
    for label in ("wide", "lax"):
        assert labels(task.next_job()) == [label]
        task.take(Answer(result=MemoryResult(1, 1)))
    assert task.next_job() is None
    assert task.statuses() == {item.item_id: "ok" for item in new}
    assert [row["item_id"] for row in task.tables()["items"]] == [item.item_id for item in new]
    assert task.failures() == {}


def test_nobody_is_measured_where_nobody_can_be_blamed(task):
    task.next_job()
    task.take(Answer(failure=Failure("error", "no tokenizer")))
    assert task.next_job() is None
    assert set(finish(task).values()) == {"error"}
    assert {row["message"] for row in task.tables()["items"]} == {"no tokenizer"}


def test_a_kill_from_outside_is_forgiven_once_per_contender(task):
    killed = Failure("crash", "killed from outside")
    for contender, left in ((1, 3), (0, 3), (1, 2), (0, 1)):
        task.next_job()
        task.take(Answer(failure=killed, contender=contender, from_outside=True))
        assert len(labels(task.next_job())) == left
    task.take(measured(task.next_job()))
    assert finish(task) == {"fake": "crash", "wide": "crash", "lax": "ok"}


@pytest.mark.parametrize("failure_in", ["answer", "result"])
def test_a_failure_while_measuring_memory_keeps_the_times(task, failure_in):
    job = task.next_job()
    answer = measured(job)
    answer.result.outcomes[0].samples.append(Sample("compile", 0, 0, 5_000))
    task.take(answer)
    task.next_job()
    failure = Failure("memory", "too much")
    task.take(
        Answer(failure=failure, contender=0) if failure_in == "answer" else Answer(result=MemoryResult(failure=failure))
    )
    assert labels(task.next_job()) == ["wide"]  # the next one's turn
    row = task.tables()["items"][0]
    assert (row["status"], row["message"]) == ("memory", "while measuring memory: too much")
    assert row["compile_s"] == pytest.approx(5e-6)
    assert row["memory_peak_bytes"] is None


def test_memory_is_measured_of_those_that_got_through_only(task):
    task.take(measured(task.next_job(), fake="timeout", wide="wrong_refusal", lax="error"))
    assert labels(task.next_job()) == ["wide"]


def test_rows_say_what_was_measured(task):
    answer = measured(task.next_job())
    outcome = answer.result.outcomes[1]
    outcome.samples += [Sample("compile", n, 0, ns) for n, ns in enumerate((3_000, 1_000, 2_000))]
    outcome.samples += [Sample("first_mask", 0, 0, 9_000, 4), Sample("mask", 0, 0, 7, 4, 1)]
    outcome.phases += [{"parse": 1.0, "build": 5.0}, {"parse": 3.0, "build": 4.0}, {"parse": 2.0}]
    outcome.sizes = {"states": 3, "bytes": 10, "more": 2}
    outcome.counters = {"nodes": 8}
    outcome.steps = 6
    task.take(answer)
    tables = task.tables()
    row = tables["items"][1]
    expected = {
        **{"experiment": "test", "tokenizer": "bytes", "vocab_size": 257, "backend": "fake", "label": "wide"},
        **{"constraint": "choice", "constraint_kind": "choice", "workload": "random_walk 2x4", "status": "ok"},
        **{"compile_s": 2e-6, "first_mask_s": 9e-6, "states": 3, "transitions": None, "bytes": 10, "steps": 6},
    }
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert json.loads(row["options"]) == {"how": "wide", "where": "compile", "marker": "", "tag": 0, **BUDGETS}
    assert list(json.loads(row["phases"]).items()) == [("parse", 2.0), ("build", 4.5)]
    assert json.loads(row["sizes"]) == outcome.sizes
    assert json.loads(row["counters"]) == outcome.counters
    assert row["seconds"] > 0
    assert tables["samples"][-1] == {
        **{"item_id": row["item_id"], "measure": "mask", "repeat": 0, "step": 0},
        **{"ns": 7, "allowed": 4, "differs": 1},
    }

"""A task's decisions, driven by hand-made answers; no process is started."""

from __future__ import annotations

import json

import pytest

from tests.lab.run.experiments import experiment, trick
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.measure.contenders import Outcome, Sample
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.workloads import Walk
from tokdfa.lab.run.group_task import GroupTask
from tokdfa.lab.run.jobs import GroupResult
from tokdfa.lab.run.worker import Answer

WALKS = (Walk((97,), None, False, False),)


@pytest.fixture
def group(tmp_path):
    config = experiment(tmp_path, "fake", trick("wide"), trick("lax"))
    return config, expand_groups(config)[0]


def labels(job):
    return [item.label for item in job.items]


def succeed(job, **statuses):
    """The answer to a job in which all goes well, or ends in these statuses."""
    if job.walks is not None:
        return Answer((1, 2))
    outcomes = [Outcome(label, status=statuses.get(label, "ok")) for label in labels(job)]
    return Answer(GroupResult(tuple(outcomes), WALKS, {"size": 257, "fingerprint": "f"}))


def fail(kind, contender=-1, from_outside=False):
    """The answer to a job that has died."""
    return Answer(failure=Failure(kind, f"a {kind}"), contender=contender, from_outside=from_outside)


def measure(group, *answers):
    """What the group comes to: label -> row; the jobs it has asked for; and what it is. At the end all goes well."""
    jobs, left = [], list(answers)

    def carry(job, look):
        jobs.append(job)
        answer = left.pop(0) if left else succeed
        return answer(job) if callable(answer) else answer

    config, chosen = group
    measured = GroupTask(config, chosen, carry, lambda doing: None).measure()
    assert not left
    return {row["label"]: row for row in measured.tables["items"]}, jobs, measured


def statuses(rows):
    return {label: row["status"] for label, row in rows.items()}


def test_who_breaks_a_limit_is_left_out_and_the_others_start_again(group):
    # the second failure is of the second of those that are left
    rows, jobs, _ = measure(group, fail("timeout", 1), fail("crash", 1))
    assert statuses(rows) == {"fake": "ok", "wide": "timeout", "lax": "crash"}
    assert [labels(job) for job in jobs] == [["fake", "wide", "lax"], ["fake", "lax"], ["fake"], ["fake"]]


@pytest.mark.parametrize("fails", [False, True])
def test_who_takes_part_again_has_no_rows_and_its_failure_harms_nobody(group, fails):
    config, whole = group
    again, *new = whole.items
    part = config, whole.left({again.item_id: "ok"}, "fake")
    rows, jobs, measured = measure(part, *([fail("timeout", 0)] if fails else []))
    assert statuses(rows) == {"wide": "ok", "lax": "ok"}
    together = [["fake", "wide", "lax"], *([["wide", "lax"]] if fails else [])]
    assert [labels(job) for job in jobs] == [*together, ["wide"], ["lax"]]
    assert [row["item_id"] for row in measured.tables["items"]] == [item.item_id for item in new]


def test_a_kill_from_outside_is_forgiven_once_per_contender(group):
    killed = [fail("crash", contender, from_outside=True) for contender in (1, 0, 1, 0)]
    rows, jobs, _ = measure(group, *killed)
    assert statuses(rows) == {"fake": "crash", "wide": "crash", "lax": "ok"}
    assert [len(labels(job)) for job in jobs] == [3, 3, 3, 2, 1, 1]


def test_a_failure_while_measuring_memory_keeps_the_times(group):
    def timed(job):
        answer = succeed(job)
        answer.result.outcomes[0].samples.append(Sample("compile", 0, 0, 5_000))
        return answer

    rows, _, _ = measure(group, timed, fail("memory", 0))
    assert (rows["fake"]["status"], rows["fake"]["message"]) == ("memory", "while measuring memory: a memory")
    assert rows["fake"]["compile_s"] == pytest.approx(5e-6)
    assert rows["fake"]["memory_peak_bytes"] is None
    assert rows["wide"]["memory_peak_bytes"] == 1


def test_memory_is_measured_of_those_that_got_through_only(group):
    _, jobs, _ = measure(group, lambda job: succeed(job, fake="timeout", wide="wrong_refusal", lax="error"))
    assert [labels(job) for job in jobs[1:]] == [["wide"]]


def test_rows_say_what_was_measured(group):
    def answer(job):
        found = succeed(job)
        outcome = found.result.outcomes[1]
        outcome.samples += [Sample("compile", n, 0, ns) for n, ns in enumerate((3_000, 1_000, 2_000))]
        outcome.samples += [Sample("first_mask", 0, 0, 9_000, 4), Sample("mask", 0, 0, 7, 4, 1)]
        outcome.phases += [{"parse": 1.0, "build": 5.0}, {"parse": 3.0, "build": 4.0}, {"parse": 2.0}]
        outcome.sizes, outcome.counters, outcome.steps = {"states": 3, "bytes": 10, "more": 2}, {"nodes": 8}, 6
        return found

    rows, _, measured = measure(group, answer)
    row = rows["wide"]
    expected = {
        **{"experiment": "test", "tokenizer": "bytes", "vocab_size": 257, "backend": "fake", "label": "wide"},
        **{"constraint": "choice", "constraint_kind": "choice", "workload": "random_walk 2x4", "status": "ok"},
        **{"compile_s": 2e-6, "first_mask_s": 9e-6, "states": 3, "transitions": None, "bytes": 10, "steps": 6},
    }
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert json.loads(row["options"])["how"] == "wide"
    assert list(json.loads(row["phases"]).items()) == [("parse", 2.0), ("build", 4.5)]
    assert (json.loads(row["sizes"])["more"], json.loads(row["counters"])) == (2, {"nodes": 8})
    assert row["seconds"] > 0
    assert measured.tables["samples"][-1] == {
        **{"item_id": row["item_id"], "measure": "mask", "repeat": 0, "step": 0},
        **{"ns": 7, "allowed": 4, "differs": 1},
    }


@pytest.fixture
def bench(tmp_path):
    """An item of four cases; no case is read."""
    data = tmp_path / "data"
    data.mkdir()
    for name in "abcd":
        (data / f"{name}.json").write_text('{"schema": true, "tests": []}')
    file = tmp_path / "bench.yaml"
    settings = {"data": str(data), "engines": [{"backend": "fake"}]}
    file.write_text(json.dumps({"name": "b", "kind": "maskbench", "tokenizers": ["bytes"], "settings": settings}))
    config = load_config(file)
    return config, expand_groups(config)[0]


def sent(*cases, failure=None, **more):
    """The answer to a job that has sent rows of these cases, and has come to its end unless it failed."""
    rows = tuple((case, {"case": case, "by": failure}) for case in cases)
    result = None if failure or more else []
    return Answer(result, Failure(failure, f"a {failure}") if failure else None, rows=rows, **more)


def cases_of(jobs):
    """What each job was left with, and which failures it was told."""
    return [({0, 1, 2, 3} - job.done, {case: one.kind for case, one in job.failures.items()}) for job in jobs]


def test_a_case_that_ends_its_process_costs_that_case_only(bench):
    answers = [sent(0, failure="timeout", contender=1), sent(1, 2, failure="crash", contender=2), sent(3)]
    _, jobs, measured = measure(bench, *answers)
    assert cases_of(jobs) == [
        ({0, 1, 2, 3}, {}), ({1, 2, 3}, {1: "timeout"}), ({3}, {1: "timeout", 2: "crash"}),
    ]  # fmt: skip
    assert [row["case"] for row in measured.tables["results"]] == [0, 1, 2, 3]
    assert measured.tables["items"][0]["status"] == "ok"


def test_a_process_that_ends_between_cases_is_followed_by_another(bench):
    _, jobs, measured = measure(bench, sent(0, 1), sent(2, 3))
    assert cases_of(jobs) == [({0, 1, 2, 3}, {}), ({2, 3}, {})]
    assert len(measured.tables["results"]) == 4
    # one that does nothing will not get further, and the next makes the rows of that
    _, jobs, _ = measure(bench, sent(), sent(0, 1, 2, 3))
    assert cases_of(jobs)[1] == ({0, 1, 2, 3}, {-1: "crash"})


def test_a_case_killed_from_outside_is_forgiven_once(bench):
    killed = fail("crash", 0, from_outside=True)
    _, jobs, _ = measure(bench, killed, killed, sent(0, 1, 2, 3))
    assert cases_of(jobs) == [({0, 1, 2, 3}, {}), ({0, 1, 2, 3}, {}), ({0, 1, 2, 3}, {0: "crash"})]


def test_an_item_whose_failures_cannot_be_told_fails_itself(bench):
    _, jobs, measured = measure(bench, fail("error"), fail("error"))
    assert len(jobs) == 2
    assert measured.tables["items"][0]["status"] == "error"
    assert measured.tables["results"] == []

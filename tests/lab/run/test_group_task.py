"""A task's decisions, driven by hand-made answers; no process is started."""

from __future__ import annotations

import json
import zlib

import pytest

from tests.lab.run.experiments import experiment, trick
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.measure.contenders import Outcome, Sample
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.workloads import Walk
from tokdfa.lab.run.group_task import GroupTask
from tokdfa.lab.run.jobs import Memory, Plan, Planned
from tokdfa.lab.run.turns import Taken, Turn
from tokdfa.lab.run.worker import Answer

WALKS = (Walk((97,), None, False, False),)
VOCABULARY = {"size": 257, "fingerprint": "f"}


@pytest.fixture
def group(tmp_path):
    config = experiment(tmp_path, "fake", trick("wide"), trick("lax"))
    return config, expand_groups(config)[0]


def succeed(job, status="ok"):
    """The answer to a job that goes well, or to a turn that ends in this status."""
    if isinstance(job.task, Turn):
        return Answer(Taken(Outcome(job.item.label, status), VOCABULARY))
    return Answer(Planned(WALKS) if isinstance(job.task, Plan) else (1, 2))


def fail(kind, contender=-1, from_outside=False):
    """The answer to a job that has died."""
    return Answer(failure=Failure(kind, f"a {kind}"), contender=contender, from_outside=from_outside)


def measure(group, *answers, **of_labels):
    """What the group comes to: label -> row; the jobs it has asked for; and what it is.

    First come these answers; then each label has its own, for its next jobs; at the end all goes well.
    """
    jobs, left = [], list(answers)

    def carry(job, look):
        jobs.append(job)
        mine = left or of_labels.get(job.item.label)
        answer = mine.pop(0) if mine else succeed
        return answer(job) if callable(answer) else answer

    config, chosen = group
    measured = GroupTask(config, chosen, carry, lambda doing: None).measure()
    assert not left
    assert not any(of_labels.values())
    return {row["label"]: row for row in measured.tables["items"]}, jobs, measured


def statuses(rows):
    return {label: row["status"] for label, row in rows.items()}


def done(jobs, label):
    """What a contender was asked for: its turns by their repeat or as "walks", "plan" and "memory"."""
    tasks = [job.task for job in jobs if job.item.label == label]
    turns = {task: "walks" if task.walks else task.repeat for task in tasks if isinstance(task, Turn)}
    return [turns.get(task, type(task).__name__.lower()) for task in tasks]


def test_contenders_take_turns_in_an_order_that_is_drawn(group):
    _, jobs, _ = measure(group)
    assert done(jobs, "fake") == [0, 1, "plan", "walks", "memory"]  # the first one is the reference
    assert done(jobs, "wide") == done(jobs, "lax") == [0, 1, "walks", "memory"]
    turns = [job.item.label for job in jobs if isinstance(job.task, Turn)]
    rounds = [turns[k : k + 3] for k in (0, 3, 6)]
    assert all(sorted(one) == ["fake", "lax", "wide"] for one in rounds)
    assert len({*map(tuple, rounds)}) > 1
    assert [job.item.label for job in measure(group)[1]] == [job.item.label for job in jobs]


def test_who_breaks_a_limit_is_left_out_and_the_others_go_on(group):
    rows, jobs, _ = measure(group, wide=[fail("timeout", 0)], lax=[succeed, fail("crash", 0)])
    assert statuses(rows) == {"fake": "ok", "wide": "timeout", "lax": "crash"}
    assert done(jobs, "fake") == [0, 1, "plan", "walks", "memory"]
    assert (done(jobs, "wide"), done(jobs, "lax")) == ([0], [0, 1])


def test_walks_are_decided_by_the_next_one_if_the_reference_cannot(group):
    rows, jobs, _ = measure(group, fake=[succeed, succeed, fail("error", 0)])
    assert statuses(rows) == {"fake": "error", "wide": "ok", "lax": "ok"}
    assert rows["fake"]["message"] == "while deciding the walks: a error"
    assert done(jobs, "wide") == [0, 1, "plan", "walks", "memory"]
    late = [succeed, succeed, fail("timeout", 0)]
    rows, jobs, _ = measure(group, fake=[*late], wide=[*late], lax=[*late])
    assert {row["message"] for row in rows.values()} == {"a timeout"}
    assert not any(isinstance(job.task, Memory) for job in jobs)


@pytest.mark.parametrize("fails", [False, True])
def test_who_takes_part_again_has_no_rows_and_its_failure_harms_nobody(group, fails):
    config, whole = group
    again, *new = whole.items
    part = config, whole.left({again.item_id: "ok"}, "fake")
    rows, jobs, measured = measure(part, fake=[fail("timeout", 0)] if fails else [])
    assert statuses(rows) == {"wide": "ok", "lax": "ok"}
    assert done(jobs, "fake") == ([0] if fails else [0, 1, "plan", "walks"])
    assert [row["item_id"] for row in measured.tables["items"]] == [item.item_id for item in new]


def test_a_kill_from_outside_is_forgiven_once_per_contender(group):
    killed = fail("crash", 0, from_outside=True)
    rows, jobs, _ = measure(group, fake=[killed, killed], wide=[killed], lax=[])
    assert statuses(rows) == {"fake": "crash", "wide": "ok", "lax": "ok"}
    assert done(jobs, "fake") == [0, 0]
    assert [one for one in done(jobs, "wide") if one != "plan"] == [0, 0, 1, "walks", "memory"]


def test_a_failure_while_measuring_memory_keeps_the_times(group):
    def timed(job):
        answer = succeed(job)
        answer.result.outcome.samples.append(Sample("compile", 0, 0, 5_000))
        return answer

    rows, _, _ = measure(group, fake=[timed, succeed, succeed, succeed, fail("memory", 0)])
    assert (rows["fake"]["status"], rows["fake"]["message"]) == ("memory", "while measuring memory: a memory")
    assert rows["fake"]["compile_s"] == pytest.approx(5e-6)
    assert rows["fake"]["memory_peak_bytes"] is None
    assert rows["wide"]["memory_peak_bytes"] == 1


def test_memory_is_measured_of_those_that_got_through_only(group):
    _, jobs, _ = measure(
        group,
        fake=[lambda job: succeed(job, "timeout")],
        wide=[lambda job: succeed(job, "wrong_refusal")],
        lax=[lambda job: succeed(job, "error")],
    )
    assert [job.item.label for job in jobs if isinstance(job.task, Memory)] == ["wide"]


def test_rows_say_what_was_measured(group):
    def compiles(job):
        found = succeed(job)
        outcome, repeat = found.result.outcome, job.task.repeat
        outcome.samples += [
            Sample("compile", repeat, 0, 3_000 - 1_000 * repeat),
            Sample("first_mask", repeat, 0, 9_000, 4),
        ]
        outcome.phases.append([{"parse": 1.0, "build": 5.0}, {"parse": 2.0}][repeat])
        outcome.set_up_s = 0.5
        return found

    def walks(job):
        found = succeed(job)
        outcome = found.result.outcome
        outcome.samples += [Sample("mask", 0, 0, 7, 4), Sample("seen", 0, 0, 7)]
        outcome.masks[0, 0] = zlib.compress(b"\x07\x00\x00\x00" if job.item.label == "wide" else b"\x01\x00\x00\x00")
        outcome.sizes, outcome.counters, outcome.steps = {"states": 3, "bytes": 10, "more": 2}, {"nodes": 8}, 6
        return found

    rows, _, measured = measure(group, fake=[compiles, compiles, succeed, walks], wide=[compiles, compiles, walks])
    row = rows["wide"]
    expected = {
        **{"experiment": "test", "tokenizer": "bytes", "vocab_size": 257, "backend": "fake", "label": "wide"},
        **{"constraint": "choice", "constraint_kind": "choice", "workload": "random_walk 2x4", "status": "ok"},
        **{"compile_s": 2.5e-6, "first_mask_s": 9e-6, "states": 3, "transitions": None, "bytes": 10, "steps": 6},
        "set_up_s": 0.5,
    }
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert json.loads(row["options"])["how"] == "wide"
    assert list(json.loads(row["phases"]).items()) == [("parse", 1.5), ("build", 5.0)]
    assert (json.loads(row["sizes"])["more"], json.loads(row["counters"])) == (2, {"nodes": 8})
    assert row["seconds"] > 0
    # masks are compared with the reference's; what is not asked for is not kept
    assert measured.tables["samples"][-1] == {
        **{"item_id": row["item_id"], "measure": "mask", "repeat": 0, "step": 0},
        **{"ns": 7, "allowed": 4, "differs": 2},
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

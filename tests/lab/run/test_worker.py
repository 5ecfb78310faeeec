"""One worker and its watcher, without a run around them."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from tests.lab.run.experiments import children, experiment, gone, trick
from tokdfa.lab.config.expand import expand
from tokdfa.lab.measure import limits
from tokdfa.lab.run.jobs import Job, Memory
from tokdfa.lab.run.turns import Turn
from tokdfa.lab.run.worker import Worker


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()
    assert not children(recursive=True)


@pytest.fixture
def job(tmp_path):
    """Makes a job that measures the memory of the fake backend."""

    def make(how="honest", where="compile", seconds=20.0, memory_mb=500.0, tokenizer="bytes"):
        limits = {"seconds": seconds, "memory_mb": memory_mb}
        config = experiment(tmp_path, trick(how, where, f"{how} {where}"), limits=limits)
        (item,) = expand(config)
        return Job(config, replace(item, tokenizer=tokenizer), Memory(()))

    return make


def is_fine(answer):
    return answer.failure is None and all(size >= 0 for size in answer.result)


def test_one_worker_serves_one_job_after_the_other(worker, job):
    assert worker.pid is None
    assert is_fine(worker.run(job()))
    pid = worker.pid
    died = worker.run(job("exit"))
    assert (died.failure.kind, died.contender, died.from_outside) == ("crash", 0, False)
    assert "its last words: so long" in died.failure.message
    assert "last words" not in worker.run(job("segfault")).failure.message  # those were of another job
    assert worker.run(job("raise")).failure.message == "RuntimeError: on purpose"
    assert is_fine(worker.run(job()))
    assert worker.pid == pid  # only forks have died


def test_another_tokenizer_gets_another_worker(worker, job):
    worker.run(job())
    pid = worker.pid
    assert worker.run(job(tokenizer="nothing")).failure.message.startswith("UnknownNameError: there is no tok")
    assert worker.pid != pid
    assert gone(pid)
    assert is_fine(worker.run(job()))


@pytest.mark.parametrize(("where", "phase"), [("init", "prepare"), ("warm", "warm up")])
def test_preparing_has_limits_too(worker, job, monkeypatch, where, phase):
    worker.run(job())  # the tokenizer is loaded
    with monkeypatch.context() as patch:
        patch.setattr(limits, "PREPARE_SECONDS", 0.6)
        late = worker.run(job("sleep", where, seconds=0.1))
    assert (late.failure.kind, late.contender) == ("timeout", 0)
    assert late.failure.message == f"{phase!r} took longer than 0.6 s"
    large = worker.run(job("hog", where, memory_mb=100))
    assert (large.failure.kind, large.contender) == ("memory", 0)
    assert is_fine(worker.run(job()))


@pytest.mark.parametrize("way", ["served", "fresh"])
def test_a_contender_has_a_process_of_its_own_for_the_run_or_for_an_item(worker, tmp_path, way):
    constraints = [{"label": text, "choice": [text]} for text in "ab"]
    config = experiment(tmp_path, "fake", trick("exit", "mask"), constraints=constraints, way=way)
    first, exits, second, _ = expand(config)

    def turn(item, repeat):
        answer = worker.run(Job(config, item, Turn(repeat)))
        return answer.failure and answer.failure.kind, answer.result and answer.result.outcome

    assert turn(exits, 0) == ("crash", None)
    outcomes = [turn(item, repeat)[1] for item, repeat in ((first, 0), (first, 1), (second, 0))]
    one, same, next_item = (outcome.sizes["process"] for outcome in outcomes)
    assert one == same != worker.pid
    assert (one == next_item) == (way == "served")
    assert gone(one) == (way == "fresh")
    assert all(outcome.set_up_s > 0 for outcome in outcomes)
    assert turn(exits, 0) == ("crash", None)  # a new process has taken the place of the dead one
    assert len(children(recursive=True)) == 2  # the worker and the one that waits


def test_a_process_that_dies_between_turns_is_killed_from_outside(worker, tmp_path):
    config = experiment(tmp_path, "fake")
    (item,) = expand(config)
    before = worker.run(Job(config, item, Turn(0))).result.outcome.sizes["process"]
    os.kill(before, signal.SIGKILL)
    assert worker.run(Job(config, item, Turn(1))).from_outside
    after = worker.run(Job(config, item, Turn(walks=()))).result.outcome
    assert after.status == "ok"  # it compiles anew
    assert after.sizes["process"] != before

"""One worker and its watcher, without a run around them."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from tests.lab.run.experiments import children, gone
from tokdfa.constraint import Choice
from tokdfa.lab.config.experiment import BackendEntry
from tokdfa.lab.measure import limits
from tokdfa.lab.measure.limits import Limits
from tokdfa.lab.run.jobs import MemoryJob, MemoryResult
from tokdfa.lab.run.watch import Watch


@pytest.fixture
def watch():
    watch = Watch()
    yield watch
    watch.close()
    assert not children(recursive=True)


def job(how="honest", where="compile", seconds=20.0, memory_mb=500.0, tokenizer="bytes"):
    entry = BackendEntry(name="fake", label=f"{how} {where}", options={"how": how, "where": where})
    return MemoryJob(tokenizer, Choice(["ab"]), (entry,), (), Limits(seconds=seconds, memory_mb=memory_mb))


def answer(watch, given=None, seconds=30.0):
    """The answer to the next (or the current) job."""
    if given is not None:
        watch.submit(given)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = watch.poll()
        if found is not None:
            return found
        time.sleep(0.01)
    raise AssertionError("no answer")


def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_worker_serves_one_job_after_the_other(watch):
    assert watch.poll() is None
    assert watch.pid is watch.pipe is watch.activity() is None
    first = answer(watch, job())
    assert isinstance(first.result, MemoryResult)
    assert first.result.peak >= 0
    pid = watch.pid
    died = answer(watch, job("segfault"))
    assert (died.failure.kind, died.contender, died.from_outside) == ("crash", 0, False)
    assert answer(watch, job("raise")).result.failure.message == "RuntimeError: on purpose"
    assert answer(watch, job()).result.failure is None
    assert watch.pid == pid  # only forks have died


def test_another_tokenizer_gets_another_worker(watch):
    answer(watch, job())
    pid = watch.pid
    assert answer(watch, job(tokenizer="nothing")).failure.message.startswith("UnknownNameError: there is no tokenizer")
    assert watch.pid != pid
    assert gone(pid)


def test_a_worker_that_dies_while_it_prepares_is_replaced(watch):
    died = answer(watch, job("segfault", "init"))
    assert (died.failure.kind, died.contender) == ("crash", 0)
    assert "SIGSEGV during 'prepare'" in died.failure.message
    assert watch.pid is None
    assert answer(watch, job()).result.failure is None


def test_a_worker_killed_while_idle_is_noticed_at_the_next_job(watch):
    answer(watch, job())
    os.kill(watch.pid, signal.SIGKILL)
    until(lambda: gone(watch.pid))
    assert answer(watch, job()).from_outside
    assert answer(watch, job()).result.failure is None


@pytest.mark.parametrize(("where", "phase"), [("init", "prepare"), ("warm", "warm up")])
def test_preparing_has_limits_too(watch, monkeypatch, where, phase):
    answer(watch, job())  # the tokenizer is loaded
    with monkeypatch.context() as patch:
        patch.setattr(limits, "PREPARE_SECONDS", 0.6)
        late = answer(watch, job("sleep", where, seconds=0.1))
    assert (late.failure.kind, late.contender) == ("timeout", 0)
    assert late.failure.message == f"{phase!r} took longer than 0.6 s"
    large = answer(watch, job("hog", where, memory_mb=100))
    assert (large.failure.kind, large.contender) == ("memory", 0)
    assert answer(watch, job()).result.failure is None


def test_the_board_shows_what_is_going_on_and_closing_ends_it(watch):
    watch.submit(job("sleep"))
    until(lambda: watch.activity().phase == "memory")
    activity, pids = watch.activity(), {watch.pid, watch.activity().pid}
    assert activity.contender == 0
    assert activity.pid in {child.pid for child in psutil.Process(watch.pid).children()}
    watch.close()
    until(lambda: all(map(gone, pids)))
    assert answer(watch, job()).result.failure is None


def test_a_worker_without_its_watcher_ends_with_its_fork(watch):
    watch.submit(job("sleep"))
    until(lambda: watch.activity().phase == "memory")
    fork = watch.activity().pid
    watch.pipe.close()  # as when the watcher is killed
    until(lambda: gone(fork))


def test_last_words_are_those_of_the_job_at_work(watch):
    assert "its last words: so long" in answer(watch, job("exit")).failure.message
    assert "last words" not in answer(watch, job("segfault")).failure.message

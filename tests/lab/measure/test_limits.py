from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.lab.run.fake_backends import Panic
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    RegexUnsupported,
    UnsupportedConstraint,
)
from tokdfa.lab.measure.limits import (
    FAILURES,
    Activity,
    Board,
    Limits,
    breach,
    death_failure,
    failure_of,
)

MB = 2**20


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnsupportedConstraint("no grammars"), "unsupported"),
        (RegexUnsupported("back-reference", r"(a)\1", 3), "unsupported"),
        (LimitExceeded("too slow", limit="seconds", value=1), "timeout"),
        (LimitExceeded("too many", limit="states", value=1), "memory"),
        (MemoryError(), "memory"),
        (EmptyLanguageError("no text"), "error"),
        (Panic("index out of bounds"), "crash"),
    ],
)
def test_every_exception_has_its_kind_and_says_what_happened(error, kind):
    failure = failure_of(error)
    assert failure.kind == kind
    assert failure.kind in FAILURES
    assert str(error) in failure.message


@pytest.mark.parametrize(
    ("code", "words", "kind", "said"),
    [
        (-signal.SIGSEGV, "", "crash", "SIGSEGV during 'compile'"),
        (-signal.SIGABRT, "thread panicked", "crash", "its last words: thread panicked"),
        (-signal.SIGABRT, "memory allocation of 99 bytes failed", "memory", "memory allocation of 99"),
        (-signal.SIGKILL, "", "crash", "from outside"),
        (3, "", "crash", "exit code 3"),
    ],
)
def test_deaths_have_their_kind_and_cause(code, words, kind, said):
    failure = death_failure(code, words, "compile")
    assert failure.kind == kind
    assert said in failure.message


def activity(phase: str, seconds: float, baseline: int = 100 * MB) -> Activity:
    return Activity(1, 0, phase, time.monotonic_ns() - int(seconds * 1e9), baseline)


def test_breaches():
    limits = Limits(seconds=2, memory_mb=50)
    assert breach(activity("compile", 1), limits, 140 * MB) is None
    assert breach(activity("compile", 3), limits, 140 * MB).kind == "timeout"
    assert breach(activity("mask", 1), limits, 151 * MB).kind == "memory"
    # preparing has a limit of its own, and an idle process is no one's
    assert breach(activity("warm up", 30), limits, 0) is None
    assert breach(activity("warm up", 301), limits, 0).kind == "timeout"
    assert breach(activity("idle", 10_000), limits, 0) is None
    assert breach(activity("prepare", 400), Limits(seconds=500), 0) is None


def test_the_board_shows_another_process_what_is_done_here():
    board, descriptor = Board.create()
    board.open_job()
    script = (
        "import sys; from tokdfa.lab.measure.limits import Board; board = Board(int(sys.argv[1])); board.open_job();"
        "board.begin(7, 'advance'); import os; os.kill(os.getpid(), 9)"
    )
    before = time.monotonic_ns()
    assert board.read().pid == os.getpid()
    child = subprocess.Popen([sys.executable, "-c", script, str(descriptor)], pass_fds=[descriptor])
    child.wait()
    os.close(descriptor)
    shown = board.read()
    assert (shown.pid, shown.contender, shown.phase) == (child.pid, 7, "advance")
    assert before < shown.since < time.monotonic_ns()
    assert shown.baseline > MB
    assert shown.seconds() > 0


def test_the_address_space_limit_turns_a_huge_allocation_into_a_memory_error():
    script = (
        "from tokdfa.lab.measure.limits import Limits, limit_address_space\n"
        "limit_address_space(Limits(memory_mb=64))\n"
        "bytearray(200 * 2**20)\n"  # what the limit and its slack leave room for
        "try:\n    bytearray(2 * 2**30)\n"
        "except MemoryError:\n    raise SystemExit(42)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 42


WRITER = """
import sys, time
from tokdfa.lab.measure.limits import Board
board = Board(int(sys.argv[1]))
stop = time.monotonic() + 2
while time.monotonic() < stop:
    board.begin(3, "mask")
    board.begin(5, "memory")
"""


def test_no_half_written_state_is_seen() -> None:
    """The writer never pauses, and is stopped at random places besides."""
    board, descriptor = Board.create()
    started = time.monotonic()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(descriptor)], pass_fds=[descriptor])
    readings = changes = 0
    before = None
    try:
        while writer.poll() is None:
            writer.send_signal(signal.SIGSTOP)
            for _ in range(20):
                seen = board.read()
                readings += 1
                changes += seen != before
                before = seen
                assert (seen.contender, seen.phase) in [(-1, "idle"), (3, "mask"), (5, "memory")]
                if seen.phase != "idle":
                    assert seen.pid == writer.pid
                    assert seen.seconds() < time.monotonic() - started
            writer.send_signal(signal.SIGCONT)
            for _ in range(200):
                seen = board.read()
                assert seen.phase == "idle" or seen.seconds() < time.monotonic() - started
    finally:
        writer.kill()
        writer.wait()
    assert changes > 10
    os.close(descriptor)

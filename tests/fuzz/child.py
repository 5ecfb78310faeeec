"""The process that runs cases, so that a crash, a hang or a flood of memory is an answer and not the end.

The parent sends cases and gets (word, what happened) back. Memory is limited by the system (RLIMIT_AS): a child may
take so many bytes of address space beside what it has when it is ready. Time is the parent's business: it looks at the
processor time that the child has used since the case began, since others may use the processor, too. A child that takes
too long writes where it is (SIGUSR1) and is killed.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.fuzz.case import problem_with
from tests.fuzz.entries import find_entry

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tests.fuzz.case import Case, Entry

PACKAGE = "tokdfa/"


@dataclass(frozen=True)
class Limits:
    """What one case may take: `seconds` of processor time, `waiting` seconds by the clock, `megabytes` of memory."""

    seconds: float = 5.0
    waiting: float = 120.0
    megabytes: int = 2048


@dataclass(frozen=True)
class Outcome:
    """What came of a case. `word`: the entry's word, or the name of an error. `failure`: empty, or where and why.

    `seconds`: of processor time.
    """

    word: str
    failure: str = ""
    detail: str = ""
    seconds: float = 0.0


class Child:
    """A process that runs cases of one entry, begun again after it has ended.

    Behind it is another one, which has prepared the entry and is forked whenever a fresh child is needed: that takes
    milliseconds, and preparing takes seconds.
    """

    def __init__(self, entry: str, limits: Limits) -> None:
        self.limits = limits
        self._notes = tempfile.NamedTemporaryFile(prefix="fuzz", suffix=".txt")  # noqa: SIM115 - closed by `stop`
        self._connection, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._server = context.Process(target=_serve, args=(entry, theirs, limits.megabytes, self._notes.name))
        self._server.start()
        theirs.close()
        self.started = 0
        self._process = self._next_process()

    def _next_process(self) -> psutil.Process:
        self.started += 1
        word, number = self._connection.recv()
        assert word == "ready"
        return psutil.Process(number)

    def renew(self) -> None:
        """Go on with a fresh child."""
        self._process.kill()
        self._wait()

    def _wait(self) -> int:
        """Wait for the end of the child and the beginning of the next; the exit code."""
        while (answer := self._connection.recv())[0] != "ended":
            pass
        self._process = self._next_process()
        return answer[1]

    def stop(self) -> None:
        """End all processes and leave nothing behind."""
        self._server.kill()
        self._server.join()
        self._process.kill()
        self._connection.close()
        self._notes.close()

    def run(self, case: Case) -> Outcome:
        """Run one case."""
        Path(self._notes.name).write_bytes(b"")
        before, begun = _used(self._process), time.monotonic()
        self._connection.send(case)
        while not self._connection.poll(0.1):
            used, waited = _used(self._process) - before, time.monotonic() - begun
            if used > self.limits.seconds or waited > self.limits.waiting:
                return self._hang(used)
        word, answer = self._connection.recv()
        if word == "done":
            return answer
        self._process = self._next_process()
        notes = self._read_notes()
        return Outcome("death", f"exit code {answer} in {place_in(notes)}", notes)

    def _hang(self, used: float) -> Outcome:
        self._process.send_signal(signal.SIGUSR1)
        for _ in range(50):
            time.sleep(0.02)
            notes = self._read_notes()
            if notes.endswith("\n"):
                break
        self.renew()
        return Outcome("hang", f"hang in {place_in(notes)}", notes, used)

    def _read_notes(self) -> str:
        return Path(self._notes.name).read_text(errors="replace")


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def place_in(notes: str) -> str:
    """The innermost place of the package in a traceback of `faulthandler`."""
    for line in notes.splitlines():
        if f"/{PACKAGE}" in line:
            file, _, rest = line.strip().removeprefix("File ").partition('", line ')
            return f"{file.rpartition('/')[2]}:{rest.partition(' in ')[2]}"
    return "no place of the package"


def _serve(name: str, connection: Connection, megabytes: int, notes: str) -> None:
    """Prepare the entry; then fork a child, wait for its end, and fork the next, until nobody listens."""
    entry = find_entry(name)
    entry.prepare()
    while True:
        number = os.fork()
        if not number:
            _run_cases(entry, connection, megabytes, notes)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        if not code:
            return
        connection.send(("ended", code))


def _run_cases(entry: Entry, connection: Connection, megabytes: int, notes: str) -> None:
    with open(notes, "a", encoding="utf-8") as file:
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file)
        size = psutil.Process().memory_info().vms + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        connection.send(("ready", os.getpid()))
        while True:
            try:
                case = connection.recv()
            except EOFError:
                return
            connection.send(("done", attempt(entry, case)))


def attempt(entry: Entry, case: Case) -> Outcome:
    """Run a case in this process, without limits."""
    begun = time.process_time()
    try:
        word = entry.run(case)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        problem = problem_with(error, getattr(entry, "file_name", ""))
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in frame.filename]
        inner = frames[-1] if frames else None
        place = f"{Path(inner.filename).name}:{inner.name}" if inner else "no place of the package"
        failure = f"{type(error).__name__} in {place}: {problem}" if problem else ""
        detail = "".join(traceback.format_exception(error, limit=-12)) if problem else str(error)
        return Outcome(type(error).__name__, failure, detail, time.process_time() - begun)
    return Outcome(word, seconds=time.process_time() - begun)

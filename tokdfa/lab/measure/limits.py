"""Limits and failures: how a contender may fail, how each way is recognised, and the board that tells who was at work.

A failure is a result. Its kinds:

- ``unsupported``: the backend says that it does not take this constraint;
- ``unavailable``: a package of the backend, or the interpreter that was to run it, is not installed;
- ``timeout``: one call, or all masks and advances of one item together, took longer than `Limits.seconds`;
- ``memory``: the process grew by more than `Limits.memory_mb`, an allocation failed, or a limit on states was reached
  (states stand for memory);
- ``wrong_acceptance``: a text outside the language went through;
- ``wrong_refusal``: a token was refused although the text so far can be completed;
- ``crash``: the process died, or a compiled engine panicked;
- ``error``: any other exception, by its class and message.

Calls into compiled code cannot be interrupted from inside, so a watching process has to kill the one that measures.
It must then know whom to blame. Before each call the measuring process writes contender, phase and time to the
`Board`, 48 bytes of shared memory that outlive it. A pipe would do the same, but each message would wake the watcher
between two samples; a write to the board takes about a microsecond and wakes nobody.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pydantic import Field

from tokdfa.errors import LimitExceeded, MissingDependency, RegexUnsupported, UnsupportedConstraint
from tokdfa.lab.measure.interpreters import Unavailable
from tokdfa.lab.measure.settings import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")
P = ParamSpec("P")

OK = "ok"
#: A setting left it out, or its turn came after the time for all.
NOT_ASKED = "not_asked"
FAILURES = ("unsupported", "unavailable", "timeout", "memory", "wrong_acceptance", "wrong_refusal", "crash", "error")
#: Statuses of those that went through all there was to do, be it with a wrong verdict on a text.
GOT_THROUGH = (OK, "wrong_acceptance", "wrong_refusal")

#: What a measuring process can be doing, in the order of the work.
PHASES = (
    *("idle", "prepare", "warm up", "compile", "first mask", "plan the walks", "mask", "advance"),
    *("seen masks", "memory", "run"),
)
#: Loading a tokenizer, building its trie: not what is measured, so with a limit of their own.
PREPARING = frozenset({"idle", "prepare", "warm up"})
PREPARE_SECONDS = 300.0

#: What rows keep of a failure's words; some repeat a whole schema.
MAX_MESSAGE = 400
#: Beyond the limit on resident memory, so that the kernel refuses an allocation that outruns the watcher's 50 ms.
ADDRESS_SPACE_SLACK = 512 * 2**20


class Limits(Strict):
    """What one item may use. `seconds`: wall time of one call, and of all masks and advances of an item together;
    `memory_mb`: growth of resident memory (MiB) over the prepared process.
    """

    seconds: float = Field(default=60.0, gt=0, le=7 * 86400)
    memory_mb: float = Field(default=4000.0, gt=0, le=2**24)

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_mb * 2**20)

    def seconds_for(self, phase: str) -> float:
        """The wall seconds that one call of `phase` may take."""
        return max(self.seconds, PREPARE_SECONDS) if phase in PREPARING else self.seconds


@dataclass(frozen=True)
class Failure:
    """A kind from `FAILURES`, and what to tell the user."""

    kind: str
    message: str

    @property
    def columns(self) -> dict[str, str]:
        """``status`` and ``message`` of the row of what failed."""
        return {"status": self.kind, "message": self.message[:MAX_MESSAGE]}


@dataclass(frozen=True)
class Activity:
    """What the board shows. `contender`: index into the job's contenders, -1 for none of them; `since`:
    `time.monotonic_ns`; `baseline`: resident bytes of process `pid` when its job began.
    """

    pid: int
    contender: int
    phase: str
    since: int
    baseline: int

    def seconds(self) -> float:
        return (time.monotonic_ns() - self.since) * 1e-9


class Board:
    """One `Activity` in memory shared between the measuring processes and their watcher.

    A counter stands before it: odd while it is being written, two more once it is. So a reader knows a whole state,
    even if the writer was stopped in the middle, and then has the last whole one to show.
    """

    _COUNTER, _LAYOUT = struct.Struct("<q"), struct.Struct("<5q")

    def __init__(self, descriptor: int) -> None:
        #: Of the shared memory; open as long as whoever made the board leaves it.
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, self._COUNTER.size + self._LAYOUT.size)
        self._baseline = 0
        self._pid = os.getpid()
        self._last = Activity(0, -1, "idle", 0, 0)  # nobody has written yet

    @classmethod
    def create(cls) -> tuple[Board, int]:
        """A new board and the descriptor of its (unlinked) file, to be passed to the measuring process."""
        import tempfile

        descriptor, name = tempfile.mkstemp(prefix="tokdfa-board-")
        os.unlink(name)
        os.ftruncate(descriptor, cls._COUNTER.size + cls._LAYOUT.size)
        return cls(descriptor), descriptor

    def open_job(self) -> None:
        """Say that this process is the one to watch from now on, with its memory as it is now."""
        self._pid, self._baseline = os.getpid(), resident_bytes(os.getpid())
        self.begin(-1, "idle")

    def begin(self, contender: int, phase: str) -> None:
        """Say what starts now. About a microsecond."""
        size = self._COUNTER.size
        (changes,) = self._COUNTER.unpack(self._memory[:size])
        changes |= 1  # a fork that was killed while it wrote may have left it odd
        now = time.monotonic_ns()
        self._memory[:size] = self._COUNTER.pack(changes)
        self._memory[size:] = self._LAYOUT.pack(self._pid, contender, _PHASE_NUMBER[phase], now, self._baseline)
        self._memory[:size] = self._COUNTER.pack(changes + 1)

    def read(self) -> Activity:
        """What the board shows; while it is being written, what it showed before."""
        size = self._COUNTER.size
        before, state, after = self._memory[:size], self._memory[size:], self._memory[:size]
        (changes,) = self._COUNTER.unpack(before)
        if before == after and changes and changes % 2 == 0:
            pid, contender, phase, since, baseline = self._LAYOUT.unpack(state)
            self._last = Activity(pid, contender, PHASES[phase], since, baseline)
        return self._last


_PHASE_NUMBER = {phase: number for number, phase in enumerate(PHASES)}


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception from a contender amounts to."""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, UnsupportedConstraint | RegexUnsupported):
        return Failure("unsupported", str(error))
    if isinstance(error, MissingDependency | Unavailable):
        return Failure("unavailable", str(error))
    if isinstance(error, LimitExceeded):
        return Failure("timeout" if error.limit in ("seconds", "time") else "memory", message)
    if isinstance(error, MemoryError):
        return Failure("memory", message)
    # A panic in Rust reaches Python as a BaseException that is no Exception: the engine broke down.
    return Failure("error" if isinstance(error, Exception) else "crash", message)


def attempt(step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Failure:
    """What `step` returns for these arguments, or how it failed; an interrupt goes through."""
    try:
        return step(*args, **options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return failure_of(error)


def extend_rows(rows: list[dict[str, Any]], place: Mapping[str, Any], found: Iterable[Mapping[str, Any]]) -> None:
    """Append the rows `found`, each at this place; a failure on the way ends them with its row, an interrupt goes
    through.
    """
    try:
        rows.extend({**place, "status": OK, "message": "", **row} for row in found)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        rows.append({**place, **failure_of(error).columns})


def death_failure(return_code: int, last_words: str, phase: str) -> Failure:
    """The failure that the death of a measuring process amounts to; `return_code` as in subprocess (-9: SIGKILL)."""
    how = _signal_name(-return_code) if return_code < 0 else f"exit code {return_code}"
    said = f"; its last words: {last_words}" if last_words else ""
    if "memory allocation of" in last_words and -return_code == signal.SIGABRT:  # how Rust reports it
        return Failure("memory", f"an allocation failed during {phase!r}{said}")
    if -return_code == signal.SIGKILL:
        return Failure("crash", f"killed from outside (SIGKILL, as the system does when memory runs out){said}")
    return Failure("crash", f"the process died of {how} during {phase!r}{said}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def breach(activity: Activity, limits: Limits, resident: int) -> Failure | None:
    """The limit that a process with this activity and this many resident bytes has broken, if any."""
    allowed = limits.seconds_for(activity.phase)
    if activity.phase != "idle" and activity.seconds() > allowed:
        return Failure("timeout", f"{activity.phase!r} took longer than {allowed:g} s")
    grown = resident - activity.baseline
    if grown > limits.memory_bytes:
        used = f"{grown / 2**20:.0f} MiB"
        return Failure("memory", f"{activity.phase!r} took {used}, more than {limits.memory_mb:g} MiB")
    return None


def resident_bytes(pid: int) -> int:
    """Resident memory of a process in bytes; 0 if it is gone."""
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def limit_address_space(limits: Limits) -> None:
    """Let the kernel refuse this process allocations far beyond the memory limit: the second line of defence.

    Address space is not resident memory (engines reserve more than they use), hence the slack. Without effect where the
    system has no such limit.
    """
    import resource

    import psutil

    ceiling = int(psutil.Process().memory_info().vms) + 2 * limits.memory_bytes + ADDRESS_SPACE_SLACK
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    except (ValueError, OSError):  # macOS refuses; the watcher remains
        return


def die_with_parent() -> None:
    """Ask the system to kill this fork when its parent dies (Linux); elsewhere a watcher has to kill both."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)

"""The first use of kernels on a machine: what a process says while it compiles them, and who helps it.

Compiling takes seconds, and is done once. Who waits for it is told: the logger ``tokdfa`` warns when a process has been
compiling for a second, and every ten seconds from then on, which Python prints on standard error unless logging is set
up otherwise (``logging.getLogger("tokdfa").setLevel("ERROR")`` turns it off).

If there is a core to spare, and more than a few kernels to come, a second process warms up what this one will need
later (`tokdfa.core.jit.help_warm_up`), from the end backwards. The two meet on the disk: a kernel, or its part, is
claimed by the process that compiles it, by a lock on a file that goes with the process, and the other waits for it.
They never wait for each other, as what is claimed while something else is being compiled is called by that, and no
kernel calls itself by way of others.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger("tokdfa")

#: Seconds of compiling after which a process says so, and between its lines.
SILENT_SECONDS, LINE_SECONDS = 1.0, 10.0
#: Seconds that one process waits for another to compile a kernel, before it does so itself.
PATIENCE = 60.0
_POLL_SECONDS = 0.01


class Expected(NamedTuple):
    """What is about to be used for the first time: how many kernels, and the steps that warm them up.

    `is_helped`: by a second process, whose own start takes two seconds of the processor.
    """

    kernels: int
    steps: tuple[str, ...]
    is_helped: bool = True


class _Process:
    """What this process has done so far."""

    is_helper = False
    expected: Expected | None = None
    #: Kernels loaded or compiled.
    ready = 0
    #: When the first one had to be compiled, how many were ready then, and when that was last said.
    began, ready_then, said = 0.0, 0, 0.0
    #: The locks on those that are being compiled, a callee after its caller: the file, and its descriptor.
    claims: ClassVar[list[tuple[Path, int]]] = []
    helper: subprocess.Popen[bytes] | None = None


_process = _Process()


def expect(expected: Expected | None) -> None:
    """Say what is used from now on. 0.1 us."""
    _process.expected = expected


def begin_kernel(path: Path | None) -> bool:
    """A kernel has to be compiled, whose code will be kept at `path`: say so now and then, get help, and claim it.

    True if another process had claimed it, so that its code may be there by now. One at a time with its parts: numba
    compiles under a lock.
    """
    now = time.monotonic()
    if not _process.began:
        _process.began, _process.ready_then = now, _process.ready
    expected = _process.expected
    if (
        path is not None
        and _process.helper is None
        and expected is not None
        and expected.is_helped
        and _may_be_helped()
    ):
        _start_helper(expected.steps)
    _say(now)
    _end_claims()  # of one that could not be compiled
    return path is not None and _claim(path.with_suffix(".lock"))


def end_kernel() -> None:
    """A kernel is ready: loaded, or compiled."""
    _process.ready += 1
    _end_claims()


def begin_part(path: Path | None) -> bool:
    """A part of the kernel that is being compiled has to be, too, and will be kept at `path`: claim it. Returns as
    `begin_kernel`.
    """
    return path is not None and _claim(path.with_suffix(".lock"))


def end_part(path: Path | None) -> None:
    """A part is ready."""
    lock = path and path.with_suffix(".lock")
    if any(claimed == lock for claimed, _ in _process.claims):
        while _end_claim() != lock:
            pass


def _claim(path: Path) -> bool:
    """Lock a file, which ends with the process at the latest; whether another process had it locked."""
    was_taken = False
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        _process.claims.append((path, descriptor))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                was_taken = True
                time.sleep(_POLL_SECONDS)
    return was_taken


def _end_claims() -> None:
    while _process.claims:
        _end_claim()


def _end_claim() -> Path:
    """End the last one, and say which it was."""
    path, descriptor = _process.claims.pop()
    with suppress(OSError):
        path.unlink(missing_ok=True)
    os.close(descriptor)
    return path


def _say(now: float) -> None:
    taken = now - _process.began
    if _process.is_helper or taken < SILENT_SECONDS or now - _process.said < LINE_SECONDS:
        return
    _process.said = now
    ready, text = _process.ready, ""
    if _process.expected is not None and ready < _process.expected.kernels:
        left = _process.expected.kernels - ready
        seconds = taken / max(ready - _process.ready_then, 1) * left
        text = f"{ready} of {_process.expected.kernels}, about {max(seconds, 1):.0f} s"
    logger.warning("compiling kernels, once for this machine: %s", text or f"{ready} so far")


def _may_be_helped() -> bool:
    return not _process.is_helper and bool(sys.executable) and len(os.sched_getaffinity(0)) > 1


_HELP = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from tokdfa.core import jit; jit.help_warm_up()"


def _start_helper(steps: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", _HELP, json.dumps(sys.path), *steps]
    with suppress(OSError):
        # it ends when its standard input does, at the latest with this process
        _process.helper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        atexit.register(_end_helper, _process.helper, os.getpid())


def _end_helper(helper: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        helper.kill()
        helper.communicate()


def become_helper() -> None:
    """Say nothing, and end with the process that asked for help."""
    import threading

    def end_with_owner() -> None:
        sys.stdin.read()
        os._exit(0)

    _process.is_helper = True
    threading.Thread(target=end_with_owner, daemon=True).start()

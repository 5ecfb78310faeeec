"""Facts about the machine a run was made on: a speed in nanoseconds says little without them."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any


def machine_facts() -> dict[str, Any]:
    """CPU model, cores, memory (bytes), system and load, as JSON values; None where the system will not say."""
    import psutil

    memory = psutil.virtual_memory()
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "cores_physical": psutil.cpu_count(logical=False),
        "cores_logical": psutil.cpu_count(logical=True),
        "cores_usable": usable_cores(),
        "memory_bytes": int(memory.total),
        "memory_available_bytes": int(memory.available),
        "os": platform.platform(),
        "python": sys.version.split()[0],
        "python_implementation": platform.python_implementation(),
        "load_average": _load(),
    }


#: A machine on which others took more than this share of the processors is busy: its times are not to be published.
QUIET = 0.03
#: Others that take less of one processor are not named.
NAMED_PERCENT = 5.0


class MachineUse:
    """What the machine does beside a run, from now on: the share of its processors that other processes take.

    The processors' busy seconds, as the system counts them, less those of this process and of its children that have
    ended by then.
    """

    def __init__(self) -> None:
        self._wall, self._busy, self._own = time.monotonic(), _busy_seconds(), _own_seconds()
        self.load, self.others = _load(), other_processes()

    def facts(self) -> dict[str, Any]:
        """``others_share`` (0..1 of all processors), ``load_average`` before and after, and who else was at work."""
        wall = max(time.monotonic() - self._wall, 1e-9)
        others = (_busy_seconds() - self._busy) - (_own_seconds() - self._own)
        share = min(max(others / wall / (os.cpu_count() or 1), 0.0), 1.0)
        return {"others_share": round(share, 4), "load_average": [self.load, _load()], "others": self.others}


def other_processes(seconds: float = 0.2) -> list[str]:
    """``NAME 45%`` of the processes that are not ours and take `NAMED_PERCENT` of a processor or more."""
    import psutil

    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    found = []
    for process in psutil.process_iter(["pid", "name"]):
        if process.pid not in ours:
            with contextlib.suppress(psutil.Error):
                process.cpu_percent()
                found.append(process)
    time.sleep(seconds)
    busy = []
    for process in found:
        with contextlib.suppress(psutil.Error):
            busy.append((process.cpu_percent(), process.info["name"] or "?"))
    return [f"{name} {percent:.0f}%" for percent, name in sorted(busy, reverse=True) if percent >= NAMED_PERCENT]


def _load() -> list[float] | None:
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else None


def _busy_seconds() -> float:
    """Seconds that all processors have been at work."""
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))


def _own_seconds() -> float:
    """Processor seconds of this process and of its children that have ended."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cpu_model() -> str:
    """The processor's name, from /proc/cpuinfo where there is one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def usable_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""Facts about the machine a run was made on, and a short calibration, so that two runs can be set side by side.

A speed in nanoseconds says little without the machine. The calibration gives two numbers that most costs scale with:
how fast memory is copied (GB/s, for the vocabulary-sized work) and what one turn of a plain Python loop costs (ns, for
everything around a kernel). It takes about 0.2 s and is no benchmark of its own.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from tokdfa.lab.measure.clock import clock_overhead_ns, collector_off

COPY_BYTES = 32 * 2**20
LOOP_TURNS = 200_000


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
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


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


def calibrate() -> dict[str, float]:
    """``memory_copy_gb_per_s``, ``python_loop_ns`` (one turn of an empty loop) and ``clock_overhead_ns``; best of five.

    The best, not the median: a calibration asks what the machine can do, and noise only ever slows it down.
    """
    import numpy as np

    source = np.ones(COPY_BYTES, dtype=np.uint8)
    target = np.empty_like(source)
    copies, loops = [], []
    with collector_off():
        for _ in range(5):
            started = time.perf_counter_ns()
            np.copyto(target, source)
            copies.append(time.perf_counter_ns() - started)
            started = time.perf_counter_ns()
            for _turn in range(LOOP_TURNS):
                pass
            loops.append(time.perf_counter_ns() - started)
    return {
        "memory_copy_gb_per_s": round(COPY_BYTES / min(copies), 3),
        "python_loop_ns": round(min(loops) / LOOP_TURNS, 3),
        "clock_overhead_ns": round(clock_overhead_ns(), 1),
    }

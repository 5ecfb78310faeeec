"""Facts about the machine a run was made on: a speed in nanoseconds says little without them."""

from __future__ import annotations

import os
import platform
import sys
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

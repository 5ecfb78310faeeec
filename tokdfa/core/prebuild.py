"""Compiles the kernels that a wheel carries: ``python -m tokdfa.core.prebuild FOLDER [BACKEND ...]``.

They are compiled for x86-64-v3 in a process of its own, by the warm-up steps of all backends or of some, and those that
Python calls are put into the folder: what they are made of is in them. See `tokdfa.core.kernel_store`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tokdfa.core import jit, kernel_store

_WARM_UP = "import sys; from tokdfa.core import jit; list(jit.warm_up(sys.argv[1:]))"


def prebuild(folder: Path, backends: list[str]) -> int:
    """Compile kernels into a set below `folder`, which replaces one of the same name; how many.

    `backends`: whose first masks they are for; without any, all kernels. None but on Linux on x86-64.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return 0
    wanted = [expected for key, expected in jit.FIRST_MASKS.items() if key.split()[0] in backends]
    steps = dict.fromkeys(step for expected in wanted for step in expected.steps)
    target = folder / kernel_store.prebuilt_name()
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        _, environment["NUMBA_CPU_NAME"], environment["NUMBA_CPU_FEATURES"] = kernel_store.BASELINE
        environment["NUMBA_CACHE_DIR"] = compiled
        subprocess.run([sys.executable, "-c", _WARM_UP, *steps], env=environment, check=True)
        files = [path for path in Path(compiled).rglob("*.kernel") if ".part-" not in path.name]
        for path in files:
            copy = target / path.relative_to(compiled)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    jit.mark(target, kernel_store.BASELINE[1], tuple(steps))
    return len(files)


if __name__ == "__main__":
    made = prebuild(Path(sys.argv[1]), sys.argv[2:])
    print(f"{made} kernels for {kernel_store.prebuilt_name()}")

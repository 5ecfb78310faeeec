"""Compile all kernels from an empty cache, and name those that nothing reaches: ``python -m tests.cold_kernels``.

The cache must be empty (NUMBA_CACHE_DIR): code that is loaded does not say which kernels it was made of.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys

import tokdfa
from tokdfa.core import jit


def kernels_without_code() -> list[str]:
    """After all warm-up steps from a cold start: the kernels of the package that were not compiled."""
    for title, done, steps in jit.warm_up(alone=True):
        print(f"{done + 1}/{steps} {title}", flush=True)
    left = []
    for info in pkgutil.walk_packages(tokdfa.__path__, "tokdfa."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            function = getattr(value, "py_func", None)
            compiled = function and value.signatures + getattr(value, "part", value).signatures
            if function is not None and function.__module__ == info.name and not compiled:
                left.append(f"{info.name}.{name}")
    return left


if __name__ == "__main__":
    logging.getLogger("tokdfa").setLevel(logging.ERROR)  # the steps say how far they are
    if jit.is_warm():
        sys.exit("the cache of kernels is not empty: set NUMBA_CACHE_DIR to a new folder")
    if left := kernels_without_code():
        sys.exit(f"no warm-up step reaches {', '.join(left)}")

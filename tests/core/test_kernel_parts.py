"""Kernels called by kernels: one overload for all signed integers, code of their own only where Python calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest

from tokdfa.core.jit import kernel
from tokdfa.core.kernel_parts import Kernel
from tokdfa.core.sorting import FEW, sort_range

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
import sys
from numba.core import event
from kernels_of_a_test import outer

class Compiled(event.Listener):
    def on_start(self, event): print("compiled", event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event): pass

event.register("numba:compile", Compiled())
if len(sys.argv) > 1:
    from kernels_of_a_test import other
    print(other(5))
print(outer(5))
"""
KERNELS = """
from tokdfa.core.jit import kernel

@kernel
def inner(number):
    return number + 1

@kernel
def outer(number):
    return inner(number) + inner(2)

@kernel
def other(number):
    return inner(number)
"""


@kernel
def add(values: Any, place: Any, more: Any) -> Any:
    values[place] += more
    return values[place]


@kernel
def add_some(values: Any, places: Any) -> Any:
    total = np.int64(0)
    for place in places:  # int32
        total += add(values, place, 1)
    return total + add(values, 0, np.int64(5)) + add(values, np.int8(1), np.uint64(2))


@kernel
def fibonacci(number: Any, unused: Any) -> Any:
    if number < 2:
        return np.int64(number)
    return fibonacci(number - 1, 0) + fibonacci(np.int32(number - 2), unused)


@kernel
def twice_fibonacci(number: Any) -> Any:
    return 2 * fibonacci(number, 1)


@pytest.fixture(autouse=True)
def _compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here and now: what is loaded has no parts."""
    if not isinstance(add, Kernel):
        pytest.skip("kernels are not compiled")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


def test_signed_integers_are_one_type_to_a_part() -> None:
    values = np.zeros(3, dtype=np.int64)
    assert add_some(values, np.array([0, 1, 1], dtype=np.int32)) == 1 + 1 + 2 + 6 + 4
    assert sorted(str(kinds[1:]) for kinds in add.part.signatures) == ["(int64, int64)", "(int64, uint64)"]
    assert not add.signatures  # Python has not called it
    assert add(values, 0, 1) == 7
    assert len(add.signatures) == 1


def test_recursion() -> None:
    assert twice_fibonacci(10) == 110
    assert fibonacci(10, 0) == 55


def test_code_is_kept_for_callers_yet_to_come(tmp_path: Path) -> None:
    (tmp_path / "kernels_of_a_test.py").write_text(KERNELS)
    (tmp_path / "main.py").write_text(SOURCE)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": paths}

    def run(*arguments: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "main.py"), *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split("\n")

    assert run() == ["compiled outer", "compiled inner.part", "9", ""]
    assert run() == ["9", ""]
    assert run("other") == ["compiled other", "6", "9", ""]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sorting(dtype: Any) -> None:
    random = np.random.default_rng(0)
    for size in [0, 1, 2, FEW, FEW + 1, 40, 1000]:
        for most in [3, 10**6]:
            values = random.integers(-most, most, size + 3).astype(dtype)
            wanted = np.concatenate([values[:1], np.sort(values[1:-2]), values[-2:]])
            sort_range(values, 1, size + 1)
            assert np.array_equal(values, wanted)


@kernel
def first_of(size: Any) -> Any:
    values = np.full(size, 7, dtype=np.int16)
    return values[0] + np.zeros(size, dtype=np.int16)[0]


def test_what_numba_compiled_for_a_kernel_serves_others() -> None:
    """Its own code is without that of what it calls, and has no address."""
    assert first_of(3) == 7
    others = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(first_of.py_func)
    assert others(3) == 7

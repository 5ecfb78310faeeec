"""Interrupts during the first use of a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
from tokdfa.core.jit import kernel

@kernel
def half(number):
    return number // 2

@kernel
def double(number):
    return 2 * number + half(number)
"""
#: LLVM calls back with the machine code of each module; the interrupt comes with that of the kernel.
SCRIPT = """
from numba.core import codegen

kept, left = codegen.CPUCodeLibrary._object_compiled_hook.__func__, [1]

def interrupted(cls, module, buffer):
    if left and any("double" in function.name for function in module.functions if not function.is_declaration):
        left.pop()
        raise KeyboardInterrupt
    return kept(cls, module, buffer)

codegen.CPUCodeLibrary._object_compiled_hook = classmethod(interrupted)
import small_kernel

try:
    print(small_kernel.double(3))
except BaseException as error:
    print(type(error).__name__)
print(small_kernel.double(4), left)
"""


def test_an_interrupt_while_a_kernel_is_compiled_stays_one(tmp_path: Path) -> None:
    (tmp_path / "small_kernel.py").write_text(KERNEL)
    paths = [str(tmp_path), str(Path(__file__).parents[2]), *sys.path]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
    for _ in range(2):  # the first keeps no code
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        assert run.stdout.split() == ["KeyboardInterrupt", "10", "[]"], run.stderr

"""Memory is measured in fresh processes, as it would be in a run; sizes are known by construction."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from tests.lab.measure.fakes import byte_vocabulary
from tests.lab.run.fake_backends import Fake
from tokdfa.lab.measure.memory import measure_memory
from tokdfa.lab.measure.workloads import Walk
from tokdfa.constraint import Regex

heap = [bytes(1000) for _ in range(50_000)]  # 50 MB that were in use before, and are free now
del heap
backend = Fake(byte_vocabulary(), how=sys.argv[1], where=sys.argv[2])
begun = []
print(*measure_memory(backend, Regex("abc"), [Walk((97, 98), None, False, False)], lambda: begun.append(1)), len(begun))
"""
MB = 2**20


def measure(how: str, where: str = "compile") -> tuple[int, int, int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how, where], capture_output=True, text=True, check=True)
    peak, retained, begun = map(int, done.stdout.split())
    return peak, retained, begun


@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark can be reset on Linux only")
def test_peak_and_retained_memory():
    # allocates 24 and 8 MiB, then frees the 24
    peak, retained, begun = measure("small_hog")
    assert 31 * MB < peak < 36 * MB
    assert 7 * MB < retained < 11 * MB
    assert begun == 3  # one compile, two masks


@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark can be reset on Linux only")
def test_memory_taken_by_masks_is_retained_but_no_peak_of_compiling():
    peak, retained, _ = measure("small_hog", "mask")
    assert peak < 3 * MB
    assert 7 * MB < retained < 11 * MB


COPIES = """
import sys
import numpy as np
from tests.lab.measure.fakes import byte_vocabulary
from tests.lab.run.fake_backends import Fake
from tokdfa.lab.measure.memory import measure_memory
from tokdfa.constraint import Regex

class Keeper(Fake):
    def _compile(self, constraint):
        compiled = super()._compile(constraint)
        compiled.kept = np.ones(int(sys.argv[1]), dtype=np.uint8)
        return compiled

print(*measure_memory(Keeper(byte_vocabulary()), Regex("abc"), []))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read exactly on Linux only")
@pytest.mark.parametrize("size", [20_000, 200_000])
def test_sizes_of_less_than_a_page_table_are_told_apart(size):
    done = subprocess.run([sys.executable, "-c", COPIES, str(size)], capture_output=True, text=True, check=True)
    _, retained = map(int, done.stdout.split())
    assert size * 0.9 < retained < size + 30_000


MAPPED = """
import mmap, tempfile
from tokdfa.lab.measure.memory import read_usage, reset_peak
file = tempfile.TemporaryFile()
file.write(bytes(30 * 2**20)); file.flush()
reset_peak()
before = read_usage()
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
total = sum(mapped[::4096])
after = read_usage()
print(after.own - before.own, after.files - before.files, after.peak_over(before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages of files can be told apart on Linux only")
def test_pages_of_files_do_not_count():
    done = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, check=True)
    own, files, peak = map(int, done.stdout.split())
    assert own < 3 * MB
    assert files > 29 * MB or own + files < 3 * MB  # on a file system in memory they may count as neither
    assert peak < 3 * MB

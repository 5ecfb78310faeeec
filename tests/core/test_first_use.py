"""What a process says while it compiles kernels, and how processes share the work."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tokdfa.core import first_use

if TYPE_CHECKING:
    from pathlib import Path

WAITS = """
import sys
from pathlib import Path
from tokdfa.core import first_use
print("begun", flush=True)
print(first_use.begin_kernel(Path(sys.argv[1])), flush=True)
"""
IS_HELPED = """
from tokdfa.core import first_use
first_use._may_be_helped = lambda: True
first_use.expect(first_use.Expected(9, ("interning tables",)))
import sys
from pathlib import Path
first_use.begin_kernel(Path(sys.argv[1]))
helper = first_use._process.helper
print(helper.pid, flush=True)
if len(sys.argv) > 2:
    helper.wait()
"""
COMPILES = """
from tokdfa.core import first_use
first_use.SILENT_SECONDS = 0.0
first_use.expect(first_use.Expected(2, ()))
from tokdfa.core.sorting import sort_range
import numpy, logging
{before}
sort_range(numpy.arange(3), 0, 3)
sort_range(numpy.arange(3, dtype=numpy.int32), 0, 3)
"""


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "_process", first_use._Process())


def run(code: str, *arguments: object, **environment: object) -> subprocess.Popen[str]:
    settings = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tokdfa"]


def test_how_many_kernels_and_how_long(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    monkeypatch.setattr(first_use.time, "monotonic", lambda: now)
    first_use.expect(first_use.Expected(40, ()))
    for _ in range(2):  # loaded
        first_use.end_kernel()
    for seconds in (0.5, 1.5, 3.0, 3.0, 3.0, 3.0):
        first_use.begin_kernel(None)
        now += seconds
        first_use.end_kernel()
    line = "compiling kernels, once for this machine: "
    # said after 2 s, and 11 s: two kernels in 2 s, and one in 3 s
    assert said(caplog) == [f"{line}4 of 40, about 36 s"]
    now += 10
    first_use.begin_kernel(None)
    assert said(caplog)[1:] == [f"{line}8 of 40, about 128 s"]
    first_use.expect(None)
    now += 10
    first_use.begin_kernel(None)
    assert said(caplog)[2:] == [f"{line}8 so far"]


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_line_on_standard_error_unless_logging_says_otherwise(tmp_path: Path, level: str) -> None:
    code = COMPILES.format(before=f"logging.getLogger('tokdfa').setLevel({level!r})")
    output, errors = run(code, NUMBA_CACHE_DIR=tmp_path).communicate()
    expected = ["compiling kernels, once for this machine: 0 of 2, about"] if level == "WARNING" else []
    assert [line.rpartition(" ")[0].rpartition(" ")[0] for line in errors.splitlines()] == expected
    assert output == ""


def test_a_process_waits_for_one_that_is_compiling_the_same(tmp_path: Path) -> None:
    path = tmp_path / "stamp" / "some.kernel"
    assert not first_use.begin_kernel(path)
    other = run(WAITS, path)
    assert other.stdout is not None
    assert other.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(timeout=0.3)
    first_use.end_kernel()
    assert other.communicate() == ("True\n", "")
    assert not list(path.parent.glob("*.lock")) or other.wait() == 0


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "some.kernel"
    assert run(WAITS, path).communicate() == ("begun\nFalse\n", "")
    assert not first_use.begin_kernel(path)
    first_use.begin_kernel(tmp_path / "other.kernel")  # that one could not be compiled
    assert run(WAITS, path).communicate() == ("begun\nFalse\n", "")
    first_use.end_kernel()


def test_a_helper_fills_the_same_folder(tmp_path: Path) -> None:
    _, errors = run(IS_HELPED, tmp_path / "some.kernel", "wait", NUMBA_CACHE_DIR=tmp_path).communicate()
    assert errors == ""
    assert list(tmp_path.rglob("_write_table_kernel-*.kernel"))


def test_a_helper_ends_with_its_owner(tmp_path: Path) -> None:
    owner = run(IS_HELPED, tmp_path / "some.kernel", NUMBA_CACHE_DIR=tmp_path)
    output, errors = owner.communicate()
    assert errors == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(output), 0)


def test_logging_is_named_after_the_package() -> None:
    assert first_use.logger is logging.getLogger("tokdfa")

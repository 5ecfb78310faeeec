from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tokdfa import jit

if TYPE_CHECKING:
    from pathlib import Path

CALLEE = "from tokdfa.jit import kernel\n@kernel\ndef inner(x):\n    return x + {added}\n"
CALLER = "from tokdfa.jit import kernel\nfrom callee import inner\n@kernel\ndef outer(x):\n    return inner(x) * 2\n"


def test_a_changed_callee_in_another_file_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba alone would answer from the caller's cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "caller.py").write_text(CALLER)
    answers = []
    for added in (1, 10, 10):
        (tmp_path / "callee.py").write_text(CALLEE.format(added=added))
        code = "from caller import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        answers.append(done.stdout.split())
    assert [answer for answer, _ in answers] == ["4", "22", "22"]
    assert [hits for _, hits in answers] == ["0", "0", "1"]


def test_an_empty_cache_is_not_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not jit.is_warm()


def test_every_kernel_is_warmed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a cold start, which takes minutes; .ci/run does it when it compiles the kernels that all tests use."""
    if jit.is_warm():
        pytest.skip("the kernels are as they were when all were compiled; python -m tests.cold_kernels checks them")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "tests.cold_kernels"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert jit.is_warm()

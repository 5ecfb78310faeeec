from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tokdfa import jit

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def test_every_kernel_is_warmed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all warm-up steps from a cold start, no kernel of the package is left without compiled code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not jit.is_warm()
    code = (
        "import pkgutil, importlib, tokdfa\n"
        "from collections import deque\n"
        "from tokdfa import jit\n"
        "deque(jit.warm_up(), maxlen=0)\n"
        "for info in pkgutil.walk_packages(tokdfa.__path__, 'tokdfa.'):\n"
        "    module = importlib.import_module(info.name)\n"
        "    for name, value in vars(module).items():\n"
        "        if getattr(value, 'py_func', None) is not None and value.py_func.__module__ == info.name:\n"
        "            if not value.signatures:\n"
        "                print(info.name, name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert jit.is_warm()

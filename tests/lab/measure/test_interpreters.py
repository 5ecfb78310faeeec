"""Interpreters: what they say they have, and why one is of no use."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

import tokdfa
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.interpreters import Unavailable, facts, look, start
from tokdfa.lab.measure.limits import attempt


def script(path: Path, line: str) -> str:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_says_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(tokdfa.__file__).parents[1]))
    found = look(sys.executable, ("tokdfa.lab.measure.servants",), ("numpy", "no-such-package"))
    assert found == facts(["numpy"])
    assert found["python"]["version"] == platform.python_version()
    assert found["packages"] == {"numpy": np.__version__}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "there is no Python interpreter at"),
        ('echo "ModuleNotFoundError: no tokdfa" >&2; exit 1', "cannot run .*: ModuleNotFoundError: no tokdfa"),
        ("exit 3", "cannot run tokdfa's measurements: exit code 3"),
        ("""echo '{"code": "other"}'""", "has another tokdfa than the one that runs here; install the same"),
    ],
)
def test_why_one_cannot_be_used(line: str, reason: str, tmp_path: Path) -> None:
    path = script(tmp_path / "python", line) if line else str(tmp_path / "none")
    with pytest.raises(Unavailable, match=reason):
        look(path)
    assert attempt(look, path).kind == "unavailable"  # type: ignore[union-attr]


def test_a_process_has_the_descriptors_that_it_is_given(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    pid = start(sys.executable, "import os, sys; os.write(int(sys.argv[1]), b'here')", [writer])
    assert not os.get_inheritable(writer)
    os.close(writer)
    assert os.read(reader, 10) == b"here"
    os.close(reader)
    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(OSError, match="No such file"):
        start(str(tmp_path / "none"), "", [])


@pytest.mark.parametrize("name", ["one.py", "one.pyx", "one.hpp"])
def test_the_code_is_told_by_its_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x = 1")
    before = interpreters.code_fingerprint(tmp_path)
    (tmp_path / name).write_text("x = 2")
    assert interpreters.code_fingerprint(tmp_path) != before

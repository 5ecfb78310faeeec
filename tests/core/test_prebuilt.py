"""Wheels carry compiled kernels: a process in a new environment compiles nothing.

Only those that a first mask of a regex needs are built here, which takes some 20 s.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tokdfa.core import kernel_store

ROOT = Path(__file__).parents[2]
#: Prints how many kernels were compiled, of how many used, and where they came from.
FIRST_MASK = """
import sys
from numba.core import event
class Compiled(event.Listener):
    count = 0
    def on_start(self, event): self.count += 1
    def on_end(self, event): pass
listener = Compiled()
event.register("numba:compile", listener)
import tokdfa
vocab = tokdfa.load_tokenizer("bytes").vocabulary
matcher = tokdfa.compile(tokdfa.Regex("[0-9]{4}-(0[1-9]|1[0-2])"), vocab, backend="token_index", lazy=True).start()
matcher.advance(ord("2"))
mask = tokdfa.allocate_mask(vocab.size)
matcher.fill_mask(mask)
print(listener.count, tokdfa.mask_to_ids(mask).tolist() == list(b"0123456789"), tokdfa.__file__)
"""
#: Prints how many kernels one table compiles.
ONE_TABLE = (
    FIRST_MASK.split("import tokdfa", maxsplit=1)[0]
    + """
{before}
from tokdfa.core.interning import InterningTable
InterningTable()
print(listener.count)
"""
)

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="kernels are prebuilt for Linux on x86-64"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was unpacked, built without a network from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for copied in ("tokdfa", "experiments"):
        shutil.copytree(ROOT / copied, source / copied, ignore=shutil.ignore_patterns("__pycache__", "results"))
    for name in ("pyproject.toml", "build_wheel.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    environment = {**os.environ, "TOKDFA_KERNELS": "token_index"}
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, env=environment)
    (built,) = folder.glob("tokdfa-*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "installed")
    assert not list((source / "tokdfa").rglob("*.kernel"))
    return folder / "installed"


def run(code: str, installed: Path, cache: Path, **settings: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "NUMBA_CACHE_DIR": str(cache), **settings}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=cache, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_first_mask_compiles_nothing(installed: Path, tmp_path: Path) -> None:
    assert run(FIRST_MASK, installed, tmp_path) == ["0", "True", str(installed / "tokdfa" / "__init__.py")]
    assert not list(tmp_path.rglob("*.kernel"))


def test_the_set_is_named_by_what_it_fits(installed: Path) -> None:
    (found,) = (installed / "tokdfa" / "core" / "prebuilt").iterdir()
    assert found.name == kernel_store.prebuilt_name()
    assert not list(found.rglob("*.part-*"))


@pytest.mark.parametrize(
    ("before", "settings"),
    [
        ("", {"NUMBA_BOUNDSCHECK": "1"}),
        ("", {"NUMBA_OPT": "1"}),
        ("", {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}),
        ("from tokdfa.core import kernel_store; kernel_store.BASELINE_FEATURES = ('avx2', 'no such feature')", {}),
    ],
    ids=["checked", "other optimization", "other processor asked for", "older processor"],
)
def test_what_does_not_fit_is_compiled(installed: Path, tmp_path: Path, before: str, settings: dict[str, str]) -> None:
    assert run(ONE_TABLE.format(before=""), installed, tmp_path) == ["0"]
    assert run(ONE_TABLE.format(before=before), installed, tmp_path, **settings) != ["0"]

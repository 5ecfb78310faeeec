"""Build with checks, and run the listed tests: see `tests.checked`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREE = ROOT / "build" / "checked"
FOLDERS = ("tokdfa", "tests", "experiments")
FILES = ("setup.py", "build_backend.py", "pyproject.toml", "README.md", "LICENSE")
UNWANTED = shutil.ignore_patterns("__pycache__", "*.so", "results")


def copy_sources() -> None:
    """Copy with the times of files, so that what was built there before is still good."""
    for folder in FOLDERS:
        shutil.rmtree(TREE / folder, ignore_errors=True)
        shutil.copytree(ROOT / folder, TREE / folder, ignore=UNWANTED)
    for file in FILES:
        shutil.copy2(ROOT / file, TREE / file)


def build() -> None:
    """Compile in place."""
    environment = {**os.environ, "TOKDFA_CHECKED": "1"}
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=TREE, env=environment, check=True)


def preloaded() -> str:
    """The sanitizer's library, which must be there before Python is; and that of C++, whose functions it wraps."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    names = ("libasan.so", "libstdc++.so")
    found = [subprocess.check_output([*compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    return " ".join(found)


def run_tests(arguments: list[str]) -> int:
    """The exit code of pytest."""
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded(),
        "ASAN_OPTIONS": "detect_leaks=0:malloc_context_size=4",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # each object of Python is a block that is watched
        "PYTHONPATH": str(TREE),
        "HYPOTHESIS_PROFILE": "short",
    }
    lines = (TREE / "tests" / "checked" / "tests.txt").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    files = [] if any((TREE / argument.partition("::")[0]).is_file() for argument in arguments) else listed
    # a worker that a sanitizer stops ends the run: xdist may wait for ever for what the worker had yet to do
    options = ["-q", "-p", "no:cacheprovider", "--max-worker-restart=0"]
    command = [sys.executable, "-m", "pytest", *options, *files, *arguments]
    return subprocess.run(command, cwd=TREE, env=environment, check=False).returncode


if __name__ == "__main__":
    copy_sources()
    build()
    sys.exit(run_tests(sys.argv[1:]))

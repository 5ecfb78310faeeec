"""Python interpreters and their installed packages: this one, and separate ones for engines whose packages conflict.

A peer that cannot share an environment with the others gets its own, with the same tokdfa installed. Its process is
started with that environment's interpreter. Only pickled plain data cross the boundary: settings and numbers go in,
rows come out.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.core.folders import files_fingerprint
from tokdfa.core.packages import installed_version
from tokdfa.errors import TokdfaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Unavailable(TokdfaError):
    """The interpreter does not exist, or cannot run this tokdfa's measurements."""


#: Time limit, in seconds, for an interpreter to report its packages.
LOOK_SECONDS = 120.0
_LOOK = (
    "import importlib, json, sys; modules, packages = json.loads(sys.argv[1]); "
    "[*map(importlib.import_module, modules)]; "
    "from tokdfa.lab.measure.interpreters import facts; print(json.dumps(facts(packages)))"
)


def facts(packages: Iterable[str]) -> dict[str, Any]:
    """Describe this interpreter: ``python``, ``tokdfa`` (version), ``code`` (fingerprint of tokdfa), ``packages``."""
    return {
        "python": python_facts(),
        "tokdfa": tokdfa.__version__,
        "code": code_fingerprint(Path(tokdfa.__file__).parent),
        "packages": package_versions(packages),
    }


@lru_cache(maxsize=64)
def look(path: str, modules: tuple[str, ...] = (), packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """The `facts` of the interpreter at `path`, cached. The first call takes some seconds.

    Raises Unavailable if there is no interpreter, if it cannot import `modules`, or if its tokdfa is not this one.
    """
    try:
        done = subprocess.run(
            [*command(path, _LOOK), json.dumps([modules, packages])],
            capture_output=True,
            text=True,
            timeout=LOOK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"there is no Python interpreter at {path}: {error}") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise Unavailable(f"the interpreter {path} cannot run tokdfa's measurements: {said[0]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["code"] != code_fingerprint(Path(tokdfa.__file__).parent):
        raise Unavailable(f"the interpreter {path} has another tokdfa than the one that runs here; install the same")
    return found


def command(path: str, code: str) -> list[str]:
    """The command that runs `code` under the interpreter at `path`; the current folder is not on its import path."""
    return [path, "-P", "-c", code]


def start(path: str, code: str, descriptors: Sequence[int]) -> int:
    """Start a process that runs `code` under the interpreter at `path`, and return its id. Raises OSError.

    The process inherits `descriptors` under the same numbers, and receives the numbers as arguments.
    """
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    try:
        return os.posix_spawn(path, [*command(path, code), *map(str, descriptors)], os.environ)
    finally:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)


def python_facts() -> dict[str, str]:
    """``version`` and ``build`` of the running Python."""
    return {"version": platform.python_version(), "build": sys.version}


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """name -> version, of the packages that are installed."""
    return {name: version for name in names if (version := installed_version(name)) is not None}


#: What is read or compiled; stubs (``.pyi``) change nothing that runs.
SOURCES = (".py", ".pyx", ".pxd", ".hpp")


def code_fingerprint(folder: Path) -> str:
    """Fingerprint the sources below a package's folder, compiled modules' among them; takes some 10 ms.

    Unlike the commit, it needs no checkout and reflects uncommitted changes.
    """
    return files_fingerprint(folder, (path for path in folder.rglob("*") if path.suffix in SOURCES))

"""Where numbers come from: versions, commit, machine, times and seeds, as JSON, stored with every run.

The top level describes the most recent start of a run; each earlier start of the same run folder is kept, as it was,
under ``earlier``. A row's ``measured_at`` tells which start it belongs to.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.core.folders import files_fingerprint
from tokdfa.core.packages import installed_version
from tokdfa.lab.measure.clock import ONE_THREAD
from tokdfa.lab.measure.machine import machine_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig

#: Packages whose version can change a number or a mask, those of the peers among them; an experiment may use more.
PACKAGES = (
    *("numpy", "numba", "llvmlite", "pandas", "pyarrow", "pydantic", "regex", "interegular"),
    *("mistral-common", "sentencepiece", "tiktoken", "tokenizers", "llama-models", "torch", "transformers"),
    *("llguidance", "outlines-core", "glrmask", "xgrammar", "lm-format-enforcer", "grid-guardrail"),
    *("maskforge", "cfgzip"),
)
GIT_SECONDS = 10.0


def collect(config: ExperimentConfig, groups: Iterable[Group]) -> dict[str, Any]:
    """All that is known at the start of a run, the place's facts apart; about 0.1 s."""
    return {
        "experiment": config.name,
        "fingerprint": config.fingerprint,
        "tokdfa": tokdfa.__version__,
        "git": git_state(Path(tokdfa.__file__).parent),
        "code": code_fingerprint(Path(tokdfa.__file__).parent),
        "packages": package_versions(packages_of(config)),
        "python": python_facts(),
        "machine": machine_facts(),
        "environment": dict(ONE_THREAD),
        "process": os.getpid(),
        "started": now(),
        "ended": None,
        "interrupted": None,
        "seeds": {"experiment": config.seed, "groups": {f"{one.position:06d}": one.items[0].seed for one in groups}},
        "tokenizers": {},
        "earlier": [],
    }


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def packages_of(config: ExperimentConfig) -> tuple[str, ...]:
    """The packages whose versions are recorded for an experiment: `PACKAGES`, and what its backends name."""
    return *PACKAGES, *(package for entry in config.backends for package in entry.backend_class().packages)


def python_facts() -> dict[str, str]:
    """``version`` and ``build`` of the Python that runs this."""
    return {"version": platform.python_version(), "build": sys.version}


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """name -> installed version, for those that are installed."""
    return {name: version for name in names if (version := installed_version(name)) is not None}


def code_fingerprint(folder: Path) -> str:
    """The fingerprint of the Python files below a package's folder; some 10 ms.

    Unlike the commit it is known where there is no checkout, and changes with what has not been committed.
    """
    return files_fingerprint(folder, folder.rglob("*.py"))


def git_state(folder: Path) -> dict[str, Any] | None:
    """``commit`` and ``dirty`` of the checkout that `folder` belongs to; None if it is not in one, or there is no git.

    A package installed into an environment that happens to lie in some checkout is not part of it, so `folder` must be
    tracked.
    """
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit, status = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", "--", ".")
    if commit is None or status is None:
        return None
    return {"commit": commit.strip(), "dirty": bool(status.strip())}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What has changed between two starts of one run that can change its numbers, in words."""
    found = [
        f"{name} was {before.get(name)} and is {after.get(name)}"
        for name in ("tokdfa", "git")
        if before.get(name) != after.get(name)
    ]
    old, new = before.get("packages", {}), after.get("packages", {})
    found += [
        f"{package} was {old.get(package)} and is {new.get(package)}"
        for package in sorted({*old, *new})
        if old.get(package) != new.get(package)
    ]
    machines = [start.get("machine", {}).get("cpu") for start in (before, after)]
    if machines[0] != machines[1]:
        found.append(f"the processor was {machines[0]} and is {machines[1]}")
    return found

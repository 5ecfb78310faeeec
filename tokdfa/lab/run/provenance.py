"""Where numbers come from: versions, commit, machine, times and seeds, as JSON, stored with every run.

The top level describes the most recent start of a run; each earlier start of the same run folder is kept, as it was,
under ``earlier``. A row's ``measured_at`` tells which start it belongs to.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.clock import ONE_THREAD
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.machine import machine_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig

#: Packages whose version can change a number or a mask, those of the peers among them; an experiment may use more.
PACKAGES = (
    *("numpy", "pandas", "pyarrow", "pydantic", "regex", "interegular"),
    *("mistral-common", "sentencepiece", "tiktoken", "tokenizers", "llama-models", "torch", "transformers"),
    *("llguidance", "outlines-core", "glrmask", "xgrammar", "lm-format-enforcer", "grid-guardrail"),
    *("maskforge", "cfgzip", "syncode"),
)
GIT_SECONDS = 10.0


def collect(config: ExperimentConfig, groups: Iterable[Group]) -> dict[str, Any]:
    """All that is known at the start of a run, the place's facts apart; about 0.1 s, and some seconds for each
    interpreter apart.
    """
    pythons = {name: _facts_apart(path, packages_of(config)) for name, path in config.pythons.items()}
    return {
        "experiment": config.name,
        "fingerprint": config.fingerprint,
        **({"way": config.way} if config.way else {}),
        **interpreters.facts(packages_of(config)),
        **({"pythons": pythons} if pythons else {}),
        "git": git_state(Path(tokdfa.__file__).parent),
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


def _facts_apart(path: str, packages: tuple[str, ...]) -> dict[str, Any]:
    """What the interpreter of a backend that has its own is, with its ``path``, or why it cannot run."""
    found = attempt(interpreters.look, path, (), packages)
    return {"path": path, **({"missing": found.message} if isinstance(found, Failure) else found)}


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
    old, new = _all_packages(before), _all_packages(after)
    found += [
        f"{package} was {old.get(package)} and is {new.get(package)}"
        for package in sorted({*old, *new})
        if old.get(package) != new.get(package)
    ]
    machines = [start.get("machine", {}).get("cpu") for start in (before, after)]
    if machines[0] != machines[1]:
        found.append(f"the processor was {machines[0]} and is {machines[1]}")
    return found


def _all_packages(start: dict[str, Any]) -> dict[str, str]:
    """Package -> version, and the Python and packages of the interpreters apart, by backend and name."""
    found = dict(start.get("packages", {}))
    for backend, apart in start.get("pythons", {}).items():
        versions = {"Python": apart.get("python", {}).get("version"), **apart.get("packages", {})}
        found |= {f"{backend}'s {name}": version for name, version in versions.items()}
    return found

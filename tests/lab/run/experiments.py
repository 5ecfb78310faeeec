"""Experiments on fake backends, written and run by the tests of a whole run."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import psutil
import yaml

from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.run.execute import run
from tokdfa.lab.run.store import open_run

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.execute import RunSummary


def experiment(folder: Path, *backends: Any, **keys: Any) -> ExperimentConfig:
    """An experiment on the byte vocabulary; small, unless `keys` say otherwise."""
    data: dict[str, Any] = {
        "name": "test",
        "tokenizers": ["bytes"],
        "constraints": [{"label": "choice", "choice": ["ab", "ac", "b"]}],
        "backends": [*backends],
        "workloads": [{"kind": "random_walk", "walks": 2, "steps": 4}],
        "repeats": 2,
        "limits": {"seconds": 20, "memory_mb": 500},
        **keys,
    }
    path = folder / "e.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_config(path)


def trick(how: str, where: str = "compile", label: str | None = None, **options: Any) -> dict[str, Any]:
    """A backend that does `how`; labelled so."""
    return {"name": "fake", "label": label or how, "options": {"how": how, "where": where, **options}}


def run_all(config: ExperimentConfig, **options: Any) -> tuple[RunSummary, dict[str, Any], Any]:
    """Run; (summary, label -> row of the items, samples)."""
    summary = run(config, **options)
    stored = open_run(summary.folder)
    items = stored.items()
    assert items["item_id"].is_unique
    rows = {row["label"]: row for row in items.to_dict("records")}
    return summary, rows, stored.samples()


def children(*, recursive: bool = False) -> list[psutil.Process]:
    """The processes that this one has started, without the resource tracker, which Python keeps until the end."""
    found = []
    for child in psutil.Process().children(recursive=recursive):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.append(child)
    return found


def measuring(*pids: int) -> list[psutil.Process]:
    """The worker processes that these processes (this one, if none is given) have started, each before its forks."""
    found = []
    for pid in pids or (os.getpid(),):
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if any("tokdfa.lab.run.worker" in word for word in child.cmdline()):
                        found += [child, *child.children(recursive=True)]
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended; its parent may not have noticed yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

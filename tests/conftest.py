"""What holds for all tests: Hypothesis profiles, marks, and what is collected.

Examples are the same in every run; the profile `short` tries fewer (for `-m fast`, and for runs with slow checks on).
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.packages import apply_marks

if TYPE_CHECKING:
    from collections.abc import Iterator

# how long an example takes says nothing on a machine that is busy
UNTIMED = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", UNTIMED)
settings.register_profile("short", UNTIMED, max_examples=20)


def pytest_configure(config: pytest.Config) -> None:
    short = config.option.markexpr == "fast"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short" if short else "default"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt: a shell starts its commands in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


HERE = Path(__file__).parent
#: Folder -> the modules that ``pytest -m fast`` runs: the most telling of each layer among those of few seconds.
FAST = {
    ".": "layers mask",
    "core": "budget schema_forms",
    "vocabulary": "vocabulary",
    "automata": "words",
    "regex": "shortest",
    "proper": "replay",
    "grammar": "special lexer",
    "token_automata": "token_rows",
    "program": "printing",
    "json_schema": "clauses object_states",
    "masks": "divisions",
    "backends": "base brute_force",
    "backends/pushdown_trie": "rows",
    "backends/cfg_fsm": "describe",
    "display": "masks",
    "models": "table base",
    "decoding": "loop",
    "serving": "requests",
    "skew": "eos",
    "tasks": "tasks",
    "lab/measure": "workloads oracle engines",
    "lab/run": "group_task",
    "lab/declare": "models",
    "cli": "models",
}
FAST_FILES = {HERE / folder / f"test_{name}.py" for folder, names in FAST.items() for name in names.split()}

#: Modules that keep a process busy longest: they begin first, so that no process waits for another at the end.
LONG_FILES = {
    HERE / "test_notebooks.py",
    HERE / "backends" / "test_contract.py",
    HERE / "backends" / "test_mixed_constraints.py",
    HERE / "lab" / "kinds" / "test_canonicity.py",
    HERE / "lab" / "run" / "test_cluster.py",
    HERE / "lab" / "run" / "test_interruption.py",
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``-m fast`` and ``-m more_packages`` do not even import the others, which takes longer than to run these."""
    if collection_path.suffix != ".py":
        return None
    if config.option.markexpr == "more_packages" and not may_need_more(collection_path):
        return True
    return True if config.option.markexpr == "fast" and collection_path not in FAST_FILES else None


def may_need_more(module: Path) -> bool:
    """Whether some test of a module may need a package of `MORE`: they have their marks from there."""
    return "tests.packages" in module.read_text()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    apply_marks(items)
    for item in items:
        if item.path in FAST_FILES:
            item.add_marker("fast")
    marked = {item.path for item in items if item.get_closest_marker("more_packages")}
    assert all(map(may_need_more, marked)), "import the mark from tests.packages, where pytest_ignore_collect looks"
    items.sort(key=lambda item: item.path not in LONG_FILES)


def pytest_collection_finish() -> None:
    freeze()


@pytest.fixture(scope="module", autouse=True)
def _frozen_heap() -> Iterator[None]:
    yield
    freeze()


def freeze() -> None:
    """Let the collector leave alone what lives on: measures collect before they time, and with the tokenizers and
    constraints that other modules have left in caches a collection takes a second.
    """
    gc.collect()
    gc.freeze()

"""Hypothesis profiles: examples are the same in every run; `short` tries fewer (for runs with slow checks on)."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

from tests.packages import apply_marks

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("short", deadline=None, derandomize=True, max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    apply_marks(items)


def pytest_collection_finish() -> None:
    """Let the collector leave alone what lives to the end: measures collect before they time, 0.2 s of it a call."""
    gc.collect()
    gc.freeze()

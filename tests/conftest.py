"""Hypothesis profiles: examples are the same in every run; `short` tries fewer (for runs with slow checks on)."""

from __future__ import annotations

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

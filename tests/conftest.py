"""Hypothesis profiles: examples are the same in every run; `short` tries fewer (for runs with slow checks on)."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("short", deadline=None, derandomize=True, max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

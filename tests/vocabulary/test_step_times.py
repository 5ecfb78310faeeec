"""The command that times steps finds the same masks by all of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.vocabulary.step_times import time_steps

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_all_steps_are_timed(tmp_path: Path) -> None:
    found = time_steps("bytes", str(tmp_path), 1)
    assert len(found) == 3
    assert min(found.values()) > 0

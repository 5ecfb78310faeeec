"""Memory that is handed out by page: zeros, of one process alone."""

from __future__ import annotations

import os

import pytest

from tokdfa.core.pages import zeros_by_page


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_forked_process_has_its_own():
    numbers = zeros_by_page(10_000)
    numbers[3] = 1
    child = os.fork()
    if child == 0:
        numbers[:] = 9
        os._exit(0 if numbers[3] == 9 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert numbers[3] == numbers.sum() == 1

"""Longer copies of arrays that are full. What they hold more counts towards the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold


def longer(array: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    """`array` at twice its length and twice `more`, and one; the rest is undefined."""
    hold(array.nbytes + 2 * more * array.itemsize)
    grown = np.empty(2 * len(array) + 2 * more + 1, dtype=array.dtype)
    grown[: len(array)] = array
    return grown

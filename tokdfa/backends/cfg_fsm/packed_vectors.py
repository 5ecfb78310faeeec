"""Vectors over the cuts of a vocabulary, packed into bits, and their product.

A *cut* of a token is a prefix and a suffix of it, both not empty. A packed vector has one bit a cut: uint64, shape
(ceil(cuts / 64),). The product of two vectors marks the tokens that have a cut in both: where the first says which
prefixes end a terminal, and the second which suffixes the next terminal takes, these are the tokens that may run from
one into the other.

Source: 003, "RegexFSM concatenation". Cost: one AND for 64 cuts, and about 2 ns a cut that is in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Packed = npt.NDArray[np.uint64]

#: The place of a lone bit, by the upper six bits of its product with this number (a de Bruijn sequence).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, dtype=np.uint64)
for _place in range(64):
    _PLACES[(int(_DE_BRUIJN) << _place & (1 << 64) - 1) >> 58] = _place


def pack(flags: npt.NDArray[np.bool_]) -> Packed:
    """Booleans as bits: uint64, shape (ceil(len(flags) / 64),)."""
    padded = np.zeros((len(flags) + 63) // 64 * 64, dtype=np.bool_)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


@kernel
def multiply_kernel(prefixes, suffixes, labels, out):  # type: ignore[no-untyped-def]
    """Set the bits ``labels[c]`` of `out` (uint64) for each cut c that is in both vectors, for each pair of vectors.

    `prefixes`, `suffixes`: uint64, shape (pairs, words).
    """
    for pair in range(len(prefixes)):
        for word in range(prefixes.shape[1]):
            both = prefixes[pair, word] & suffixes[pair, word]
            while both != 0:
                place = _PLACES[(both & (~both + np.uint64(1))) * _DE_BRUIJN >> np.uint64(58)]
                label = np.uint64(labels[np.uint64(word) * np.uint64(64) + place])
                out[label >> np.uint64(6)] |= np.uint64(1) << (label & np.uint64(63))
                both &= both - np.uint64(1)

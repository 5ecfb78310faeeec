"""How JSON strings spell characters: raw in UTF-8, or escaped; code units, as `tokdfa.backends.pushdown_trie.name_trie`
has them.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.name_trie import ESCAPED, N_PARENT, N_UNIT
from tokdfa.core.jit import kernel

QUOTE, BACKSLASH, SLASH, LETTER_U = 0x22, 0x5C, 0x2F, 0x75


@kernel
def is_high(unit):  # type: ignore[no-untyped-def]
    """Whether a code unit is the first surrogate of two."""
    return 0xD800 <= unit < 0xDC00


@kernel
def is_low(unit):  # type: ignore[no-untyped-def]
    """Whether a code unit is the second surrogate of two."""
    return 0xDC00 <= unit < 0xE000


@kernel
def must_escape(unit):  # type: ignore[no-untyped-def]
    """Whether a character cannot stand raw in a string."""
    return unit < 0x20 or unit in (QUOTE, BACKSLASH)


@kernel
def short_escape(unit):  # type: ignore[no-untyped-def]
    """The byte after the backslash in a unit's short escape, or -1."""
    if unit in (QUOTE, BACKSLASH, SLASH):
        return np.int64(unit)
    if unit == 8:
        return np.int64(0x62)
    if unit == 12:
        return np.int64(0x66)
    if unit == 10:
        return np.int64(0x6E)
    if unit == 13:
        return np.int64(0x72)
    if unit == 9:
        return np.int64(0x74)
    return np.int64(-1)


@kernel
def utf8_length(code):  # type: ignore[no-untyped-def]
    """Bytes of a character raw; 0 if it cannot stand raw or is a surrogate."""
    if must_escape(code) or 0xD800 <= code < 0xE000:
        return np.int64(0)
    if code < 0x80:
        return np.int64(1)
    return np.int64(2) if code < 0x800 else (np.int64(3) if code < 0x10000 else np.int64(4))


@kernel
def utf8_byte(code, length, place):  # type: ignore[no-untyped-def]
    """Byte `place` of a character of `length` bytes."""
    bits = code >> (6 * (length - 1 - place))
    if place > 0:
        return np.int64(0x80 | bits & 0x3F)
    if length == 1:
        return np.int64(bits)
    return np.int64((0xF00 >> length) & 0xFF | bits)


@kernel
def character(node, base, names):  # type: ignore[no-untyped-def]
    """The code point that is complete with a node: of a second surrogate that of both units."""
    unit = np.int64(names[base + node, N_UNIT])
    if is_low(unit):
        high = np.int64(names[base + names[base + node, N_PARENT], N_UNIT])
        if is_high(high):
            return 0x10000 + ((high - 0xD800) << 10) + unit - 0xDC00
    return unit


@kernel
def node_above(node, phase, base, names):  # type: ignore[no-untyped-def]
    """The node at which the spelling began of which `phase` is read."""
    parent = np.int64(names[base + node, N_PARENT])
    if phase < ESCAPED and is_low(names[base + node, N_UNIT]):
        return np.int64(names[base + parent, N_PARENT])
    return parent

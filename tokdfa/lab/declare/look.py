"""How contenders look in charts: a colour for each backend, a dash and a shape for each of its variants.

Every backend name has its colour in every report (`COLOURS`; a name that is not listed gets one by a hash of itself).
Contenders of one backend share its colour and differ by dash and shape, so colour is never the only cue. The named
colours are close to those of Okabe and Ito (2008) and of Tol (2021); those of the shipped backends can be told apart
with the common forms of colour blindness. Each has a lighter counterpart for dark pages.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: backend or engine name -> place in PALETTE.
COLOURS: dict[str, int] = {
    "token_index": 0,
    "tokdfa": 0,
    "llguidance": 1,
    "outlines_core": 2,
    "glrmask": 3,
    "brute_force": 4,
    "tokens_dfa": 5,
    "pushdown_trie": 6,
    "earley_trie": 7,
    "direct_merge": 8,
    "cartesian_merge": 9,
    "cfg_fsm": 10,
    "xgrammar": 11,
    "lm_format_enforcer": 12,
    "grid": 13,
    # verdicts of a comparison
    **{"faster": 0, "less": 0, "slower": 1, "more": 1, "no": 4, "control": 9},
}
#: Where the colours of other names begin.
_OTHERS = 14

#: (on light pages, on dark pages); the first belong to the names above, the others to names by hash.
PALETTE: tuple[tuple[str, str], ...] = (
    ("#0072b2", "#3d9bff"),
    ("#e06000", "#ff7f2a"),
    ("#009e73", "#00c78c"),
    ("#aa3377", "#e377c2"),
    ("#444444", "#e0e0e0"),
    ("#332288", "#f0d060"),
    ("#6622ff", "#8844ff"),
    ("#660000", "#ee4444"),
    ("#aa66ff", "#aaffaa"),
    ("#440044", "#666666"),
    ("#ee2244", "#ff00dd"),
    ("#992200", "#227722"),
    ("#111111", "#bb2299"),
    ("#8c6d00", "#a99bff"),
    ("#2e8fb8", "#88ccee"),
    ("#882255", "#e0709a"),
    ("#117733", "#6bcb77"),
    ("#7a7a1f", "#d4d45a"),
    ("#9c4a1a", "#c9a27e"),
    ("#00707a", "#4fd0d8"),
    ("#7d4fa0", "#c39be0"),
    ("#4c6b00", "#ffd0a0"),
)
INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
DARK = {INK: "#e6edf3", MUTED: "#9aa7b4", GRID: "#3d444d", PAPER: "#14181d"}

#: Lengths of dash and gap, and shapes of points, by the place of a contender among those of its backend.
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")


class Look(NamedTuple):
    """How one contender is drawn: a colour of light pages, a dash of lines, a shape of points."""

    colour: str
    dash: list[int]
    shape: str


def backend_of(contender: str) -> str:
    """The name before the first space or comma: ``llguidance slices off`` is llguidance."""
    return re.split("[ ,]", contender)[0]


def looks(contenders: Iterable[str]) -> dict[str, Look]:
    """The look of each contender, given in their order. Names by hash that meet get the next free colours."""
    variants: Counter[str] = Counter()
    places: dict[str, int] = {}
    found = {}
    for contender in contenders:
        backend = backend_of(contender)
        if backend not in places:
            places[backend] = _place(backend, set(places.values()))
        variant = variants[backend]
        variants[backend] += 1
        colour = PALETTE[places[backend]][0]
        found[contender] = Look(colour, DASHES[variant % len(DASHES)], SHAPES[variant % len(SHAPES)])
    return found


def _place(backend: str, taken: set[int]) -> int:
    if backend in COLOURS:
        return COLOURS[backend]
    others = len(PALETTE) - _OTHERS
    first = hashlib.sha256(backend.encode()).digest()[0]
    wheel = [_OTHERS + (first + step) % others for step in range(others)]
    return next((place for place in wheel if place not in taken), wheel[0])

r"""The marked language of one step of a pre-tokenizer, by guess and verify, over classes of characters.

A step finds the matches of its pattern from left to right and thereby cuts the text into *segments*: matches, and the
stretches between them that match nothing. Which borders between segments become borders of pieces, and which segments
are lost, is the step's *rule* (`SegmentRule`).

A *configuration* is the point of the program at which the reading stands on its winning path, together with a *guess*:
the vector (`pretokenizer_program`) of the text still to come. The guess decides every choice, so the path is one; and
it is verified a character at a time: after a character of class c the new guess must be a vector whose predecessor by c
is the old one. At the end of the text only the guess "end" is right. When the path ends, so does the segment; the same
guess tells whether a match begins here or a stretch without one.

For a given text up to here and a given guess there is at most one configuration: text and guess together fix the cuts.
So a set of configurations is an array with an entry a guess, and the *subset construction* needs no sets: a step by a
class is ``after[array[before]]``, two gathers of numpy, and equal arrays are one state.

Letters. The automaton reads classes 0..C-1 and the marker, letter C. It is a `tokdfa.automata.dfa.Dfa` whose "bytes"
are these letters (255 at most, so all tools for automata serve); letters above C lead nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.explore import explore
from tokdfa.automata.minimize import minimize
from tokdfa.proper.pretokenizer_classes import ScalarClasses, common_scalar_classes, scalar_classes
from tokdfa.proper.pretokenizer_program import AT_END, Op, PatternProgram, Vectors, compile_pattern, list_vectors
from tokdfa.regex.syntax_tree import EMPTY_NODE, LookAhead

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.regex.syntax_tree import Node

    Codes = npt.NDArray[np.int16]

#: Nothing matches, so the whole text is one stretch: what a pre-tokenizer without steps does.
NEVER = LookAhead(EMPTY_NODE, negative=True)
#: Of automata over classes; those in use have up to 60.
STATE_LIMIT = 10_000
#: No configuration.
_NONE = -1


@dataclass(frozen=True)
class SegmentRule:
    """What becomes of segments. Flags: 0 a stretch without match, 1 a match.

    `lost`: by flag, whether texts with such a segment have no pieces; `cuts`: by flags of two neighbours, whether the
    border between them is a border of pieces.
    """

    lost: tuple[bool, bool] = (False, False)
    cuts: tuple[tuple[bool, bool], tuple[bool, bool]] = ((True, True), (True, True))


@dataclass(frozen=True)
class MarkedLetters:
    """An automaton over letters, and the class of every scalar value (see `pretokenizer_classes`)."""

    dfa: Dfa
    classes: ScalarClasses

    @property
    def marker(self) -> int:
        """The letter of the marker, which is also the number of classes."""
        return int(self.classes.max()) + 1

    def table(self) -> npt.NDArray[np.int32]:
        """Transitions by letter: int32, shape (states, classes + 1), -1 where nothing follows."""
        return np.take(self.dfa.transitions, self.dfa.byte_class[: self.marker + 1], axis=1)


def mark_one_step(pattern: Node, rule: SegmentRule) -> MarkedLetters:
    """The minimal automaton of one step; the marker stands between pieces, the empty text has none.

    Cost: the searches for the pattern's character sets, then O(states x classes x vectors) in numpy. LimitExceeded for
    too many classes, instructions, vectors or states.
    """
    program = compile_pattern(pattern)
    classes, holds = scalar_classes(program.sets)
    vectors = list_vectors(program, holds)
    return MarkedLetters(minimize(_determinize(program, vectors, rule, holds.shape[1])), classes)


def mark_sequence(outer: MarkedLetters, inner: MarkedLetters) -> MarkedLetters:
    """The minimal automaton of two steps, the second of which cuts up each piece of the first on its own.

    Both read the text side by side. A marker is the inner one's, or the outer one's where the inner one accepts, for it
    sees the end of the outer piece as the end of the text; then the inner one starts anew. Up to 2**pairs states;
    LimitExceeded.
    """
    classes, outer_class, inner_class = common_scalar_classes(outer.classes, inner.classes)
    count = len(outer_class)
    outer_rows = outer.table()[:, [*outer_class, outer.marker]].tolist()
    inner_rows = inner.table()[:, [*inner_class, inner.marker]].tolist()
    outer_accepts, inner_accepts = outer.dfa.accepting.tolist(), inner.dfa.accepting.tolist()

    def successors(pairs: frozenset[tuple[int, int]]) -> list[frozenset[tuple[int, int]] | None]:
        following: list[set[tuple[int, int]]] = [set() for _ in range(count + 2)]
        for left, right in pairs:
            outer_row, inner_row = outer_rows[left], inner_rows[right]
            for letter in range(count):
                if outer_row[letter] >= 0 and inner_row[letter] >= 0:
                    following[letter].add((outer_row[letter], inner_row[letter]))
            if inner_row[count] >= 0:
                following[count].add((left, inner_row[count]))
            if outer_row[count] >= 0 and inner_accepts[right]:
                following[count].add((outer_row[count], inner.dfa.start))
        return [frozenset(reached) or None for reached in following]

    def accepts(pairs: frozenset[tuple[int, int]]) -> bool:
        return any(outer_accepts[left] and inner_accepts[right] for left, right in pairs)

    start = frozenset({(outer.dfa.start, inner.dfa.start)})
    return MarkedLetters(minimize(explore(start, successors, accepts, _letters(count), STATE_LIMIT)), classes)


def _letters(class_count: int) -> npt.NDArray[np.uint8]:
    """Letter -> column: the classes, the marker, and one column for all that is no letter."""
    return np.minimum(np.arange(256), class_count + 1).astype(np.uint8)


def _determinize(program: PatternProgram, vectors: Vectors, rule: SegmentRule, class_count: int) -> Dfa:
    """The subset construction of the module's docstring. A state is the bytes of its array of codes.

    Codes: the number of the READ to be done; `stretch` within a stretch without match; from `ended` on, a segment has
    ended and a marker or the end of the text must follow (`ended` + flag).
    """
    stretch = len(program.instructions)
    ended = stretch + 1
    matches = vectors.levels[program.start] > 0
    guesses = np.arange(len(matches))
    winning = _winning_points(program, vectors, ended + 1)

    begin = np.where(matches, winning[program.start], stretch)
    begin[np.array(rule.lost)[matches.astype(np.intp)]] = _NONE
    begin[AT_END] = _NONE

    def border(flag: int) -> Codes:
        """The code after a segment's last character, by guess."""
        cut = np.array(rule.cuts[flag])[matches.astype(np.intp)]
        cut[AT_END] = True
        return np.where(cut, ended + flag, begin).astype(np.int16)

    landing = np.full((ended + 3, len(guesses)), _NONE, dtype=np.int16)  # the last row is what _NONE looks up
    for place, step in enumerate(program.instructions):
        if step.op == Op.READ:
            point = winning[step.first]
            landing[place] = np.where(point == ended + 1, border(1), point)
    landing[stretch] = np.where(matches | (guesses == AT_END), border(0), stretch)

    def successors(state: bytes) -> list[bytes | None]:
        codes = np.frombuffer(state, dtype=np.int16)
        following = [*landing[codes[vectors.before], guesses], np.where(codes >= ended, begin, _NONE)]
        return [
            *(reached.astype(np.int16).tobytes() if (reached != _NONE).any() else None for reached in following),
            None,
        ]

    def accepts(state: bytes) -> bool:
        return bool(np.frombuffer(state, dtype=np.int16)[AT_END] >= ended)

    start = begin.astype(np.int16)
    start[AT_END] = ended
    return explore(start.tobytes(), successors, accepts, _letters(class_count), STATE_LIMIT)


def _winning_points(program: PatternProgram, vectors: Vectors, matched: int) -> Codes:
    """Where the winning path from each instruction stands before the next character, by guess.

    int16, shape (instructions, vectors): a READ, or `matched` at the end of the match. Where nothing succeeds there is
    no such path, and the entry means nothing.
    """
    points = np.full(vectors.levels.shape, _NONE, dtype=np.int16)
    for place, step in enumerate(program.instructions):
        if step.op == Op.READ:
            points[place] = place
        elif step.op == Op.MATCH:
            points[place] = matched
    for place in program.silent_order():
        step = program.instructions[place]
        if step.op == Op.SPLIT:
            points[place] = np.where(vectors.levels[step.first] > 0, points[step.first], points[step.second])
        else:
            points[place] = points[step.second if step.op == Op.LOOK else step.first]
    return points

"""The intermediate form: the byte-level program that every constraint is lowered to.

Words. A program is a list of *instructions*; a *place* is the number of one. A *frame* is a part of the program that is
called, as a nonterminal is. Reading begins at `Form.start`; the text is complete when the outermost frame returns.

=========  =====================  ======================================================================
operation  arguments              meaning
=========  =====================  ======================================================================
RETURN                            go on where the current frame was called
ANY        alternatives           go on at any of these places
CALL       frame, next            read what the frame reads, then go on at next
TEXT       text, next             read one of the texts of an automaton, then go on at next
TOKEN      token set, next        take one of these special tokens, then go on at next
=========  =====================  ======================================================================

A regex or a choice is one TEXT; a grammar has a frame for each nonterminal, with a TEXT for each lexeme. Equal
instructions are one place, so equal ends of rules are shared, and rows that differ in nothing else are equal.
Instruction 0 is RETURN.

An automaton of a form (`Text`) is known by its *key*, which says what language it is; it is built only if no constraint
of the vocabulary had the same before. The form itself knows no vocabulary: `tokdfa.pushdown.pool.Pool.link` binds it.

Source: ours. The idea of running a grammar as a program of few instructions is Thompson's (1968), with calls as in
Knuth's (1971) top-down parsing machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.regex.lazy_dfa import LazyDfa

#: Operations.
RETURN, ANY, CALL, TEXT, TOKEN = range(5)
#: Columns of an instruction; arguments that an operation does not have are 0.
OPERATION, FIRST, SECOND = range(3)
#: The place of the only RETURN.
RETURN_PLACE = 0


@dataclass(frozen=True, eq=False)
class Text:
    """An automaton of a form.

    `label`: for people; `key`: equal keys mean equal languages; `make`: builds the automaton, minimal or lazy; `lazy`:
    its texts end at the first match, and win over other texts that match there.
    """

    label: str
    key: bytes
    make: Callable[[], Dfa | LazyDfa]
    lazy: bool = False


@dataclass(frozen=True, eq=False)
class Form:
    """A program. Immutable; build one with `FormBuilder`.

    `code`: int32, shape (instructions, 3): operation and two arguments (for ANY where its alternatives begin and end
    in `alternatives`); `alternatives`: int32, places; `entries`: int32, the first place of each frame; `frame_names`;
    `texts` and `token_sets`: what TEXT and TOKEN name; `start`: the first place; `skip`: the place of a TEXT that may
    stand wherever one may begin and means nothing, or -1 (only if `longest`; otherwise the program itself says where);
    `longest`: a text ends only where no text that is alive can go on (maximal munch).
    """

    code: npt.NDArray[np.int32]
    alternatives: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    frame_names: tuple[str, ...]
    texts: tuple[Text, ...]
    token_sets: tuple[SpecialTokens, ...]
    start: int
    skip: int = -1
    longest: bool = False

    def __str__(self) -> str:
        """The program, one instruction a line, frame by frame."""
        from tokdfa.pushdown.printing import format_form

        return format_form(self)


@dataclass
class FormBuilder:
    """Writes a form back to front: each method returns the place of an instruction that goes on at a given place."""

    texts: list[Text] = field(default_factory=list)
    token_sets: list[SpecialTokens] = field(default_factory=list)
    _code: list[tuple[int, int, int]] = field(default_factory=lambda: [(RETURN, 0, 0)])
    _alternatives: list[int] = field(default_factory=list)
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _entries: list[int] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _text_numbers: dict[tuple[bytes, bool], int] = field(default_factory=dict)

    def text(self, text: Text) -> int:
        """The number of a text; texts of equal key and laziness have one number."""
        number = self._text_numbers.setdefault((text.key, text.lazy), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def frame(self, name: str) -> int:
        """The number of a new frame; `enter` says later where it begins."""
        self._names.append(name)
        self._entries.append(RETURN_PLACE)
        return len(self._names) - 1

    def enter(self, frame: int, place: int) -> None:
        """Let a frame begin at a place."""
        self._entries[frame] = place

    def read(self, text: int, following: int) -> int:
        """TEXT."""
        return self._put(TEXT, text, following)

    def take(self, tokens: SpecialTokens, following: int) -> int:
        """TOKEN."""
        if tokens not in self.token_sets:
            self.token_sets.append(tokens)
        return self._put(TOKEN, self.token_sets.index(tokens), following)

    def call(self, frame: int, following: int) -> int:
        """CALL."""
        return self._put(CALL, frame, following)

    def any_of(self, places: Sequence[int]) -> int:
        """ANY of one or more places; of one it is that place."""
        distinct = tuple(sorted(set(places)))
        if len(distinct) == 1:
            return distinct[0]
        found = self._places.get((ANY, distinct))
        if found is None:
            begin = len(self._alternatives)
            self._alternatives.extend(distinct)
            self._code.append((ANY, begin, begin + len(distinct)))
            found = self._places[ANY, distinct] = len(self._code) - 1
        return found

    def _put(self, operation: int, first: int, second: int) -> int:
        instruction = operation, first, second
        found = self._places.get(instruction)
        if found is None:
            self._code.append(instruction)
            found = self._places[instruction] = len(self._code) - 1
        return found

    def build(self, start: int, *, skip: int = -1, longest: bool = False) -> Form:
        """The form. O(instructions)."""
        return Form(
            np.array(self._code, dtype=np.int32),
            np.array(self._alternatives, dtype=np.int32),
            np.array(self._entries, dtype=np.int32),
            tuple(self._names),
            tuple(self.texts),
            tuple(self.token_sets),
            start,
            skip,
            longest,
        )

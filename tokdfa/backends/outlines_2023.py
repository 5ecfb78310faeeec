r"""The index of Outlines as it was in 2023: an FSM of interegular, and every token run from every state of it.

Strategy (Willard and Louf, arXiv 2307.09702, algorithms 3 and 4; the baseline of the sources 001 to 003, and their
first step). interegular turns the pattern into an FSM over characters. For every token, `find_sub_sequences` finds the
state sequences that read it, whatever state they begin in; `map_states_to_vocabulary` collects them into a map from
states to the tokens that lead on, and where to. A mask is a row of that map. All of it is plain Python, as it was: it
shares no code with `token_index`, which is the same strategy done well, and each is an oracle of the other.

One thing is added, as Outlines did soon after: tokens may cut a character in two, so the FSM reads the bytes of UTF-8
(`bytes_of_characters`).

What interegular reads otherwise is refused: anchors, look-behind, flags, Unicode classes (``\d \w \s`` are ASCII there,
so they need ``ascii_classes``), and what else it says it cannot do. It has no limits of size or time, and the map costs
about 1 us for each state and byte of a token: seconds to minutes with a real vocabulary.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import YES, Backend, CompiledConstraint, StateMatcher, Support
from tokdfa.constraint import Choice, Regex
from tokdfa.core.packages import import_library
from tokdfa.errors import EmptyLanguageError, TokdfaError, UnsupportedConstraint, VocabularyCannotSpell
from tokdfa.regex.compile import compile_lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: An FSM over bytes: for each state, byte -> state; state 0 is the start.
ByteMap = list[dict[int, int]]
#: For each state, token -> state.
Index = list[dict[int, int]]

#: A quantifier after a quantifier, outside classes and escapes: possessive to us, a repeat of a repeat to interegular.
_POSSESSIVE = re.compile(r"(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[])*?(?:[*+?]|\{\d*,?\d*\})\+", re.DOTALL)
_CLASS = re.compile(r"(?<!\\)(?:\\\\)*\\[dDwWsS]")


class Outlines2023(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "outlines_2023"
    summary: ClassVar[str] = (
        "the index of Outlines in 2023: interegular's FSM, each token from each state, plain Python"
    )
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice")
    packages: ClassVar[tuple[str, ...]] = ("interegular",)
    is_budgeted: ClassVar[bool] = False
    known_differences: ClassVar[dict[str, str]] = {
        "no_dead_end_with_gaps": "looks at bytes only: whether tokens spell the rest of a text is not asked",
    }

    def supports(self, constraint: Constraint) -> Support:
        """Lets interegular parse the pattern."""
        answer = super().supports(constraint)
        if not answer:
            return answer
        try:
            parse(pattern_of(constraint))
        except UnsupportedConstraint as error:
            with suppress(TokdfaError):
                compile_lazy(constraint)
                return Support(False, f"{self.name}: {error}")
        return YES  # a fault of the constraint itself is for `compile` to report

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        try:
            parse(pattern_of(constraint))
        except UnsupportedConstraint:
            compile_lazy(constraint)  # says what is wrong with it
            raise
        return CompiledOutlines2023(self, constraint)


def pattern_of(constraint: Constraint) -> str:
    """The pattern for interegular. UnsupportedConstraint if it would be read otherwise."""
    if isinstance(constraint, Choice):
        try:
            return "|".join(re.escape(text.decode()) for text in constraint.as_bytes())
        except UnicodeDecodeError:
            raise UnsupportedConstraint("a choice is no UTF-8, and interegular reads characters") from None
    assert isinstance(constraint, Regex)
    if constraint.search or constraint.flags:
        raise UnsupportedConstraint("interegular has neither search nor flags here; write them into the pattern")
    if not constraint.ascii_classes and _CLASS.search(constraint.pattern):
        raise UnsupportedConstraint(r"interegular's \d, \w and \s are ASCII; set ascii_classes=True")
    if _POSSESSIVE.match(constraint.pattern):
        raise UnsupportedConstraint("interegular reads a possessive quantifier as a repeat of the repeat")
    if "(?<=" in constraint.pattern or "(?<!" in constraint.pattern:
        raise UnsupportedConstraint("interegular has no look-behind")
    return constraint.pattern


@lru_cache(256)
def parse(pattern: str) -> Any:
    """interegular's tree of a pattern. UnsupportedConstraint with what it says."""
    interegular = import_library("interegular", "the backend outlines_2023")
    try:
        return interegular.parse_pattern(pattern)
    except (interegular.InvalidSyntax, interegular.Unsupported, NotImplementedError) as error:
        raise UnsupportedConstraint(f"interegular does not read {pattern!r}: {error or type(error).__name__}") from None


def bytes_of_characters(fsm: Any) -> tuple[ByteMap, set[int]]:
    """interegular's FSM over the bytes of UTF-8: live states only, and which of them accept. No states if none accept.

    A state is a state of the FSM, with the bytes of a character begun. Where the FSM names no character that begins
    so, all of them lead to one state, and only what may still come is kept: so many bytes, the next within a range.
    """
    from interegular.fsm import anything_else

    live = {state for state in fsm.states if fsm.islive(state)}
    named = {symbol: symbol.encode() for symbol in fsm.alphabet if symbol is not anything_else}
    #: Bytes that begin named characters -> those characters.
    begun: dict[bytes, list[str]] = {}
    for symbol, encoded in named.items():
        for length in range(1, len(encoded) + 1):
            begun.setdefault(encoded[:length], []).append(symbol)

    def after(state: int, symbol: Any) -> int | None:
        target = fsm.map.get(state, {}).get(fsm.alphabet[symbol])
        return target if target in live else None

    def read(place: tuple[Any, ...], byte: int) -> tuple[Any, ...] | None:
        if len(place) == 4:  # within a character that is not named
            target, left, low, high = place
            if not low <= byte <= high:
                return None
            return (target, left - 1, 0x80, 0xBF) if left > 1 else (target, b"")
        state, text = place[0], place[1] + bytes([byte])
        span = _following(text)
        if span is None:
            return None
        left, low, high = span
        symbols = begun.get(text, [])
        other = after(state, anything_else) if anything_else in fsm.alphabet else None
        if left == 0:
            target = after(state, symbols[0]) if symbols else other
            return None if target is None else (target, b"")
        if not symbols:
            return None if other is None else (other, left, low, high)
        has_others = other is not None and len(symbols) < (high - low + 1) * 64 ** (left - 1)
        return (state, text) if has_others or any(after(state, symbol) is not None for symbol in symbols) else None

    if fsm.initial not in live:
        return [], set()
    places: list[tuple[Any, ...]] = [(fsm.initial, b"")]
    number = {places[0]: 0}
    moves: ByteMap = []
    for place in places:  # the loop sees what it appends
        row = {}
        for byte in range(256):
            target = read(place, byte)
            if target is not None:
                if target not in number:
                    number[target] = len(places)
                    places.append(target)
                row[byte] = number[target]
        moves.append(row)
    return moves, {number[place] for place in places if place[1] == b"" and place[0] in fsm.finals}


def _following(text: bytes) -> tuple[int, int, int] | None:
    """How many bytes the character that `text` begins still takes, and the range of the next; None if there is none."""
    lead = text[0]
    if lead < 0x80:
        return 0, 0, 0
    if not 0xC2 <= lead <= 0xF4:
        return None
    left = (1 if lead < 0xE0 else 2 if lead < 0xF0 else 3) - (len(text) - 1)
    low = {0xE0: 0xA0, 0xF0: 0x90}.get(lead, 0x80)
    high = {0xED: 0x9F, 0xF4: 0x8F}.get(lead, 0xBF)
    if len(text) > 1:
        if not low <= text[1] <= high or any(not 0x80 <= byte <= 0xBF for byte in text[2:]):
            return None
        low, high = 0x80, 0xBF
    return left, low, high


def find_sub_sequences(moves: ByteMap, readers: Mapping[int, Iterable[int]], text: bytes) -> Iterator[list[int]]:
    """Algorithm 3: the state sequences that read `text`, from any state. `readers`: byte -> the states that read it."""
    for state in readers.get(text[0], ()):
        sequence = [state]
        for byte in text:
            target = moves[sequence[-1]].get(byte)
            if target is None:
                break
            sequence.append(target)
        else:
            yield sequence


def map_states_to_vocabulary(moves: ByteMap, vocab: Vocabulary) -> Index:
    """Algorithm 4: for each state the tokens that lead on from it, and the states they lead to."""
    readers: dict[int, list[int]] = {}
    for state, row in enumerate(moves):
        for byte in row:
            readers.setdefault(byte, []).append(state)
    index: Index = [{} for _ in moves]
    for token in range(vocab.size):
        text = vocab.token_bytes(token)
        if text:
            for sequence in find_sub_sequences(moves, readers, text):
                index[sequence[0]][token] = sequence[-1]
    return index


class CompiledOutlines2023(CompiledConstraint):
    """`index`: for each state, token -> state; `finals`: the states in which a text may end. State 0 is the start."""

    def __init__(self, backend: Outlines2023, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        with self.phases.measure("parse"):
            tree = parse(pattern_of(constraint))
        with self.phases.measure("automaton"):
            moves, self.finals = bytes_of_characters(tree.to_fsm().reduce())
        if not self.finals:
            raise EmptyLanguageError(f"no text matches {constraint.name!r}")
        with self.phases.measure("index"):
            self.index = map_states_to_vocabulary(moves, self.vocab)
        reached = [0]
        for state in reached:  # the loop sees what it appends
            reached += set(self.index[state].values()).difference(reached)
        if self.finals.isdisjoint(reached):
            raise VocabularyCannotSpell(
                f"no tokens spell a text of {constraint.name!r}; add the missing bytes as tokens"
            )
        self.sizes = {"states": len(self.index), "transitions": sum(map(len, self.index))}

    def _start(self, context: tuple[int, ...]) -> _Matcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _Matcher(self)


class _Matcher(StateMatcher[int]):
    def __init__(self, compiled: CompiledOutlines2023) -> None:
        super().__init__(compiled.vocab, 0)
        self._compiled = compiled

    def _step(self, state: int, token: int) -> int | None:
        return self._compiled.index[state].get(token)

    def _accepts(self, state: int) -> bool:
        return state in self._compiled.finals

    def _fill(self, state: int, out: Mask) -> None:
        ends = self.vocab.end_tokens if self._accepts(state) else ()
        out[:] = masks.mask_from_ids([*self._compiled.index[state], *ends], self.vocab.size)

    def _fork_empty(self) -> _Matcher:
        return _Matcher(self._compiled)

"""DirectMerge by parts: merge each distinct part once, and put the results where the parts stand.

The parts (`tokdfa.backends.proper_merge.vegas`) that are not in the library are merged all at once: one automaton with
a start of its own, from which the port V + 1 + k leads to part k. Ports have no rules, so no part touches another,
and the fixed cost of looking through the rules is paid once. Each result is minimised and goes into the library.

*Literals.* A part with a single text, such as the name of a key, needs no automaton to merge: its letters are merged
as the letters of a text are. This takes microseconds. (The fixed cost of merging automata is that of all tokens that
can be spelled with the letters that are there, 1 to 20 ms.)

*Splicing.* The cuts become states. Where part k stands, a copy of its merged automaton is put: what leads to exit i
leads to the cut that exit i is there, and the tokens out of entry j go into the row of the cut that entry j is. An exit
has no way on but its port, so merging never splits it, and minimising never joins it with anything else. Two parts
with the same entry begin with different letters, so the automaton stays deterministic. What comes out accepts what
merging the whole accepts, token by token and marker by marker; so all later steps (whole pieces, erasing markers,
minimising) give the same automaton.

**Cost.** Merging is paid for distinct parts, splicing for all: 0.1 us a transition.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.backends.proper_merge.merging import MAX_STATES, MAX_TRANSITIONS, Merged, merge_rows
from tokdfa.backends.proper_merge.merging_stages import MergeStages
from tokdfa.backends.proper_merge.merging_state import too_large
from tokdfa.backends.proper_merge.vegas import divide, first_port, spelling_trie
from tokdfa.proper.derivations import merge_letters
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tokdfa.backends.proper_merge.vegas import Division, Part
    from tokdfa.backends.proper_merge.vegas_library import PartLibrary
    from tokdfa.proper.canonical import Canonicity


@dataclass(frozen=True)
class MergedByParts(Merged):
    """Also how many parts there are, how many distinct ones, and how many of these were in the library."""

    parts: int
    distinct: int
    from_library: int


class PartMerger:
    """Merges letter automata of one tokenizer by parts. Shareable between threads. Made in 10 to 100 ms."""

    def __init__(self, canonicity: Canonicity) -> None:
        self._rules = canonicity.rules
        self._trie = spelling_trie(canonicity)
        self._stages = _StagesWithPorts(canonicity)
        self._port = first_port(canonicity.size)

    def divide(self, letters: TokenRows) -> Division:
        """The parts of `letters` (trimmed)."""
        return divide(letters, self._trie)

    def merge(
        self,
        letters: TokenRows,
        library: PartLibrary | None = None,
        max_states: int = MAX_STATES,
        max_transitions: int = MAX_TRANSITIONS,
    ) -> MergedByParts:
        """Like `merge_rows`, with the parts of `library`, which gets the new ones. LimitExceeded past a limit.

        The limits hold for merging the new parts, and again for the result.
        """
        division = self.divide(letters)
        known = {} if library is None else {part.key: library.find(part.key) for part in division.parts}
        new = [part for part in division.parts if known.get(part.key) is None]
        merged, applied = self._merge_parts(new, max_states, max_transitions)
        if library is not None and new:
            library.add(merged)
        parts = [known.get(part.key) or merged[part.key] for part in division.parts]
        rows = splice(division, parts, self._port, max_states, max_transitions)
        return MergedByParts(rows, applied, len(division.places), len(parts), len(parts) - len(new))

    def _merge_parts(
        self, parts: Sequence[Part], max_states: int, max_transitions: int
    ) -> tuple[dict[str, TokenRows], int]:
        """(key -> the merged and minimal automaton with start 0, rules that found a place in automata)."""
        merged = {}
        for part in parts:
            text = _only_text(part.rows, self._port)
            if text:
                merged[part.key] = self._merge_text(text)
        parts = [part for part in parts if part.key not in merged]
        if not parts:
            return merged, 0
        rows: list[dict[int, int]] = [{}]
        accepting = [False]
        for k, part in enumerate(parts):
            shift = len(rows)
            rows[0][self._port + k] = shift
            rows += [{letter: target + shift for letter, target in row.items()} for row in part.rows.rows]
            accepting += part.rows.accepting
        done = merge_rows(TokenRows(rows, accepting, 0), self._stages, max_states, max_transitions)
        together = done.rows.minimal()
        begins = together.rows[together.start]
        merged |= {part.key: _reachable(together, begins[self._port + k]) for k, part in enumerate(parts)}
        return merged, done.rules_applied

    def _merge_text(self, letters: list[int]) -> TokenRows:
        """The merged automaton of a part with the only text `letters`, which may hold markers."""
        tokens: list[int] = []
        marker = self._port - 1
        for is_marker, between in itertools.groupby(letters, lambda letter: letter == marker):
            piece = list(between)
            tokens += piece if is_marker else merge_letters(self._rules, piece).tolist()
        path = [self._port, *tokens, self._port]
        rows = [{token: place + 1} for place, token in enumerate(path)]
        return TokenRows([*rows, {}], [False] * len(path) + [True], 0)


class _StagesWithPorts(MergeStages):
    """The stages for automata that have ports among their letters. Ports spell nothing."""

    def __init__(self, canonicity: Canonicity) -> None:
        super().__init__(canonicity)
        self._port = first_port(canonicity.size)

    def spelled_with(self, letters: Iterable[int]) -> Iterator[tuple[int, list[tuple[int, tuple[int, ...]]]]]:
        return super().spelled_with([letter for letter in letters if letter < self._port])


def _only_text(part: TokenRows, port: int) -> list[int]:
    """The letters and markers from the only entry to the only exit, if there is no other way; else nothing."""
    letters: list[int] = []
    state = part.start
    while len(part.rows[state]) == 1 and not part.accepting[state] and len(letters) < part.state_count:
        ((letter, state),) = part.rows[state].items()
        letters.append(letter)
    # The end has no way on; the first and the last letter are the ports of the entry and the exit.
    return letters[1:-1] if not part.rows[state] and letters[-1] == port else []


def _reachable(rows: TokenRows, start: int) -> TokenRows:
    """The automaton that begins in `start`, which becomes 0."""
    number = {start: 0}
    made = []
    for state in (found := [start]):  # the loop sees what it appends
        row = {}
        for token, target in rows.rows[state].items():
            if target not in number:
                number[target] = len(found)
                found.append(target)
            row[token] = number[target]
        made.append(row)
    return TokenRows(made, [rows.accepting[state] for state in found], 0)


def splice(
    division: Division, merged: Sequence[TokenRows], port: int, max_states: int, max_transitions: int
) -> TokenRows:
    """The automaton over tokens and markers, trimmed. `merged`: what each of the distinct parts has become.

    `port`: the first port. LimitExceeded past `max_states` or `max_transitions`.
    """
    letters = division.letters
    number: dict[int, int] = {}  # cut, or the start, which may be inside a part -> state
    rows: list[dict[int, int]] = []
    accepting: list[bool] = []
    cuts = division.is_cut.tolist()
    for state, is_cut in enumerate(cuts):
        if is_cut or state == letters.start:
            number[state] = len(number)
            accepting.append(letters.accepting[state])
    for state in number:
        row = letters.rows[state] if cuts[state] else {}
        rows.append({letter: number[target] for letter, target in row.items() if cuts[target]})
    exit_of = [_exits(part, port) for part in merged]
    transitions = 0
    for place in division.places:
        part, exits = merged[place.part], exit_of[place.part]
        shift = len(rows)
        # States that are not copied (the start, the exits, the end) get numbers that nothing leads to.
        moved = list(range(shift, shift + part.state_count))
        for state, index in exits.items():
            moved[state] = number[place.exits[index]]
        for state, row in enumerate(part.rows):
            ordinary = state != part.start and state not in exits
            rows.append({token: moved[target] for token, target in row.items()} if ordinary else {})
        accepting += part.accepting
        for index, state in enumerate(place.entries):
            rows[number[state]] |= rows[shift + part.rows[part.start][port + index]]
        transitions += part.transition_count
        if transitions > 2 * max_transitions:  # entries stand there twice before trimming
            raise too_large("transitions", max_transitions)
    spliced = TokenRows(rows, accepting, number.get(letters.start, -1)).trimmed()
    for count, limit, name in (
        (spliced.state_count, max_states, "states"),
        (spliced.transition_count, max_transitions, "transitions"),
    ):
        if count > limit:
            raise too_large(name, limit)
    return spliced


def _exits(part: TokenRows, port: int) -> dict[int, int]:
    """State -> which exit it is."""
    return {
        state: letter - port
        for state, row in enumerate(part.rows)
        if state != part.start
        for letter in row
        if letter >= port
    }

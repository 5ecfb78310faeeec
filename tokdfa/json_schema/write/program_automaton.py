"""The explicit automaton of a program whose texts are a regular language.

A program (`tokdfa.program.program`) reads texts of automata one after another, with calls in between. What comes after
a text is known by a place and the calls that are open there, a *stack*. If calls nest only so deep, there are finitely
many, and `tokdfa.automata.sequences` finds the rows of a deterministic automaton over bytes. This gives strategies
without a stack the very language of the program, JSON schemas with `max_nesting` among them.

Instructions that stand for large automata are read as what they stand for: names by the expressions of
`tokdfa.json_schema.write.lexemes`, those that lead to one place together; a counted string by the product of its
automaton and a count.

Cost: some µs a row; then minimisation.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import trim
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.sequences import END, Sequences
from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.write.lexemes import StringExpressions, text_automaton
from tokdfa.program.json_text import read_characters
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    LAZY,
    NAMES,
    NAMES_OTHER,
    RETURN,
    TERMINAL,
    CountedString,
    NameWindow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.program.builder import Program
    from tokdfa.program.program import Terminal
    from tokdfa.regex.lazy_dfa import LazyDfa

#: The stack without calls.
ROOT = -1
#: What an instruction takes that is read, in ns.
INSTRUCTION_WORK = 1_000


def program_dfa(program: Program, name: str, max_states: int) -> Dfa:
    """The automaton of a program's texts, without dead states, not minimal. `name` is for messages.

    Raises LimitExceeded past `max_states` rows, which a program that nests without bound always reaches.
    """
    found = None
    reader = _Reader(program, max_states)
    try:
        found = reader.sequences.explore(reader.begin_at(program.start, ROOT), max_states)
    except LimitExceeded as error:
        if error.limit != "max_states":  # of a part
            raise
    if found is None:
        raise LimitExceeded(
            f"the automaton of {name!r} has more than {max_states} states: bound the nesting of its values"
            " (max_nesting of a JsonSchema), lower counts, or raise max_states",
            limit="max_states",
            value=max_states,
        )
    table, accepting = found
    return trim(Dfa.from_table(table, accepting, 0)) if len(table) else Dfa.empty()


class _Reader:
    """One run of `program_dfa`: what begins at each place of a program, on each stack."""

    def __init__(self, program: Program, max_states: int) -> None:
        assert not program.longest, "of the longest match a row is more than its items"
        self.source, self.max_states = program.source, max_states
        self.code, self.alternatives = self.source.code, self.source.alternatives  # which grow in place
        self.arguments, self.entries = self.source.arguments, self.source.entries
        self.sequences = Sequences(lambda number: self.begin_at(*self._pairs[number]))
        #: (place, stack), by number: what is read behind a text, and what is read behind a call.
        self._pairs: list[tuple[int, int]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        #: Texts -> the state in which reading one begins.
        self._starts: dict[tuple[object, ...], int] = {}

    def begin_at(self, place: int, stack: int) -> list[int]:
        """The items with which reading goes on at a place."""
        found: dict[int, None] = {}
        met = set[tuple[int, int]]()
        pending = [(place, stack)]
        while pending:
            here = pending.pop()
            if here in met:
                continue
            met.add(here)
            spend(INSTRUCTION_WORK)
            place, stack = here
            operation, first, second = self.code[3 * place : 3 * place + 3]
            if operation == LAZY:
                self.source.write(place)
                met.discard(here)
                pending.append(here)
            elif operation == ANY:
                pending += [(each, stack) for each in self.alternatives[first:second]]
            elif operation == CALL:
                is_last = self.code[3 * second] == RETURN
                pending.append((self.entries[first], stack if is_last else self._number(second, stack)))
            elif operation == RETURN and stack == ROOT:
                found[END] = None
            elif operation == RETURN:
                pending.append(self._pairs[stack])
            else:
                for state, following in self._texts(operation, first, second):
                    if self.sequences.accepts(state):
                        pending.append((following, stack))
                    if self.sequences.goes_on(state):
                        found[self.sequences.item(self._number(*self._settle(following, stack)), state)] = None
        return list(found)

    def _settle(self, place: int, stack: int) -> tuple[int, int]:
        """Where reading goes on as at a place, past what is no choice: so that more rows are equal."""
        while True:
            operation, first, second = self.code[3 * place : 3 * place + 3]
            if operation == RETURN and stack != ROOT:
                place, stack = self._pairs[stack]
            elif operation == ANY and second == first + 1:
                place = self.alternatives[first]
            else:
                return place, stack

    def _number(self, place: int, stack: int) -> int:
        """The number of a place and the calls that are open there. Raises LimitExceeded where calls come to no end."""
        pair = place, stack
        number = self._numbers.setdefault(pair, len(self._pairs))
        if number == len(self._pairs):
            if number > 4 * self.max_states:
                raise LimitExceeded("calls nest too deep", limit="max_states", value=self.max_states)
            self._pairs.append(pair)
        return number

    def _texts(self, operation: int, first: int, second: int) -> Iterator[tuple[int, int]]:
        """(the state in which an instruction begins to read, the place behind it), for each of its texts."""
        if operation == TERMINAL:
            yield self._start_of(self.source.terminals[first]), second
        elif operation == COUNTED:
            yield self._start_of_counted(CountedString.read(self.arguments, first)), second
        else:
            assert operation == NAMES, "a schema has no special tokens"
            yield from self._names(NameWindow.read(self.arguments, first))

    def _start_of(self, text: Terminal) -> int:
        assert not text.shortest, "texts of a schema do not end at the first match"
        key = TERMINAL, text.key
        if key not in self._starts:
            automaton, start = text_automaton(text)
            self._starts[key] = self._add(automaton) + start
        return self._starts[key]

    def _start_of_counted(self, count: CountedString) -> int:
        text, least, most = self.source.terminals[self.code[3 * count.terminal + 1]], count.least, count.most
        if text.bounded is not None:
            return self._start_of(text.bounded(least, most))
        key = COUNTED, text.key, least, most
        if key not in self._starts:
            automaton, start = text_automaton(text)
            assert isinstance(automaton, Dfa)
            assert start == 0
            self._starts[key] = self._add(counted(automaton, least, most, self.max_states))
        return self._starts[key]

    def _names(self, window: NameWindow) -> Iterator[tuple[int, int]]:
        table, groups = self.source.name_tables[window.table], defaultdict[int, list[str]](list)
        for name, target in enumerate(window.targets, window.low):
            groups[target].append(table.names[name])
        texts = [
            ((NAMES, table.escapes, *names), StringSet(values=frozenset(names)), place)
            for place, names in groups.items()
        ]
        if window.other >= 0:
            key = (NAMES_OTHER, table.escapes, *table.names)
            texts.append((key, StringSet(not_values=frozenset(table.names)), self.code[3 * window.other + 2]))
        missing = {key: named for key, named, _ in texts if key not in self._starts}
        if missing:
            strings = StringExpressions(table.escapes)
            begins = list(map(strings.automaton, [strings.add(named) for named in missing.values()]))
            base = self._add(begins[0][0])  # one for all
            self._starts.update((key, base + start) for key, (_, start) in zip(missing, begins, strict=True))
        yield from ((self._starts[key], place) for key, _, place in texts)

    def _add(self, automaton: Dfa | LazyDfa) -> int:
        """Add an automaton with all its states; returns the number of its state 0."""
        made = automaton if isinstance(automaton, Dfa) else automaton.to_dfa(self.max_states + 1)
        return self.sequences.add(made.transitions, made.byte_class, made.accepting)


def counted(strings: Dfa, least: int, most: int | None, max_states: int) -> Dfa:
    """The automaton of the JSON strings of so many characters (None: without end), from that of all of them, which
    starts in state 0. O(its transitions x counts).

    Raises LimitExceeded past `max_states` states.
    """
    characters = read_characters(strings)
    assert characters is not None
    counts, states = 1 + (max(least, 0) if most is None else most), strings.state_count
    if counts * (states - 2) > max_states:  # but for the first and the last there is each state for each count
        raise LimitExceeded("a string has too many characters", limit="max_states", value=max_states)
    # state s after c characters have begun is number c * states + s
    count = np.arange(counts)[:, None, None]
    after = count + np.asarray(characters.begins)[:, None]
    if most is None:
        after = np.minimum(after, counts - 1)
    targets = strings.transitions.astype(np.int64)
    ends = np.append(strings.accepting, False)[targets]  # with the closing quote no character begins; -1: False
    after = np.where(ends, count, after)
    lost = (targets < 0) | (after >= counts) | (ends & (count < least))
    table = np.where(lost, -1, after * states + targets).astype(np.int32)
    return Dfa(table.reshape(counts * states, -1), strings.byte_class, np.tile(strings.accepting, counts), 0)

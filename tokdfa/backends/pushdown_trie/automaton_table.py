"""The automata that all constraints of a vocabulary share, as one table of states.

Automata are found by their key, so a fresh grammar with strings and numbers like those of the last one builds no
automaton, and finds the divisions by their states (`tokdfa.backends.pushdown_trie.row_divisions`), too. Small automata
are explicit and minimal. Large ones (counters up to 100,000) are lazy: their states get numbers when they are met and
rows when they are read (`tokdfa.backends.pushdown_trie.state_table`). An automaton that may wait
(`tokdfa.program.program.Terminal`), as those of most patterns may, is made when a text first reaches it.

States that agree on the strings no longer than the longest token are one *division class*: no token tells them apart,
and they divide the vocabulary alike. The inside of a string is one class in all automata that have strings; so are the
states of a counter that leave room for more than a token. Names of classes are hashes (`tokdfa.regex.state_names`),
made when a division by them is first needed.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import leading_to
from tokdfa.backends.lazy_liveness import LazyLiveness
from tokdfa.backends.pushdown_trie.state_table import BEGINS, LEAST, MOST, STATES, StateTable
from tokdfa.grammar.lexeme_automata import minimal_together
from tokdfa.program.json_text import read_characters
from tokdfa.regex.state_names import ExpressionNames, name_soon
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.program.program import Terminal
    from tokdfa.regex.expression import ExpressionStore
    from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class _Explicit(NamedTuple):
    """An explicit automaton: its first state here, its own table (int32, shape (states, classes)), and whether its
    texts are the shortest."""

    first: int
    table: Int32
    byte_class: npt.NDArray[np.uint8]
    accepting: Bools
    shortest: bool


_key_of = attrgetter("key")


class AutomatonTable(StateTable):
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self, vocab: Vocabulary) -> None:
        super().__init__()
        #: Key of a terminal -> the state in which its automaton starts.
        self.starts: dict[bytes, int] = {}
        #: Start -> whether every state from there can reach an end by bytes that are tokens by themselves.
        self.spelled: dict[int, bool] = {}
        #: State that stands for the start of an automaton: its terminal, until a row is asked for; then the start.
        self._waiting: dict[int, Terminal] = {}
        self._start_for: dict[int, int] = {}
        self._explicit: list[_Explicit] = []
        #: (id, whether its texts are the shortest) -> (explicit automaton of one terminal, the state it starts in).
        self._entered: dict[tuple[int, bool], tuple[Dfa, int]] = {}
        self._named: dict[bytes, int] = {}  # name -> the first state that has it
        self._lazy_names: dict[int, ExpressionNames] = {}  # id of a lazy automaton -> names of its expressions
        self._depth = vocab.trie.depth_limit + 1  # what is complete after the longest token counts, too
        #: bool, shape (256,): the bytes that are tokens by themselves.
        self.available = vocab.single_byte_tokens
        #: Whether every byte is a token by itself.
        self.has_all_bytes = bool(self.available.all())

    def starts_of(self, terminals: Sequence[Terminal], anew: bool = False) -> list[int]:
        """The states in which terminals begin; automata are made of those for which no equal terminal was asked before,
        or `anew` of all. One that may wait gets a state for its start, whose row is UNKNOWN until it is made.

        Raises what making an automaton raises, and LimitExceeded.
        """
        starts = self.starts
        found: list[int | None]
        found = [None] * len(terminals) if anew else list(map(starts.get, map(_key_of, terminals)))
        if None in found:
            missing = [terminal for terminal, start in zip(terminals, found, strict=True) if start is None]
            made = self._make_together(missing)
            for terminal in missing:
                if terminal not in made:
                    waits = terminal.may_wait and self._is_surely_spelled(terminal) and not anew
                    made[terminal] = self._reserve(terminal) if waits else self._make(terminal, anew)
                if self._is_surely_spelled(terminal):
                    self.spelled[made[terminal]] = True
                starts[terminal.key] = made[terminal]
            found = [
                made[terminal] if start is None else start for terminal, start in zip(terminals, found, strict=True)
            ]
        return found  # type: ignore[return-value]

    def start_of(self, terminal: Terminal) -> int:
        """The state in which one terminal begins."""
        return self.starts_of([terminal])[0]

    def _make_together(self, terminals: Sequence[Terminal]) -> dict[Terminal, int]:
        """The states in which those terminals begin whose automata can be made in one go."""
        by_store: dict[ExpressionStore, dict[Terminal, int]] = {}
        for terminal in terminals:
            if terminal.expression is not None and not terminal.shortest:
                store, expression = terminal.expression
                if not store.is_boolean(expression):
                    by_store.setdefault(store, {})[terminal] = expression
        found: dict[Terminal, int] = {}
        for store, expressions in by_store.items():
            groups = [list(expressions)]
            while groups:
                group = groups.pop()
                together = minimal_together(store, [expressions[terminal] for terminal in group])
                if together is not None:
                    automaton, starts = together
                    found.update(zip(group, self._add(automaton, False, starts), strict=True))
                elif len(group) > 1:  # too large, or one has no texts
                    half = len(group) // 2
                    groups += [group[half:], group[:half]]
        return found

    def _make(self, terminal: Terminal, anew: bool = False) -> int:
        """The state in which a terminal begins whose automaton is made for it alone."""
        automaton = terminal.make()
        if isinstance(automaton, Dfa):
            known = self._entered.get((id(automaton), terminal.shortest))
            if known is None or anew:  # the automaton is kept, so that its id stays its own
                start = self._add(automaton, terminal.shortest, np.array([automaton.start]))[0]
                known = self._entered[id(automaton), terminal.shortest] = automaton, start
            return known[1]
        start = self.add_lazy(automaton, terminal.shortest)
        self.spelled[start] = LazyLiveness(automaton, self.available).always
        return start

    def _is_surely_spelled(self, terminal: Terminal) -> bool:
        """Whether it is known without its automaton that available bytes end it from everywhere."""
        return self.has_all_bytes or (
            terminal.spelled_by is not None and bool(self.available[list(terminal.spelled_by)].all())
        )

    def _reserve(self, terminal: Terminal) -> int:
        """A state that stands for the start of a terminal whose automaton is made later."""
        state = self.reserve()
        self._waiting[state] = terminal
        return state

    def _make_waiting(self, state: int) -> None:
        """Make the automaton for whose start a state stands; the row of the start becomes that of the state, too."""
        start = self._make(self._waiting[state])
        if self.transitions[256 * start] == UNKNOWN:
            self.fill_lazy([start])
        self.transitions[256 * state : 256 * state + 256] = self.transitions[256 * start : 256 * start + 256]
        self.flags[state], self.reads[state] = self.flags[start], self.reads[start]
        self._start_for[state] = start
        del self._waiting[state]

    def _add(self, automaton: Dfa, shortest: bool, starts: Int32) -> list[int]:
        """Enter an explicit automaton without dead states; which of its states `starts` have become."""
        table, accepting = automaton.transitions, automaton.accepting
        if shortest:
            table = np.where(accepting[:, None], DEAD, table).astype(np.int32)
        first = self.enter(table, automaton.byte_class, accepting, shortest)
        self._explicit.append(_Explicit(first, table, automaton.byte_class, accepting, shortest))
        entered: list[int] = (first + starts).tolist()
        if self.has_all_bytes:
            self.spelled.update(dict.fromkeys(entered, True))
        else:
            spelled = _spelled(table, accepting, sorted(set(automaton.byte_class[self.available].tolist())))
            self.spelled.update(zip(entered, spelled[starts].tolist(), strict=True))
        return entered

    def start_of_waiting(self, state: int) -> int:
        """The start of the automaton for which a state stands, made if need be; any other state itself."""
        if state in self._waiting:
            self._make_waiting(state)
        return self._start_for.get(state, state)

    def count_characters(self, start: int) -> int:
        """The first state of an automaton of JSON strings that starts in `start`, once ``characters`` is known of it.

        Raises ValueError if its characters cannot be counted.
        """
        start = self.start_of_waiting(start)
        if not self.characters[start, STATES]:
            made = self.explicit_of(start) if self.owner[start] < 0 else None
            found = made and made.first == start and read_characters(Dfa(*made[1:4], 0))
            if not found:
                raise ValueError("the characters of a counted string's automaton cannot be counted")
            past = start + len(found.least)
            self.characters[start:past, BEGINS], self.characters[start:past, LEAST] = found.begins, found.least
            self.characters[start, [STATES, MOST]] = len(found.least), found.least.max()
        return start

    def fill_rows(self, states: Sequence[int]) -> None:
        """Make the transitions of states of lazy automata, all at once, and automata whose starts are asked for. Raises
        LimitExceeded; what was not made is UNKNOWN still.
        """
        if self._waiting:
            for state in self._waiting.keys() & states:
                self._make_waiting(state)
        self.fill_lazy(states)

    def class_of(self, state: int) -> int:
        """The state that stands for the division class of this one."""
        if self.division_class[state] < 0:
            if state in self._waiting:
                self._make_waiting(state)
            if state in self._start_for:
                self.division_class[state] = self.class_of(self._start_for[state])
            else:
                self._name(state)
        return int(self.division_class[state])

    def _name(self, state: int) -> None:
        """Find the division class of a state, and if its automaton is explicit of those that it leads to first.

        States of a lazy automaton are named by their expressions, and are of one class with such states only.
        """
        if self.owner[state] >= 0:
            lazy, shortest = self.lazy_automata[self.owner[state]]
            namer = self._lazy_names.setdefault(id(lazy), ExpressionNames(lazy.store, self._depth))
            described = namer.describe(lazy.expression(int(self.inner[state]))) if self._depth else ""
            key = bytes.fromhex(described) + bytes([2 + shortest])
            self.division_class[state] = self._named.setdefault(key, state) if described else state
            return
        first, table, byte_class, accepting, shortest = self.explicit_of(state)
        for number, name in zip(*name_soon(table, accepting, byte_class, self._depth, state - first), strict=True):
            named = first + int(number)
            if self.division_class[named] < 0:
                self.division_class[named] = self._named.setdefault(name.tobytes() + bytes([shortest]), named)

    def explicit_of(self, state: int) -> _Explicit:
        """The automaton of a state that is none of a lazy one."""
        return self._explicit[bisect_right(self._explicit, state, key=lambda automaton: automaton.first) - 1]


def _spelled(table: Int32, accepting: Bools, available: list[int]) -> Bools:
    """From which states on every state can reach an end by bytes of the classes `available`. O(transitions)."""
    ends = leading_to(table[:, available], accepting)
    return ~leading_to(table, ~ends)

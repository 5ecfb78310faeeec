"""The contextual lexer as one automaton: lexer states with obligations, all made before the first byte.

A lexer state is `LexerState`: the terminals that may still match, in the lexer's order, each with the state of its
match automaton; and the obligations. Reading a byte moves all of them. Where a terminal accepts, those behind it in the
order have lost and are dropped; the state is labelled with it. Strings that the context leaves to a regex (Lark calls
it "unless") follow that regex as *names* for its lexeme: one of them that accepts with the regex is the label instead.

Where a lexeme ends, its residue are the obligations so far and all terminals that are still alive, the one that ended
included. The next lexeme starts in ``starts[residue, context]``.

Which residues meet which contexts is found out on the way: a context may follow a label if the parser can be in a state
of that context after a shift of the label. That is more than what really happens, and it is finite.

An *outcome* is a label and the residue that comes with it. `ends` says for each lexer state, as bits, which labels or
which outcomes can still be reached; the last bit stands for the end of the text, which may come where a lexeme begins.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.automata.byte_classes import byte_classes
from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa

#: A terminal and a state of its match automaton.
Place = tuple[int, int]
NO_LABEL = -1
#: What a step of a lexer state takes, and each place in it; and what a target holds.
NS_PER_STEP, NS_PER_PLACE, BYTES_PER_TARGET = 1_000, 400, 24


class Alive(NamedTuple):
    """A terminal that may still match: its state, and the states of the strings that may name its lexeme."""

    terminal: int
    state: int
    names: tuple[Place, ...]


class LexerState(NamedTuple):
    """See the module's docstring. `begun`: whether the lexeme has a byte already."""

    begun: bool
    alive: tuple[Alive, ...]
    obligations: frozenset[Place]


@dataclass(frozen=True)
class LexerContext:
    """What the lexer tries in some states of the parser. `terminals`: in order; `names`: regex -> the strings that it
    stands for; `accepted`: the terminals that the parser's tables have an action for there.
    """

    terminals: tuple[int, ...]
    names: dict[int, tuple[int, ...]]
    accepted: frozenset[int]


class Contextual:
    """All lexer states. T terminals, K states, C byte classes, O outcomes, R residues, X contexts.

    `transitions`: int32, shape (K, C), -1 dead; `byte_class`: uint8, shape (256,); `labels`, `residues`: int32, shape
    (K,), -1 where no lexeme ends; `outcomes`: int32, shape (O, 2), label and residue; `outcome_of`: int32, shape (K,),
    -1 without one; `starts`: int32, shape (R, X), -1 where they never meet. Ignored text has the label T. State
    ``starts[0, x]`` begins a text in context x. `is_certified`: see `tokdfa.backends.cfg_fsm`.

    Raises LimitExceeded past `max_states` lexer states.
    """

    def __init__(
        self,
        automata: Sequence[Dfa],
        contexts: Sequence[LexerContext],
        ignored: Iterable[int],
        following: Sequence[Iterable[int]],
        first: int,
        max_states: int,
    ) -> None:
        self.terminal_count = len(automata)
        self.ignored_label = len(automata)
        self._contexts, self._ignored, self._following = contexts, frozenset(ignored), following
        self._max_states = max_states
        divisions = np.array([dfa.byte_class for dfa in automata], dtype=np.uint8)
        self.byte_class, representatives = byte_classes(divisions.reshape(-1, 256))
        #: By terminal: state -> its targets by class, and whether it accepts.
        self._tables = [np.take(dfa.transitions, dfa.byte_class[representatives], axis=1).tolist() for dfa in automata]
        self._accepting = [dfa.accepting.tolist() for dfa in automata]
        self._begin = [dfa.start for dfa in automata]
        self._goes_on = [[max(row, default=-1) >= 0 for row in table] for table in self._tables]
        self.class_count = len(representatives)
        self._numbers: dict[LexerState, int] = {}
        self._states: list[LexerState] = []
        self._rows: list[list[int]] = []
        self._labels: list[int] = []
        self._residues: list[int] = []
        self._residue_numbers: dict[frozenset[Place], int] = {}
        self._obligations: list[frozenset[Place]] = []
        self._starts: dict[tuple[int, int], int] = {}
        self._explore(first)
        self._trim()

    def _explore(self, first: int) -> None:
        """Make every state, residue and pair of residue and context that can occur."""
        where: dict[int, int] = defaultdict(int)  # lexer state -> the contexts that it is met in, as bits
        agenda: list[tuple[int, int]] = []

        def begin(residue: int, context: int) -> None:
            if (residue, context) not in self._starts:
                self._starts[residue, context] = number = self._number(self._start(residue, context))
                agenda.append((number, 1 << context))

        self._residue(frozenset())
        begin(0, first)
        while agenda:
            number, contexts = agenda.pop()
            new = contexts & ~where[number]
            if not new:
                continue
            is_first_visit = not where[number]
            where[number] |= new
            if is_first_visit:
                state = self._states[number]
                places = len(state.obligations) + sum(1 + len(one.names) for one in state.alive)
                spend(self.class_count * (NS_PER_STEP + NS_PER_PLACE * places))
                hold(self.class_count * BYTES_PER_TARGET + NS_PER_PLACE // 4 * places)
                self._rows[number] = [self._step(state, column) for column in range(self.class_count)]
            label, residue = self._labels[number], self._residues[number]
            if label == self.ignored_label:
                for context in _bits(new):
                    begin(residue, context)
            elif label != NO_LABEL and is_first_visit:
                for context in self._following[label]:
                    begin(residue, context)
            agenda += [(target, new) for target in set(self._rows[number]) if target >= 0]

    def _residue(self, obligations: frozenset[Place]) -> int:
        number = self._residue_numbers.setdefault(obligations, len(self._obligations))
        if number == len(self._obligations):
            self._obligations.append(obligations)
        return number

    def _start(self, residue: int, context: int) -> LexerState:
        """Where a lexeme begins."""
        chosen = self._contexts[context]
        alive = tuple(
            Alive(t, self._begin[t], tuple((name, self._begin[name]) for name in chosen.names.get(t, ())))
            for t in chosen.terminals
            if self._begin[t] >= 0
        )
        return LexerState(False, alive, self._obligations[residue] if alive else frozenset())

    def _number(self, state: LexerState, label: int = NO_LABEL, residue: int = -1) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._numbers)
            if number >= self._max_states:
                raise LimitExceeded(
                    f"the lexer has more than {self._max_states} states; lower repeat bounds in terminals, or raise "
                    "max_lexer_states",
                    limit="max_lexer_states",
                    value=self._max_states,
                )
            self._states.append(state)
            self._rows.append([])
            self._labels.append(label)
            self._residues.append(residue)
        return number

    def _step(self, state: LexerState, column: int) -> int:
        """The number of the state after a byte of class `column`, -1 if there is none."""
        obligations = set()
        for terminal, here in state.obligations:
            after = self._tables[terminal][here][column]
            if after >= 0:
                if self._accepting[terminal][after]:
                    return -1
                obligations.add((terminal, after))
        alive = []
        label = NO_LABEL
        for one in state.alive:
            after = self._tables[one.terminal][one.state][column]
            if after < 0:
                continue
            moved = ((name, self._tables[name][here][column]) for name, here in one.names)
            names = tuple((name, place) for name, place in moved if place >= 0)
            alive.append(Alive(one.terminal, after, names))
            if self._accepting[one.terminal][after]:
                label = self._label(alive[-1])
                break
        if not alive:
            return -1
        residue = -1
        if label != NO_LABEL:
            left = {(one.terminal, one.state) for one in alive if self._goes_on[one.terminal][one.state]}
            residue = self._residue(frozenset(obligations | left))
        # the label is a function of the state: the last one alive accepts or not
        return self._number(LexerState(True, tuple(alive), frozenset(obligations)), label, residue)

    def _label(self, ended: Alive) -> int:
        """What a lexeme of this terminal is called."""
        if ended.terminal in self._ignored:
            return self.ignored_label
        return next((name for name, state in ended.names if self._accepting[name][state]), ended.terminal)

    def _trim(self) -> None:
        """Make the arrays, without ways on which no lexeme can end any more, and find out what is certified."""
        count = len(self._rows)
        self.labels: npt.NDArray[np.int32] = np.array(self._labels, dtype=np.int32)
        self.residues: npt.NDArray[np.int32] = np.array(self._residues, dtype=np.int32)
        pairs = np.stack([self.labels, self.residues], axis=1)
        labelled = self.labels != NO_LABEL
        outcomes, numbers = np.unique(pairs[labelled], axis=0, return_inverse=True)
        self.outcomes: npt.NDArray[np.int32] = outcomes.astype(np.int32)
        self.outcome_of: npt.NDArray[np.int32] = np.full(count, -1, dtype=np.int32)
        self.outcome_of[labelled] = numbers.reshape(-1)
        self._reached = self._reach(self._rows)
        self.transitions: npt.NDArray[np.int32] = np.array(
            [[target if target >= 0 and self._reached[target] else -1 for target in row] for row in self._rows],
            dtype=np.int32,
        ).reshape(count, self.class_count)
        self.starts: npt.NDArray[np.int32] = np.full((len(self._obligations), len(self._contexts)), -1, dtype=np.int32)
        for pair, number in self._starts.items():
            self.starts[pair] = number
        #: By lexer state: whether it is the beginning of a lexeme.
        self.is_start = [not state.begun for state in self._states]
        self.is_certified = self._certify()

    def is_spelled_by(self, available: npt.NDArray[np.bool_]) -> bool:
        """Whether each lexer state reaches the same outcomes if only `available` bytes (bool, shape (256,)) come.

        Then what leads to an end leads to one by these bytes, as that depends on outcomes alone. O(states x classes).
        """
        columns = np.unique(self.byte_class[available])
        return len(columns) == self.class_count or self._reach(self.transitions[:, columns].tolist()) == self._reached

    def _reach(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """By lexer state, the outcomes that can be reached, as bits; `rows`: the targets of each."""
        sources: list[set[int]] = [set() for _ in rows]
        for number, row in enumerate(rows):
            for target in row:
                if target >= 0:
                    sources[target].add(number)
        reached = [1 << outcome if outcome >= 0 else 0 for outcome in self.outcome_of.tolist()]
        agenda = [number for number, bits in enumerate(reached) if bits]
        while agenda:
            number = agenda.pop()
            spend(NS_PER_PLACE * len(sources[number]))
            for source in sources[number]:
                if reached[number] & ~reached[source]:
                    reached[source] |= reached[number]
                    agenda.append(source)
        return reached

    def reachable(self, state: int) -> list[int]:
        """The outcomes that can be reached from a lexer state, its own included."""
        return _bits(self._reached[state])

    def owed(self, state: int) -> list[int]:
        """The terminals of a lexer state's obligations, in order."""
        return sorted({terminal for terminal, _ in self._states[state].obligations})

    def _certify(self) -> bool:
        """Whether, whatever was read before, each terminal of a context can be written next."""
        outcomes = self.outcomes.tolist()
        writable: dict[tuple[int, int], int] = {}
        after_ignored: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for (residue, context), number in self._starts.items():
            reached = [outcomes[outcome] for outcome in self.reachable(number)]
            labels = {label for label, _ in reached} - {self.ignored_label}
            writable[residue, context] = sum(1 << label for label in labels)
            after_ignored[residue, context] = [
                (left, context) for label, left in reached if label == self.ignored_label
            ]
        changed = True
        while changed:
            changed = False
            spend(NS_PER_PLACE * (len(after_ignored) + sum(map(len, after_ignored.values()))))
            for pair, followers in after_ignored.items():
                for follower in followers:
                    if writable[follower] & ~writable[pair]:
                        writable[pair] |= writable[follower]
                        changed = True
        wanted = [sum(1 << terminal for terminal in context.accepted) for context in self._contexts]
        return all(not wanted[context] & ~bits for (_, context), bits in writable.items())

    def ends(self, by_outcome: bool) -> list[int]:
        """By lexer state, what can still be reached, as bits: labels, or outcomes; the last bit is the end of the text.

        By label, bit T is ignored text. The end is set where a lexeme begins.
        """
        labels = self.outcomes[:, 0].tolist()
        end = 1 << (len(labels) if by_outcome else self.ignored_label + 1)
        found = []
        for reached, is_start in zip(self._reached, self.is_start, strict=True):
            spend(NS_PER_PLACE * (1 + reached.bit_count()))
            bits = reached if by_outcome else sum({1 << labels[outcome] for outcome in _bits(reached)})
            found.append(bits | end if is_start else bits)
        return found

    @property
    def state_count(self) -> int:
        """K."""
        return len(self.labels)

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        kept = (self.transitions, self.labels, self.residues, self.outcomes, self.outcome_of, self.starts)
        return sum(array.nbytes for array in kept)


def _bits(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found

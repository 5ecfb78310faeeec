"""A DFA over bytes whose states are made when they are first needed.

A state is an expression (what may still come), for expressions with assertions together with a context (what came
before); its transitions are derivatives, taken once for all bytes that cannot differ (`derivative_classes`). Nothing is
built in advance, so a pattern with a million states costs only those that are visited. `LazyDfa.explore` makes all
states, up to a limit, for the explicit DFA.

Only live states. A transition into an empty language must be DEAD, or a mask would lead into a dead end. Without
intersection, complement and assertions every expression but *nothing* is inhabited. With them, emptiness is proved by
search: from the state, follow derivatives, those with the shortest texts first (`tokdfa.regex.shortest`), until one is
surely inhabited, or none is left. Most states that a row leads to are a few steps from one, and these steps are taken
from all of them at once (`LazyDfa.fill_rows`); for those that seem empty parts are looked at first
(`tokdfa.regex.empty_parts`). Such automata keep two tables: ``raw`` as derived, and ``transitions``, which get a row
only when each target is known to be live or dead.

Layout for the trie walk (`tokdfa.vocabulary.byte_table`): ``transitions`` is flat int32; a state is named by its *row*,
the offset of its first entry, that is state number x class count.

Sources: 000 ("derivre": lazy automaton, derivatives cached in a plain table); Owens, Reppy, Turon 2009.
Cost: about 0.5-1 us for each pair of a state and a target, and 5 us a call; 4 bytes x classes for each state made.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import live_states
from tokdfa.core.budget import hold, spend
from tokdfa.core.keys import longer_keys, new_keys
from tokdfa.errors import LimitExceeded
from tokdfa.regex.derivative import AT_START, AssertionDeriver, context_after
from tokdfa.regex.derivative_classes import DerivativeTable, partition_bytes
from tokdfa.regex.empty_parts import EmptyParts
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_kernels import (
    D_EXPLORED,
    D_NEXT,
    D_STATES,
    FULL,
    IS_DEAD,
    IS_LIVE,
    NEEDS_PYTHON,
    UNDECIDED,
    descend_kernel,
    fill_rows_kernel,
    number_states_kernel,
    settle_rows_kernel,
)
from tokdfa.regex.nodes import EMPTY, F_INHABITED, F_NULLABLE, FULL_NODES, NOTHING, OK
from tokdfa.regex.shortest import ShortestTexts
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

Int32 = npt.NDArray[np.int32]

NO_STATES: Int32 = np.zeros(0, dtype=np.int32)
#: States that a search for a live one looks at before parts of the expression are; before all states are made, if they
#: are not more than the third, or the fourth if some have assertions. One at a time costs about 20 us a state, all at
#: once one or two, with assertions some hundreds.
SEARCHED_FIRST, SEARCHED, DECIDED_AT_ONCE, DERIVED_AT_ONCE = 16, 256, 100_000, 500
#: What an automaton takes, without its states.
NS_PER_AUTOMATON = 200_000
#: What a state of a search takes, and a derivative of an expression with assertions, without their work; and the bytes
#: that these states hold in Python.
NS_PER_SEARCHED, NS_PER_DERIVER, BYTES_PER_SEARCHED, BYTES_PER_ASSERTING_STATE = 12_000, 8_000, 300, 400
#: Steps towards live states that are taken from many states at once before each is searched from by itself.
DESCENTS = 16


class LazyDfa:
    """The lazy DFA of expression `root`. State 0 is the start. Satisfies `tokdfa.vocabulary.byte_table.ByteTable`.

    `max_states` bounds the states ever made; past it LimitExceeded is raised, and what was made stays usable.
    Not thread-safe: filling a row changes the store and may replace the arrays. `is_empty` says whether the language is
    empty; then row 0 has no live transition and is not accepting.
    """

    def __init__(self, store: ExpressionStore, root: int, max_states: int = 1_000_000) -> None:
        spend(NS_PER_AUTOMATON)
        self.store, self.root, self.max_states = store, root, max_states
        classes = partition_bytes(store, root)
        self.byte_class, self.representatives, self.bytes_read = classes
        self.class_count = len(self.representatives)
        #: By class, the context behind a byte of it.
        self._after = list(map(context_after, self.representatives.tolist()))
        self.needs_proof = store.is_boolean(root)
        room = 256
        #: int32, flat: raw transitions; the same array as `transitions` where no proof is needed.
        self.raw: Int32 = np.empty(room * self.class_count, dtype=np.int32)
        self.transitions: Int32 = np.empty_like(self.raw) if self.needs_proof else self.raw
        #: bool, shape (room,): whether the text may end in the state.
        self.accepting: npt.NDArray[np.bool_] = np.zeros(room, dtype=np.bool_)
        #: uint8, shape (room,): UNDECIDED, IS_DEAD or IS_LIVE.
        self.live: npt.NDArray[np.uint8] = np.zeros(room, dtype=np.uint8)
        self._expressions: Int32 = np.zeros(room, dtype=np.int32)
        self._state_of: Int32 = np.full(len(store.nodes), -1, dtype=np.int32)
        self._contexts: dict[int, int] = {}  # state with assertions -> context
        self._asserting: dict[tuple[int, int], int] = {}  # (expression, context) -> state
        self._known = DerivativeTable(store, classes)
        self._meta: npt.NDArray[np.int64] = np.zeros(3, dtype=np.int64)
        self._tried_all = False
        self._empty_parts: EmptyParts | None = None
        self._shortest = ShortestTexts(store)
        self._intern(root, AT_START)
        self._decide(0)

    @property
    def state_count(self) -> int:
        """States made so far."""
        return int(self._meta[D_STATES])

    @property
    def is_empty(self) -> bool:
        """Whether the language is empty."""
        return bool(self.live[0] == IS_DEAD)

    @property
    def nbytes(self) -> int:
        """Bytes held by the tables that a walk needs."""
        return self.transitions.nbytes + self.accepting.nbytes + self.byte_class.nbytes

    def expression(self, state: int) -> int:
        """The number of the expression that `state` stands for."""
        return int(self._expressions[state])

    @classmethod
    def of_many(cls, store: ExpressionStore, expressions: Iterable[int], max_states: int = 1_000_000) -> LazyDfa:
        """One automaton for many expressions, which share their states: `state_of` says where each begins.

        Its root is their concatenation, in which all their byte sets stand (a union may merge some), and means nothing.
        State 0 stands for it alone: where one of them comes to the same expression, that is a state of its own, since
        `explore` may leave out state 0.
        """
        root = store.concat(*(expression for expression in expressions if expression != NOTHING))
        made = cls(store, root, max_states)
        made._state_of[root] = -1
        return made

    def state_of(self, expression: int) -> int:
        """The state in which texts of one of the expressions of `of_many` begin; -1 if it has none."""
        state = self._intern(expression, AT_START)
        if state >= 0:
            self._decide(state)
        return state if state >= 0 and self.live[state] == IS_LIVE else -1

    def proves_empty(self, expression: int, most_states: int) -> bool:
        """Whether a search over so many states finds that an expression has no texts; False says nothing.

        The expression has no assertions, and its byte sets are among those of the root.
        """
        state = self._intern(expression, AT_START)
        return state < 0 or (self._search(state, most_states) and bool(self.live[state] == IS_DEAD))

    def step(self, state: int, byte: int) -> int:
        """The state after `byte`, or -1."""
        entry = state * self.class_count + int(self.byte_class[byte])
        target = int(self.transitions[entry])
        if target == UNKNOWN:
            self.fill_row(state * self.class_count)
            target = int(self.transitions[entry])
        return target // self.class_count if target >= 0 else -1

    def run(self, text: bytes, state: int = 0) -> int:
        """The state after `text`, or -1."""
        for byte in text:
            if state < 0:
                break
            state = self.step(state, byte)
        return state

    def accepts(self, text: bytes) -> bool:
        """Whether the language contains `text`."""
        state = self.run(text)
        return state >= 0 and bool(self.accepting[state])

    def fill(self, row: int, byte: int) -> None:
        """See `tokdfa.vocabulary.byte_table.ByteTable`: the whole row, as rows are made at once."""
        self.fill_row(row)

    def fill_row(self, row: int) -> None:
        """Make every transition of the state at offset `row` known."""
        if self.transitions[row] == UNKNOWN:
            self.fill_rows(np.array([row // self.class_count], dtype=np.int32))

    def fill_rows(self, states: Int32) -> None:
        """Make every transition of these states known, in a few calls of kernels. Raises LimitExceeded.

        After an error the rows of some may be known; those of the others are UNKNOWN.
        """
        self._derive_rows(states)
        if not self.needs_proof:
            return
        undecided = np.empty(max(len(states), 16) * self.class_count, dtype=np.int32)
        while count := settle_rows_kernel(self.raw, self.transitions, self.live, states, undecided, self.class_count):
            self._decide_many(np.unique(undecided[:count]))

    def explore(self, max_states: int | None = None, first: int = 0) -> None:
        """Make every state that can be reached from state `first` and those after it, and (raw) transitions;
        LimitExceeded past the limit.
        """
        limit = self.max_states if max_states is None else min(max_states, self.max_states)
        self._meta[D_EXPLORED] = max(first, int(self._meta[D_EXPLORED]))
        while (status := self._run_rows(NO_STATES, True, limit)) != OK:
            if status == NEEDS_PYTHON:
                self._derive_asserting_row(int(self._meta[D_EXPLORED]))
                if self.state_count > limit:
                    self._check_limit(limit)

    def to_dfa(self, max_states: int | None = None, first: int = 0) -> Dfa:
        """The explicit DFA with all reachable states, live or not; `tokdfa.automata.algebra.minimize` trims it.

        `first`: states before this one are not explored.
        """
        self.explore(max_states, first)
        count = self.state_count
        spend(4 * count * self.class_count)
        hold(4 * count * self.class_count)
        transitions = np.empty((count, self.class_count), dtype=np.int32)
        number_states_kernel(self.raw, transitions)
        return Dfa.trusted(transitions, self.byte_class.copy(), self.accepting[:count].copy(), 0)

    def _intern(self, expression: int, context: int) -> int:
        """The state of an expression (and context, if it has assertions)."""
        if expression == NOTHING and self.state_count:  # only as the start it is a state
            return DEAD
        asserts = self.store.has_assertions(expression)
        if asserts:
            if not self.store.reads_context(expression):
                context = AT_START  # any would do
            known = self._asserting.get((expression, context), -1)
        else:
            if expression >= len(self._state_of):
                self._grow()
            known = int(self._state_of[expression])
        if known >= 0:
            return known
        if self.state_count == len(self.accepting):
            self._grow()
        self._check_limit(self.max_states)
        state = self.state_count
        self._meta[D_STATES] += 1
        self._expressions[state] = expression
        row = state * self.class_count
        self.raw[row] = UNKNOWN
        self.transitions[row : row + self.class_count] = UNKNOWN
        word = int(self.store.nodes[expression, 0])
        if asserts:
            hold(BYTES_PER_ASSERTING_STATE)
            self._asserting[expression, context] = state
            self._contexts[state] = context
            self.accepting[state] = AssertionDeriver(self.store, self._known, context, None).accepts(expression)
            inhabited = bool(self.accepting[state])
        else:
            self._state_of[expression] = state
            self.accepting[state] = bool(word & F_NULLABLE)
            inhabited = bool(word & F_INHABITED)
        self.live[state] = IS_LIVE if inhabited else UNDECIDED
        return state

    def _derive_rows(self, states: Int32) -> None:
        """Fill the raw rows of these states."""
        self._meta[D_NEXT] = 0
        while (status := self._run_rows(states, False, self.max_states)) != OK:
            if status == NEEDS_PYTHON:
                self._derive_asserting_row(int(states[self._meta[D_NEXT]]))

    def _derive_asserting_row(self, state: int) -> None:
        """Fill the raw row of a state with assertions: derive once for each local class."""
        context, expression = self._contexts[state], self.expression(state)
        local, firsts = self._known.local_classes(expression)
        derived = []
        for first in firsts:
            spend(NS_PER_DERIVER)
            byte = int(self.representatives[first])
            derived.append(AssertionDeriver(self.store, self._known, context, byte).derive(expression))
        row = state * self.class_count
        if any(map(self.store.reads_context, derived)):
            entries = [self._entry(derived[k], after) for k, after in zip(local.tolist(), self._after, strict=True)]
            self.raw[row : row + self.class_count] = entries
        else:
            entries = [self._entry(one, AT_START) for one in derived]
            self.raw[row : row + self.class_count] = np.array(entries, dtype=np.int32)[local]

    def _entry(self, expression: int, context: int) -> int:
        """What stands in a raw row for an expression."""
        target = self._intern(expression, context)
        return target * self.class_count if target >= 0 else DEAD

    def _run_rows(self, states: Int32, every: bool, limit: int) -> int:
        """Fill raw rows of `states`, or of `every` state. Returns OK, NEEDS_PYTHON, or FULL (have grown)."""
        status = fill_rows_kernel(
            *self.store.arrays,
            self._known.struct,
            self._expressions,
            self._state_of,
            self.raw,
            self.transitions,
            self.accepting,
            self.live,
            self._meta,
            states,
            every,
            limit,
        )
        if status == NEEDS_PYTHON or (status == OK and not every):
            return int(status)
        self._check_limit(limit)
        if not self.store.check_status():
            status = FULL
        if status == FULL:
            self._grow()
        return int(status)

    def _check_limit(self, limit: int) -> None:
        if self.state_count >= limit:
            raise LimitExceeded(
                f"the automaton has more than {limit} states; lower the pattern's repeat bounds, or compile it lazily",
                limit="max_states",
                value=limit,
            )

    def _grow(self) -> None:
        if 2 * self.state_count >= len(self.accepting):
            shared, most = self.transitions is self.raw, ((1 << 31) - 1) // self.class_count
            if self.state_count >= most:
                raise LimitExceeded("the automaton's table passes 2**31 entries", limit="max_states", value=1 << 31)
            room = min(2 * len(self.accepting), most)
            hold((room - len(self.accepting)) * (4 * self.class_count * (1 if shared else 2) + 6))
            self.raw = _grown(self.raw, room * self.class_count)
            self.transitions = self.raw if shared else _grown(self.transitions, room * self.class_count)
            self._expressions, self.live = _grown(self._expressions, room), _grown(self.live, room)
            self.accepting = _grown(self.accepting, room)  # last, as its length is what kernels look at
        self._known.grow()
        if len(self._state_of) < len(self.store.nodes):
            hold(4 * (len(self.store.nodes) - len(self._state_of)))
            more = np.full(len(self.store.nodes) - len(self._state_of), -1, dtype=np.int32)
            self._state_of = np.concatenate([self._state_of, more])

    def _decide_many(self, states: Int32) -> None:
        """Find out which of these states, none of which is decided, are live.

        From all of them at once the way is followed on which texts are shortest; most meet a live state within a few
        steps. Only for those that do not there is a search.
        """
        reached = np.empty((DESCENTS + 1) * len(states), dtype=np.int32)
        begin, end = 0, len(states)
        reached[:end] = states
        for _ in range(DESCENTS):
            self._derive_rows(reached[begin:end])
            bounds = self._shortest.bounds()
            spend(2 * end * self.class_count + len(self.live))
            more = descend_kernel(self.raw, self.live, self._expressions, bounds, reached, begin, end, self.class_count)
            if more == end:
                break
            begin, end = end, more
        for state in states[self.live[states] == UNDECIDED].tolist():
            self._decide(state)

    def _decide(self, state: int) -> None:
        """Find out whether `state` is live."""
        if not self.needs_proof and self.live[state] == UNDECIDED:
            self.live[state] = IS_DEAD  # only `nothing` itself, which is no state
        if self.live[state] != UNDECIDED or self._search(state, SEARCHED_FIRST):
            return
        if self._empty_parts is None:
            # parts get an automaton of their own, to be in no explicit one: of a language with the same byte sets that
            # is surely not empty
            of_parts = LazyDfa(self.store, self.store.union([EMPTY, self.root]))
            self._empty_parts = EmptyParts(self.store, of_parts.proves_empty)
        if self._empty_parts.has_empty_part(self.expression(state)):
            self.live[state] = IS_DEAD
            return
        if not self._tried_all:
            if self._search(state, SEARCHED):
                return
            if self._decide_all():
                return
            self._tried_all = True
        self._search(state)

    def _search(self, state: int, most: int | None = None) -> bool:
        """Whether `state` could be decided: a best-first search for one known to be live, over up to so many states."""
        came_from = {state: state}
        agenda = [(0, 0, state)]  # bound, then the newest first
        searched = 0
        while agenda:
            if searched == most:
                return False
            searched += 1
            spend(NS_PER_SEARCHED)
            hold(BYTES_PER_SEARCHED)
            here = heappop(agenda)[2]
            if self.live[here] == IS_LIVE:
                while here != state:
                    here = came_from[here]
                    self.live[here] = IS_LIVE
                return True
            row = here * self.class_count
            if self.raw[row] == UNKNOWN:
                self._derive_rows(np.array([here], dtype=np.int32))
            targets = self.raw[row : row + self.class_count]
            bounds = self._shortest.bounds()
            for target in (np.unique(targets[targets >= 0]) // self.class_count).tolist():
                if target not in came_from and self.live[target] != IS_DEAD:
                    came_from[target] = here
                    heappush(agenda, (int(bounds[self._expressions[target]]), -len(came_from), target))
        for reached in came_from:
            self.live[reached] = IS_DEAD
        return True

    def _decide_all(self) -> bool:
        """Find out which states are live, all at once and all transitions with them; False if they are too many."""
        try:
            # the rest is for the search
            dfa = self.to_dfa(min(DERIVED_AT_ONCE if self._contexts else DECIDED_AT_ONCE, self.max_states // 2))
        except LimitExceeded as error:
            if error.limit != "max_states":
                raise
            return False
        count = dfa.state_count
        alive = live_states(dfa)
        self.live[:count] = np.where(alive, IS_LIVE, IS_DEAD)
        targets = self.raw[: count * self.class_count]
        kept = (targets >= 0) & alive[targets // self.class_count]
        self.transitions[: count * self.class_count] = np.where(kept, targets, DEAD)
        return True


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """`array` with `room` places; pages of the new ones are taken when they are used."""
    grown = np.empty(room, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def _warm_up() -> None:
    """Run every kernel of the regex package once."""
    store = ExpressionStore()
    ab = store.byte_set(b"ab")
    looks = store.look_ahead(store.complement(store.literal(b"b")))
    body = store.intersection([store.union([store.literal(b"ab"), store.repeat(ab, 1, 3)]), store.complement(ab)])
    dfa = LazyDfa(store, store.concat(body, store.union([EMPTY, store.repeat(looks, 0, 2)])))
    dfa.accepts(b"ab")
    dfa.to_dfa()
    store._grow(FULL_NODES)
    longer_keys(2, 0, new_keys(1)[0])  # as a table of classes grows that many expressions fill

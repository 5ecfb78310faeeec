"""A DFA over bytes whose states are made when they are first needed.

A state is an expression (what may still come), for expressions with assertions together with a context (what came
before); its transitions are derivatives, taken once for all bytes that cannot differ (`derivative_classes`). Nothing is
built in advance, so a pattern with a million states costs only those that are visited. `LazyDfa.explore` makes all
states, up to a limit, for the explicit DFA.

Only live states. A transition into an empty language must be DEAD, or a mask would lead into a dead end. Without
intersection, complement and assertions every expression but *nothing* is inhabited. With them, emptiness is proved by
search: from the state, follow derivatives, those with the shortest texts first (`tokdfa.regex.shortest`), until one is
surely inhabited, or none is left. Such automata keep two tables: ``raw`` as derived, and ``transitions``, which get a
row only when each target is known to be live or dead.

Layout for the trie walk (`tokdfa.vocabulary.walk`): ``transitions`` is flat int32; a state is named by its *row*, the
offset of its first entry, that is state number x class count.

Sources: 000 ("derivre": lazy automaton, derivatives cached in a plain table); Owens, Reppy, Turon 2009.
Cost: about 0.5-1 us for each pair of a state and a target; 4 bytes x classes for each state made.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import live_states
from tokdfa.errors import LimitExceeded
from tokdfa.jit import kernel
from tokdfa.regex.derivative import AT_START, AssertionDeriver, _derive_kernel, context_after
from tokdfa.regex.derivative_classes import DerivativeTable, _classify_kernel, _refill_kernel, partition_bytes
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.nodes import EMPTY, F_ASSERTS, F_INHABITED, F_NULLABLE, FULL_NODES, M_STATUS, NOTHING, OK
from tokdfa.regex.shortest import ShortestTexts
from tokdfa.vocabulary.walk import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Entry of `live`: not known yet.
UNDECIDED, IS_DEAD, IS_LIVE = 0, 1, 2
#: Indices into `meta`: states made; state at which exploration stopped.
D_STATES, D_NEXT = range(2)
#: More status values (see `tokdfa.regex.nodes`): a state with assertions, which only Python code can derive.
NEEDS_PYTHON = 10
#: States that a search for a live one looks at before all are made, if they are not more than the second. One at a
#: time costs about 20 us a state, all at once one or two.
SEARCHED, DECIDED_AT_ONCE = 256, 100_000
#: Status of `_fill_rows_kernel`: an array of the automaton or of the store is too short.
FULL = 11


class LazyDfa:
    """The lazy DFA of expression `root`. State 0 is the start. Satisfies `tokdfa.vocabulary.walk.ByteTable`.

    `max_states` bounds the states ever made; past it LimitExceeded is raised, and what was made stays usable.
    Not thread-safe: filling a row changes the store and may replace the arrays. `is_empty` says whether the language is
    empty; then row 0 has no live transition and is not accepting.
    """

    def __init__(self, store: ExpressionStore, root: int, max_states: int = 1_000_000) -> None:
        self.store, self.root, self.max_states = store, root, max_states
        classes = partition_bytes(store, root)
        self.byte_class, self.representatives, self.bytes_read = classes
        self.class_count = len(self.representatives)
        self.needs_proof = store.is_boolean(root)
        room = 64
        #: int32, flat: raw transitions; the same array as `transitions` where no proof is needed.
        self.raw: npt.NDArray[np.int32] = np.full(room * self.class_count, UNKNOWN, dtype=np.int32)
        self.transitions: npt.NDArray[np.int32] = self.raw.copy() if self.needs_proof else self.raw
        #: bool, shape (room,): whether the text may end in the state.
        self.accepting: npt.NDArray[np.bool_] = np.zeros(room, dtype=np.bool_)
        #: uint8, shape (room,): UNDECIDED, IS_DEAD or IS_LIVE.
        self.live: npt.NDArray[np.uint8] = np.zeros(room, dtype=np.uint8)
        self._expressions: npt.NDArray[np.int32] = np.zeros(room, dtype=np.int32)
        self._state_of: npt.NDArray[np.int32] = np.full(len(store.nodes), -1, dtype=np.int32)
        self._contexts: dict[int, int] = {}  # state with assertions -> context
        self._asserting: dict[tuple[int, int], int] = {}  # (expression, context) -> state
        self._known = DerivativeTable(store, classes)
        self._meta: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)
        self._tried_all = False
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
        """
        return cls(
            store, store.concat(*(expression for expression in expressions if expression != NOTHING)), max_states
        )

    def state_of(self, expression: int) -> int:
        """The state in which texts of one of the expressions of `of_many` begin; -1 if it has none."""
        state = self._intern(expression, AT_START)
        if state >= 0:
            self._decide(state)
        return state if state >= 0 and self.live[state] == IS_LIVE else -1

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

    def fill_row(self, row: int) -> None:
        """Make every transition of the state at offset `row` known."""
        state = row // self.class_count
        self._derive_row(state)
        if not self.needs_proof:
            return
        targets = self.raw[row : row + self.class_count]
        for target in np.unique(targets[targets >= 0]).tolist():
            self._decide(target // self.class_count)
        alive = self.live[targets // self.class_count] == IS_LIVE
        self.transitions[row : row + self.class_count] = np.where((targets >= 0) & alive, targets, DEAD)

    def explore(self, max_states: int | None = None) -> None:
        """Make every reachable state and (raw) transition; LimitExceeded past the limit."""
        limit = self.max_states if max_states is None else min(max_states, self.max_states)
        while True:
            status = self._run_rows(int(self._meta[D_NEXT]), limit)
            if status == NEEDS_PYTHON:
                self._derive_asserting_row(int(self._meta[D_NEXT]))
            elif status == OK:
                return

    def to_dfa(self, max_states: int | None = None) -> Dfa:
        """The explicit DFA with all reachable states, live or not; `tokdfa.automata.algebra.minimize` trims it."""
        self.explore(max_states)
        count = self.state_count
        transitions = np.empty((count, self.class_count), dtype=np.int32)
        _number_states_kernel(self.raw, transitions)
        transitions.flags.writeable = False  # spares a copy
        return Dfa(transitions, self.byte_class, self.accepting[:count], 0)

    def _intern(self, expression: int, context: int) -> int:
        """The state of an expression (and context, if it has assertions)."""
        if expression == NOTHING and self.state_count:  # only as the start it is a state
            return DEAD
        asserts = self.store.has_assertions(expression)
        if asserts:
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
        word = int(self.store.nodes[expression, 0])
        if asserts:
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

    def _derive_row(self, state: int) -> None:
        """Fill the raw row of one state."""
        if self.raw[state * self.class_count] != UNKNOWN:
            return
        while True:
            status = self._run_rows(state, self.max_states, one=True)
            if status == NEEDS_PYTHON:
                self._derive_asserting_row(state)
            elif status == OK:
                return

    def _derive_asserting_row(self, state: int) -> None:
        context, expression = self._contexts[state], self.expression(state)
        targets = []
        for byte in self.representatives.tolist():
            derived = AssertionDeriver(self.store, self._known, context, byte).derive(expression)
            target = self._intern(derived, context_after(byte))
            targets.append(target * self.class_count if target >= 0 else DEAD)
        row = state * self.class_count
        self.raw[row : row + self.class_count] = targets

    def _run_rows(self, first: int, limit: int, one: bool = False) -> int:
        """Fill raw rows from state `first` on (or only that one). Returns OK, NEEDS_PYTHON, or FULL (have grown)."""
        status = _fill_rows_kernel(
            *self.store.arrays,
            *self._known.arrays,
            self._expressions,
            self._state_of,
            self.raw,
            self.accepting,
            self.live,
            self._meta,
            first,
            one,
            limit,
        )
        if status == NEEDS_PYTHON:
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
            shared = self.transitions is self.raw
            if 2 * len(self.raw) >= 1 << 31:
                raise LimitExceeded("the automaton's table passes 2**31 entries", limit="max_states", value=1 << 31)
            self.raw = _double(self.raw)
            self.transitions = self.raw if shared else _double(self.transitions)
            self.accepting = np.concatenate([self.accepting, np.zeros_like(self.accepting)])
            self.live = np.concatenate([self.live, np.zeros_like(self.live)])
            self._expressions = np.concatenate([self._expressions, np.zeros_like(self._expressions)])
        self._known.grow()
        if len(self._state_of) < len(self.store.nodes):
            more = np.full(len(self.store.nodes) - len(self._state_of), -1, dtype=np.int32)
            self._state_of = np.concatenate([self._state_of, more])

    def _decide(self, state: int) -> None:
        """Find out whether `state` is live: a best-first search for a state known to be live."""
        if not self.needs_proof and self.live[state] == UNDECIDED:
            self.live[state] = IS_DEAD  # only `nothing` itself, which is no state
        if self.live[state] != UNDECIDED:
            return
        came_from = {state: state}
        agenda = [(0, 0, state)]  # bound, then the newest first
        searched = 0
        while agenda:
            searched += 1
            if searched > SEARCHED and not self._tried_all:
                self._tried_all = True
                if self._decide_all():
                    return
            here = heappop(agenda)[2]
            if self.live[here] == IS_LIVE:
                while here != state:
                    here = came_from[here]
                    self.live[here] = IS_LIVE
                return
            self._derive_row(here)
            row = here * self.class_count
            targets = self.raw[row : row + self.class_count]
            bounds = self._shortest.bounds()
            for target in (np.unique(targets[targets >= 0]) // self.class_count).tolist():
                if target not in came_from and self.live[target] != IS_DEAD:
                    came_from[target] = here
                    heappush(agenda, (int(bounds[self._expressions[target]]), -len(came_from), target))
        for reached in came_from:
            self.live[reached] = IS_DEAD

    def _decide_all(self) -> bool:
        """Find out which states are live, all at once and all transitions with them; False if they are too many."""
        try:
            dfa = self.to_dfa(min(DECIDED_AT_ONCE, self.max_states // 2))  # the rest is for the search
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


def _double(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """`rows`, and as many UNKNOWN entries."""
    grown = np.empty(2 * len(rows), dtype=np.int32)
    grown[: len(rows)] = rows
    grown[len(rows) :] = UNKNOWN
    return grown


@kernel
def _number_states_kernel(raw, transitions):  # type: ignore[no-untyped-def]
    """Write the first rows of `raw` to `transitions` (shape (states, classes)), row offsets as state numbers."""
    states, classes = transitions.shape
    for state in range(states):
        for k in range(classes):
            target = raw[state * classes + k]
            transitions[state, k] = target // classes if target >= 0 else DEAD


@kernel
def _fill_rows_kernel(  # type: ignore[no-untyped-def]
    nodes,
    arguments,
    table,
    scratch,
    meta,
    representatives,
    places,
    partitions,
    found,
    known,
    used,
    expressions,
    state_of,
    raw,
    accepting,
    live,
    dfa_meta,
    first,
    one,
    limit,
):
    """Derive the rows of the states from `first` on, making states as they turn up; stop after one row if `one`.

    Returns OK, FULL (an array is too short: grow and call again) or NEEDS_PYTHON (the state has assertions), with
    ``dfa_meta[D_NEXT]`` at the state where it stopped. A row is written only when all of it is known.
    """
    classes = len(representatives)
    targets = np.empty(classes, dtype=np.int32)  # by local class
    state = first
    while state < dfa_meta[D_STATES]:
        if not one:
            dfa_meta[D_NEXT] = state
        expression = np.int64(expressions[state])
        if raw[state * classes] == UNKNOWN:
            if nodes[expression, 0] & F_ASSERTS:
                return NEEDS_PYTHON
            partition = _classify_kernel(
                nodes, arguments, meta, representatives, places, partitions, found, known, used, expression
            )
            if meta[M_STATUS] != OK:
                return FULL
            local_class = partitions[partition]
            taken = 0
            for k in range(classes):
                if local_class[k] < taken:
                    continue
                taken += 1
                derived = _derive_kernel(
                    nodes,
                    arguments,
                    table,
                    scratch,
                    meta,
                    places,
                    partitions,
                    known,
                    expression,
                    k,
                    np.int64(representatives[k]),
                )
                if meta[M_STATUS] != OK:
                    return FULL
                if derived == NOTHING:
                    targets[local_class[k]] = DEAD
                    continue
                if derived >= len(state_of):
                    return FULL
                target = np.int64(state_of[derived])
                if target < 0:
                    target = dfa_meta[D_STATES]
                    if target >= len(accepting) or target >= limit:
                        return FULL
                    word = nodes[derived, 0]
                    dfa_meta[D_STATES] = target + 1
                    expressions[target] = derived
                    state_of[derived] = target
                    accepting[target] = word & F_NULLABLE != 0
                    live[target] = IS_LIVE if word & F_INHABITED else UNDECIDED
                targets[local_class[k]] = target * classes
            for k in range(classes):
                raw[state * classes + k] = targets[local_class[k]]
        state += 1
        if one:
            return OK
    dfa_meta[D_NEXT] = state
    return OK


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
    _refill_kernel(dfa._known.found, np.full_like(dfa._known.found, -1))

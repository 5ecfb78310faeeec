"""Matchers of `tokdfa.backends.pushdown_trie.strategy`: the number of a row.

A new mask or step is one call of a kernel where nothing is missing; everything else goes the usual way, under the lock
of the vocabulary's pool. If the tables of the constraint are full, the matcher moves to new ones by reading its tokens
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tokdfa import mask as masks
from tokdfa.backends.matcher import StateMatcher
from tokdfa.backends.pushdown_trie.arrays import M_NODES, M_ROWS
from tokdfa.backends.pushdown_trie.machine_tables import MachineFull
from tokdfa.backends.pushdown_trie.partition_lookup import W_LISTED, W_SIGNATURE
from tokdfa.backends.pushdown_trie.steps import run_token_kernel
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.tables import PushdownTables, TableGeneration
    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]

ResultT = TypeVar("ResultT")


class PushdownMatcher(StateMatcher[int]):
    """A matcher whose state is the number of a row; if the tables are begun anew, it reads its tokens again."""

    def __init__(self, compiled: PushdownTables) -> None:
        super().__init__(compiled.vocab, 0)
        self._compiled = compiled
        #: No token that spells something needs more than its bytes to be judged.
        self._simple = compiled.complete
        #: And masks are what one call of a kernel writes, but for counted strings, and are kept.
        self._direct = compiled.is_direct
        self.counters.update(nodes_visited=0, rows_made=0, masks_made=0)
        self._use(compiled.generation)

    def _use(self, generation: TableGeneration) -> None:
        self._generation, self._machine = generation, generation.machine
        self._serve_from(generation.masks, generation.steps)

    def _fill_mask(self, out: Mask) -> None:
        """Write and keep a mask by one call of a kernel; if something is missing, the usual way supplies it."""
        machine, counts, state = self._machine, self._machine.counts, self.state
        if self._direct and state is not self._FINISHED and not machine.bound.counts:
            with self._compiled.lock:
                nodes, rows = counts[M_NODES], counts[M_ROWS]
                if self._compiled.filler.write_at_once(machine, state, out):
                    walk = machine.pool.walk
                    listed = walk.counts[W_LISTED]
                    tokens = walk.listed[:listed] if listed >= 0 else None
                    self._generation.masks.keep(state, out, walk.counts[W_SIGNATURE], tokens)
                    counters = self.counters
                    counters["nodes_visited"] += counts[M_NODES] - nodes
                    counters["rows_made"] += counts[M_ROWS] - rows
                    counters["masks_made"] += 1
                    return
        self._retry(lambda: super(PushdownMatcher, self)._fill_mask(out))

    def _next(self, token: int) -> int | None:
        """One call of a kernel; if something is missing, or the token is refused, the usual way finds out."""
        state = self.state
        if self._simple and state is not self._FINISHED:
            machine = self._machine
            with self._compiled.lock:
                known = int(run_token_kernel(state, token, machine.arrays.address, machine.pool.arrays.address))
            if known >= 0:
                self._generation.steps.keep(state, token, known)
                return known
        return self._retry(lambda: super(PushdownMatcher, self)._next(token))

    def can_end(self) -> bool:
        return self._retry(lambda: super(PushdownMatcher, self).can_end())

    def _forced_bytes(self, limit: int) -> bytes:
        return self._retry(lambda: self._forced_of_row(limit))

    def _forced_of_row(self, limit: int) -> bytes:
        if self.state is self._FINISHED:
            return b""
        with self._compiled.lock:
            return self._machine.forced_bytes(self.state, limit)

    def _retry(self, do: Callable[[], ResultT]) -> ResultT:
        """What `do` returns; if the tables are full, move to new ones and do it again.

        The newest tables may be full of what others have read. Then others get new ones, and this matcher its own.
        All that counts towards the budget of one step.
        """
        with self._compiled.lock, self._compiled.working:
            return self._retry_within_budget(do)

    def _retry_within_budget(self, do: Callable[[], ResultT]) -> ResultT:
        compiled = self._compiled
        try:
            return do()
        except MachineFull:
            compiled.renew(self._generation)
        newest = compiled.generation
        try:
            self._move(newest)
            return do()
        except MachineFull:
            compiled.renew(newest)
        try:
            self._move(compiled.begin_generation())
            return do()
        except MachineFull as full:
            raise LimitExceeded(
                "one text fills the tables of the constraint by itself; raise table_mb", limit="table_mb",
                value=compiled.settings["table_mb"],
            ) from full  # fmt: skip

    def _move(self, generation: TableGeneration) -> None:
        """Read all tokens again in other tables. Raises MachineFull, and then nothing has changed."""
        other = PushdownMatcher(self._compiled)
        other._use(generation)
        for token in self._tokens:
            following = StateMatcher._next(other, token)
            assert following is not None  # it was allowed before
            other._history.append(other.state)
            other.state = following
        self._use(generation)
        self.state, self._history = other.state, other._history

    def _step(self, state: int, token: int) -> int | None:
        target = self._compiled.step(self._generation, state, token)
        return None if target < 0 else target

    def _accepts(self, state: int) -> bool:
        with self._compiled.lock:
            return self._machine.can_end(state)

    def _fill(self, state: int, out: Mask) -> None:
        meta, counters = self._machine.counts, self.counters
        nodes, rows = meta[M_NODES], meta[M_ROWS]
        if self._compiled.fill(self._generation, state, out):
            counters["nodes_visited"] += meta[M_NODES] - nodes
            counters["rows_made"] += meta[M_ROWS] - rows
            counters["masks_made"] += 1

    def situation_source(self) -> PushdownSituations:
        return PushdownSituations(self._compiled, self._generation)

    def _fork_empty(self) -> PushdownMatcher:
        other = PushdownMatcher(self._compiled)
        other._use(self._generation)
        return other


@dataclass(frozen=True)
class PushdownSituations:
    """The rows of a compiled constraint in one generation, each its own number, as `tokdfa.backends.situation_source`
    asks for them.
    """

    compiled: PushdownTables
    generation: TableGeneration

    def number(self, state: int) -> int:
        """The state itself."""
        return state

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        return self.compiled.step(self.generation, situation, token)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""
        with self.compiled.lock:
            return self.generation.machine.can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""
        if not self.generation.masks.fill(situation, out):
            self.compiled.fill(self.generation, situation, out)

    def targets(self, situation: int) -> Int32:
        """The situation after each token, by one walk over the token trie: 0.5 to 2 ms.

        int32, shape (V,), -1 where a token is not allowed. Special tokens count as not allowed.
        """
        compiled, trie = self.compiled, self.compiled.vocab.trie
        with compiled.lock:
            found = self.generation.machine.targets(situation, trie)
            if not compiled.complete:
                allowed = masks.allocate_mask(trie.size)
                self.fill(situation, allowed)
                found[~masks.mask_to_bool(allowed, trie.size)] = -1
        return found

"""Effects: a division (`tokdfa.vocabulary.division`) of the tokens by a lexer state, in tables that all rows share.

Words. A token read from a lexer state completes lexemes, perhaps none, and ends inside another one, or it fails. An
*effect* is what a set of tokens does up to the end of its first lexeme: the tokens that stay *inside* the lexeme to
their last byte, which are allowed whatever the row is; and *ends*, each an accepting set of which a lexeme has ended,
with the *rest* of the trie that is to be read after it. A rest is a list of ranges of nodes, each with the depth at
which the next lexeme begins (`tokdfa.backends.earley_trie.walk`). What a rest does then depends on the lexer state in
which the row's next lexemes begin, and on nothing else: so it has an effect, too. Effects are interned by (rest, lexer
state), where the rest of whole tokens is the whole trie; rests are interned by content.

A mask is a walk over effects: take the tokens inside; for each end look up the row after its set, and go on with the
effect of the rest in that row's start state. So the lexer's part of a mask is done once for all rows, and what is left
to the parser is a look-up for each string of lexemes that some token completes.

**When an effect is made.** The first `patience` times that a rest is read from a lexer state it is walked as by
`mask=walk`, with the parser; then its effect is made, by a walk over the lexer alone, and what that leaves is walked or
known. So no mask costs more than the walk and the making of what was walked before: who buys when the rent paid comes
up to the price pays at most twice what it would have cost to know in advance (the ski-rental rule). A state that goes
on with nearly all of the trie, as inside a string, leaves little: making its effect is the walk, so it is made at once.

**The lexing rule** is the machine's (`tokdfa.backends.earley_trie.machine`). Where the lexer cannot go on, the lexeme
ends at the last place where it matched: under `one_byte` that must be right here; under `longest` it may be further
back, and the bytes since then are read again from the next row. A token at whose last byte the lexer is alive is
inside, as every lexer state can reach an end.

**Fallbacks.** In a situation (row, state, fallback) the main link (row, state) has not matched yet, or there would be
no fallback. What the state's effect says of a token decides: inside, it is allowed, whatever the fallback is; behind an
end, the main link has matched, which has dropped the fallback, so the row decides alone; and what is refused is allowed
iff it is in the fallback's own situation. So the mask of the fallback is made first, of the tokens behind ends the bits
are cleared, and the main link's own are set. A chain is dealt with from its inmost link on.

**Names.** States that no token tells apart share an effect (`tokdfa.backends.earley_trie.lexer_names`), within a
grammar and, of whole tokens, with other grammars (`tokdfa.backends.earley_trie.shared_effects`). A name takes as long
as a walk over NODES_PER_NAME nodes for each lexeme that is alive, so only states that read more are named.

Source: 000 (llguidance) asks of regexes chosen in advance whether they stay inside; 001 (outlines-core) makes automata
over tokens, of which effects are one whose states are the lexer's. Cost: 4 to 6 ns a node of the trie to make, 50 ns an
end to use; 4 bytes for a token inside, or V/8 if there are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.earley import longer
from tokdfa.backends.earley_trie.effect_kernels import LONGEST as LONGEST_RULE
from tokdfa.backends.earley_trie.effect_kernels import (
    MADE,
    META,
    NEEDS_POOLS,
    NOT_MADE,
    PATIENCE,
    RANGE_COLUMNS,
    RANGES,
    SPARE,
    TOKENS,
    USED_ENDS,
    USED_TOKENS,
    USED_WIDE,
    WANTED,
    WHOLE,
    WIDE,
    EffectArrays,
    fill_kernel,
    width_kernel,
)
from tokdfa.backends.earley_trie.lexer import OK
from tokdfa.backends.earley_trie.lexer_names import StateNames
from tokdfa.backends.earley_trie.machine import S_LONGEST
from tokdfa.backends.earley_trie.shared_effects import SharedEffects, StoredEffect
from tokdfa.backends.earley_trie.walk import FIRST_SHIFT, PAST_SHIFT, PROGRESS, whole_rest
from tokdfa.core.interning import Column, InterningTable
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.trie import DEPTH_BITS, NEXT_BITS

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.walk import Walker

#: Nodes that a walk takes as long for as a component's name.
NODES_PER_NAME = 1 << 14


class Effects:
    """The effects of a walker's machine over its trie. Not thread-safe, as the machine is not.

    `limit`: bytes; past it all are dropped and made anew. `patience`: how often a rest is walked before its effect is
    made. `clip`: whether states that no token tells apart share an effect; `shared`: where effects of such states are
    looked up first, those of other grammars among them, or None.
    """

    def __init__(
        self, walker: Walker, limit: int, patience: int = 1, shared: SharedEffects | None = None, clip: bool = True
    ) -> None:
        machine, trie = walker.machine, walker.trie
        self.walker, self.machine, self.trie, self.limit, self.shared = walker, machine, trie, limit, shared
        self._names = StateNames(machine, trie.depth_limit) if clip else None
        #: int64, shape (2, byte classes): `TokenTrie.nodes_below` by the lexer's classes.
        self._below = np.zeros((2, machine.lexer.class_count), dtype=np.int64)
        for depth in range(2):
            np.add.at(self._below[depth], machine.lexer.byte_class, trie.nodes_below[depth])
        self._lexer_stack = np.full(trie.depth_limit + 2, -1, dtype=np.int64)
        self._inside = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        self._tokens = np.empty(trie.size // 64 + 2, dtype=np.int32)
        self._ranges = np.empty((4_096, RANGE_COLUMNS), dtype=np.int64)
        self._content = np.empty(4_096, dtype=np.int64)
        self._group_of = np.full((2 * len(machine.lexer.sets.begin), 2), -1, dtype=np.int32)
        self._situations = np.empty((1_024, 3), dtype=np.int64)
        self._progress = np.zeros(PROGRESS, dtype=np.int64)
        self._meta = np.zeros(META, dtype=np.int64)
        self._meta[LONGEST_RULE], self._meta[SPARE], self._meta[PATIENCE] = machine.meta[S_LONGEST], trie.size, patience
        self._clear()

    def _clear(self) -> None:
        """Forget all effects."""
        columns = {"inside": Column(np.int32, 2, fill=NOT_MADE), "ends": Column(np.int32, 2)}
        self.rests = InterningTable(entries=1_024, words=4_096)
        self.effects = InterningTable(columns, keys=True, entries=1_024)
        self._token_pool = np.empty(1 << 14, dtype=np.int32)
        self._wide_pool = np.empty((4, len(self._inside)), dtype=np.uint32)
        self._end_pool = np.empty((2_048, 2), dtype=np.int32)
        self._meta[[USED_TOKENS, USED_WIDE, USED_ENDS]] = 0
        self.rests.intern(whole_rest(self.trie))
        #: The lexer state whose effect a lexer state has; by name; and the names of those that others may want.
        self._same_as: dict[int, int] = {}
        self._named: dict[tuple[str, tuple[int, ...]], int] = {}
        self._wanted: dict[int, tuple[str, tuple[int, ...]]] = {}
        self._gather()

    def _gather(self) -> None:
        """Have kernels take the arrays as they are now."""
        pools = self._token_pool, self._wide_pool, self._end_pool
        scratch = self._lexer_stack, self._inside, self._tokens, self._ranges, self._content, self._group_of
        tables, columns = (self.rests.struct, self.effects.struct), self.effects.columns.values()
        self._arrays = EffectArrays(*tables, *columns, *pools, *scratch, self._situations, self._progress, self._meta)

    @property
    def made(self) -> int:
        """Effects made so far."""
        return int(self._meta[MADE])

    @property
    def nbytes(self) -> int:
        """Memory of what is kept in bytes."""
        pools = self._token_pool.nbytes + self._wide_pool.nbytes + self._end_pool.nbytes
        return self.rests.nbytes + self.effects.nbytes + pools

    def fill(self, situation: int) -> None:
        """OR the tokens allowed in a situation into the walker's words, in which no bit is set."""
        if self.nbytes > self.limit:
            self._clear()
        links = [self.machine.view(situation)]
        while links[-1][2] >= 0:
            links.append(self.machine.view(links[-1][2]))
        for row, state, fallback in reversed(links):
            same = self._same_as.get(state)
            if same is None:
                same = self._same_as[state] = self._find_same(state)
            self._run(row, same, fallback >= 0)
            if same in self._wanted:
                self._offer(same)

    def effect(self, rest: int, state: int) -> tuple[list[int], list[tuple[int, int]]] | None:
        """(the tokens inside, ascending; the ends, as pairs of accepting set and rest); None if it is not made.

        To be looked at: the whole trie is the rest WHOLE.
        """
        number = self.effects.find(rest << 32 | state)
        if number < 0 or self.effects.columns["inside"][number, 0] < WIDE:
            return None
        bits = np.unpackbits(self._words_inside(number).view(np.uint8), bitorder="little")[: self.trie.size]
        first, past = self.effects.columns["ends"][number].tolist()
        return np.flatnonzero(bits).tolist(), [(one[0], one[1]) for one in self._end_pool[first:past].tolist()]

    def ranges(self, rest: int) -> list[tuple[int, int, int]]:
        """The first node, the node after the last, and the depth of the next lexeme, of each range of a rest."""
        nodes, depths = (1 << NEXT_BITS) - 1, (1 << DEPTH_BITS) - 1
        words = self.rests.content(rest).tolist()
        return [(word >> FIRST_SHIFT, word >> PAST_SHIFT & nodes, word & depths) for word in words]

    def _run(self, row: int, state: int, clears: bool) -> None:
        machine = self.machine
        try:
            while True:
                owners = self._arrays, self.walker.arrays, machine.lexer.arrays, machine.rows.arrays, machine.arrays
                status = fill_kernel(row, state, clears, *[owner.address for owner in owners])
                if status == OK:
                    return
                row = -1  # it goes on where it stopped
                if status == NEEDS_POOLS:
                    self._grow()
                else:
                    machine.supply(int(status))
        except BaseException:
            self._inside[:] = 0  # of the effect that was being made
            raise

    def _grow(self) -> None:
        """Make room for what a kernel wanted."""
        meta, sets = self._meta, len(self.machine.lexer.sets.begin)
        tokens, ranges = int(min(meta[TOKENS], len(self._tokens))), int(meta[RANGES])
        self.rests.grow(ranges, ranges)
        self.effects.grow(1)
        if meta[USED_TOKENS] + tokens > len(self._token_pool):
            self._token_pool = longer(self._token_pool, tokens)
        if meta[USED_WIDE] >= len(self._wide_pool):
            self._wide_pool = longer(self._wide_pool, 1)
        if meta[USED_ENDS] + ranges > len(self._end_pool):
            self._end_pool = longer(self._end_pool, ranges)
        if ranges >= len(self._ranges):
            self._ranges = longer(self._ranges, ranges)
            self._content = longer(self._content, 2 * ranges)
        if sets > len(self._group_of):
            self._group_of = np.full((2 * sets, 2), -1, dtype=np.int32)
        if meta[WANTED] >= len(self._situations):
            self._situations = longer(self._situations, int(meta[WANTED]))
        self._gather()

    # States that others are like.

    def _find_same(self, state: int) -> int:
        """The state whose effect a lexer state has: the first of its name, or itself."""
        width, key = self._width(state), None
        if self._names is not None and width >= NODES_PER_NAME * len(self.machine.lexer.components_of(state)):
            named = self._names.describe(state)
            key = named if named[0] else None
        same = state if key is None else self._named.setdefault(key, state)
        if same != state:
            return same
        if 4 * width >= 3 * self.trie.node_count:
            self._set_met(state, int(self._meta[PATIENCE]))
        if key is not None and self.shared is not None:
            found, seen = self.shared.find(*key, self.machine.lexer)
            if found is not None:
                self._insert(state, found)
            else:
                self._wanted[state] = key
                if seen:
                    self._set_met(state, seen)
        return state

    def _set_met(self, state: int, times: int) -> None:
        """Have the effect of whole tokens made as if it had been met so often."""
        number = self.effects.intern([WHOLE << 32 | state])
        met = NOT_MADE + min(times, int(self._meta[PATIENCE]))
        self.effects.columns["inside"][number, 0] = max(met, self.effects.columns["inside"][number, 0])
        self._gather()

    def _width(self, state: int) -> int:
        """About how many nodes a walk over the lexer visits from a state."""
        while True:
            status, width = width_kernel(state, self._below, self.machine.lexer.arrays)
            if status == OK:
                return int(width)
            try:
                self.machine.supply(int(status))
            except LimitExceeded as error:  # of the lexer: no token may come as far as this
                if error.limit != "max_lexer_states":
                    raise
                return 0

    def _insert(self, state: int, stored: StoredEffect) -> None:
        """Put an effect of whole tokens where kernels find it."""
        number = self.effects.intern([WHOLE << 32 | state])
        meta, count = self._meta, len(stored.ends)
        meta[RANGES], meta[TOKENS] = count, 0
        while meta[USED_WIDE] >= len(self._wide_pool) or meta[USED_ENDS] + count > len(self._end_pool):
            self._grow()
        wide, first = int(meta[USED_WIDE]), int(meta[USED_ENDS])
        self._wide_pool[wide, : len(stored.inside)] = stored.inside.view(np.uint32)
        self._wide_pool[wide, len(stored.inside) :] = 0
        for place, (accepted, begin, past) in enumerate(stored.ends.tolist(), first):
            self._end_pool[place] = accepted, self.rests.intern(stored.ranges[begin:past])
        self.effects.columns["inside"][number] = WIDE, wide
        self.effects.columns["ends"][number] = first, first + count
        meta[USED_WIDE], meta[USED_ENDS] = wide + 1, first + count
        self._gather()

    def _offer(self, state: int) -> None:
        """Give the effect of a state to other grammars, if it is made."""
        number = self.effects.find(WHOLE << 32 | state)
        if self.effects.columns["inside"][number, 0] < WIDE:
            return
        assert self.shared is not None
        first, past = self.effects.columns["ends"][number].tolist()
        sets, rests = (
            self._end_pool[first:past, 0],
            [self.rests.content(rest) for rest in self._end_pool[first:past, 1]],
        )
        until = np.cumsum([len(rest) for rest in rests], dtype=np.int64)
        begin = until - [len(rest) for rest in rests]
        ends = np.stack([sets, begin, until], axis=1).astype(np.int32)
        ranges = np.concatenate([np.empty(0, dtype=np.int64), *rests])
        words = self._words_inside(number)[: (self.trie.size + 31) // 32].view(np.int32)
        self.shared.keep(*self._wanted.pop(state), self.machine.lexer, StoredEffect(words, ranges, ends))

    def _words_inside(self, number: int) -> npt.NDArray[np.uint32]:
        """The tokens inside an effect, as a copy of V + 1 bits, of which the spare one is not set."""
        first, past = self.effects.columns["inside"][number].tolist()
        words = np.zeros_like(self._inside) if first >= 0 else self._wide_pool[past].copy()
        tokens = self._token_pool[max(first, 0) : past if first >= 0 else 0]
        np.bitwise_or.at(words, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))
        words[self.trie.size >> 5] &= np.uint32(~(1 << (self.trie.size & 31)) & 0xFFFFFFFF)
        return words

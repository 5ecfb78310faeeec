"""The table behind proper token masks: which tokens go on from a state, and can the text still be completed?

Words. For *states*, their *keys* and their *rows* see `tokdfa.backends.proper_merge.proper_rows`. A pair (state, u) is
*live* iff, u being the last token, some proper sequence of tokens completes a text of the constraint. The tokens of the
row that lead to a live pair are the state's *live tokens*; the mask in the state after the token t are its live tokens,
but for those forbidden after t.

Liveness. A state is *full* if it is live whatever the last token: where the text may end, where a border may stand
(a new piece has no last token, and every text has an encoding), or inside a character that byte tokens have begun. For
any other state q, (q, u) is live iff some live token of q is canonical after u: a least fixpoint (002 finds it by a
search over pairs of states of two automata). Instead of pairs, we keep for each state the *suspects*: the tokens that
all live tokens tried so far refuse to follow. The first live token v brings the tokens that v may not follow (a few
intervals, `tokdfa.proper.intervals`), each further one strikes some off; nearly always nothing is left after a few,
and the state is as good as full. A pair with a suspect is decided by going through the live tokens.

Only states that a question needs get rows: a mask needs the liveness of its targets, which needs the rows of those that
are not full, and so on (`close_kernel`). With a pre-tokenizer nearly all are full, and masks are made when first asked
for; without one nothing but the ends of texts is full, and the first mask settles all states.

Cost: one trie walk a row, and a sweep or three over the rows (`tokdfa run experiments/proper_table2.yaml`).
Source: 002, technical appendix, algorithms 5 and 6 (relevant pairs); the rest is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper_merge.marked_product import BORDERS, ENDS, INSIDE
from tokdfa.backends.proper_merge.proper_rows import ProperRows, read_row_kernel, token_reader
from tokdfa.core.jit import kernel
from tokdfa.core.locks import new_lock
from tokdfa.core.sorting import find_least
from tokdfa.errors import LimitExceeded
from tokdfa.proper.adjacent_pairs import find_break_kernel, pair_arrays
from tokdfa.proper.intervals import list_predecessors_kernel
from tokdfa.proper.whole_pieces import WHOLE
from tokdfa.vocabulary.mask_store import add_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.mask import Mask
    from tokdfa.proper.canonical import Canonicity

#: How many live tokens, spread over the row, are tried on a state's suspects at a time.
TRIES = 16
#: Rows of at most this many tokens have no list of suspects: going through their live tokens is cheap enough.
SHORT_ROW = 1024
#: What is known of a state: no live token yet; live but for suspects; live whatever the last token; some live tokens
#: and a short row, so that every token is a suspect.
_NONE, _SOME, _ALL, _ASK = 0, 1, 2, 3


class ProperTable:
    """Rows and liveness of one constraint for one tokenizer, made as needed. Safe to share between threads."""

    def __init__(
        self,
        automaton: PieceAutomaton,
        canonicity: Canonicity,
        max_transitions: int = 30_000_000,
        every_state: bool = False,
    ) -> None:
        self.automaton, self.canonicity = automaton, canonicity
        whole, trie, whole_trie = canonicity.whole_pieces, canonicity.text_trie, canonicity.whole_piece_trie
        self.node_count, self.root = whole.node_count, whole.root
        if automaton.state_count * self.node_count > np.iinfo(np.int32).max:
            raise LimitExceeded(
                f"{automaton.state_count} states with {self.node_count} nodes of whole pieces do not fit 32 bits: "
                "lower the constraint's repeat bounds",
                limit="states",
                value=np.iinfo(np.int32).max // self.node_count,
            )
        reader = token_reader(automaton, canonicity.fallback, trie, whole, whole_trie)
        # What `step` reads: views, as indexing a numpy array from Python is twice as slow.
        self._table, self._classes, self._can_stop = automaton.table.data, automaton.classes, automaton.can_stop.data
        self._fallback_class = automaton.fallback_class.data
        fallback = canonicity.fallback
        self._byte_of = None if fallback is None else fallback.byte_of.data
        self._terminal = whole.terminal.data
        self._usable, self._offsets = canonicity.usable.data, canonicity.vocabulary.offsets.data
        self._whole_tokens, self._children = canonicity.whole_piece_encodings, whole.children
        self._texts, self._byte_class = canonicity.vocabulary.byte_data.data, automaton.byte_class.data
        self._pair = pair_arrays(canonicity.rules, canonicity.derivations)
        self._before = canonicity.predecessors
        self._rows = ProperRows(reader, self.node_count, max_transitions, every_state)
        self._row = tuple(np.empty(self._rows.row_room, dtype=np.int32) for _ in range(2))
        self._suspects = np.empty(1024, dtype=np.int32)
        self._suspect_count = 0
        self.lock = new_lock()

    @property
    def settled_states(self) -> int:
        """How many states have rows."""
        return self._rows.count

    @property
    def transitions(self) -> int:
        """How many entries the rows have."""
        return self._rows.entry_count

    @property
    def dead_transitions(self) -> int:
        """How many of them lead nowhere, the tokens being proper."""
        return self.transitions - int(self._rows.entries("live").sum())

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._suspects.nbytes + self.automaton.nbytes

    def is_full(self, key: int) -> bool:
        """Whether the state is live whatever the last token, by what it is."""
        state, node = divmod(key, self.node_count)
        stop = self._can_stop[state]
        return bool(stop & INSIDE) or (stop != 0 and not (node and self._terminal[node]))

    def add_live_tokens(self, key: int, out: Mask) -> None:
        """Set the bits of the live tokens of a state. A trie walk and more the first time: 1 us to many ms."""
        with self.lock:
            tokens, _, live = self._read_row(key)
            add_tokens_kernel(tokens[live], out)

    def row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """(tokens, the keys they lead to, whether each is live) of a state: int32, int32, bool, copies."""
        with self.lock:
            tokens, keys, live = self._read_row(key)
            return tokens.copy(), keys.copy(), live.copy()

    def _read_row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """`row`, in arrays that the next call overwrites."""
        tokens, keys = self._row
        rows = self._rows
        count = int(read_row_kernel(key, self.node_count, rows.reader, 0, tokens, keys))
        tokens, keys = tokens[:count], keys[:count]
        if self.is_full(key):
            targets = np.empty_like(keys)
            rows.number_all(keys, targets)
            self._settle()
            live = _judge_targets_kernel(tokens, targets, rows.struct, self._suspects, self._pair)
        else:
            row = rows.row(self._state(key))
            live = rows.entries("live")[row]
        return tokens, keys, live

    def is_live(self, key: int, last: int) -> bool:
        """Whether the pair of a state and the last token is live."""
        if self.is_full(key):
            return True
        with self.lock:
            state = self._state(key)
            return bool(_is_live_kernel(state, last, self._rows.struct, self._suspects, self._pair))

    def step(self, key: int, token: int) -> int:
        """The state after a token that is read inside the piece, if the pair of both is live; otherwise -1.

        Whether the token is canonical after the one before is not asked. 2 us where the state is full, else 8 us.
        """
        found = self.read(key, token)
        return found if found < 0 or self.is_live(found, token) else -1

    def read(self, key: int, token: int) -> int:
        """The state after a token that is read inside the piece, live or not; -1 if it cannot be read. 2 us."""
        nodes = self.node_count
        state, node = divmod(key, nodes) if nodes > 1 else (key, 0)
        byte = self._byte_of[token] if self._byte_of is not None else -1
        if byte >= 0:
            column = self._fallback_class[byte]
            target = self._table[state * self._classes + column] if column >= 0 else -1
        elif self._usable[token] and (node != WHOLE or nodes == 1):
            target = self._read_bytes(state, token)
        elif node == self.root and token in self._whole_tokens:
            target = self._read_bytes(state, token)
            if target < 0 or not self._can_stop[target // self._classes] & (ENDS | BORDERS):
                return -1
            return target // self._classes * nodes + WHOLE
        else:
            return -1
        if target < 0:
            return -1
        node = self._children[node].get(token, 0) if node else 0
        return target // self._classes * nodes + node

    def _read_bytes(self, state: int, token: int) -> int:
        table, byte_class, row = self._table, self._byte_class, state * self._classes
        for byte in self._texts[self._offsets[token] : self._offsets[token + 1]]:
            row = table[row + byte_class[byte]]
            if row < 0:
                break
        return row

    def _state(self, key: int) -> int:
        """The number of a state that is not full, its row made and settled. The caller holds the lock."""
        state = self._rows.number(key)
        self._settle()
        return state

    def _settle(self) -> None:
        """Rows for all numbered states, and their liveness."""
        rows, begin = self._rows, self._rows.count
        if begin < len(rows.states):
            rows.close()
            self._suspects, self._suspect_count = _settle_kernel(
                begin, rows.count, rows.struct, self._suspects, self._suspect_count, self._pair, self._before
            )


@kernel
def _is_live_kernel(state, last, rows, suspects, pair):  # type: ignore[no-untyped-def]
    """Whether (state, last) is live, by what is known so far."""
    if rows.status[state] == _NONE or rows.status[state] == _ALL:
        return rows.status[state] == _ALL
    if rows.status[state] == _SOME:
        end = rows.suspect_ends[state]
        place = find_least(suspects, rows.suspect_starts[state], end, last)
        if place == end or suspects[place] != last:
            return True
    first = rows.offsets[state]
    for k in range(first + rows.tried[state], first + rows.live_counts[state]):
        if find_break_kernel(last, rows.live_tokens[k], *pair) < 0:
            return True
    return False


@kernel
def _judge_targets_kernel(tokens, targets, rows, suspects, pair):  # type: ignore[no-untyped-def]
    """Which entries are live: bool, one for each of `targets`."""
    live = np.empty(len(targets), dtype=np.bool_)
    status = rows.status
    for k in range(len(targets)):
        # a call costs a microsecond, as numba counts references to all that it takes; most targets need none
        known = status[targets[k]] if targets[k] >= 0 else _ALL
        live[k] = known == _ALL or (known != _NONE and _is_live_kernel(targets[k], tokens[k], rows, suspects, pair))
    return live


@kernel
def _settle_kernel(begin, count, rows, suspects, used, pair, before):  # type: ignore[no-untyped-def]
    """Find the live entries of the states begin .. count - 1, by sweeps from the last one back until nothing changes.

    Returns the array of suspects, which may have been replaced by a longer one, and how much of it is `used`.
    """
    grew = np.zeros(count - begin, dtype=np.int32)  # the last sweep in which a state got live tokens
    sweep, changed = 1, True
    live, targets, tokens, status = rows.live, rows.targets, rows.tokens, rows.status
    live_tokens, live_counts, tried = rows.live_tokens, rows.live_counts, rows.tried
    while changed:
        changed = False
        for state in range(count - 1, begin - 1, -1):
            first, end = rows.offsets[state], rows.offsets[state + 1]
            wait = 4 * TRIES
            for k in range(first, end):
                if live[k]:
                    continue
                target = targets[k]
                if sweep > 1 and (target < begin or grew[target - begin] < sweep - 1):
                    continue
                known = status[target] if target >= 0 else _ALL
                if known == _NONE:  # see `_judge_targets_kernel` for why this is not left to the call
                    continue
                if known != _ALL and not _is_live_kernel(target, tokens[k], rows, suspects, pair):
                    continue
                live[k] = True
                live_tokens[first + live_counts[state]] = tokens[k]
                live_counts[state] += 1
                grew[state - begin] = sweep
                changed = True
                if end - first <= SHORT_ROW:
                    status[state] = _ASK
                elif status[state] == _SOME and live_counts[state] - tried[state] > wait:
                    suspects, used = _clear_suspects_kernel(state, rows, suspects, used, pair, before)
                    wait *= 4
            if end - first > SHORT_ROW and status[state] != _ALL and grew[state - begin] == sweep:
                suspects, used = _clear_suspects_kernel(state, rows, suspects, used, pair, before)
        sweep += 1
    return suspects, used


@kernel
def _clear_suspects_kernel(state, rows, suspects, used, pair, before):  # type: ignore[no-untyped-def]
    """Try some live tokens, spread over those not tried yet, on the suspects of a state. Returns as `_settle_kernel`.

    A state without suspects so far gets those of the live token that has the fewest.
    """
    first, tried = rows.offsets[state], rows.tried[state]
    left_over = rows.live_counts[state] - tried
    tries = min(TRIES, left_over)
    for k in range(tries):  # to the front of what is not tried yet
        place, chosen = first + tried + k, first + tried + k * left_over // tries
        rows.live_tokens[place], rows.live_tokens[chosen] = rows.live_tokens[chosen], rows.live_tokens[place]
    if rows.status[state] == _NONE:
        left = list_predecessors_kernel(rows.live_tokens[first + tried], before)
        for k in range(1, tries):
            if len(left) <= TRIES:
                break
            other = list_predecessors_kernel(rows.live_tokens[first + tried + k], before)
            if len(other) < len(left):
                left = other
        left = np.sort(left)
        rows.suspect_starts[state] = used
    else:
        left = suspects[rows.suspect_starts[state] : rows.suspect_ends[state]].copy()
    remaining = len(left)
    for k in range(tries):
        if remaining == 0:
            break
        kept = 0
        for j in range(remaining):
            if find_break_kernel(left[j], rows.live_tokens[first + tried + k], *pair) >= 0:
                left[kept] = left[j]
                kept += 1
        remaining = kept
    rows.tried[state] += tries
    start = rows.suspect_starts[state]
    if rows.status[state] == _NONE:
        used += remaining
        while used > len(suspects):
            suspects = np.concatenate((suspects, suspects))
    for k in range(remaining):
        suspects[start + k] = left[k]
    rows.suspect_ends[state] = start + remaining
    rows.status[state] = _SOME if remaining else _ALL
    return suspects, used

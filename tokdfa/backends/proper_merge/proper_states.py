"""Proper sequences of tokens for one constraint: what a matcher has to remember, and its masks.

Words. What the tokens so far say about pieces may leave a choice: whether a border stands after "12" of a number shows
only later. A *hypothesis* is one way of reading them, as the key of a state
(`tokdfa.backends.proper_merge.proper_table`); a matcher holds the last token and all live hypotheses, nearly always
one, at most a handful.

A token v may come next *directly*, as part of the same piece: it is a live token of a hypothesis and not forbidden
after the last token. Or *after a border*, where a hypothesis admits one: then it is a live token of the state behind
the border, and the last token has no say. So

    mask = (Mdirect AND NOT forbidden(last)) OR Mborder,

Mdirect and Mborder being unions over the hypotheses, kept for each set of them: two or three bit sets a mask.

Source: 002, appendix, section 4.1 (the last token decides); the hypotheses are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper_merge.marked_product import BORDERS, ENDS
from tokdfa.core.jit import kernel
from tokdfa.mask import allocate_mask, set_token
from tokdfa.proper.canonical import NARROW
from tokdfa.vocabulary.mask_store import list_tokens_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tokdfa.backends.proper_merge.proper_table import ProperTable
    from tokdfa.mask import Mask
    from tokdfa.proper.canonical import Canonicity

#: The last token (-1: none, the piece has just begun) and the keys of the hypotheses, ascending.
State = tuple[int, tuple[int, ...]]


def begin_state(table: ProperTable) -> State:
    """The state of a text that begins here."""
    return -1, tuple(start * table.node_count + table.root for start in table.automaton.starts if start >= 0)


class SplitMask:
    """Mdirect and Mborder of one set of hypotheses: packed, or as lists of tokens where both are short."""

    __slots__ = ("after_border", "border_tokens", "direct", "direct_tokens")

    def __init__(self, direct: Mask, after_border: Mask, begins: bool) -> None:
        self.direct, self.after_border = direct, after_border
        self.direct_tokens: npt.NDArray[np.int32] | None = None
        self.border_tokens: npt.NDArray[np.int32] | None = None
        if not begins:  # at the beginning of a piece a mask is copied as it is
            room = np.empty(2 * NARROW, dtype=np.int32)
            first = list_tokens_kernel(direct, room[:NARROW])
            second = list_tokens_kernel(after_border, room[NARROW:]) if first >= 0 else -1
            if second >= 0:
                self.direct_tokens, self.border_tokens = room[:first].copy(), room[NARROW : NARROW + second].copy()

    @property
    def nbytes(self) -> int:
        return self.direct.nbytes + self.after_border.nbytes

    def fill(self, last: int, canonicity: Canonicity, out: Mask) -> None:
        """Overwrite `out` with the mask after the token `last` (-1: none)."""
        if last < 0:
            np.copyto(out, self.direct)
            return
        forbidden = canonicity.kept_masks.get(last)
        if forbidden is None:
            forbidden = canonicity.forbidden_after(last)
        if self.direct_tokens is not None:
            write_allowed_tokens_kernel(self.direct_tokens, self.border_tokens, forbidden, out)
        else:
            combine_masks_kernel(self.direct, self.after_border, forbidden, out)


class ProperStates:
    """The states and masks over one table. Immutable to its users, safe to share between threads.

    `max_bytes` bounds the kept bit sets; past it they are made anew.
    """

    def __init__(self, table: ProperTable, max_bytes: int = 256 << 20) -> None:
        self.table = table
        self.canonicity: Canonicity = table.canonicity
        self._nodes = table.node_count
        self._choices: dict[tuple[bool, tuple[int, ...]], SplitMask] = {}
        self._kept_bytes, self._max_bytes = 0, max_bytes
        automaton = table.automaton
        self._can_stop, self._marker = automaton.can_stop.data, automaton.marker.data
        self._terminal = self.canonicity.whole_pieces.terminal.data
        #: The masks of forbidden successors that the canonicity keeps at the moment.
        self._forbidden = self.canonicity.kept_masks

    @property
    def nbytes(self) -> int:
        """Memory of the table and of the kept bit sets."""
        return self.table.nbytes + self._kept_bytes

    def prepare(self, state: State) -> None:
        """Settle what the first mask needs."""
        self._make_choices(state[0] < 0, state[1])

    def settle_all(self, state: State) -> None:
        """Settle all hypotheses that can be reached from `state`. One trie walk each, and more."""
        agenda = [(key, state[0] < 0) for key in state[1]]
        seen = set(agenda)
        while agenda:
            key, fresh = agenda.pop()
            _, keys, live = self.table.row(key)
            self.prepare((-1 if fresh else 0, (key,)))
            following = [(target, False) for target in np.unique(keys[live]).tolist()]
            border = -1 if fresh else self.behind_border(key)
            if border >= 0:
                following.append((border, True))
            for found in following:
                if found not in seen:
                    seen.add(found)
                    agenda.append(found)

    def can_end(self, state: State) -> bool:
        """Whether the text may end."""
        return any(self._may_stop(key, ENDS) for key in state[1])

    def fill(self, state: State, out: Mask) -> tuple[int, int] | None:
        """Overwrite `out` with the tokens that may come next, end tokens included. 1 to 3 us once kept.

        Returns None then, else (states, transitions) that had to be settled first.
        """
        last, keys = state
        choices, settled = self._choices.get((last < 0, keys)), None
        if choices is None:
            table = self.table
            states, transitions = table.settled_states, table.transitions
            choices = self._make_choices(last < 0, keys)
            settled = table.settled_states - states, table.transitions - transitions
        if last < 0:
            np.copyto(out, choices.direct)
            return settled
        forbidden = self._forbidden.get(last)
        if choices.direct_tokens is None and forbidden is not None:  # without the call, a tenth of the time
            combine_masks_kernel(choices.direct, choices.after_border, forbidden, out)
        else:
            choices.fill(last, self.canonicity, out)
        return settled

    def step(self, state: State, token: int) -> State | None:
        """The state after `token`, None if it is not allowed. 3 to 8 us a hypothesis."""
        last, keys = state
        choices = self._choices.get((last < 0, keys)) if len(keys) == 1 else None
        # The kept bit sets of a single hypothesis say whether the token leads to a live state.
        direct_live = border_live = choices is None
        if choices is not None:
            word, bit = token >> 5, token & 31
            direct_live = choices.direct.item(word) >> bit & 1 == 1
            border_live = choices.after_border.item(word) >> bit & 1 == 1
        step = self.table.step if choices is None else self.table.read
        direct_live = direct_live and (last < 0 or self._may_follow(last, token))
        found = []
        for key in keys:
            target = step(key, token) if direct_live else -1
            if target >= 0:
                found.append(target)
            border = self.behind_border(key) if border_live and last >= 0 else -1
            target = step(border, token) if border >= 0 else -1
            if target >= 0:
                found.append(target)
        if len(found) > 1:
            found = sorted(set(found))
        return (token, tuple(found)) if found else None

    def _may_follow(self, last: int, token: int) -> bool:
        """Whether no rule merges across the border of two tokens of one piece."""
        forbidden = self._forbidden.get(last)
        if forbidden is None:
            forbidden = self.canonicity.forbidden_after(last)
        return not forbidden.item(token >> 5) >> (token & 31) & 1

    def _may_stop(self, key: int, how: int) -> bool:
        state, node = divmod(key, self._nodes)
        return bool(self._can_stop[state] & how) and not (node and self._terminal[node])

    def behind_border(self, key: int) -> int:
        """The key of the state behind a border, -1 if none may stand here."""
        if not self._may_stop(key, BORDERS):
            return -1
        return self._marker[key // self._nodes] * self._nodes + self.table.root

    def _make_choices(self, fresh: bool, keys: tuple[int, ...]) -> SplitMask:
        choices = self.gather(fresh, keys, self.table.add_live_tokens, self.can_end((-1, keys)))
        with self.table.lock:
            if self._kept_bytes > self._max_bytes:
                self._choices, self._kept_bytes = {}, 0
            self._choices[fresh, keys] = choices
            self._kept_bytes += choices.nbytes
        return choices

    def gather(
        self, fresh: bool, keys: tuple[int, ...], add_tokens: Callable[[int, Mask], None], can_end: bool
    ) -> SplitMask:
        """Mdirect and Mborder; `fresh`: the piece has just begun, so that no border stands here.

        `add_tokens`: adds the tokens of a key to a mask. End tokens are in the one that the last token has no say in.
        """
        direct, after_border = (allocate_mask(self.canonicity.size) for _ in range(2))
        for key in keys:
            add_tokens(key, direct)
            border = -1 if fresh else self.behind_border(key)
            if border >= 0:
                add_tokens(border, after_border)
        if can_end:
            for end in self.canonicity.vocabulary.end_tokens:
                set_token(direct if fresh else after_border, end)
        return SplitMask(direct, after_border, fresh)


@kernel
def combine_masks_kernel(direct, after_border, forbidden, out):  # type: ignore[no-untyped-def]
    """out = (direct & ~forbidden) | after_border."""
    for word in range(len(out)):
        out[word] = (direct[word] & ~forbidden[word]) | after_border[word]


@kernel
def write_allowed_tokens_kernel(direct, after_border, forbidden, out):  # type: ignore[no-untyped-def]
    """The same for lists of tokens."""
    out[:] = 0
    for k in range(len(direct)):
        word, bit = direct[k] >> 5, np.uint32(direct[k] & 31)
        out[word] |= np.int32(np.uint32(1) << bit) & ~forbidden[word]
    for k in range(len(after_border)):
        word, bit = after_border[k] >> 5, np.uint32(after_border[k] & 31)
        out[word] |= np.int32(np.uint32(1) << bit)

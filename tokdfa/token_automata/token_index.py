"""The token table: DFA state x token -> state, for every state that tokens can reach, in compressed rows.

From each state every token is run through the DFA, either along the trie, so that shared prefixes are read once, or
token by token. States are numbered as they turn up, the start is 0. A row holds the allowed tokens as *ranks*: places
in the trie's byte order. The walk yields them ascending, so nothing is sorted, and a look-up is a binary search.

Source: Willard and Louf (arXiv 2307.09702); the baseline of 001. The compressed layout is ours.
Cost: one trie walk (or one run of all tokens) a state; 8 bytes an entry, 6 once targets fit 16 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import enlarge
from tokdfa.vocabulary.byte_table import DEAD, collect_tokens_kernel

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.vocabulary import Vocabulary


#: What a node of the trie takes, and a token run by itself; how many nodes are paid for at once.
NS_PER_NODE, NS_PER_TOKEN, PAID_NODES = 3, 10, 1 << 17


class TokenTable(NamedTuple):
    """The rows: state s has the entries ``offsets[s] .. offsets[s + 1] - 1``.

    ``offsets``: int64, shape (states + 1,); ``ranks``: int32, ascending within a row; ``targets``: int32 or uint16, the
    state each leads to; ``dfa_states``: int32, shape (states,), the DFA state behind each.
    """

    offsets: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int32]
    targets: npt.NDArray[np.integer]
    dfa_states: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def keep(self, live: npt.NDArray[np.bool_]) -> TokenTable:
        """Without the entries that lead to states that are not `live` (bool, shape (states,))."""
        kept = live[self.targets]
        before = np.concatenate([[0], np.cumsum(kept)])
        return TokenTable(before[self.offsets], self.ranks[kept], self.targets[kept], self.dfa_states)

    def compact(self) -> TokenTable:
        """With targets in 16 bits where the states allow it, and no spare room."""
        small = np.uint16 if len(self.dfa_states) <= 1 << 16 else np.int32
        return TokenTable(self.offsets, self.ranks.copy(), self.targets.astype(small), self.dfa_states.copy())


def build_token_table(
    vocab: Vocabulary, dfa: Dfa, *, by_trie: bool = True, max_entries: int = 30_000_000
) -> TokenTable:
    """The table of a DFA with only live states. LimitExceeded past `max_entries`."""
    trie = vocab.trie
    number_of = np.full(dfa.state_count, -1, dtype=np.int32)
    number_of[dfa.start] = 0
    state_of = np.zeros(dfa.state_count, dtype=np.int32)
    state_of[0] = dfa.start
    words = (trie.ranked_nodes, trie.depth_limit) if by_trie else (vocab.byte_data, vocab.offsets, trie.order)
    offsets, ranks, targets, _ = fill_rows(
        words, len(trie.order), (dfa.transitions, dfa.byte_class), (number_of, state_of), 1, max_entries
    )
    return TokenTable(offsets, ranks, targets, state_of[: len(offsets) - 1])


def fill_rows(
    words: tuple[Any, ...],
    count: int,
    steps: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]],
    numbering: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]],
    found: int,
    max_entries: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Run `count` words from each state: (offsets, the words that can be read, by number, the state each leads to, and
    how many steps of the automaton that took, each a look-up in its table).

    `words`: packed nodes of a trie, with numbers for tokens, and its depth, for a walk; or bytes, offsets, and which
    word is which, to run each by itself. `steps`: state x class -> state, and the class of a byte. `numbering`: state
    of the automaton -> state of the rows, -1 for one that has not been met, and back; `found`: how many have been met.
    Raises LimitExceeded past `max_entries`.
    """
    transitions, byte_class = steps
    width = transitions.shape[1]
    table = np.where(transitions >= 0, transitions * np.int32(width), DEAD).astype(np.int32).ravel()
    offsets = np.zeros(len(transitions) + 1, dtype=np.int64)
    progress = np.array([0, found, 0], dtype=np.int64)  # states done, states found, steps
    room = 4 * (count + 1)
    numbers, targets = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    by_trie = len(words) == 2
    if by_trie:
        words = words[0], count, np.empty(words[1] + 1, dtype=np.int32), byte_class
    else:
        words = byte_class[words[0]], *words[1:]
    while True:
        arrays = (table, width, *numbering, offsets, progress, numbers, targets)
        (_index_by_trie_kernel if by_trie else _index_by_token_kernel)(*words, *arrays)
        done, found, taken = progress.tolist()
        used = int(offsets[done])
        if used > max_entries:
            raise LimitExceeded(
                f"the token index has more than {max_entries} transitions ({done} of at least {found} states done): "
                "use token_index with lazy=True, or raise max_transitions",
                limit="max_transitions",
                value=max_entries,
            )
        if done == found:
            return offsets[: done + 1].copy(), numbers[:used], targets[:used], taken
        more = max(2 * room, used + count + 1)
        hold(8 * (more - room))
        room = more
        numbers, targets = enlarge(numbers, room, used), enlarge(targets, room, used)


@kernel
def _number_targets(begin, end, class_count, number_of, state_of, progress, targets):  # type: ignore[no-untyped-def]
    """Replace row offsets in targets[begin:end] by index states, giving numbers to new ones."""
    for k in range(begin, end):
        state = targets[k] // class_count
        number = number_of[state]
        if number < 0:
            number = np.int32(progress[1])
            number_of[state] = number
            state_of[number] = state
            progress[1] += 1
        targets[k] = number


@kernel
def _index_by_trie_kernel(  # type: ignore[no-untyped-def]
    nodes,
    spare,
    stack,
    byte_class,
    transitions,
    class_count,
    number_of,
    state_of,
    offsets,
    progress,
    ranks,
    targets,
):
    """Index states until all found are done or the next might not fit: a collecting walk from each."""
    work = np.int64(0)
    while progress[0] < progress[1] and offsets[progress[0]] + spare + 1 <= len(ranks):
        if work > PAID_NODES:
            pay(NS_PER_NODE * work)
            work = np.int64(0)
        begin = offsets[progress[0]]
        stack[0] = state_of[progress[0]] * class_count
        _, written, visited, _ = collect_tokens_kernel(
            nodes, 0, len(nodes), (transitions, byte_class), stack, (ranks, targets, spare), begin
        )
        _number_targets(begin, written, class_count, number_of, state_of, progress, targets)
        work += visited
        progress[2] += visited
        progress[0] += 1
        offsets[progress[0]] = written


@kernel
def _index_by_token_kernel(  # type: ignore[no-untyped-def]
    letters,
    byte_offsets,
    order,
    transitions,
    class_count,
    number_of,
    state_of,
    offsets,
    progress,
    ranks,
    targets,
):
    """Like `_index_by_trie_kernel`, running every token from its first byte."""
    while progress[0] < progress[1] and offsets[progress[0]] + len(order) + 1 <= len(ranks):
        pay(np.int64(NS_PER_TOKEN * len(order)))
        begin = offsets[progress[0]]
        written = begin
        for rank in range(len(order)):
            row = np.int64(state_of[progress[0]]) * class_count
            word = order[rank]
            for position in range(byte_offsets[word], byte_offsets[word + 1]):
                row = np.int64(transitions[row + letters[position]])
                progress[2] += 1
                if row < 0:
                    break
            if row >= 0:
                ranks[written] = rank
                targets[written] = row
                written += 1
        _number_targets(begin, written, class_count, number_of, state_of, progress, targets)
        progress[0] += 1
        offsets[progress[0]] = written

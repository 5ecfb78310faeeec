"""The interval algorithm: which tokens may not follow which, for all tokens at once, without a table of V x V.

Take two proper tokens t and u. Merging the letters of both together starts with each half merging by itself. At any
moment the token that ends the left half is some x on t's right spine, and the token that begins the right half some y
on u's left spine; px is the token on the spine that x becomes a part of, py likewise. If there is a rule (x, y) of rank
r, it is applied (and t u is not proper) iff x and y stand side by side at a moment when r is less than the next rank of
the left half and at most the next rank of the right half: on equal ranks the pair further left merges first. With the
words of `tokdfa.proper.derivations` that is:

- if level(x) <= level(y), so that y is complete last:
  max(r, level(y)) < level(px), and r <= rest_after_left(py);
- otherwise: r < rest_after_right(px), and max(r, level(x)) <= level(py).

Conditions on px fall away for x = t, those on py for y = u. (Where ranks rise along every derivation this is: r <
rank(px) and r <= rank(py).)

For fixed t and (x, y, r), the forbidden u are y itself and the subtrees of those children py of y that meet their
condition: one interval of `tokdfa.proper.merge_tree`'s numbers, and one more for each irregular child that meets it. So
the forbidden successors of t are a short list of intervals, sorted and disjoint. Tokens with equal lists are one
*state* of the automaton of proper sequences.

*From the other side*: which tokens may u not follow? The same in a mirror, with the rules by their right tokens and the
merge tree of right parts: what precedes t u on the left by equal levels does not on the right, so each "less" becomes
an "at most". Liveness asks this (`tokdfa.backends.proper_merge.proper_table`): a state where u may come next is a dead
end only for last tokens among these.

Cost: O(rules in the rows of the right spine), for each token. All lists of Mistral v1 in 0.05 s, of Llama 3 in 0.5 s;
the predecessors of one token in microseconds.
Source: 002 builds the same automaton by replaying every merge on it, in 20.9 s for Mistral v1,
and fuses equal states. The intervals are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.interning import NEEDS_ROOM, InterningTable, intern
from tokdfa.core.jit import kernel
from tokdfa.core.sorting import find_least
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.vocabulary.mask_store import add_tokens_kernel

if TYPE_CHECKING:
    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.proper.derivations import Derivations
    from tokdfa.proper.merge_rules import Int32, MergeRules
    from tokdfa.proper.merge_tree import MergeTree

#: What `forbidden_intervals_kernel` reads of one side of a border: 1 if the tokens asked for are the left ones, whose
#: merges come first on equal levels, else 0. The rules of a token on the spine there: row starts, the token on the
#: other side, rank, by rank within a row. The part that leads down the spine, the levels, what is still to come of the
#: own half once a part is complete, and of the other half. The arrays of the `MergeTree` of the other side.
Side = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class IntervalLists:
    """The forbidden successors of every state; all arrays int32.

    `state_of`: shape (V,), the state of each token, -1 for tokens outside the merge_tree. The list of state s are the
    intervals ``starts[k] .. ends[k] - 1`` of merge_tree numbers, k from ``list_starts[s]`` to ``list_starts[s + 1] -
    1``, sorted, neither overlapping nor touching.
    """

    state_of: Int32
    list_starts: Int32
    starts: Int32
    ends: Int32

    @property
    def state_count(self) -> int:
        return len(self.list_starts) - 1


def build_lists(rules: MergeRules, derivations: Derivations, merge_tree: MergeTree) -> IntervalLists:
    """The interval lists of all tokens of the merge_tree, equal ones once."""
    by_rank = np.lexsort((rules.rank, rules.left))
    side = (
        *(1, rules.row_starts, rules.right[by_rank], rules.rank[by_rank]),
        *(derivations.right, derivations.level, derivations.rest_after_right, derivations.rest_after_left),
        *merge_tree.arrays,
    )
    state_of = np.full(len(derivations.right), -1, dtype=np.int32)
    lists = InterningTable(entries=len(merge_tree.order), words=1 << 12)
    done = 0
    while (done := _build_lists_kernel(done, merge_tree.order, side, lists.struct, state_of)) < len(merge_tree.order):
        lists.grow()
    words = lists.words[: lists.words_used]
    starts, ends = (part.astype(np.int32) for part in (words >> 32, words & 0xFFFFFFFF))
    return IntervalLists(state_of, lists.begin[: len(lists) + 1].astype(np.int32), starts, ends)


def predecessor_side(rules: MergeRules, derivations: Derivations, fallback: ByteFallback | None) -> Side:
    """What `list_predecessors_kernel` reads: rules by right tokens, the merge tree of right parts. 10 to 60 ms."""
    by_right = np.lexsort((rules.rank, rules.right))
    row_starts = np.zeros(rules.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(rules.right, minlength=rules.size), out=row_starts[1:])
    silent = np.zeros(0, dtype=np.int32) if fallback is None else fallback.used_tokens()
    return (
        *(0, row_starts, rules.left[by_right], rules.rank[by_right]),
        *(derivations.left, derivations.level, derivations.rest_after_left, derivations.rest_after_right),
        *build_merge_tree(derivations, silent, side="right").arrays,
    )


@kernel
def forbidden_intervals_kernel(token, side):  # type: ignore[no-untyped-def]
    """The intervals (start << 32 | end) of the tokens that cannot stand beside `token`, on one `Side` of it.

    Sorted, neither overlapping nor touching.
    """
    strict, row_starts, rule_other, rule_rank, part, level, rest_own, rest_other = side[:8]
    _, number, end, children, child_starts, irregular_starts = side[8:]
    found = np.empty(64, dtype=np.int64)
    count = 0
    x, px = token, -1
    while x >= 0:
        for rule in range(row_starts[x], row_starts[x + 1]):
            y, r = rule_other[rule], rule_rank[rule]
            if px >= 0 and r + strict > level[px]:
                break  # neither condition on px can be met from here on
            if number[y] < 0:
                continue
            y_is_last = level[x] + 1 - strict <= level[y]
            if px >= 0 and (level[y] + strict > level[px] if y_is_last else r + strict > rest_own[px]):
                continue
            bound = (r if y_is_last else max(r, level[x])) + 1 - strict
            begin, irregular = child_starts[y], irregular_starts[y]
            while count + 1 + child_starts[y + 1] - irregular > len(found):
                found = np.concatenate((found, found))
            low, high = begin, irregular  # regular children fall by level: the first below the bound
            while low < high:
                middle = (low + high) >> 1
                if level[children[middle]] >= bound:
                    low = middle + 1
                else:
                    high = middle
            stop = number[y] + 1 if low == begin else end[children[low - 1]]
            found[count] = np.int64(number[y]) << 32 | np.int64(stop)
            count += 1
            for k in range(irregular, child_starts[y + 1]):
                child = children[k]
                if (rest_other[child] if y_is_last else level[child]) >= bound:
                    found[count] = np.int64(number[child]) << 32 | np.int64(end[child])
                    count += 1
        x, px = part[x], x
    found = found[:count]
    found.sort()
    past = np.int64(0xFFFFFFFF)
    last = 0
    for k in range(1, count):
        if found[k] >> 32 > found[last] & past:
            last += 1
            found[last] = found[k]
        elif found[k] & past > found[last] & past:
            found[last] = (found[last] & ~past) | (found[k] & past)
    return found[: min(count, last + 1)]


@kernel
def list_predecessors_kernel(token, side):  # type: ignore[no-untyped-def]
    """The proper tokens that `token` may not follow inside a piece, each once, in the merge tree's order: int32."""
    found, order = forbidden_intervals_kernel(token, side), side[8]
    total = 0
    for interval in found:
        total += (interval & np.int64(0xFFFFFFFF)) - (interval >> 32)
    tokens = np.empty(total, dtype=np.int32)
    written = 0
    for interval in found:
        for place in range(interval >> 32, interval & np.int64(0xFFFFFFFF)):
            tokens[written] = order[place]
            written += 1
    return tokens


@kernel
def add_listed_kernel(state, list_starts, starts, ends, order, mask):  # type: ignore[no-untyped-def]
    """Set the bits of the tokens in the list of a state."""
    for k in range(list_starts[state], list_starts[state + 1]):
        add_tokens_kernel(order[starts[k] : ends[k]], mask)


@kernel
def is_listed_kernel(state, number, list_starts, starts, ends):  # type: ignore[no-untyped-def]
    """Whether a token, by its merge_tree number (-1: none), is in the list of a state. O(log(intervals))."""
    last = list_starts[state + 1]
    place = find_least(ends, list_starts[state], last, number + 1)
    return place < last and starts[place] <= number


@kernel
def _build_lists_kernel(done, order, side, lists, state_of):  # type: ignore[no-untyped-def]
    """Intern the lists of the tokens order[done:] in `lists`, an interval a word: (start << 32) | end.

    Returns how many tokens are done; fewer than there are if the table has to grow.
    """
    for place in range(done, len(order)):
        found = forbidden_intervals_kernel(order[place], side)
        state = intern(found, 0, len(found), lists)
        if state == NEEDS_ROOM:
            return place
        state_of[order[place]] = state
    return len(order)

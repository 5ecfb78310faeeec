"""Work on a token trie, cut into runs of nodes for several threads.

The graphs below different first bytes share nothing (001, part 4), but they are very unequal: nearly half of a real
vocabulary begins with a space. So we cut between any two nodes. A part that begins inside a graph first goes down the
*path* from the root to where it begins. The parts follow one another in the order of the tokens, and what is made of
them does not depend on their number. Walks let go of the interpreter's lock; a thread costs about 0.05 ms to start.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

ResultT = TypeVar("ResultT")


class TriePart(NamedTuple):
    """Nodes ``begin .. end - 1``, which end the tokens ``first_rank .. end_rank - 1``, and `path`, above `begin`."""

    begin: int
    end: int
    first_rank: int
    end_rank: int
    path: tuple[int, ...] = ()


def split_trie(nodes: npt.NDArray[np.uint64], token_count: int, parts: int) -> list[TriePart]:
    """At most `parts` (1 or more) runs of about equally many nodes; at least one.

    `nodes`: uint64, packed as in `tokdfa.vocabulary.trie`, with ranks for tokens; `token_count`: how many ranks.
    """
    if parts == 1:
        return [TriePart(0, len(nodes), 0, token_count)]
    cuts = sorted({len(nodes) * part // parts for part in range(parts)})
    found: list[TriePart] = []
    end, end_rank = len(nodes), token_count
    for cut in reversed(cuts):
        rank, path = _locate_node(nodes, token_count, cut)
        found.append(TriePart(cut, end, rank, end_rank, path))
        end, end_rank = cut, rank
    return found[::-1]


def _locate_node(nodes: npt.NDArray[np.uint64], token_count: int, node: int) -> tuple[int, tuple[int, ...]]:
    """(the first rank at `node` or behind it, its ancestors). Some hundred steps, from sibling to sibling."""
    path: list[int] = []
    here = 0
    while here < node:
        behind = int(nodes[here]) >> NEXT_SHIFT & MAX_NODES
        if behind <= node:
            here = behind
        else:
            path.append(here)
            here += 1
    while here < len(nodes) and int(nodes[here]) >> TOKEN_SHIFT == token_count:
        here += 1
    return token_count if here == len(nodes) else int(nodes[here]) >> TOKEN_SHIFT, tuple(path)


def run_in_threads(jobs: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """The results of `jobs`, in their order; the last runs in the caller's thread, the others in threads of their own.

    The first error of a job is raised here once all have stopped.
    """
    with ThreadPoolExecutor(max(1, len(jobs) - 1)) as pool:
        others = [pool.submit(job) for job in jobs[:-1]]
        last = jobs[-1]()
    return [*(other.result() for other in others), last]

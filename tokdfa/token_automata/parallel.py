"""Work on a token trie, cut into runs of nodes for several threads.

The graphs below different first bytes share nothing (001, part 4), but they are very unequal: nearly half of a real
vocabulary begins with a space. So we cut between any two nodes. A part that begins inside a graph first goes down the
*path* from the root to where it begins. The parts follow one another in the order of the tokens, and what is made of
them does not depend on their number. Kernels run without the GIL; a thread costs about 0.05 ms to start.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    path = np.zeros(1 << DEPTH_BITS, dtype=np.int64)
    found: list[TriePart] = []
    end, end_rank = len(nodes), token_count
    for cut in reversed(cuts):
        rank, depth = _locate_node_kernel(nodes, token_count, cut, path) if cut else (0, 0)
        found.append(TriePart(cut, end, rank, end_rank, tuple(path[:depth].tolist())))
        end, end_rank = cut, rank
    return found[::-1]


def run_in_threads(jobs: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """The results of `jobs`, in their order; the first runs in the caller's thread, the others in threads of their own.

    An exception in a job is raised here once all have stopped.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    results: dict[int, ResultT] = {}
    errors: dict[int, BaseException] = {}

    def run(index: int) -> None:
        try:
            results[index] = jobs[index]()
        except BaseException as error:  # handed to the caller below
            errors[index] = error

    threads = [Thread(target=run, args=(index,), daemon=True) for index in range(1, len(jobs))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(len(jobs))]


@kernel
def _locate_node_kernel(nodes, token_count, node, path):  # type: ignore[no-untyped-def]
    """(the first rank at `node` or behind it, its depth); path[d] is its ancestor of depth d."""
    below = (np.uint64(1) << np.uint64(DEPTH_BITS)) - np.uint64(1)
    depth = np.int64((nodes[node] >> np.uint64(DEPTH_SHIFT)) & below)
    wanted, here = depth, node
    while wanted > 0:  # the nearest node before it that is one step higher is the parent
        here -= 1
        if np.int64((nodes[here] >> np.uint64(DEPTH_SHIFT)) & below) == wanted - 1:
            wanted -= 1
            path[wanted] = here
    here = node
    while here < len(nodes) and nodes[here] >> np.uint64(TOKEN_SHIFT) == np.uint64(token_count):
        here += 1
    rank = token_count if here == len(nodes) else np.int64(nodes[here] >> np.uint64(TOKEN_SHIFT))
    return rank, depth

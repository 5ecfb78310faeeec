"""Work on a token trie or a forest of prefix graphs, cut into runs of whole graphs for several threads.

The top-level subtrees share nothing (001, part 4), so each thread can take some of them. We give each thread one run of
neighbours, with about equally many nodes; the results then lie one behind the other in the order of the tokens, and do
not depend on the number of threads. Kernels run without the GIL. A thread costs about 0.05 ms to start.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tokdfa.jit import kernel
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

ResultT = TypeVar("ResultT")


class GraphRange(NamedTuple):
    """Nodes ``begin .. end - 1``, whole top-level subtrees, which end the tokens ``first_rank .. end_rank - 1``."""

    begin: int
    end: int
    first_rank: int
    end_rank: int


def split_graphs(nodes: npt.NDArray[np.uint64], token_count: int, parts: int) -> list[GraphRange]:
    """At most `parts` (1 or more) runs of whole top-level subtrees; at least one.

    `nodes`: uint64, packed as in `tokdfa.vocabulary.trie`, with ranks for tokens; `token_count`: how many ranks.
    """
    if parts == 1:
        return [GraphRange(0, len(nodes), 0, token_count)]
    bounds = np.zeros((2, parts + 1), dtype=np.int64)
    count = _split_graphs_kernel(nodes, token_count, bounds)
    places, ranks = bounds[:, : count + 1].tolist()
    return [GraphRange(*entry) for entry in zip(places[:-1], places[1:], ranks[:-1], ranks[1:], strict=True)]


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
def _split_graphs_kernel(nodes, token_count, bounds):  # type: ignore[no-untyped-def]
    """bounds[:, i]: node and rank where part i begins. A subtree that crosses a mark goes where more of it lies."""
    parts, used, position = bounds.shape[1] - 1, 1, np.int64(0)
    while position < len(nodes):
        following = np.int64((nodes[position] >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
        mark = len(nodes) * used // parts
        if used < parts and following > mark:
            cut = following if following - mark < mark - position else position
            if bounds[0, used - 1] < cut < len(nodes):
                bounds[0, used] = cut
                node = cut  # the first node from here on that ends a token has the next rank
                while nodes[node] >> np.uint64(TOKEN_SHIFT) == np.uint64(token_count):
                    node += 1
                bounds[1, used] = np.int64(nodes[node] >> np.uint64(TOKEN_SHIFT))
                used += 1
        position = following
    bounds[0, used] = len(nodes)
    bounds[1, used] = token_count
    return used

"""Where every token leads from a row, by one walk over the token trie.

For the proper filter, which asks all tokens at once (`tokdfa.backends.situation_source`). 0.5 to 2 ms for Llama 3.
Written out, as `tokdfa.vocabulary.walker` takes 10 to 20 % longer here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import OK
from tokdfa.backends.pushdown_trie.steps import step_row
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.machine import Machine
    from tokdfa.vocabulary.trie import TokenTrie


def targets_of(machine: Machine, trie: TokenTrie, row: int) -> npt.NDArray[np.int32]:
    """int32, shape (V,): the row after each token, -1 where a token is not allowed. Special tokens are not.

    The machine's lock is held. Raises what the machine raises.
    """
    rows = np.empty(trie.depth_limit + 2, dtype=np.int32)
    found = np.full(trie.size + 1, -1, dtype=np.int32)
    while True:
        status = _walk_rows_kernel(trie.nodes, row, rows, found, machine.arrays, machine.pool.arrays)
        if status == OK:
            return found[:-1]
        machine.supply(status)


@kernel
def _walk_rows_kernel(nodes, start, rows, targets, machine, pool):  # type: ignore[no-untyped-def]
    """Write the row after each token, walking the trie from row `start`. A status; calling again begins anew."""
    one, depth_mask = np.uint64(1), np.uint64((1 << DEPTH_BITS) - 1)
    rows[0] = start
    here, stop = np.uint64(0), np.uint64(len(nodes))
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        status, target = step_row(np.int64(rows[depth]), np.int64(node & np.uint64(0xFF)), machine, pool)
        if status != OK:
            return status
        if target < 0:
            here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            continue
        targets[node >> np.uint64(TOKEN_SHIFT)] = target  # the spare id, too, whose entry means nothing
        rows[depth + 1] = target
        here += one
    return OK

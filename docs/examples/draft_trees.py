"""What the masks of a tree of drafted tokens cost: one call of ours, ours node by node, and the peers, in one process.

Run it with llguidance and xgrammar installed: ``python docs/examples/draft_trees.py``. The tree follows a text and has
two wrong turns at each token, which the constraint allows. Node by node means from the root each time, as without
`fill_tree`. xgrammar has a call of its own (`traverse_draft_tree`); llguidance takes drafts without branches only, so
its trees are walked by `rollback`, as `fill_tree` does with any matcher. Masks of new text, and the same ones again.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

import tokdfa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.base import CompiledConstraint

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "array", "items": {"type": "integer"}},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TEXT = '{"city": "Zürich and wherever the lake goes on", "days": [1, 2, 3, 14, 15], "unit": "celsius"}'
BRANCHES = 3
LEVELS = (2, 8, 21)
REPEATS = 5


def draft(matcher: Any, tokens: list[int], levels: int) -> tuple[list[int], list[int]]:
    """Tokens and parents of a tree that follows `tokens`, with other allowed tokens beside each."""
    walker, mask = matcher.fork(), tokdfa.allocate_mask(matcher.vocab.size)
    drafted, parents, parent = [], [], -1
    for token in tokens[:levels]:
        walker.fill_mask(mask)
        others = [other for other in tokdfa.mask_to_ids(mask).tolist() if other != token]
        level = [token, *others[:: max(1, len(others) // BRANCHES)][: BRANCHES - 1]]
        drafted += level
        parents += [parent] * len(level)
        parent = len(drafted) - len(level)
        walker.advance(token)
    return drafted, parents


def node_by_node(matcher: Any, drafted: list[int], parents: list[int], out: Any) -> None:
    """The masks of all nodes, each from the root."""
    for node in range(len(drafted)):
        way, here = [], node
        while here >= 0:
            way.append(drafted[here])
            here = parents[here]
        walker = matcher.fork()
        for token in reversed(way):
            walker.advance(token)
        walker.fill_mask(out[node])


def traverse(peer: Any, drafted: list[int], parents: list[int], out: Any) -> None:
    """xgrammar's own call. Its node 0 is the text so far."""
    child, sibling = [-1] * (len(drafted) + 1), [-1] * (len(drafted) + 1)
    for node in reversed(range(len(drafted))):
        sibling[node + 1], child[parents[node] + 1] = child[parents[node] + 1], node + 1
    masks = torch.zeros((len(drafted) + 1, out.shape[1]), dtype=torch.int32)
    peer.traverse_draft_tree(torch.tensor(child), torch.tensor(sibling), torch.tensor([0, *drafted]), masks)
    out[:] = masks[1:].numpy()


def timed(make: Callable[[], CompiledConstraint], fill: Callable[..., object], *tree: Any) -> tuple[float, float]:
    """Least microseconds to fill the masks of a tree, with a constraint compiled anew (not timed), and again."""
    first: list[float] = []
    again: list[float] = []
    for _ in range(REPEATS):
        matcher = make().start()
        for found in (first, again):
            begin = time.perf_counter_ns()
            fill(matcher, *tree)
            found.append((time.perf_counter_ns() - begin) / 1e3)
    return min(first), min(again)


def main() -> None:
    """Print a line for each size and way."""
    torch.set_num_threads(1)
    tokenizer = tokdfa.load_tokenizer("llama3")
    constraint = tokdfa.JsonSchema(
        SCHEMA, whitespace="compact", item_separator=", ", key_separator=": ", escapes="needed"
    )
    vocab = tokenizer.vocabulary
    ways: list[tuple[str, str, Callable[..., object]]] = [
        ("ours, one call", "pushdown_trie", tokdfa.fill_tree),
        ("ours, node by node", "pushdown_trie", node_by_node),
        ("xgrammar, its call", "xgrammar", lambda matcher, *tree: traverse(matcher.peer, *tree)),
        ("xgrammar, rollback", "xgrammar", tokdfa.fill_tree),
        ("llguidance, rollback", "llguidance", tokdfa.fill_tree),
    ]
    for levels in LEVELS:
        drafted, parents = draft(tokdfa.compile(constraint, vocab).start(), tokenizer.encode(TEXT), levels)
        out, known = (tokdfa.allocate_mask(vocab.size, len(drafted)) for _ in range(2))
        tokdfa.fill_tree(tokdfa.compile(constraint, vocab).start(), drafted, parents, known)
        for name, backend, fill in ways:
            compile_anew = partial(tokdfa.compile, constraint, vocab, backend)
            first, again = timed(compile_anew, fill, drafted, parents, out)
            same = int((out == known).all(axis=1).sum())
            print(f"{len(drafted):3} nodes  {name:22} {first:9.0f} us new {again:8.0f} us again  {same} masks as ours")


if __name__ == "__main__":
    main()

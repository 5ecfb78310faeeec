"""An excerpt of a token trie as a table: the flat layout, indented by depth (`tokdfa.vocabulary.trie`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.arguments import as_integer, as_text
from tokdfa.display.view import View, chip, label_of, table

if TYPE_CHECKING:
    from tokdfa.vocabulary.trie import TokenTrie


class TrieView(View):
    """The first `limit` nodes at and below `prefix` (the whole trie for b""), in the order of the layout.

    A row is a node: its place, its byte, what it spells, the token that ends there, and `next`, where a walk goes that
    cannot read the byte.
    """

    def __init__(self, trie: TokenTrie, prefix: bytes | str = b"", limit: int = 24) -> None:
        self.trie, self.limit = trie, as_integer(limit, "limit", 0)
        self.prefix = prefix if isinstance(prefix, bytes) else as_text(prefix, "prefix").encode()
        #: The nodes at and below the prefix, all of them.
        self.nodes = trie.span(self.prefix)

    def __repr__(self) -> str:
        below = f" below {label_of(self.prefix)}" if self.prefix else ""
        return f"TrieView({len(self.nodes):,} nodes{below})"

    def _body(self) -> str:
        trie, below = self.trie, f" at and below {chip(self.prefix)}" if self.prefix else ""
        head = f"<div>{len(self.nodes):,} of {trie.node_count:,} nodes{below}</div>"
        if not self.nodes:
            return head
        excerpt = trie.excerpt(self.prefix, self.limit)
        first = trie.depth(self.nodes.start)
        rows = []
        for node, (spelled, token) in zip(self.nodes, excerpt, strict=False):
            indent = f'<span style="padding-left: {1.2 * (trie.depth(node) - first):.1f}em"></span>'
            ends = f"{token:,}" if token >= 0 else ""
            rows.append((str(node), indent + chip(spelled[-1:]), chip(spelled), ends, str(trie.next(node))))
        if len(excerpt) < len(self.nodes):
            rows.append(("…", "", f"{len(self.nodes) - len(excerpt):,} more nodes", "", ""))
        return head + table(("node", "byte", "spells", "token", "next"), rows, numbers=(0, 3, 4))

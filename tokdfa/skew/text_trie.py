"""Some texts as an exact walk sees them: which tokens go on to one of them, and the proper sequence of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.vocabulary.vocabulary import Vocabulary


class TextTrie:
    """The trie of the texts' bytes, and the tokens that go on from each of its nodes."""

    def __init__(self, texts: tuple[bytes, ...], vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._children: list[dict[int, int]] = [{}]
        #: node -> index of the text that is complete there
        self.complete: dict[int, int] = {}
        #: node -> index of the one text that is there or goes on from there
        self.decided: dict[int, int] = {}
        self._following: dict[int, dict[int, int]] = {}
        through: dict[int, int] = {0: 0 if len(texts) == 1 else -1}
        for index, text in enumerate(texts):
            node = 0
            for byte in text:
                if byte not in self._children[node]:
                    self._children[node][byte] = len(self._children)
                    self._children.append({})
                node = self._children[node][byte]
                through[node] = -1 if node in through else index
            self.complete[node] = index
        self.decided = {node: index for node, index in through.items() if index >= 0}

    def following(self, node: int) -> dict[int, int]:
        """token -> node for every token whose bytes lead from `node` into the trie, in order of token."""
        if node not in self._following:
            self._following[node] = dict(sorted(self._walk(node)))
        return self._following[node]

    def _walk(self, node: int) -> Iterator[tuple[int, int]]:
        tokens = self._vocabulary.trie
        pending = [(node, -1)]
        while pending:
            text_node, token_node = pending.pop()
            onward = self._children[text_node]
            for child in tokens.children(token_node) if onward else ():
                reached = onward.get(tokens.byte(child))
                if reached is None:
                    continue
                if tokens.token(child) >= 0:
                    yield tokens.token(child), reached
                if tokens.next(child) > child + 1:
                    pending.append((reached, child))


def proper_sequences(
    vocabulary: Vocabulary, context: tuple[int, ...], texts: tuple[bytes, ...]
) -> list[tuple[int, ...] | None] | None:
    """The proper sequence of each text after `context`, None for a text without one; None without a tokenizer.

    It is what remains of the encoding of both together once the context's tokens are taken off. There is none if that
    encoding does not begin with them (the text merges with them, or they are not proper themselves), or if the text is
    not UTF-8. Only the context since its last token that spells nothing counts: no text reaches across that.
    """
    tokenizer = vocabulary.tokenizer
    if tokenizer is None:
        return None
    silent = [index for index, token in enumerate(context) if not vocabulary.token_bytes(token)]
    recent = context[silent[-1] + 1 :] if silent else context
    before = vocabulary.spell(recent)
    found: list[tuple[int, ...] | None] = []
    for text in texts:
        try:
            encoded = encode_exactly(tokenizer, vocabulary, (before + text).decode())
        except UnicodeDecodeError:
            encoded = None
        fits = encoded is not None and tuple(encoded[: len(recent)]) == recent
        found.append(tuple(encoded[len(recent) :]) if encoded is not None and fits else None)
    return found

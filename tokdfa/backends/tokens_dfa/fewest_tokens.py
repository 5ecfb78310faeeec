"""The spelling of a text in the fewest tokens: dynamic programming over its positions, along the token trie.

Let f(i) be the smallest number of tokens that spells a text from position i on; f(end) = 0 and

    f(i) = 1 + min f(i + n) over the lengths n of the tokens that begin at i.

The tokens that begin at i lie on one path of the trie. Going from the end to the front, each position walks that path
once and remembers the length n that it chose.

Which spelling, if several have the fewest tokens: the one whose first token is longest; among those the one whose
second token is longest, and so on. Of several ids with equal bytes the largest: in SentencePiece vocabularies the byte
tokens, which the tokenizer itself uses only as a last resort, come first and spell what later pieces spell, too. So the
answer is unique, and depends on nothing but the text and the vocabulary. It need not be what the tokenizer would have
produced.

Source: 001, part 5 ("coalescence": the smallest combination of tokens), which does not say how ties are broken.
Cost: bytes x longest token steps at worst; a descent passes the siblings of a node one by one, so a step is up to 256
reads, a few in practice: about 7 us a call and 0.15 us a byte with a real vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.vocabulary.division import next_node
from tokdfa.vocabulary.trie import TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: More tokens than any text needs: there is no spelling.
_UNSPELLED = np.int32(1 << 30)


def spell_in_fewest_tokens(texts: Sequence[bytes], vocab: Vocabulary) -> list[tuple[int, ...] | None]:
    """For each text the spelling with the fewest tokens, or None if no token sequence spells it.

    Ties are broken as the module's docstring says. Only tokens that spell something are used.
    """
    data = np.frombuffer(bytearray(b"".join(texts)) or bytearray(1), dtype=np.uint8)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    chosen, lengths = np.empty(len(data), dtype=np.int32), np.empty(len(data), dtype=np.int32)
    _spell_texts_kernel(vocab.trie.nodes, vocab.size, data, ends, chosen, lengths)
    spellings: list[tuple[int, ...] | None] = []
    for text, end in zip(texts, ends.tolist(), strict=True):
        position, tokens = end - len(text), []
        while position < end and chosen[position] >= 0:
            tokens.append(int(chosen[position]))
            position += int(lengths[position])
        spellings.append(tuple(tokens) if position == end else None)
    return spellings


@kernel
def _spell_texts_kernel(nodes, spare, texts, ends, chosen, lengths):  # type: ignore[no-untyped-def]
    """For each position of each text the first token of its best spelling (-1: none), and that token's length.

    Siblings with equal bytes ascend by id; the last of them has the children (see `tokdfa.vocabulary.trie`).
    """
    roots = np.full(256, len(nodes), dtype=np.int64)  # the first root with each byte
    node = np.int64(0)
    while node < len(nodes):
        byte = nodes[node] & np.uint64(0xFF)
        roots[byte] = min(roots[byte], node)
        node = next_node(nodes, node)
    fewest = np.empty(len(texts) + 1, dtype=np.int32)
    begin = np.int64(0)
    for end in ends:
        fewest[end] = 0
        for start in range(end - 1, begin - 1, -1):
            fewest[start] = _UNSPELLED
            chosen[start] = -1
            position = start
            node, stop = roots[texts[start]], np.int64(len(nodes))
            while node < stop:
                after = next_node(nodes, node)
                while after < stop and nodes[after] & np.uint64(0xFF) == texts[position]:
                    node = after
                    after = next_node(nodes, node)
                token = np.int64(nodes[node] >> np.uint64(TOKEN_SHIFT))
                position += 1
                count = fewest[position] + 1
                if token != spare and count <= fewest[start]:
                    fewest[start] = count
                    chosen[start] = token
                    lengths[start] = position - start
                if position == end:
                    break
                stop = after
                node += 1
                while node < stop and nodes[node] & np.uint64(0xFF) != texts[position]:
                    node = next_node(nodes, node)
        begin = end

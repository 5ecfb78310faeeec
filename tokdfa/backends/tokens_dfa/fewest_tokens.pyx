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
reads, a few in practice: about 0.1 us a byte with a real vocabulary.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.vocabulary.trie_nodes cimport TOKEN_SHIFT, FlatTrie, next_of


cdef enum:
    UNSPELLED = 1 << 30  # more tokens than any text needs: there is no spelling


def spell_in_fewest_tokens(texts, vocab):
    """For each text the spelling with the fewest tokens, or None if no token sequence spells it.

    Ties are broken as the module's docstring says. Only tokens that spell something are used.
    """
    cdef FlatTrie trie = vocab.trie.flat
    cdef vector[uint64_t] roots  # the first one with each byte
    cdef uint64_t node = 0
    roots.assign(256, trie.node_count)
    while node < trie.node_count:
        roots[trie.nodes[node] & 0xFF] = min(roots[trie.nodes[node] & 0xFF], node)
        node = next_of(trie.nodes[node])
    return [spell(text, trie, roots) for text in texts]


cdef object spell(bytes text, FlatTrie trie, const vector[uint64_t]& roots):
    """The best spelling of a text, or None."""
    cdef const uint8_t* letters = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef vector[int32_t] fewest   # tokens for what begins at each position
    cdef vector[int32_t] chosen   # the first of them
    cdef vector[size_t] follows   # where it ends
    cdef size_t end = len(text), start = 0
    fewest.assign(end + 1, UNSPELLED)
    fewest[end] = 0
    chosen.resize(end)
    follows.resize(end)
    for start in range(end, 0, -1):
        choose(letters, start - 1, end, trie, roots, fewest, &chosen[start - 1], &follows[start - 1])
    if fewest[0] == UNSPELLED:
        return None
    tokens, start = [], 0
    while start < end:
        tokens.append(chosen[start])
        start = follows[start]
    return tuple(tokens)


cdef int choose(
    const uint8_t* letters, size_t start, size_t end, FlatTrie trie, const vector[uint64_t]& roots,
    vector[int32_t]& fewest, int32_t* chosen, size_t* follows,
) noexcept:
    """Set `fewest` at `start`, and the token that comes first there, by one descent.

    Siblings with equal bytes ascend by id; the last of them has the children (see `tokdfa.vocabulary.trie`).
    """
    cdef uint64_t node = roots[letters[start]], stop = trie.node_count, after
    cdef size_t position = start
    while node < stop:
        after = next_of(trie.nodes[node])
        while after < stop and trie.nodes[after] & 0xFF == letters[position]:
            node, after = after, next_of(trie.nodes[after])
        position += 1
        if trie.nodes[node] >> TOKEN_SHIFT != <uint64_t>trie.size and fewest[position] < fewest[start]:
            fewest[start] = fewest[position] + 1
            chosen[0], follows[0] = <int32_t>(trie.nodes[node] >> TOKEN_SHIFT), position
        if position == end:
            break
        stop = after
        node += 1
        while node < stop and trie.nodes[node] & 0xFF != letters[position]:
            node = next_of(trie.nodes[node])
    return 0

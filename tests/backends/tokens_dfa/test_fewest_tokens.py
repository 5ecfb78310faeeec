from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa.backends.tokens_dfa.fewest_tokens import spell_in_fewest_tokens

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary


def best_spelling(text: bytes, vocab: Vocabulary) -> tuple[int, ...] | None:
    """Of all spellings: the fewest tokens, then the longest first ones, then the largest ids."""
    ids = {vocab.token_bytes(token): token for token in sorted(vocab.trie.order.tolist())}
    best: list[list[bytes] | None] = [[]]
    for start in range(len(text) - 1, -1, -1):
        ways = [
            [text[start:end], *rest]
            for end in range(start + 1, len(text) + 1)
            if text[start:end] in ids and (rest := best[len(text) - end]) is not None
        ]
        best.append(min(ways, key=lambda way: (len(way), [-len(piece) for piece in way]), default=None))
    found = best[-1]
    return None if found is None else tuple(ids[piece] for piece in found)


@given(vocabularies(), st.lists(st.lists(st.sampled_from(list(b"ab\x00\xff")), max_size=9).map(bytes), max_size=5))
def test_fewest_tokens_and_ties(vocab: Vocabulary, texts: list[bytes]) -> None:
    assert spell_in_fewest_tokens(texts, vocab) == [best_spelling(text, vocab) for text in texts]


def test_equal_bytes_are_spelled_by_the_largest_id() -> None:
    pieces = [b"a", b"ab", b"abc", b"c", b"\x00", b"x"]
    texts = [b"".join(chosen) for size in range(4) for chosen in itertools.product(pieces, repeat=size)]
    assert spell_in_fewest_tokens(texts, ODD) == [best_spelling(text, ODD) for text in texts]
    assert spell_in_fewest_tokens([b"ab", b"", b"x"], ODD) == [(4,), (), None]

"""Small vocabularies with every oddity, and a Hypothesis strategy for more."""

from __future__ import annotations

from hypothesis import strategies as st

from tokdfa.vocabulary.vocabulary import Vocabulary

#: Duplicates (ids 1 and 4), prefixes, a token that splits a character, padding, two end tokens, zero bytes.
ODD = Vocabulary(
    [b"a", b"ab", b"abc", b"", b"ab", b"\xc3", b"\xa9", "é".encode(), b"\x00", b"a\x00", b"b", b"\xff", b"", b"c"],
    end_tokens=[3, 12],
    special_tokens={3: "</s>", 12: "<eot>"},
    size=40,
    name="odd",
)


def vocabularies(alphabet: bytes = b"ab\x00\xff", max_tokens: int = 30) -> st.SearchStrategy[Vocabulary]:
    token = st.lists(st.sampled_from(list(alphabet)), max_size=12).map(bytes)
    return st.tuples(st.lists(token, max_size=max_tokens), st.integers(0, 70)).map(
        lambda drawn: Vocabulary([*drawn[0], b""], end_tokens=[len(drawn[0])], size=len(drawn[0]) + 1 + drawn[1])
    )

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.tokens_dfa.fewest_tokens import spell_in_fewest_tokens
from tokdfa.vocabulary.vocabulary import Vocabulary


def all_spellings(text: bytes, vocab: Vocabulary) -> list[tuple[int, ...]]:
    if not text:
        return [()]
    found = []
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if spelled and text.startswith(spelled):
            found += [(token, *rest) for rest in all_spellings(text[len(spelled) :], vocab)]
    return found


@settings(max_examples=300)
@given(
    vocabularies(b"ab", max_tokens=12),
    st.lists(st.lists(st.sampled_from(list(b"ab")), max_size=7).map(bytes), max_size=4),
)
def test_best_of_all_spellings(vocab: Vocabulary, texts: list[bytes]) -> None:
    def rank(tokens: tuple[int, ...]) -> tuple:
        return len(tokens), [-len(vocab.token_bytes(token)) for token in tokens], [-token for token in tokens]

    expected = [min(all_spellings(text, vocab), key=rank, default=None) for text in texts]
    assert spell_in_fewest_tokens(texts, vocab) == expected


def test_a_long_text() -> None:
    vocab = Vocabulary([b"a", b"a" * 30, b""], end_tokens=[2])
    (found,) = spell_in_fewest_tokens([b"a" * 100_000], vocab)
    assert found == (1,) * 3333 + (0,) * 10

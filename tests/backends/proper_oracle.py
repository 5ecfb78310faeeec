"""What a backend of proper sequences must allow, told by the reference libraries' own encoders.

For a finite language everything is known: encode every text; after a sequence of tokens exactly those tokens may come
next that come next in an encoding, and the text may end iff the sequence is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.walks import mask_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

END = -1


def allowed(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    """The tokens of the mask, END for the end tokens."""
    tokens = set(mask_of(matcher))
    ends = set(vocabulary.end_tokens)
    assert tokens & ends in (set(), ends)
    assert bool(tokens & ends) == matcher.can_end()
    return (tokens - ends) | ({END} if tokens & ends else set())


def check_sequences(
    compiled: CompiledConstraint,
    vocabulary: Vocabulary,
    sequences: Iterable[Sequence[int]],
    context: Sequence[int] = (),
) -> int:
    """AssertionError unless exactly `sequences` are accepted after `context`, without a dead end; returns how many
    masks were compared.
    """
    following: dict[tuple[int, ...], set[int]] = {(): set()}
    for sequence in sequences:
        for length in range(len(sequence) + 1):
            token = sequence[length] if length < len(sequence) else END
            following.setdefault(tuple(sequence[:length]), set()).add(token)
    for prefix, expected in following.items():
        matcher = compiled.start(context)
        for token in prefix:
            assert matcher.allows(token), (prefix, token)
            matcher.advance(token)
        found = allowed(matcher, vocabulary)
        spelled = [vocabulary.token_bytes(token) for token in prefix]
        assert found == expected, (
            f"after {prefix} {spelled}: allowed {found - expected} too many, {expected - found} lack"
        )
    return len(following)


def accepted(compiled: CompiledConstraint, longest: int = 1_000, context: Sequence[int] = ()) -> set[tuple[int, ...]]:
    """The sequences of at most `longest` bytes that may end, by masks alone; AssertionError at a dead end."""
    vocabulary, found = compiled.vocab, set()
    agenda: list[tuple[tuple[int, ...], Matcher]] = [((), compiled.start(context))]
    while agenda:
        tokens, here = agenda.pop()
        following = allowed(here, vocabulary)
        assert following, f"a dead end after {tokens}"
        if END in following:
            found.add(tokens)
        for token in following - {END}:
            if len(vocabulary.spell((*tokens, token))) <= longest:
                ahead = here.fork()
                ahead.advance(token)
                agenda.append(((*tokens, token), ahead))
    return found


def check_texts(compiled: CompiledConstraint, tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """`check_sequences` for the encodings of `texts`, all texts of the constraint."""
    return check_sequences(compiled, tokenizer.vocabulary, [tokenizer.encode(text) for text in texts])


@st.composite
def merge_pairs(draw: st.DrawFn, letters: str = "ab", longest: int = 6) -> list[tuple[str, str]]:
    """A merge list over `letters` in any order, so that some ranks do not rise along derivations."""
    texts = list(letters)
    pairs: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(1, 12))):
        pair = draw(st.sampled_from(texts)), draw(st.sampled_from(texts))
        if pair not in pairs and len("".join(pair)) <= longest:
            pairs.append(pair)
            if "".join(pair) not in texts:
                texts.append("".join(pair))
    return list(draw(st.permutations(pairs))) if draw(st.booleans()) else pairs


def piece_texts(letters: str = "ab", longest: int = 5) -> st.SearchStrategy[list[str]]:
    """The texts of the tokens of a ranked vocabulary, in order of rank."""
    return st.lists(st.text(letters, min_size=2, max_size=longest), min_size=1, max_size=12, unique=True)


def words(letters: str = "ab", longest: int = 8) -> st.SearchStrategy[list[str]]:
    """A finite language."""
    return st.lists(st.text(letters, min_size=0, max_size=longest), min_size=1, max_size=8, unique=True)

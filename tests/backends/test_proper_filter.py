"""The filter, exact and with look-ahead, against CartesianMerge and the list of encodings."""

from __future__ import annotations

import pytest

from tests.backends.proper_oracle import allowed, check_texts
from tokdfa.backends.earley_trie.strategy import EarleyTrie
from tokdfa.backends.matcher_situations import MatcherSituations
from tokdfa.backends.numbered_states import NumberedMatcher
from tokdfa.backends.proper import ProperFilter, proper_texts
from tokdfa.backends.proper_liveness import ProperLiveness
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge, CartesianMergeMatcher
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.backends.token_index import TokenIndex
from tokdfa.backends.tokens_dfa.strategy import TokensDfa
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import OptionError, UnsupportedConstraint
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

TEXTS = [
    *("boolean: true", "boolean: false", "It is", "It's", "don't", "  x", " x"),
    *("12345", "1234", "aaaa", "naïve", "日本"),
]


def filtered(text: NumberedMatcher, proper: CartesianMergeMatcher, lookahead: int) -> ProperFilter:
    liveness = ProperLiveness(MatcherSituations(text), proper.states, lookahead) if lookahead else None
    return ProperFilter(text, proper, liveness)


def test_tokens_dfa_with_proper_honours_the_context() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    compiled = TokensDfa(tokenizer.vocabulary, proper=True).compile(Regex("[a-z]{1,8}"))
    context = tokenizer.encode("boolean: t")
    found = allowed(compiled.start(context), tokenizer.vocabulary)
    plain = allowed(
        CartesianMerge(tokenizer.vocabulary).compile(Regex("[a-z]{1,8}")).start(context), tokenizer.vocabulary
    )
    assert found == plain
    assert tokenizer.encode("rue")[0] not in found


def test_tokens_dfa_refuses_proper_where_it_makes_no_sense() -> None:
    vocabulary = Vocabulary([b"a", b""], end_tokens=[1])
    with pytest.raises(UnsupportedConstraint, match="needs a tokenizer"):
        TokensDfa(vocabulary, proper=True).compile(Regex("a"))
    with pytest.raises(OptionError, match="choose one"):
        TokensDfa(vocabulary, proper=True, mute_literals=True)


@pytest.mark.parametrize("name", ["llama3", "tekken"])
def test_lookahead_as_long_as_the_texts_is_exact(name: str) -> None:
    """The proper sequences of all texts beside an index that knows nothing of them: as for a context-free strategy."""
    tokenizer = load_tokenizer(name)
    vocabulary = tokenizer.vocabulary
    text = TokenIndex(vocabulary).compile(Choice(TEXTS))
    proper = proper_texts(vocabulary)

    class Filtered:
        def start(self, context: tuple[int, ...] = ()) -> ProperFilter:
            one, other = text.start(), proper.start(context)
            assert isinstance(one, NumberedMatcher)
            assert isinstance(other, CartesianMergeMatcher)
            return filtered(one, other, 20)

    check_texts(Filtered(), tokenizer, TEXTS)  # type: ignore[arg-type]


def test_too_short_a_lookahead_sees_no_dead_end_within_it() -> None:
    tokenizer = load_tokenizer("llama3")
    vocabulary = tokenizer.vocabulary
    text, proper = (
        TokenIndex(vocabulary).compile(Choice(TEXTS)).start(),
        proper_texts(vocabulary).start(),
    )
    assert isinstance(text, NumberedMatcher)
    assert isinstance(proper, CartesianMergeMatcher)
    counts = [len(allowed(filtered(text, proper, lookahead), vocabulary)) for lookahead in (0, 1, 2, 8)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] > 0


def test_without_pre_tokenizer_what_may_not_go_on_is_refused() -> None:
    """U+2581 stands for a space in Mistral v1."""
    backend = EarleyTrie(load_tokenizer("mistral-v1").vocabulary, proper=True)
    with pytest.raises(UnsupportedConstraint, match="has no pre-tokenizer"):
        backend.compile(Grammar('start: "a" | "\u2581"'))


@pytest.mark.parametrize("strategy", [EarleyTrie, PushdownTrie])
def test_special_tokens_are_refused(strategy: type[EarleyTrie | PushdownTrie]) -> None:
    backend = strategy(load_tokenizer("llama3").vocabulary, proper=True)
    with pytest.raises(UnsupportedConstraint, match=r"has the special token .*eot_id"):
        backend.compile(Grammar('start: "a" (<|eot_id|> | "b")'))

from __future__ import annotations

import pytest

from tokdfa import mask as masks
from tokdfa.backends.token_index import ExplicitTokenIndex, LazyTokenIndex, TokenIndex
from tokdfa.constraint import Regex
from tokdfa.errors import (
    LimitExceeded,
    VocabularyCannotSpell,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

SMALL = Vocabulary([b"a", b"b", b"c", b"ab", b"bc", b"abc", b"ca", b""], end_tokens=[7], name="small")
PATTERNS = ["(ab|c)*", "a(b|c){2,3}", "[abc]{0,4}abc", "abc|ab|a", "(a|b)*abb", "((ab)?c)+"]


class TestAgainstOutlinesCore:
    """The same index as the library that this strategy comes from, state by state, on vocabularies both can take.

    One difference, found here: outlines-core leaves out a token whose last byte leads from an accepting state to one
    that is not (its automaton reports a match one byte late, and takes the report for the new state's). So it refuses
    ``a`` at the start of ``(ab|c)*``. The test says exactly which tokens it leaves out, and that there are no others.
    """

    @pytest.mark.parametrize("pattern", [*PATTERNS, r"[a-z]+@[a-z]+\.com", r"[^b]*", "é+|[ab]"])
    def test_transitions(self, pattern: str) -> None:
        import outlines_core

        extra = [bytes([byte]) for byte in b"@.omz\xc3\xa9"] + ["é".encode(), b"a@", b".com"]
        tokens = [SMALL.token_bytes(token) for token in range(7)] + extra
        vocab = Vocabulary([*tokens, b""], end_tokens=[len(tokens)])
        theirs = outlines_core.Index(
            pattern, outlines_core.Vocabulary(len(tokens), {text: [number] for number, text in enumerate(tokens)})
        )
        ours = TokenIndex(vocab, minimal=False).compile(Regex(pattern))
        assert isinstance(ours, ExplicitTokenIndex)
        table = theirs.get_transitions()
        texts = {(0, theirs.get_initial_state()): b""}
        agenda = list(texts)
        while agenda:
            state, other = agenda.pop()
            text = texts[state, other]
            row = {token: target for token, target in table.get(other, {}).items() if token != len(tokens)}
            expected = ours.transitions(state)
            late = {
                token
                for token, target in expected.items()
                if ours.dfa.accepts(text + tokens[token][:-1]) and not ours.accepts(target)
            }
            assert set(row) == set(expected) - late, (pattern, text)
            assert ours.accepts(state) == theirs.is_final_state(other)
            for token, target in row.items():
                if (expected[token], target) not in texts:
                    texts[expected[token], target] = text + tokens[token]
                    agenda.append((expected[token], target))
        assert len(texts) > 1


class TestBadInput:
    def test_missing_bytes_are_named(self) -> None:
        with pytest.raises(VocabularyCannotSpell, match=r"0x78 \('x'\)") as caught:
            TokenIndex(SMALL).compile(Regex("a(x|yz)"))
        assert caught.value.missing == b"x"

    @pytest.mark.parametrize("pattern", ["(?:(?:a|b){0,1000}c?){0,1000}", "(?:a|b)*a(?:a|b){30}"])
    def test_enormous_automata_are_refused_or_lazy(self, pattern: str) -> None:
        with pytest.raises(LimitExceeded):
            TokenIndex(SMALL, max_states=20_000).compile(Regex(pattern))
        matcher = TokenIndex(SMALL, lazy=True).compile(Regex(pattern)).start()
        mask = masks.allocate_mask(SMALL.size)
        for _ in range(20):
            matcher.fill_mask(mask)
            matcher.advance(0)
        assert masks.count(mask) > 1

    def test_limits_are_options(self) -> None:
        with pytest.raises(LimitExceeded, match=r"more than 10 states.*lazy=True"):
            TokenIndex(SMALL, max_states=10).compile(Regex("a{50}"))
        with pytest.raises(LimitExceeded, match=r"transitions.*lazy=True"):
            TokenIndex(SMALL, max_transitions=100).compile(Regex("[abc]{50}"))


def test_lazy_falls_back_where_tokens_decide_liveness() -> None:
    vocab = Vocabulary([b"ab", b"a", b""], end_tokens=[2])
    compiled = TokenIndex(vocab, lazy=True).compile(Regex("(ab)*"))
    assert isinstance(compiled, ExplicitTokenIndex)
    assert not compiled.start().allows(1)  # "a" could only go on with a token for "b"
    assert isinstance(TokenIndex(SMALL, lazy=True).compile(Regex("(ab)*")), LazyTokenIndex)

"""Divisions by the states of terminals, of each kind, against a plain reading of every token."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import read_states, terminal_of
from tests.grammar.small_regexes import small_regexes
from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.pushdown_trie.items import ALONE, OWN, STRICT
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.state_table import ACCEPTS, ENDS
from tokdfa.grammar import lexeme_automata
from tokdfa.masks.divisions import WHOLE
from tokdfa.vocabulary.vocabulary import Vocabulary

REST, BEHIND = range(2)


def read_plainly(automata, state, kind, text):
    """What a state makes of a text: "inside", "refused", or a tag."""
    ends = 0  # how often it has been complete
    for place, byte in enumerate(text):
        after = read_states(automata, state, [byte])
        if after >= 0:
            automata.fill_rows([after])  # with which its flags are known
        accepts = after >= 0 and bool(automata.flags[after] & ACCEPTS)
        if after >= 0 and not (accepts and kind & STRICT):
            ends, state = ends + accepts, after
            continue
        if kind & OWN and place == 0:
            return "refused"
        if kind & ALONE and not ends and after < 0:
            return "refused"
        once = ends == 1 and automata.flags[state] & ACCEPTS and automata.flags[state] & ENDS
        return BEHIND if kind & ALONE and after < 0 and once else REST
    return "inside"


@pytest.mark.parametrize("explicit", [2_000, 0], ids=["explicit", "lazy"])
def test_divisions_are_what_reading_each_token_says(explicit, monkeypatch):
    monkeypatch.setattr(lexeme_automata, "EXPLICIT_STATES", explicit)
    seen = set()

    @settings(max_examples=80)
    @given(small_regexes(), vocabularies(b"abc", 30), st.sampled_from([0, STRICT, ALONE, STRICT | ALONE, OWN]))
    @example("ab", Vocabulary([b"a", b"ab", b"abc", b"aba", b"c", b""], end_tokens=[5]), ALONE)
    def check(pattern, vocab, kind):
        builder = Pool(vocab).masks
        automata = builder.automata
        state = automata.class_of(automata.start_of(terminal_of(pattern)))
        builder.divide_now(state | kind)
        inside, left = builder.divisions.view(WHOLE, state | kind)
        expected = defaultdict(list)
        for token in range(vocab.size):
            text = vocab.token_bytes(token)
            if text:
                expected[read_plainly(automata, state, kind, text)].append(token)
        assert inside == expected["inside"]
        assert {tag: builder.divisions.tokens_left(rest) for tag, rest in left} == {
            tag: tokens for tag, tokens in expected.items() if tag in (REST, BEHIND)
        }
        seen.update(expected)

    check()
    assert seen >= {"inside", "refused", REST, BEHIND}

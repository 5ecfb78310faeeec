"""The loops over cuts and rests, against their definitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.cfg_fsm.cuts import join_pairs, multiply, run_rests
from tokdfa.backends.cfg_fsm.regex_fsm import pack
from tokdfa.backends.cfg_fsm.splits import SplitTable

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

flags = st.integers(0, 300).flatmap(
    lambda size: st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 150)), min_size=size, max_size=size)
)


@given(flags, st.integers(0, 2**32))
def test_products_mark_the_labels_of_common_cuts(cuts: list[tuple[bool, bool, int]], marked: int) -> None:
    prefixes, suffixes = (pack(np.array([cut[place] for cut in cuts], dtype=np.bool_)) for place in (0, 1))
    out = np.array([marked, 0, 0], dtype=np.uint64)
    multiply(prefixes, suffixes, np.array([label for *_, label in cuts], dtype=np.int32), out)
    expected = {label for prefix, suffix, label in cuts if prefix and suffix}
    expected |= {bit for bit in range(64) if marked >> bit & 1}
    assert {bit for bit in range(192) if int(out[bit // 64]) >> bit % 64 & 1} == expected


@st.composite
def lexers(draw: st.DrawFn) -> SimpleNamespace:
    """Automata of two byte classes with outcomes."""
    states = draw(st.integers(1, 6))
    rows = st.lists(st.integers(-1, states - 1), min_size=2, max_size=2)
    outcomes = st.lists(st.integers(-1, 2), min_size=states, max_size=states)
    byte_class = np.zeros(256, dtype=np.uint8)
    byte_class[list(draw(st.binary(max_size=4)) + b"a")] = 1
    table = draw(st.lists(rows, min_size=states, max_size=states))
    return SimpleNamespace(
        transitions=np.array(table, dtype=np.int32),
        byte_class=byte_class,
        outcome_of=np.array(draw(outcomes), dtype=np.int32),
    )


def states_of(lexer: SimpleNamespace, state: int, text: bytes) -> list[int]:
    """The state after each prefix of a text, as far as it goes."""
    found = [state]
    for byte in text:
        found.append(int(lexer.transitions[found[-1], lexer.byte_class[byte]]))
        if found[-1] < 0:
            return found[:-1]
    return found


@given(vocabularies(), lexers(), st.data())
def test_vectors_say_what_a_state_makes_of_each_rest(vocab: Vocabulary, lexer: SimpleNamespace, data) -> None:
    table = SplitTable(vocab)
    state = data.draw(st.integers(0, len(lexer.outcome_of) - 1))
    after, begins, outcomes, rests = vectors = run_rests(table, lexer, state)
    tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
    texts = sorted({token[begin:] for token in tokens for begin in range(len(token))})
    number = {text: k for k, text in enumerate(texts)}
    exits = []
    for k, text in enumerate(texts):
        passed = states_of(lexer, state, text)
        assert after[k] == (passed[-1] if len(passed) > len(text) else -1)
        ends = range(1, min(len(passed), len(text)))
        exits.append([(int(lexer.outcome_of[passed[end]]), number[text[end:]]) for end in ends])
        exits[-1] = [pair for pair in exits[-1] if pair[0] >= 0]
        place = slice(begins[k], begins[k + 1])
        assert list(zip(outcomes[place].tolist(), rests[place].tolist(), strict=True)) == exits[-1]

    class_of = np.array(data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6)), dtype=np.uint16)
    pairs = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=20)) if texts else []
    ids = np.arange(len(pairs), dtype=np.int32) * 7
    class_ends, inside, outcome_ends, left, further = join_pairs(
        vectors, class_of, 4, 3, ids, np.array(pairs, dtype=np.int32)
    )
    staying = [[id for id, k in zip(ids.tolist(), pairs, strict=True) if after[k] >= 0 and class_of[after[k]] == kind]
               for kind in range(4)]  # fmt: skip
    leaving = [[(id, rest) for id, k in zip(ids.tolist(), pairs, strict=True) for ends, rest in exits[k]
                if ends == outcome] for outcome in range(3)]  # fmt: skip
    assert [part.tolist() for part in np.split(inside, class_ends[:-1])] == staying
    assert class_ends[-1] == len(inside)
    found = list(zip(left.tolist(), further.tolist(), strict=True))
    assert [found[begin:end] for begin, end in zip([0, *outcome_ends], outcome_ends, strict=False)] == leaving

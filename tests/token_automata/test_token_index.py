from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.constraint import Choice
from tokdfa.errors import LimitExceeded
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.token_index import TokenTable, build_token_table
from tokdfa.vocabulary.vocabulary import Vocabulary

texts = st.sets(st.lists(st.sampled_from(list(b"ab\x00\xff")), max_size=6).map(bytes), min_size=1)


def rows(vocab: Vocabulary, table: TokenTable) -> list[dict[int, int]]:
    found = []
    for begin, end in zip(table.offsets[:-1], table.offsets[1:], strict=True):
        tokens = vocab.trie.order[table.ranks[begin:end]].tolist()
        found.append(dict(zip(tokens, table.targets[begin:end].tolist(), strict=True)))
    return found


@given(vocabularies(), texts)
def test_rows_are_what_running_the_bytes_gives(vocab: Vocabulary, language: set[bytes]) -> None:
    dfa = compile_dfa(Choice(language))
    for by_trie in (True, False):
        table = build_token_table(vocab, dfa, by_trie=by_trie)
        assert table.dfa_states[0] == dfa.start
        found = rows(vocab, table)
        number = {int(state): place for place, state in enumerate(table.dfa_states)}
        assert len(number) == len(found)
        for place, row in enumerate(found):
            expected = {}
            for token in range(vocab.size):
                spelled = vocab.token_bytes(token)
                reached = dfa.run(spelled, int(table.dfa_states[place])) if spelled else -1
                if reached >= 0:
                    expected[token] = number[reached]
            assert row == expected
            for token in range(vocab.size):
                rank = int(vocab.trie.rank_of[token])
                assert table.look_up(place, rank) == expected.get(token, -1)


def test_keep_and_compact() -> None:
    vocab = Vocabulary([b"a", b"b", b"ab", b""], end_tokens=[3])
    table = build_token_table(vocab, compile_dfa(Choice(["aab", "ab", "b"])))
    live = np.ones(len(table.dfa_states), dtype=np.bool_)
    assert rows(vocab, table.keep(live)) == rows(vocab, table) == rows(vocab, table.compact())
    assert table.compact().targets.dtype == np.uint16
    live[-1] = False
    expected = [{t: to for t, to in row.items() if to != len(live) - 1} for row in rows(vocab, table)]
    assert rows(vocab, table.keep(live)) == expected


def test_limit() -> None:
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
    with pytest.raises(LimitExceeded, match="lazy=True"):
        build_token_table(vocab, compile_dfa(Choice(["x" * 50])), max_entries=10)

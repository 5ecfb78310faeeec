"""Columns, transformations, prefix graphs, their parallel form: each against running every token from every state."""

from __future__ import annotations

import itertools
import random
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.tokens_dfa.transformations import transformations
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.columns import Columns, join, unite
from tokdfa.token_automata.parallel import run_in_threads, split_trie
from tokdfa.token_automata.prefix_graphs import build_prefix_graphs, bytes_alive, walk_graphs
from tokdfa.token_automata.token_index import build_token_table
from tokdfa.vocabulary.vocabulary import Vocabulary

tables = st.integers(1, 6).flatmap(
    lambda states: st.lists(
        st.lists(st.integers(-1, states - 1), min_size=4, max_size=4), min_size=states, max_size=states
    )
)
both = st.booleans()


def automaton(table: list[list[int]]) -> Dfa:
    """Columns for the bytes a, b and 0; the last for all others."""
    byte_class = np.full(256, 3, dtype=np.uint8)
    byte_class[[97, 98, 0]] = 0, 1, 2
    return Dfa(np.array(table, dtype=np.int32), byte_class, np.ones(len(table), dtype=np.bool_), 0)


def pairs_by_rank(columns: Columns) -> dict[int, tuple[tuple[int, int], ...]]:
    found = {}
    for rank, token_class in zip(columns.ranks.tolist(), columns.class_of.tolist(), strict=True):
        part = slice(*columns.offsets[token_class : token_class + 2].tolist())
        found[rank] = tuple(zip(columns.sources[part].tolist(), columns.targets[part].tolist(), strict=True))
    return found


def expected_pairs(vocab: Vocabulary, dfa: Dfa) -> dict[int, tuple[tuple[int, int], ...]]:
    """rank -> (state, state after the token) for the states that take the token."""
    found = {}
    for rank, token in enumerate(vocab.trie.order.tolist()):
        reached = ((state, dfa.run(vocab.token_bytes(token), state)) for state in range(dfa.state_count))
        found[rank] = tuple((state, target) for state, target in reached if target >= 0)
    return found


def steps_taken(strings: list[bytes], table: np.ndarray, shared: bool) -> int:
    """Look-ups in the table from all states, each string by itself or each beginning of one once."""
    taken = 0
    for state in range(len(table)):
        begun: set[bytes] = set()
        for string in strings:
            here = state
            for place, letter in enumerate(string):
                taken += not (shared and string[: place + 1] in begun)
                begun.add(string[: place + 1])
                here = int(table[here, letter])
                if here < 0:
                    break
    return taken


def numbered_by_first_token(columns: Columns) -> bool:
    return list(dict.fromkeys(columns.class_of.tolist())) == list(range(columns.class_count))


@given(vocabularies(), tables, both, st.integers(1, 4))
def test_transformations(vocab: Vocabulary, table: list[list[int]], byte_classes: bool, threads: int) -> None:
    dfa = automaton(table)
    columns = transformations(vocab.trie, dfa, byte_classes=byte_classes, threads=threads)
    expected = {rank: pairs for rank, pairs in expected_pairs(vocab, dfa).items() if pairs}
    assert pairs_by_rank(columns) == expected
    assert columns.class_count == len(set(expected.values()))  # the coarsest classes there are
    assert numbered_by_first_token(columns)
    assert (np.diff(columns.ranks) > 0).all()


@given(vocabularies(), tables, both, both, both, both, st.integers(1, 4))
def test_prefix_graphs(
    vocab: Vocabulary, table: list[list[int]], dead: bool, by_class: bool, merge: bool, shared: bool, parts: int
) -> None:
    dfa = automaton(table)
    alive = bytes_alive(dfa)
    states = range(dfa.state_count)
    assert alive.tolist() == [any(dfa.step(state, byte) >= 0 for state in states) for byte in range(256)]
    spelled = [vocab.token_bytes(token) for token in vocab.trie.order.tolist()]
    letters = dfa.byte_class if by_class else np.arange(256)
    expected = expected_pairs(vocab, dfa)
    found = []
    for part in split_trie(vocab.trie.ranked_nodes, len(vocab.trie.order), parts):
        graphs = build_prefix_graphs(vocab.trie, dfa, part, dead_bytes=dead, byte_classes=by_class, merge=merge)
        ranks = range(part.first_rank, part.end_rank)
        kept = [rank for rank in ranks if not dead or all(alive[byte] for byte in spelled[rank])]
        assert graphs.ranks.tolist() == kept
        data, offsets = graphs.strings()
        strings = [bytes(data[begin:end]) for begin, end in itertools.pairwise(offsets.tolist())]
        for rank, token_class in zip(kept, graphs.class_of.tolist(), strict=True):
            assert strings[token_class] == bytes(int(letters[byte]) for byte in spelled[rank])
        assert graphs.class_count == (len(set(strings)) if merge else len(kept))
        columns, steps = walk_graphs(graphs, dfa, byte_classes=by_class, prefix_graphs=shared)
        if not shared or (merge and parts == 1):  # a part has beginnings of tokens of the next one, too
            assert steps == steps_taken(strings, dfa.transitions if by_class else dfa.byte_table(), shared)
        found.append(columns)
        assert pairs_by_rank(found[-1]) == {rank: expected[rank] for rank in kept}
    assert pairs_by_rank(join(found)) == {rank: pairs for one in found for rank, pairs in pairs_by_rank(one).items()}
    for united, wanted in zip(unite(found), transformations(vocab.trie, dfa), strict=True):
        assert np.array_equal(united, wanted)


def test_many_columns_and_pairs() -> None:
    dfa = compile_dfa(Regex("[ab]{0,900}|a?b{3}"))
    vocab = Vocabulary([b"a" * n + b"b" * m for n in range(20) for m in range(30) if n + m] + [b""], end_tokens=[599])
    columns = transformations(vocab.trie, dfa)
    assert pairs_by_rank(columns) == {r: p for r, p in expected_pairs(vocab, dfa).items() if p}
    assert len(columns.sources) > 40_000


def test_threads_at_once_find_what_each_finds_alone() -> None:
    """Some milliseconds of work each, so that they overlap: rows, columns and counts of steps are nobody else's."""
    rng = random.Random(0)
    tokens = {bytes(rng.choices(b"abcde", k=rng.randint(1, 9))) for _ in range(20_000)}
    vocab = Vocabulary([*sorted(tokens), b""], end_tokens=[len(tokens)])
    dfas = [compile_dfa(Regex(pattern)) for pattern in ("([a-c]|d[de]){1,40}", "(a|b[^b]|[c-e]{3})*")]
    jobs = [partial(build_token_table, vocab, dfa, by_trie=by_trie) for dfa in dfas for by_trie in (True, False)]
    parts = split_trie(vocab.trie.ranked_nodes, len(vocab.trie.order), 2)
    for dfa in dfas:
        graphs = [build_prefix_graphs(vocab.trie, dfa, part) for part in parts]
        jobs += [partial(walk_graphs, one, dfa, prefix_graphs=shared) for one in graphs for shared in (True, False)]
        jobs += [partial(build_prefix_graphs, vocab.trie, dfa, part) for part in parts]
    alone = [job() for job in jobs]
    for _ in range(100):
        one, other = rng.choices(range(len(jobs)), k=2)
        assert same(run_in_threads([jobs[one], jobs[other]]), [alone[one], alone[other]])


def same(one: object, other: object) -> bool:
    """Whether results are equal, array by array."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return all(itertools.starmap(same, zip(one, other, strict=True)))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other

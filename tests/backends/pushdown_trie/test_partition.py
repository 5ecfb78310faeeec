"""Partitions against their definition: token by token, which stay inside, and whether the rest is a trie of others."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import BYTES
from tests.grammar.small_regexes import small_regexes
from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa.backends.pushdown_trie import partition
from tokdfa.backends.pushdown_trie.arrays import ALONE, OWN, STRICT, find_partition
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.constraint import Regex
from tokdfa.program import lower
from tokdfa.program.lower import lower_regular
from tokdfa.vocabulary import division
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.walk import DEAD, UNKNOWN


def start_of(states, pattern):
    return states.automata.start_of(lower_regular(Regex(pattern)).terminals[0])


def target(states, state, data):
    """The state after bytes, rows being made on the way."""
    for byte in data:
        if states.automata.transitions[state * 256] == UNKNOWN:
            states.automata.fill_rows([state])
        state = int(states.automata.transitions[state * 256 + byte])
        if state < 0:
            return DEAD
    return state


def number_of(states, place, state):
    """The number of a partition, which the states of a class share; -1 if there is none."""
    chosen = int(states.automata.partition_class[state])
    return int(find_partition(place, chosen, states.arrays)) if chosen >= 0 else -1


def found(states, place, state):
    """(tokens inside, [(token, its bytes below the place)] of the rest, nodes of the rest) of a partition."""
    parts = states.partitions
    number = number_of(states, place, state)
    assert number >= 0
    if parts.part_dense[number] >= 0:
        row = parts.dense[parts.part_dense[number]]
        inside = [token for token in range(32 * len(row)) if int(row[token >> 5]) >> (token & 31) & 1]
    else:
        begin, end = parts.part_ids[number].tolist()
        inside = sorted(parts.ids[begin:end].tolist())
    begin, end = parts.part_nodes[number].tolist()
    nodes = parts.nodes[begin:end].tolist()
    path, rest = [], []
    for here, node in enumerate(nodes):
        depth = node >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1
        following = node >> NEXT_SHIFT & MAX_NODES
        assert depth <= len(path)
        assert here < following <= len(nodes)
        if following < len(nodes):
            assert nodes[following] >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1 <= depth
        path[depth:] = [node & 0xFF]
        if node >> TOKEN_SHIFT != parts.trie.size:
            rest.append((node >> TOKEN_SHIFT, bytes(path)))
    return inside, rest, len(nodes)


def check_partition(states, vocab, state, place=0, above=b""):
    """Compare with what each token says by itself; `above`: the bytes of the place.

    A slice may stand in for the partition: then some that stay inside are left to the rest.
    """
    states.divide(place, state)
    inside, rest, nodes = found(states, place, state)
    slices = {made.part for made in states.slices.made} if place == 0 else set()
    tokens = {token: vocab.token_bytes(token) for token in vocab.trie.order.tolist()}
    below = {token: data[len(above) :] for token, data in tokens.items() if data.startswith(above) and data != above}
    stays = {token: target(states, state, data) >= 0 for token, data in below.items()}
    staying = sorted(token for token, stay in stays.items() if stay)
    if number_of(states, place, state) in slices:
        assert set(inside) < set(staying) or inside == staying
        staying = inside
    assert inside == staying
    left = below.keys() - set(staying)
    assert sorted(rest) == sorted((token, below[token]) for token in left)
    assert nodes <= sum(len(data) for _, data in rest)
    return len(inside), len(rest)


PATTERNS = ['"[^"]*"', "[a-z]+", "[ab]*c?", "(ab)*", "[^a]+", "x{0,100000}y", "(.|\\n)*", "ab|abc", "[a-z ]{3,5000}"]


@pytest.mark.parametrize("dense", [0, 1_024])
@pytest.mark.parametrize("explicit", [0, 2_000])
def test_small_vocabularies(explicit, dense, monkeypatch):
    """Explicit and lazy automata; tokens kept as words and as lists; duplicates, padding, zero bytes."""
    monkeypatch.setattr(lower, "EXPLICIT_STATES", explicit)
    monkeypatch.setattr(partition, "DENSE", dense)
    seen = set()

    @settings(max_examples=30)
    @given(vocabularies(b"abc", 40), small_regexes())
    def check(vocab, pattern):
        states = Pool(vocab)
        inside, rest = check_partition(states, vocab, start_of(states, pattern))
        seen.add((inside > 0, rest > 0))

    check()
    assert len(seen) >= 3
    for pattern in PATTERNS:
        states = Pool(ODD)
        check_partition(states, ODD, start_of(states, pattern))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_real_vocabulary(pattern):
    """The whole trie from the first state and from one inside, and below twenty nodes of it."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    states, rng = Pool(vocab), random.Random(1)
    start = start_of(states, pattern)
    check_partition(states, vocab, start)
    inside = [state for byte in b'"abx' if (state := target(states, start, bytes([byte]))) >= 0]
    for state in inside[:1]:
        check_partition(states, vocab, state)
    trie = vocab.trie
    large = [node for node in range(trie.node_count) if trie.next(node) - node > 50]
    for node in rng.sample(large, 3):
        token = max(trie.token(other) for other in range(node, trie.next(node)))
        above = vocab.token_bytes(token)[: trie.depth(node) + 1]
        check_partition(states, vocab, start, node + 1, above)


def test_places_of_rests():
    """A partition below a node of another one's rest: that node's bytes are counted from the rest's own beginning."""
    vocab = Vocabulary(
        [*(f"{a}{b}{c}{d}".encode() for a in "ab" for b in "ab" for c in "abc" for d in "abc"), b""], [36]
    )
    states = Pool(vocab)
    first, second = start_of(states, "aa[ab]*"), start_of(states, "[ab]*")
    states.divide(0, first)
    parts = states.partitions
    begin, end = parts.part_nodes[number_of(states, 0, first)].tolist()
    nodes = parts.nodes[begin:end].tolist()
    assert begin >= len(vocab.trie.nodes)
    for here, node in enumerate(nodes):
        count = (node >> NEXT_SHIFT & MAX_NODES) - here - 1
        if count == 0:
            continue
        place = begin + here + 1
        assert parts.extent(place) == (place, place + count)
        states.divide(place, second)
        inside, rest, _ = found(states, place, second)
        below = [data for token, data in enumerate_rest(nodes, here, vocab.trie.size)]
        assert len(inside) == sum(set(data) <= set(b"ab") for data in below)
        assert sorted(data for _, data in rest) == sorted(data for data in below if b"c" in data)


def enumerate_rest(nodes, here, spare):
    """(token, bytes) below a node of a rest."""
    top = (nodes[here] >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1) + 1
    path = []
    for node in nodes[here + 1 : nodes[here] >> NEXT_SHIFT & MAX_NODES]:
        depth = (node >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1) - top
        path[depth:] = [node & 0xFF]
        if node >> TOKEN_SHIFT != spare:
            yield node >> TOKEN_SHIFT, bytes(path)


#: No two of them are of one partition class by tokens of up to three bytes.
DIFFERENT = [
    f"[{''.join(letters)}]{{1,{count}}}"
    for size in (1, 2, 3)
    for letters in itertools.combinations("abc", size)
    for count in (1, 2, 3)
] + [f"{first}{second}?c*" for first in "abc" for second in ("a", "b", "[ab]", "[ab]{2}")]


def test_many_partitions_are_all_found_again():
    """The hash table and the lists grow several times; equal keys are one partition."""
    states = Pool(ODD)
    starts = [start_of(states, pattern) for pattern in DIFFERENT]
    every = sorted(
        {target(states, start, text) for start in starts for text in (b"", b"a", b"b", b"c", b"ab")} - {DEAD}
    )
    for _ in range(2):
        for state in every:
            check_partition(states, ODD, state)
            check_partition(states, ODD, state, ODD.trie.find(b"a") + 1, b"a")
    parts = states.partitions
    different = {int(states.automata.partition_class[state]) for state in every}
    assert len(different) > 33
    assert parts.count == parts.made == 2 * len(different)
    assert len({number_of(states, 0, state) for state in every}) == len(different)
    assert number_of(states, len(ODD.trie.nodes), every[0]) == -1


def test_states_of_one_class_share_partitions():
    """The inside of a string wherever there are strings, and counters with room for more than a token."""
    vocab = Vocabulary([b"a", b"ab", b"abc", b'"', b'b"', b""], end_tokens=[5])
    states = Pool(vocab)
    strings = [target(states, start_of(states, pattern), b'"') for pattern in ('"[^"]*"', 'x?"[^"]*"', '"[^"]*"+')]
    # one more byte than the longest token has: whether the text is complete after it counts, too
    counters = [start_of(states, f"[abc]{{0,{count}}}") for count in (2, 4, 5, 50)]
    lazy = states.automata.start_of(
        dataclasses.replace(lower_regular(Regex("[abc]{0,50}c")).terminals[0], shortest=True)
    )
    for state in (*strings, *counters, lazy):
        check_partition(states, vocab, state)
    numbers = [[number_of(states, 0, state) for state in group] for group in (strings, counters)]
    assert numbers[0][0] == numbers[0][1]
    assert len(set(numbers[1])) == 2
    assert numbers[1][1:] == [numbers[1][1]] * 3
    assert states.partitions.made == len({*numbers[0], *numbers[1], number_of(states, 0, lazy)})


@settings(max_examples=20)
@given(st.data())
def test_partitions_do_not_depend_on_the_order(data):
    pairs = [(pattern, place) for pattern in ("[ab]+", "a*b", "c|[ab]*c") for place in (0, 1, 2)]
    order = data.draw(st.permutations(pairs))
    one, other = Pool(ODD), Pool(ODD)
    starts = [{pattern: start_of(states, pattern) for pattern, _ in pairs} for states in (one, other)]
    for states, which, start in ((one, pairs, starts[0]), (other, order, starts[1])):
        for pattern, place in which:
            states.divide(place, start[pattern])
    for pattern, place in pairs:
        assert found(one, place, starts[0][pattern]) == found(other, place, starts[1][pattern])


@pytest.mark.parametrize("limit", ["MAX_REST_NODES", "MAX_DENSE"])
def test_what_takes_too_much_is_dropped(limit, monkeypatch):
    """All partitions are dropped at once and made anew as they are needed; the arrays stay small."""
    monkeypatch.setattr(partition, limit, 100 if limit == "MAX_REST_NODES" else 5)
    monkeypatch.setattr(partition, "DENSE", 0)
    states = Pool(ODD)
    starts = [start_of(states, pattern) for pattern in DIFFERENT]
    for _ in range(2):
        for state in starts:
            check_partition(states, ODD, state)
    parts = states.partitions
    assert parts.made > len(starts) > 30
    assert parts.count < 20
    assert number_of(states, 0, starts[0]) == -1


def test_a_place_that_was_dropped_is_not_divided(monkeypatch):
    """Its number means nothing any more: whoever asked begins again."""
    states = Pool(BYTES)
    start = start_of(states, "[a-c]+")
    states.divide(0, start)
    monkeypatch.setattr(partition, "MAX_REST_NODES", 0)
    made = states.partitions.made
    states.divide(len(BYTES.trie.nodes) + 1, start)
    assert states.partitions.made == made
    assert states.partitions.count == 0


def test_rows_of_a_lazy_automaton_are_made_once(monkeypatch):
    """All that are missing at once, none twice, in no more rounds than the longest token has bytes."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    monkeypatch.setattr(lower, "EXPLICIT_STATES", 0)
    states = Pool(vocab)
    state = start_of(states, "(a|b|[c-z ]{2,9}){3,70}x")
    rounds, fill_rows = [], states.automata.fill_rows
    monkeypatch.setattr(states.automata, "fill_rows", lambda missing: rounds.append(missing) or fill_rows(missing))
    states.partitions.divide(0, state, states.automata)
    rows = [row for missing in rounds for row in missing.tolist()]
    assert len(rows) == len(set(rows)) > 50
    assert 2 < len(rounds) <= int(vocab.lengths.max())


@pytest.mark.parametrize("room", [1, 3, 1_024])
@pytest.mark.parametrize("kind", [0, STRICT, ALONE, OWN, STRICT | ALONE])
def test_lazy_automata_divide_as_explicit_ones_do(kind, room, monkeypatch):
    """Of each kind, and however little room there is for what is left at first."""
    monkeypatch.setattr(division, "_ROOM", room)
    for pattern in PATTERNS[:5] + PATTERNS[6:]:
        made = []
        for explicit in (0, 10_000):
            monkeypatch.setattr(lower, "EXPLICIT_STATES", explicit)
            states = Pool(ODD)
            states.partitions.divide(0, start_of(states, pattern) | kind, states.automata)
            parts = states.partitions
            begin, end = parts.part_nodes[0].tolist()
            made.append((parts.ids[: parts.id_count].tolist(), parts.nodes[begin:end].tolist()))
        assert made[0] == made[1]

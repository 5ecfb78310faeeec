"""Exits against their definition: token by token, where a text ends for good, and what comes after it."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie.test_partition import start_of, target
from tests.grammar.small_regexes import small_regexes
from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie.arrays import ALONE, EXITS, find_partition
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema, Regex
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.program import lower
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.vocabulary import Vocabulary


def spelled(parts, begin, end):
    """[(label, bytes)] of a trie in the array of nodes, whose shape is checked."""
    path, found = [], []
    nodes = parts.nodes[begin:end].tolist()
    for here, node in enumerate(nodes):
        depth = node >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1
        assert depth <= len(path)
        assert here < node >> NEXT_SHIFT & MAX_NODES <= len(nodes)
        path[depth:] = [node & 0xFF]
        if node >> TOKEN_SHIFT != parts.trie.size:
            found.append((node >> TOKEN_SHIFT, bytes(path)))
    return found


def check_exits(states, vocab, state):
    """Compare both tries with what each token says; (tokens of exits, groups)."""
    states.divide(0, state | ALONE | EXITS)
    parts = states.partitions
    part = int(find_partition(0, int(states.automata.partition_class[state]) | ALONE | EXITS, states.arrays))
    begin, middle, end = parts.part_nodes[part].tolist()
    first, past = parts.part_groups[part].tolist()
    suffixes = {}
    exits = spelled(parts, middle, end)
    assert len({label for label, _ in exits}) == len(exits) == max(past - first - 1, 0)
    for label, suffix in [(0, b""), *exits] if past > first else []:
        group = slice(*parts.exit_begin[first + label : first + label + 2].tolist())
        suffixes |= dict.fromkeys(parts.exit_tokens[group].tolist(), suffix)
    expected, rest = {}, []
    for token in vocab.trie.order.tolist():
        data = vocab.token_bytes(token)
        ends = [k for k in range(1, len(data) + 1) if is_end(states, state, data[:k])]
        if not ends:
            continue
        after = target(states, state, data[: ends[0]])
        target(states, after, b"x")  # its row, with which its flags are known
        if states.automata.flags[after] & ENDS:
            expected[token] = data[ends[0] :]
        elif target(states, state, data) < 0:
            rest.append((token, data))
    assert suffixes == expected
    assert sorted(spelled(parts, begin, middle)) == sorted(rest)
    return len(expected), past - first


def is_end(states, state, data):
    after = target(states, state, data)
    return after >= 0 and states.automata.flags[after] & ACCEPTS != 0


@pytest.mark.parametrize("explicit", [0, 2_000])
def test_small_vocabularies(explicit, monkeypatch):
    """Explicit and lazy automata; duplicates, padding, zero bytes."""
    monkeypatch.setattr(lower, "EXPLICIT_STATES", explicit)
    seen = set()

    @settings(max_examples=40)
    @given(vocabularies(b"abc", 40), small_regexes())
    def check(vocab, pattern):
        states = Pool(vocab)
        exits, groups = check_exits(states, vocab, start_of(states, pattern))
        seen.add((exits > 0, groups > 1))

    check()
    assert {(False, False), (True, True)} <= seen
    for pattern in ['"[^"]*"', "[ab]*c", "(ab)*c?", "x{0,100000}y", "ab|abc", "a"]:
        states = Pool(ODD)
        check_exits(states, ODD, start_of(states, pattern))


def test_a_string_of_a_real_vocabulary():
    """Hundreds of ways to the closing quote, and some tens of things that may follow it."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    states = Pool(vocab)
    start = start_of(states, '"[^"]*"')
    exits, groups = check_exits(states, vocab, target(states, start, b'"'))
    assert exits > 2 * groups > 20


def test_many_exits_are_kept_side_by_side():
    """The lists of groups grow several times, and what was there before stays."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    states = Pool(vocab)
    inside = [target(states, start_of(states, f"[^{end}]*{end}"), b"") for end in "abcdefghijklmnopqrst"]
    for state in inside:
        states.divide(0, state | ALONE | EXITS)
    for state in inside:
        check_exits(states, vocab, state)
    assert states.partitions.group_count > 256
    assert states.partitions.count == states.partitions.made == len(inside) + len(states.slices.made)


SCHEMAS = [
    '{"type": "object", "properties": {"a": {"type": "string"}, "bc": {"type": "string"}}, "required": ["a"]}',
    '{"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 40}}',
    '{"type": "object", "additionalProperties": {"type": "string", "pattern": "^[a-z ]*$"}}',
    '{"type": "object", "properties": {"a": {"type": "string", "minLength": 3}, "name": {"enum": ["x", "xy"]}}}',
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_masks_are_those_without_exits(schema):
    """Along random walks, in which counted strings come near to their bounds and names are spelled."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    plain, merged = (PushdownTrie(vocab, exits=exits, shared=False) for exits in (False, True))
    rng = random.Random(7)
    compiled = [backend.compile(JsonSchema(schema)) for backend in (plain, merged)]
    out = [masks.allocate_mask(vocab.size) for _ in compiled]
    for _ in range(5):
        matchers = [each.start() for each in compiled]
        for _ in range(40):
            for matcher, mask in zip(matchers, out, strict=True):
                matcher.fill_mask(mask)
            assert np.array_equal(*out)
            tokens = [token for token in masks.mask_to_ids(out[0]).tolist() if token not in vocab.end_token_set]
            if not tokens:
                break
            quotes = [token for token in tokens if b'"' in vocab.token_bytes(token)]
            token = rng.choice(quotes if quotes and rng.random() < 0.3 else tokens)
            for matcher in matchers:
                matcher.advance(token)
    visited = [each.work()["nodes_visited"] for each in compiled]  # type: ignore[attr-defined]
    assert visited[1] < visited[0]


@settings(max_examples=25)
@given(vocabularies(b"ab\"'", 60), st.lists(st.sampled_from(["'[ab]*'", '"a*b"', "(a|b\"){2}'", "a"]), min_size=2))
def test_small_constraints(vocab, patterns):
    """Texts one after another: what follows one is another one, whose exits come into play there."""
    constraint = Regex("".join(patterns))
    ways = [PushdownTrie(vocab, exits=exits, shared=False) for exits in (False, True)]
    try:
        found = [reachable_masks(way.compile(constraint), vocab) for way in ways]
    except VocabularyCannotSpell:
        return
    assert found[0] == found[1]


def reachable_masks(compiled, vocab):
    """Tokens taken -> mask, for up to three tokens."""
    found, agenda, out = {}, [()], masks.allocate_mask(vocab.size)
    while agenda:
        taken = agenda.pop()
        matcher = compiled.start()
        for token in taken:
            matcher.advance(token)
        matcher.fill_mask(out)
        tokens = masks.mask_to_ids(out).tolist()
        found[taken] = tokens
        if len(taken) < 3:
            agenda += [(*taken, token) for token in tokens[:4] if token not in vocab.end_token_set]
    return found


LIKELY = [bytes([byte]) for byte in b'ab"{:,1\\']


@st.composite
def spelled_vocabularies(draw):
    """All bytes, and tokens in which names of `a`, `b` and quotes end and go on, with escapes."""
    pieces = st.sampled_from(
        ["a", "b", '"', "\\", "\\u006", "\\u0062", "1", '\\"', ":", ",", " ", "}", '":', '","', '{"']
    )
    words = draw(st.lists(st.lists(pieces, min_size=2, max_size=5).map("".join), max_size=60))
    return Vocabulary(
        [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in words), b""], [256 + len(words)]
    )


@settings(max_examples=40)
@given(spelled_vocabularies(), st.data())
def test_names_among_other_strings(vocab, data):
    """A token that ends a name is decided by what follows the name, or by its being there already."""
    names = data.draw(st.lists(st.text('ab"', max_size=3), max_size=4, unique=True))
    other = data.draw(st.sampled_from([True, {"type": "integer"}, {"const": "b"}]))
    schema = {
        "type": "object",
        "properties": {key: {"type": "integer"} for key in names},
        "required": data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else [],
        "additionalProperties": other,
    }
    constraint = JsonSchema(json.dumps(schema), order=data.draw(st.sampled_from(["schema", "any"])))
    ways = {"partition": False}, {"exits": False}, {}
    compiled = [PushdownTrie(vocab, shared=False, **way).compile(constraint) for way in ways]
    matchers, out = [each.start() for each in compiled], [masks.allocate_mask(vocab.size) for _ in ways]
    for _ in range(12):
        for matcher, mask in zip(matchers, out, strict=True):
            matcher.fill_mask(mask)
        assert np.array_equal(out[0], out[1])
        assert np.array_equal(out[0], out[2])
        tokens = [token for token in masks.mask_to_ids(out[0]).tolist() if token not in vocab.end_token_set]
        likely = [token for token in tokens if vocab.token_bytes(token) in LIKELY or token >= 256]
        if not tokens:
            break
        token = data.draw(st.sampled_from(likely or tokens))
        for matcher in matchers:
            matcher.advance(token)

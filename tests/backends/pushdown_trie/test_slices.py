"""Slices: whether a state reads one, against all strings; partitions made with their help, against those without."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie.test_partition import start_of, target
from tests.grammar.small_regexes import small_regexes
from tests.vocabulary.vocabularies import ODD
from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie import partition, slices
from tokdfa.backends.pushdown_trie.arrays import ALONE, STRICT
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.rows import ACCEPTS
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.program import lower
from tokdfa.program.program import Terminal
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.trie import TOKEN_SHIFT


def reads(states, state, other, depth, strict):
    return states.slices.reads(state | STRICT * strict, other, depth)


def explicit_start(states, pattern):
    """The state in which the automaton of a slice begins."""
    return states.automata.start_of(Terminal(pattern, pattern.encode(), lambda: slices.slice_dfa(pattern)))


def by_strings(states, state, other, depth, strict):
    """The same by every string of a few letters."""
    for length in range(1, depth + 1):
        for letters in itertools.product(b"abc", repeat=length):
            if target(states, other, bytes(letters)) < 0:
                continue
            after = target(states, state, bytes(letters))
            if after < 0:
                return False
            target(states, after, b"a")  # its row, with which its flags are known
            if strict and states.automata.flags[after] & ACCEPTS:
                return False
    return True


@pytest.mark.parametrize("explicit", [0, 2_000])
def test_against_all_strings(explicit, monkeypatch):
    monkeypatch.setattr(lower, "EXPLICIT_STATES", explicit)
    seen = set()

    @settings(max_examples=80)
    @given(
        small_regexes(), st.sampled_from(["[ab]*", "a{0,2}", "[abc]{0,3}", "(ab)*"]), st.integers(0, 5), st.booleans()
    )
    def check(pattern, plain, depth, strict):
        states = Pool(ODD)
        state, other = start_of(states, pattern), explicit_start(states, plain)
        answer = reads(states, state, other, depth, strict)
        assert answer == by_strings(states, state, other, depth, strict)
        seen.add((answer, depth > 1))

    check()
    assert len(seen) == 4


def test_more_pairs_than_are_followed(monkeypatch):
    """A long counter is given up on, not followed for ever."""
    states = Pool(ODD)
    state, other = start_of(states, "(a{300}|b)*"), explicit_start(states, "a*")
    assert reads(states, state, other, slices.MAX_PAIRS - 1, False)
    assert not reads(states, state, other, slices.MAX_PAIRS + 100, False)


PATTERNS = [
    '"[^"]*"', '"[a-z]+"', '"\\w{1,40}"', "[A-Za-z0-9_.-]+", "[^\\n]{3,30}x", "(?:[a-f0-9]{8}-){3}", "\\S+ \\S+",
    '"(?:[^"\\\\]|\\\\.)*"', "[ -~]{2,9}", "é*[a-z]*", "(foo|[a-z]+)bar",
]  # fmt: skip
KINDS = {"plain": 0, "strict": STRICT, "alone": ALONE, "strict alone": STRICT | ALONE}


@pytest.fixture(scope="module")
def vocab():
    return load_tokenizer("mistral-v1").vocabulary


@pytest.mark.parametrize("pattern", PATTERNS)
def test_partitions_with_slices_are_those_without(pattern, vocab, monkeypatch):
    """By all kinds, from states along a text; a partition beside others may leave more to its rest."""
    used = 0
    for kind, bits in KINDS.items():
        found = []
        for least in (slices.LEAST_NODES, 1 << 30):
            monkeypatch.setattr(slices, "LEAST_NODES", least)
            states = Pool(vocab)
            start = start_of(states, pattern)
            made = []
            for text in (b"", b'"', b'"a', b"a", b"ab", b'"ab', b"ab 1"):
                if (state := target(states, start, text)) >= 0:
                    states.divide(0, state | bits)
                    within = states.slices.within(int(states.automata.partition_class[state]) | bits)
                    used += within >= 0
                    made.append(content(states, int(states.automata.partition_class[state]) | bits))
            found.append(made)
        for with_slices, without in zip(*found, strict=True):
            if bits & ALONE:
                assert with_slices == without, kind
            else:
                assert with_slices[0] <= without[0], kind
                assert {*with_slices[0], *with_slices[1]} == {*without[0], *without[1]}, kind
    assert used > 0 or pattern == "(?:[a-f0-9]{8}-){3}"


def content(states, state):
    """What `part_content` says of the partition of the whole trie by a state."""
    return part_content(states.partitions, states.partitions.dense_of(state)[0])


def part_content(parts, part):
    """(tokens inside, tokens of the rest) of a partition."""
    dense = int(parts.part_dense[part])
    words = parts.dense[dense] if dense >= 0 else None
    ids = parts.ids[slice(*parts.part_ids[part].tolist())]
    inside = set(ids.tolist() if words is None else masks.mask_to_ids(words.view("i4")).tolist())
    begin, end = parts.part_nodes[part].tolist()
    rest = {int(node) >> TOKEN_SHIFT for node in parts.nodes[begin:end]} - {parts.trie.size}
    return inside, rest


def test_slices_that_were_dropped_are_not_used(vocab, monkeypatch):
    """Where making one slice drops another, the other's number is handed out no more, though its texts can be read."""
    states = Pool(vocab)
    parts = states.partitions
    before = states.slices.within(start_of(states, "[0-9A-Za-z]*"))
    assert before >= 0
    assert parts.count == 1
    monkeypatch.setattr(partition, "MAX_REST_NODES", parts.node_count - len(parts.trie.nodes) + 10)
    state = start_of(states, "[ 0-9A-Za-z][0-9A-Za-z]*")  # the slice with blanks is tried first, and made
    assert states.slices.within(state) < 0
    assert (parts.drops, parts.count) == (1, 0)
    monkeypatch.undo()
    again = states.slices.within(state)
    made = {made.part: made.state for made in states.slices.made}
    assert parts.dense_of(made[again])[0] == again


def test_grammars_make_none(vocab):
    """Their texts are few, and gain less than the slices of a vocabulary take."""
    backend = PushdownTrie(vocab, shared=False)
    for constraint, made in ((Grammar("start: /[A-Za-z ]+/\n"), False), (Regex("[A-Za-z ]+"), True)):
        compiled = backend.compile(constraint)
        compiled.start().fill_mask(masks.allocate_mask(vocab.size))
        assert bool(compiled.pool.slices.made) == made


SCHEMAS = [
    {"type": "string", "pattern": "^[a-z0-9_-]{1,60}$"},
    {"anyOf": [{"type": "string", "pattern": "^[A-Za-z ]+$"}, {"type": "string", "minLength": 3}]},
    {"type": "object", "patternProperties": {"^\\w+$": {"type": "integer"}}, "additionalProperties": False},
    {"anyOf": [{"const": "abc"}, {"type": "string", "pattern": "^a.*c$"}, {"type": "string", "format": "email"}]},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_masks_with_slices_are_those_without(schema, vocab):
    """Along a text, and equal to a plain walk's."""
    ways = {}, {"slices": False}, {"partition": False}
    matchers = [PushdownTrie(vocab, shared=False, **way).compile(JsonSchema(schema)).start() for way in ways]
    out = [masks.allocate_mask(vocab.size) for _ in ways]
    text = '{"ab_1": 12, "c": 3}' if "patternProperties" in schema else '"abc def@x.yz"'
    for byte in text.encode():
        for matcher, mask in zip(matchers, out, strict=True):
            matcher.fill_mask(mask)
        assert (out[0] == out[1]).all()
        assert (out[0] == out[2]).all()
        tokens = masks.mask_to_ids(out[0]).tolist()
        token = next((token for token in tokens if vocab.token_bytes(token) == bytes([byte])), None)
        if token is None:
            break
        for matcher in matchers:
            matcher.advance(token)

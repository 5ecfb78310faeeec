"""Divisions, walks and single tokens must say the same of every token."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import cfgs_over, compile_cfg, lexed_cfgs, make_cfg, run, short_texts
from tests.naive.lexed_earley import LexedEarley
from tests.vocabulary.vocabularies import vocabularies
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.earley_trie.lexer_names import StateNames
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.strategy import EarleyTrie
from tokdfa.constraint import Grammar
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = [b"a", b"b", b"c"]
#: All texts of up to four letters, some twice: whatever a lexer state can meet on the way through a token.
DENSE = Vocabulary(
    [bytes(text) for size in range(1, 5) for text in itertools.product(b"abc", repeat=size)] + [b"ab", b""],
    end_tokens=[121],
)


def tokens_one_by_one(compiled, situation):
    """The mask of a situation by reading each token's bytes."""
    vocab, machine = compiled.vocab, compiled.machine
    allowed = [token for token in range(vocab.size) if vocab.token_bytes(token)]
    allowed = [token for token in allowed if run(machine, situation, vocab.token_bytes(token)) >= 0]
    return sorted(allowed + (list(vocab.end_tokens) if machine.can_end(situation) else []))


def check_masks(cfg, vocab, depth, rng, **options):
    """Along random walks: by walk, by effects as they come to be, by slices, and token by token. How many masks had a
    fallback.
    """
    ways = [
        {"mask": "walk"},
        {"mask": "walk", "row_stack": True},
        {"mask": "effects"},
        {"mask": "effects", "shared_effects": False},
        {"mask": "effects", "patience": 0},
        {"mask": "effects", "patience": 2, "clip_counters": False},
        {"mask": "slices"},
    ]
    compiled = [compile_cfg(cfg, vocab, memo=False, **way, **options) for way in ways]
    twin = LexedEarley(
        cfg, options.get("lexer", "longest") == "longest", options.get("ignore", "anywhere") == "anywhere"
    )
    matchers = [one.start() for one in compiled]
    text, fallbacks = b"", 0
    for _ in range(depth):
        for _ in range(3):  # walked, made, and used
            found = [mask_of(matcher) for matcher in matchers]
            for way, other in zip(ways[1:], found[1:], strict=True):
                assert found[0] == other, (text, way)
        fallbacks += compiled[0].machine.view(matchers[0].state)[2] >= 0
        assert found[0] == tokens_one_by_one(compiled[0], matchers[0].state), text
        named = [token for token in rng.sample(range(vocab.size), 3) if vocab.token_bytes(token)]
        for token in named:
            assert (token in found[0]) == twin.goes_on(text + vocab.token_bytes(token)), (text, token)
        open_ones = [token for token in found[0] if token not in vocab.end_tokens]
        if not open_ones:
            break
        token = rng.choice(open_ones)
        text += vocab.token_bytes(token)
        for matcher in matchers:
            matcher.advance(token)
    return fallbacks


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """Of all states, though they read few nodes."""
    monkeypatch.setattr("tokdfa.masks.builder.NODES_PER_NAME", 0)


@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
@pytest.mark.parametrize("ignore", ["anywhere", "between"])
def test_masks_agree(lexer, ignore):
    fallbacks = 0

    @settings(max_examples=25)
    @given(lexed_cfgs())
    def check(cfg):
        nonlocal fallbacks
        fallbacks += check_masks(cfg, DENSE, 4, random.Random(0), lexer=lexer, ignore=ignore)

    check()
    assert (fallbacks > 0) == (lexer == "longest")


#: Lexemes that count beyond the four letters of `DENSE`, also in ways that overlap, and under intersections.
BOUNDED = (
    *("[ab]{0,9}c", "(ab){1,7}", "(a|ab){2,6}", "a{3,8}b?", "(a{1,3}b){0,7}c", "c{6}", "([ab]c?){0,8}a", "a{7,}b"),
    *("a{6}b{6}|a{7}b{5}", "(?:a?b){5,9}", "b{2,20}"),
)


@pytest.mark.parametrize("explicit_states", [2_000, 2])
@pytest.mark.parametrize("lexer", ["longest", "one_byte"])
def test_masks_agree_with_counters(monkeypatch, lexer, explicit_states):
    """Of explicit automata, and of such as stay lazy."""
    monkeypatch.setattr("tokdfa.grammar.lexeme_automata.EXPLICIT_STATES", explicit_states)

    @settings(max_examples=15)
    @given(st.lists(st.sampled_from(BOUNDED), min_size=2, max_size=3, unique=True).flatmap(cfgs_over))
    def check(cfg):
        check_masks(cfg, DENSE, 6, random.Random(3), lexer=lexer)

    check()


@settings(max_examples=25)
@given(lexed_cfgs(), vocabularies(b"abc", 20))
def test_masks_agree_on_small_vocabularies(cfg, drawn):
    """Letters alone, so that nothing is a dead end, and tokens as they come, duplicates and long ones."""
    tokens = [*LETTERS, *(drawn.token_bytes(token) for token in range(drawn.size)), b""]
    vocab = Vocabulary(tokens, end_tokens=[len(tokens) - 1])
    for lexer in ("longest", "one_byte"):
        check_masks(cfg, vocab, 5, random.Random(1), lexer=lexer)


# Names of lexer states.

LENGTH = 4
TEXTS = short_texts(b"abc", LENGTH)


def machine_of(pattern, lazy=False):
    return Machine(make_cfg((pattern,), {"s": [(pattern,)]}, lazy=[0] if lazy else []))


def behaviour(machine, state):
    """What a lexer state says of all texts of up to LENGTH letters: is it alive; of shorter ones: is it a lexeme."""
    found = []
    for text in TEXTS:
        here = state
        for byte in text:
            here = machine.lexer.step(here, byte) if here >= 0 else -1
        found.append((here >= 0, here >= 0 and len(text) < LENGTH and machine.lexer.accepting[here] >= 0))
    return tuple(found)


def states_of(machine):
    """Lexer states but the start, in the order in which they are found."""
    found = [machine.start_state(0)]
    for state in found:
        targets = [machine.lexer.step(state, byte) for byte in b"abc"]
        found += [target for target in dict.fromkeys(targets) if target >= 0 and target not in found]
    return found[1:]


@pytest.mark.parametrize("explicit_states", [2_000, 2])
def test_names_are_what_short_texts_tell_apart(monkeypatch, explicit_states):
    """All states of all these patterns together. Names of explicit automata are exact, those of lazy ones safe."""
    monkeypatch.setattr("tokdfa.grammar.lexeme_automata.EXPLICIT_STATES", explicit_states)
    by_name, by_behaviour, states = {}, {}, 0
    for pattern in (*BOUNDED, "[ab]{0,20}c", "(ab){1,30}", "b{5,}", "a{300}|b{2}", "[ab]*c"):
        machine = machine_of(pattern)
        names = StateNames(machine, LENGTH)
        for state in states_of(machine):
            name, lexemes = names.describe(state)
            assert (len(name), lexemes) == (64, (0,))
            by_name.setdefault(name, set()).add(behaviour(machine, state))
            by_behaviour.setdefault(behaviour(machine, state), set()).add(name)
            states += 1
    assert all(len(found) == 1 for found in by_name.values())
    assert states > 400
    if explicit_states > 2:
        assert all(len(found) == 1 for found in by_behaviour.values())
    else:
        assert len(by_name) < 2 * len(by_behaviour)


def test_intersections_are_not_clipped(monkeypatch):
    """After a and after b, but for what counters lose in clipping, the same is to come; but then one of them is empty.

    Of a[bc]a{9}b & a(b|ca)a{8}b nothing is left after "ab", of a[bc]a{9}b & a(b|ca)a{9}b nothing after "ac".
    """
    monkeypatch.setattr("tokdfa.grammar.lexeme_automata.EXPLICIT_STATES", 2)
    parts = ("/aa[bc]a{9}b/ & /aa(b|ca)a{8}b/", "/ba[bc]a{9}b/ & /ba(b|ca)a{9}b/")
    machine = Machine(read_lark(f"start: T\nT: ({parts[0]}) | ({parts[1]})\n", "start"))
    assert isinstance(machine.lexer.components.automata[0], LazyDfa)
    names, start = StateNames(machine, LENGTH), machine.start_state(0)
    after = [machine.lexer.step(start, byte) for byte in b"ab"]
    assert behaviour(machine, after[0]) != behaviour(machine, after[1])
    assert names.describe(after[0])[0] != names.describe(after[1])[0]


def test_long_counters_share_effects():
    """A string of up to 500 characters on a real vocabulary: as many effects as its longest token has bytes.

    They are: of the start, of room for at least so many characters, and for each number below.
    """
    vocab = load_tokenizer("mistral-v1").vocabulary
    longest = int(vocab.lengths.max())
    letter, quote = (vocab.trie.token(vocab.trie.find(byte)) for byte in (b"x", b'"'))
    made, found = {}, {}
    for clip in (True, False):
        backend = EarleyTrie(vocab, shared_effects=False, clip_counters=clip, memo=False, patience=0)
        compiled = backend.compile(Grammar('start: /"[^"]{0,500}"/\n'))
        matcher = compiled.start()
        found[clip] = [masks.allocate_mask(vocab.size) for _ in range(502)]
        for token, mask in zip([quote, *[letter] * 500, quote], found[clip], strict=True):
            matcher.fill_mask(mask)
            matcher.advance(token)
        made[clip] = len(compiled.builder.divisions.states())
    assert np.array_equal(found[True], found[False])
    assert made == {True: longest + 2, False: 502}


def test_no_mask_costs_more_than_the_walk():
    """Counted in nodes: the first ones of what is left are looked at twice, which matters in narrow states."""
    tokenizer = load_tokenizer("mistral-v1")
    grammar = Grammar(
        'start: "[" [item ("," item)*] "]"\nitem: start | S | N\nS: /"[^"]*"/\nN: /[0-9]+/\n%ignore / +/\n'
    )
    options = {"memo": False, "shared_effects": False}
    walk, *others = (
        EarleyTrie(tokenizer.vocabulary, **options, **way).compile(grammar).start()
        for way in ({"mask": "walk"}, {"patience": 1}, {"patience": 3})
    )
    mask, visited = masks.allocate_mask(tokenizer.vocabulary.size), []
    for token in tokenizer.encode('[1, "some text", [22, "more"], "and more", [[3], 4, "that is all"]]'):
        row = []
        for matcher in (walk, *others):
            before = matcher.counters.get("nodes_visited", 0)
            matcher.fill_mask(mask)
            row.append(matcher.counters["nodes_visited"] - before)
            matcher.advance(token)
        assert max(row) <= (2 if row[0] < 1_000 else 1.1) * row[0]
        visited.append(row)
    totals = [sum(column) for column in zip(*visited, strict=True)]
    assert totals[1] < totals[2] < totals[0]


def test_a_limit_in_the_middle_leaves_no_trace():
    """An effect that could not be finished is made anew, and none of its tokens turn up in another."""
    words = [bytes(text) for size in range(1, 15) for text in itertools.product(b"ab", repeat=size)]
    vocab = Vocabulary([*words, b"c", b""], end_tokens=[len(words) + 1])
    assert vocab.trie.node_count > 1 << 14
    compiled = compile_cfg(make_cfg(("[ab]+", "c"), {"s": [("[ab]+", "c")]}), vocab, patience=0, memo=False)
    matcher, expected = compiled.start(), list(range(len(words)))
    with pytest.raises(LimitExceeded), spending(Budget(0, 256, "step"), "a mask"):
        compiled.builder.fill(matcher.state, masks.allocate_mask(vocab.size))
    matcher.advance(0)
    assert mask_of(matcher) == [*expected, len(words)]
    assert mask_of(compiled.start()) == expected

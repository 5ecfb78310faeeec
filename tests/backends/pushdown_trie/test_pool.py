"""The table of states against the automata that it was made from, and what it shares."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
from hypothesis import given, settings

import tokdfa
from tests.backends.pushdown_trie import BYTES, read_states, terminal_of
from tests.grammar.small_regexes import small_regexes
from tests.strategies import short_texts
from tests.walks import advance_all, mask_of
from tokdfa.backends.pushdown_trie import state_table
from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool, pool_of
from tokdfa.backends.pushdown_trie.state_table import ACCEPTS, ENDS, SHORTEST
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema, Regex
from tokdfa.errors import LimitExceeded
from tokdfa.grammar import lexeme_automata
from tokdfa.program.lower import lower_regular
from tokdfa.program.program import Terminal
from tokdfa.vocabulary.byte_table import DEAD
from tokdfa.vocabulary.vocabulary import Vocabulary

TEXTS = [text.encode() for text in short_texts(6, "ab")]


@pytest.mark.parametrize("explicit", [2_000, 0], ids=["explicit", "lazy"])
def test_states_read_what_the_regex_matches(explicit, monkeypatch):
    """All texts of up to six letters, for automata of both kinds side by side in one table."""
    monkeypatch.setattr(lexeme_automata, "EXPLICIT_STATES", explicit)
    states = AutomatonTable(BYTES)

    @settings(max_examples=60)
    @given(small_regexes())
    def check(pattern):
        start, matches = states.start_of(terminal_of(pattern)), re.compile(pattern).fullmatch
        for text in TEXTS:
            state = read_states(states, start, text)
            assert (state > 0 and bool(states.flags[state] & ACCEPTS)) == bool(matches(text.decode())), text

    check()
    assert bool(states.lazy_automata) == (explicit == 0)


@pytest.mark.parametrize("explicit", [2_000, 0], ids=["explicit", "lazy"])
def test_lazy_lexemes_end_at_their_first_match(explicit, monkeypatch):
    monkeypatch.setattr(lexeme_automata, "EXPLICIT_STATES", explicit)
    states = AutomatonTable(BYTES)
    start = states.start_of(terminal_of("[ab]*ab", lazy=True))
    assert start != states.start_of(terminal_of("[ab]*ab"))
    end = read_states(states, start, b"bbab")
    assert states.flags[end] & (ACCEPTS | SHORTEST | ENDS) == ACCEPTS | SHORTEST | ENDS
    assert read_states(states, start, b"bbabb") == DEAD
    assert read_states(states, states.start_of(terminal_of("[ab]*ab")), b"bbabb") > 0


@pytest.mark.parametrize("explicit", [2_000, 0], ids=["explicit", "lazy"])
def test_automata_that_may_wait_are_made_when_they_are_read(explicit, monkeypatch):
    monkeypatch.setattr(lexeme_automata, "EXPLICIT_STATES", explicit)
    states, made, text = AutomatonTable(BYTES), [], terminal_of("[ab]*ab")

    def make():
        made.append(text)
        return text.make()

    waiting = [states.start_of(Terminal("", key, make, may_wait=True)) for key in (b"one", b"one", b"two")]
    at_once = states.start_of(text)
    assert not made
    assert waiting[0] == waiting[1] != waiting[2]
    assert states.class_of(waiting[2]) == states.class_of(at_once)
    for word in TEXTS:
        ends = [read_states(states, start, word) for start in (*waiting, at_once)]
        assert len({end > 0 and int(states.flags[end] & (ACCEPTS | ENDS)) for end in ends}) == 1, word
    assert len(made) == 2
    states.fill_rows([*waiting, at_once])
    assert len(made) == 2


def test_one_pool_for_a_vocabulary():
    one, other = (Vocabulary([b"a", b""], end_tokens=[1]) for _ in range(2))
    assert pool_of(one) is pool_of(one)
    assert pool_of(one) is not pool_of(other)


def test_a_full_pool_is_left_to_those_who_have_it():
    vocab = Vocabulary([b"a", b"b", b""], end_tokens=[2])
    full = pool_of(vocab)
    assert pool_of(vocab, full.nbytes / (1 << 20)) is full
    following = pool_of(vocab, (full.nbytes - 1) / (1 << 20))
    assert following is not full
    assert full.automata.start_of(terminal_of("a")) == 1


def test_the_bound_on_what_is_shared_is_an_option():
    vocab = Vocabulary([b"a", b"b", b""], end_tokens=[2])
    kept = [tokdfa.compile(tokdfa.Regex("a*b"), vocab, "pushdown_trie", shared_mb=bound) for bound in (256, 256, 0, 0)]
    pools = [compiled.pool for compiled in kept]
    assert pools[0] is pools[1]
    assert len({id(pool) for pool in pools}) == 3, "a bound of nothing shares nothing"
    for compiled in kept:
        matcher = compiled.start()
        matcher.advance(0)
        assert matcher.allows(1)
    gone = weakref.ref(pools[0])
    del kept, pools, compiled, matcher
    gc.collect()
    assert gone() is None, "a pool that was left goes with its constraints"


def test_pools_go_with_their_vocabulary():
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    kept = weakref.ref(pool_of(vocab))
    assert kept() is not None
    del vocab
    gc.collect()
    assert kept() is None


def test_what_most_schemas_need_is_made_in_advance_where_that_is_asked_for():
    schema, found, made = JsonSchema({"type": "object", "properties": {"born": {"format": "date"}}}), [], []
    for is_prepared in (False, True):
        vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
        backend = PushdownTrie(vocab)
        for kind in ("grammar", "json_schema", "json_schema") if is_prepared else ():
            backend.prepare(kind)
            made.append(pool_of(vocab).masks.divisions.made)
        for _ in range(2):  # a second schema gets no more than the first
            before = pool_of(vocab).masks.divisions.made
            matcher = backend.compile(schema).start()
            assert pool_of(vocab).masks.divisions.made == before
            advance_all(matcher, b'{"born": "2')
            found.append(tuple(mask_of(matcher)))
            assert not is_prepared or pool_of(vocab).masks.divisions.made == before
    assert len(set(found)) == 1
    assert made[0] == 0 < made[1] == made[2]


def test_too_many_states(monkeypatch):
    monkeypatch.setattr(state_table, "MAX_STATES", 20)
    states = AutomatonTable(BYTES)
    short = states.start_of(terminal_of("ab"))
    long, counter = terminal_of("(ab|cd){10}"), states.start_of(terminal_of("x{0,100000}y"))
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="more than 20 states") as caught:
            states.start_of(long)
        assert (caught.value.limit, caught.value.value) == ("max_states", 20)
        with pytest.raises(LimitExceeded):
            read_states(states, counter, b"x" * 100)
        assert states.flags[read_states(states, short, b"ab")] & ACCEPTS
        assert states.flags[read_states(states, counter, b"xxxxy")] & ACCEPTS


def test_tables_of_machines_that_are_gone_are_used_again() -> None:
    """And nothing of what was in them is left."""
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
    shared = Pool(vocabulary)
    first = Machine(lower_regular(Regex("(ab|ba){3,9}")), shared)
    tables = first.t
    assert first.run_text(b"abbaab") >= 0
    alive = Machine(lower_regular(Regex("a*")), shared)
    assert alive.t is not tables
    del first
    gc.collect()
    second = Machine(lower_regular(Regex("[x-z]{2}")), shared)
    assert second.t is tables
    assert second.run_text(b"a") == second.run_text(b"xyz") == -1
    assert second.can_end(second.run_text(b"xy"))
    assert alive.can_end(alive.run_text(b"aaa"))

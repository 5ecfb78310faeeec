"""The backend as a whole: against earley_trie and llguidance; full tables, threads, odd and hostile input."""

from __future__ import annotations

import random

import pytest

from tests.backends.grammar_walks import NAMES, bytes_start, compile_with, grammar_of, texts_of, tokenizer_of, walk_all
from tests.threads import run_together
from tests.walks import advance_all, mask_of, masks_along
from tokdfa.backends.pushdown_trie import machine
from tokdfa.constraint import Grammar
from tokdfa.core.budget import spending
from tokdfa.errors import (
    LimitExceeded,
    TokdfaError,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

LEXERS = ("longest", "any")
MEGABYTE = 1 << 20
NESTED = 'start: "(" start ")" | "[" start "]" | "x"\n'


# Against others.


@pytest.mark.parametrize("name", NAMES)
def test_masks_are_earley_tries(name):
    """By the longest match, over a real vocabulary and over single bytes."""
    rng, masks = random.Random(1), 0
    for tokenizer, steps in (("mistral-v1", 16), ("bytes", 60)):
        found = tokenizer_of(tokenizer)
        ours, theirs = (compile_with(grammar_of(name), found.vocabulary, b) for b in ("pushdown_trie", "earley_trie"))
        for text in (*rng.sample(texts_of(name)["accepted"], 3), "", ""):
            masks += walk_all([ours.start(), theirs.start()], found, text, steps, rng)
    assert masks > 40


# New tables for full ones.


def nested_text(rng):
    """A hundred brackets in any order, closed again: two hundred rows that no other text has made."""
    brackets = rng.choices(b"([", k=100)
    return bytes(brackets) + b"x" + bytes({40: 41, 91: 93}[bracket] for bracket in reversed(brackets))


@pytest.mark.parametrize("lexer", LEXERS)
def test_a_long_generation_moves_to_new_tables(lexer):
    """Down and back again by ever other brackets: masks, rollback and fork are those of a run in large tables."""
    small, large = (bytes_start(NESTED, lexer=lexer, table_mb=size) for size in (1, 64))
    rng, moves = random.Random(4), 0
    for _ in range(24):
        text = nested_text(rng)
        for place, byte in enumerate(text):
            if place % 17 == 0:
                assert mask_of(small) == mask_of(large)
                assert small.can_end() == large.can_end()
            before = small._machine
            for matcher in (small, large):
                matcher.advance(byte)
            if small._machine is not before:
                moves += 1
                for count in (1, min(5, place), place + 1):
                    twins = [matcher.fork() for matcher in (small, large)]
                    for twin in twins:
                        twin.rollback(count)
                    assert mask_of(twins[0]) == mask_of(twins[1])
                    advance_all(twins[0], text[place + 1 - count : place + 1])
                    assert mask_of(twins[0]) == mask_of(large)
        assert small.can_end()
        for matcher in (small, large):
            matcher.rollback(len(text))
    assert moves >= 3
    assert large._machine.row_count > 2000
    assert small._machine.nbytes < 4 * MEGABYTE
    with pytest.raises(TokdfaError, match="cannot take back"):
        small.rollback(1)


def test_forks_stay_in_old_tables_until_they_move():
    """A fork from before a move goes on as if nothing had happened, and so does what is finished."""
    compiled = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary, table_mb=1)
    large = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary)
    rng, first = random.Random(6), compiled.generation
    start, finished, filler = compiled.start(), compiled.start(), compiled.start()
    advance_all(start, b"(([[")
    advance_all(finished, [*b"(x)", 256])
    forks = [start.fork() for _ in range(3)]
    while compiled.generation is first:
        text = nested_text(rng)
        advance_all(filler, text)
        filler.rollback(len(text))
    moved = 0
    for number, fork in enumerate(forks):
        other = large.start()
        advance_all(other, b"(([[")
        assert fork._generation is first
        assert mask_of(fork) == mask_of(other)
        tail = nested_text(random.Random(number))
        for place, byte in enumerate(tail):
            if place % 20 == 0:
                assert mask_of(fork) == mask_of(other)
            for matcher in (fork, other):
                matcher.advance(byte)
        moved += fork._generation is not first
        fork.rollback(len(tail))
        advance_all(fork, b"x]]))")
        assert mask_of(fork) == [256]
    assert moved >= 2
    assert finished.is_finished()
    assert mask_of(finished) == [256]
    finished.rollback(1)
    assert finished.can_end()


def deepest(compiled):
    """A matcher that has read as many brackets as fit into the tables by themselves, and how many those are."""
    matcher, count = compiled.start(), 0
    while count < 100_000:
        try:
            matcher.advance(ord("("))
        except LimitExceeded as error:
            return matcher, count, error
        count += 1
    raise AssertionError("there is no limit")


def test_a_text_that_does_not_fit_alone():
    """It is refused by name; what was read so far stands, and can be taken back."""
    compiled = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary, table_mb=1)
    matcher, count, error = deepest(compiled)
    assert (error.limit, error.value) == ("table_mb", 1)
    assert 5000 < count < 50_000  # of many rows, but what these return to is too much
    with pytest.raises(LimitExceeded, match="raise table_mb"):
        matcher.advance(ord("["))
    matcher.rollback(count - 10)
    assert mask_of(matcher) == list(b"([x")
    advance_all(matcher, b"x))))))))))")
    assert mask_of(matcher) == [256]
    assert matcher.can_end()
    fresh = compiled.start()
    advance_all(fresh, b"([x])")
    assert fresh.can_end()


def test_tables_that_others_have_filled_are_no_limit():
    """Each text fits by itself, so none is refused, whoever has filled the newest tables; and no token is forgotten."""
    compiled = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary, table_mb=1)
    rng = random.Random(0)
    texts = [bytes(rng.choices(b"([", k=1_000)) for _ in range(5)]  # down and up again
    matchers = [compiled.start() for _ in texts]
    for place in range(len(texts[0])):
        for matcher, text in zip(matchers, texts, strict=True):
            matcher.advance(text[place])
    for matcher, text in zip(matchers, texts, strict=True):
        matcher.advance(ord("x"))
        for byte in reversed(text):
            matcher.advance({40: 41, 91: 93}[byte])
        assert matcher.can_end()
        matcher.rollback(2 * len(text) + 1)
        assert mask_of(matcher) == list(b"([x")


# Threads.


def test_threads_on_constraints_that_share_a_pool():
    """Eight threads compile and walk eight grammars of one vocabulary: new automata and divisions all the time."""
    whole = tokenizer_of("mistral-v1").vocabulary
    vocab = Vocabulary([whole.token_bytes(token) for token in range(3, 8000)] + [b""], end_tokens=[7997])
    names = [*NAMES, *NAMES][:8]

    def job(name, seed, **options):
        compiled = compile_with(grammar_of(name), vocab, **options)
        return [masks_along(compiled, 10 * seed + walk, 10) for walk in range(4)]

    results = run_together([lambda n=n, s=s: job(n, s) for s, n in enumerate(names)])
    for seed, name in enumerate(names):
        assert results[seed] == job(name, seed, shared=False, partition=False, memo=False)


def test_threads_while_tables_are_renewed():
    """Eight matchers of one constraint fill its small tables together."""
    compiled = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary, table_mb=1)
    large = compile_with(Grammar(NESTED), tokenizer_of("bytes").vocabulary)

    def job(constraint, seed):
        matcher, found, rng = constraint.start(), [], random.Random(seed)
        for _ in range(4):
            text = nested_text(rng)
            for place, byte in enumerate(text):
                if place % 20 == 0:
                    found.append(mask_of(matcher))
                matcher.advance(byte)
            matcher.rollback(len(text))
        return found

    first = compiled.generation
    results = run_together([lambda seed=seed: job(compiled, seed) for seed in range(8)])
    assert compiled.generation is not first
    for seed in range(8):
        assert results[seed] == job(large, seed)


@pytest.mark.parametrize("lexer", LEXERS)
def test_masks_are_made_under_the_lock(lexer, monkeypatch):
    """Whoever asks: compiling (which searches for an end where bytes are lacking), masks, steps, and `allows`."""
    vocab = Vocabulary([b"a", b"ab", b"(", b")", b""], end_tokens=[4])
    unlocked = []
    original = machine.Machine.run

    def watched(self, *args):
        if not self.pool.lock._is_owned():
            unlocked.append("run")
        return original(self, *args)

    class Watched(spending):
        def __enter__(self):
            if not compiled.lock._is_owned():
                unlocked.append("step")
            return super().__enter__()

    monkeypatch.setattr(machine.Machine, "run", watched)
    compiled = compile_with(Grammar('start: "(" start ")" | "a" "b"\n'), vocab, lexer=lexer)
    compiled.working = Watched(compiled.working.budget, "a step")
    matcher = compiled.start()
    for token in (2, 2, 1, 3, 3):
        assert matcher.allows(token)
        mask_of(matcher)
        matcher.advance(token)
        matcher.can_end()
    assert unlocked == []


def test_special_tokens_are_taken_again_in_new_tables():
    vocab = Vocabulary([b"(", b")", b"", b""], end_tokens=[3], special_tokens={2: "<x>", 3: "</s>"})
    compiled = compile_with(Grammar('start: "(" <x>? start ")" | <x>\n'), vocab, table_mb=1)
    first, moved = compiled.generation, False
    matcher = compiled.start()
    for _ in range(3):
        for _ in range(150):
            advance_all(matcher, (0, 2))
        moved |= matcher._generation is not first
        assert mask_of(matcher) == [0, 2] or 1 in mask_of(matcher)
        advance_all(matcher, [1] * 3)
        matcher.rollback(303)
        compiled.renew(compiled.generation)
        for _ in range(60):
            advance_all(matcher, (0,))
        matcher.rollback(60)
    assert mask_of(matcher) == [0, 2]

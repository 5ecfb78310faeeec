"""Forms with names and counted strings for the tests of this package, and what is checked of every machine of them."""

from __future__ import annotations

import random

import numpy as np

from tests.backends.pushdown_trie.test_fill import by_trial, fillers_of, tokens_of
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.constraint import Choice
from tokdfa.program.builder import Program, ProgramBuilder
from tokdfa.program.program import RETURN_PLACE, Terminal
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.vocabulary import Vocabulary

#: Tokens that begin, end and cross strings, besides all bytes; the last ends the text.
TOKENS = Vocabulary(
    [
        *(bytes([byte]) for byte in range(256)),
        *b'"a a" ab" "" "a"0 a"1 ab aab abab \\u00 \\u0061 61'.split(),
        *b'\\ud83d \\n \\" \\\\ \xf0\x9f \x98\x80 \xc3 \xa9a \xa9" "0 "o baab ba"o'.split(),
        b"",
    ],
    end_tokens=[281],
)


def text_of(*words: bytes) -> Terminal:
    """A text of some words."""
    return Terminal(
        "/".join(map(repr, words)), b"test" + repr(words).encode(), lambda: compile_dfa(Choice(list(words)))
    )


def names_program(names, low=0, high=None, other=False, escapes="all") -> Program:
    """Names of a window, each with its index after it, and with `other` all other strings, with an o."""
    builder = ProgramBuilder(escapes=escapes)
    high = len(names) - 1 if high is None else high
    targets = [builder.read(builder.terminal(text_of(b"%d" % k)), RETURN_PLACE) for k in range(low, high + 1)]
    place = -1
    if other:
        text = builder.string_terminal
        place = builder.read(text, builder.read(builder.terminal(text_of(b"o")), RETURN_PLACE))
    table = builder.name_table(tuple(names), escapes)
    return builder.build(builder.names(table, low, high, targets, place))


def machine_for(program: Program, vocab: Vocabulary = TOKENS, **options) -> Machine:
    """A machine in a pool of its own."""
    return Machine(program, Pool(vocab), **options)


def check_rows(program: Program, vocab: Vocabulary, seed: int, steps: int = 8) -> int:
    """Walk over allowed tokens; the tokens of all masks.

    In every row: all ways to fill give what single steps give; marked first bytes are those that steps refuse; every
    allowed token leads to a row that can go on; the row that stands for others has the same mask.
    """
    rng, marked, plain = (
        random.Random(seed),
        machine_for(program, vocab),
        machine_for(program, vocab, first_bytes=False),
    )
    fillers, row, twin, total = fillers_of(marked), 0, 0, 0
    for _ in range(steps):
        rng.shuffle(fillers)
        expected = by_trial(plain, twin, vocab)
        for filler in fillers:
            assert tokens_of(filler, marked, row) == expected
            assert tokens_of(filler, marked, marked.representative(row)) == expected
        for byte in range(256):
            assert (marked.step(row, byte) < 0) == (plain.step(twin, byte) < 0), byte
        for token in expected:
            after = marked.run_text(vocab.token_bytes(token), row)
            assert marked.can_end(after) or any(marked.step(after, byte) >= 0 for byte in range(256)), "a dead end"
        total += len(expected)
        if not expected:
            break
        chosen = vocab.token_bytes(rng.choice(expected))
        row, twin = marked.run_text(chosen, row), plain.run_text(chosen, twin)
    return total


def check_same(program: Program, other: Program, vocab: Vocabulary, seed: int, steps: int = 8) -> None:
    """Two programs have the same masks, and end alike, along a walk."""
    rng, first, second = random.Random(seed), machine_for(program, vocab), machine_for(other, vocab)
    one, two = 0, 0
    for _ in range(steps):
        tokens = tokens_of(fillers_of(first)[2], first, one)
        assert tokens == by_trial(second, two, vocab)
        assert first.can_end(one) == second.can_end(two)
        if not tokens:
            break
        data = np.frombuffer(vocab.token_bytes(rng.choice(tokens)), dtype=np.uint8)
        one, two = first.run(one, data, 0, len(data)), second.run(two, data, 0, len(data))

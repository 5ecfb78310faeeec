"""Grammars made to hurt, read by every engine of grammars: bounded in time and memory, or refused by a limit."""

from __future__ import annotations

import random

import pytest

from tests.backends.grammar_walks import EVERY, bytes_start, compile_with, grammar_of, tokenizer_of
from tests.walks import advance_all, mask_of
from tokdfa.backends.laws.trial import advances
from tokdfa.constraint import Grammar
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.vocabulary import Vocabulary

MEGABYTE = 1 << 20


def unit_rules(count: int = 60) -> str:
    """Every rule derives every other by itself: as many derivations as there are walks."""
    names = [f"r{number}" for number in range(count)]
    rules = [f'{name}: "{name}" | {" | ".join(other for other in names if other != name)}' for name in names]
    return "start: r0+\n" + "\n".join(rules)


def ring(count: int = 3000) -> str:
    links = "".join(f"c{number}: c{number + 1}\n" for number in range(count))
    return f'start: c0\n{links}c{count}: c0 | "x" | c0 "y"\n'


def chain(count: int = 1500) -> str:
    """Frames that are each the last thing of the one before, and frames that have something after them."""
    links = "".join(f'c{number}: "a" c{number + 1} | "b" c{number + 1} "c"\n' for number in range(count))
    return f'start: c0\n{links}c{count}: "x"\n'


def trees_of_nothing(levels: int = 60) -> str:
    """Each rule is two of the next or nothing: 2**60 trees for the empty text."""
    rules = "".join(f"r{level}: r{level + 1} r{level + 1} |\n" for level in range(levels))
    return f'start: r0\n{rules}r{levels}: "a" |\n'


def palindromes() -> tuple[list[bytes], list[bytes]]:
    rng, taken, refused = random.Random(0), [], []
    for size in (7, 60, 150):
        half = bytes(rng.choices(b"ab", k=size))
        taken += [half + half[::-1], half + half[-2::-1]]
        refused += [half + b"abb" + half[::-1]]
    return taken, refused


ALTERNATIVES = "start: " + " | ".join(f'"k{number:x}" "={number}"' for number in range(1000))
KEYWORDS = "start: (word /,/)*\nword: " + " | ".join(f'"k{number:x}"' for number in range(5000))
HIDDEN = (
    'start: empty start "a" empty | "b" | empty start empty start empty\nempty: | empty empty | nothing\nnothing: \n'
)
NOTHING_OFTEN = 'start: x x x x x x x x\nx: y y y y y y y y\ny: z z z z z z z z |\nz: "a" | x |\n'
COUNTERS = "start: A | B | C\nA: /[ab]{0,100000}x/\nB: /[a-c]{1,99999}y/\nC: /(ab?){3,90000}z/\n"
#: Name -> a grammar, texts of it, and texts that are not.
HOSTILE: dict[str, tuple[str, list[bytes], list[bytes]]] = {
    "brackets": (
        'start: ("(" start ")" | "[" start "]")*\n',
        [b"([" * 5000 + b"])" * 5000],
        [b"([" * 5000 + b"])" * 4999, b"([" * 5000 + b")"],
    ),
    "sums": ('start: e\ne: e e | e "+" e | "a"\n', [b"a+aa" * 40], [b"a+aa" * 40 + b"+", b"a++"]),
    "every tree": ('start: pair | "a" | "aa"\npair: start start | start start start\n', [b"a" * 150], [b""]),
    "palindromes": ('start: "a" start "a" | "b" start "b" | "a" | "b" |\n', *palindromes()),
    "trees of nothing": (trees_of_nothing(), [b"a" * size for size in (0, 1, 20, 40)], [b"b"]),
    "nothing often": (NOTHING_OFTEN, [b"a" * 40], [b"b"]),
    "unit rules": (unit_rules(), [b"r1r2r3" * 300], [b"r60"]),
    "a ring": (ring(), [b"x" + b"y" * 500], [b"y"]),
    "a chain": (
        chain(),
        [b"a" * 1500 + b"x", b"b" * 1500 + b"x" + b"c" * 1500, b"ab" * 750 + b"x" + b"c" * 750],
        [b"ab" * 750 + b"x" + b"c" * 749],
    ),
    "hidden recursion": (HIDDEN, [b"b", b"baaa", b"bb", b"bab" * 20, b"b" + b"a" * 300], [b"", b"a"]),
    "late callers": ('start: e "a" | e e "b"\ne: f\nf: g |\ng: e f\n', [b"a", b"b"], [b"", b"ab"]),
    "empty in a ring": ('start: "c" x x\nx: y y | "a"\ny: x x |\n', [b"c", b"ca", b"caaa"], [b"", b"a"]),
    "keywords": (KEYWORDS, [b"k10e1,kaa,"], [b"kx,"]),
    "alternatives": (ALTERNATIVES, [b"k3e7=999"], [b"k3e7=998"]),
    "a counter": ('start: X "y"\nX: "x"{0,100000} "z"\n', [b"x" * 3000 + b"zy"], [b"x" * 3000 + b"y"]),
    "counted rules": (
        'start: pair~0..100000 "."\npair: "a" "b" | "c"\n',
        [b"abc" * 2500 + b"."],
        [b"abc" * 2501 + b"a."],
    ),
    "counters": (COUNTERS, [b"a" * 2500 + b"x", b"ab" * 500 + b"z", b"a" * 2500 + b"cy"], [b"a" * 2500]),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_texts_of_hostile_grammars(backend, lexer, name):
    grammar, taken, refused = HOSTILE[name]
    start = bytes_start(grammar, backend, lexer=lexer)
    for text in taken + refused:
        matcher = start.fork()
        read = all(advances(matcher, byte) for byte in text)
        mask_of(matcher)
        assert (read and matcher.can_end()) == (text in taken), text[:80]
    assert start._compiled.sizes["bytes"] < 100 * MEGABYTE


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_ten_thousand_brackets(backend, lexer):
    """By tokens of several brackets, with masks on the way; then all of it taken back."""
    tokenizer = tokenizer_of("mistral-v1")
    matcher = compile_with(grammar_of("json"), tokenizer.vocabulary, backend, lexer=lexer).start()
    before, down, up = mask_of(matcher), tokenizer.encode("[" * 10_000), tokenizer.encode("]" * 10_000)
    assert len(down) < 10_000
    for place, token in enumerate(down + up):
        if place % 1000 == 0:
            assert token in mask_of(matcher)
        matcher.advance(token)
    assert matcher.can_end()
    assert matcher._compiled.sizes["bytes"] < 64 * MEGABYTE
    matcher.rollback(len(down + up))
    assert mask_of(matcher) == before
    advance_all(matcher, tokenizer.encode('{"a": [1, null]}'))
    assert matcher.can_end()


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_tokens_of_thousands_of_brackets(backend, lexer):
    """One walk over the trie opens and closes 2,000 brackets."""
    sizes = [1, 2, 3, 5, 50, 500, 2000]
    tokens = [bracket * size for size in sizes for bracket in (b"(", b")")]
    vocab = Vocabulary([*tokens, b"(" * 1000 + b")" * 1000, b""], end_tokens=[len(tokens) + 1])
    matcher = compile_with('start: ("(" start ")")*\n', vocab, backend, lexer=lexer).start()
    both = len(tokens)
    assert mask_of(matcher) == [*range(0, both, 2), both, both + 1]
    matcher.advance(tokens.index(b"(" * 50))
    closing = [token for token in range(1, both, 2) if len(tokens[token]) <= 50]
    assert mask_of(matcher) == sorted([*range(0, both, 2), *closing, both])
    advance_all(matcher, [both, tokens.index(b")" * 50), both])
    assert matcher.can_end()


def read_to_the_limit(matcher, text):
    """How many bytes the matcher took, with a mask after each, and the limit that ended it."""
    taken = 0
    try:
        for byte in text:
            matcher.advance(byte)
            taken += 1
            mask_of(matcher)
    except LimitExceeded as error:
        return taken, error
    raise AssertionError("there is no limit")


@pytest.mark.parametrize("lexer", ["longest", "any"])
def test_a_text_of_more_rows_than_tables_hold_goes_on(lexer):
    """Five thousand brackets open: rows, with the stacks that they return to, are carried over into new tables."""
    grammar = 'start: "(" start ")" | "q"\n'
    matcher = compile_with(
        Grammar(grammar), tokenizer_of("bytes").vocabulary, "pushdown_trie", table_mb=1, lexer=lexer
    ).start()
    advance_all(matcher, b"(" * 5000)
    assert mask_of(matcher) == list(b"(q")
    advance_all(matcher, b"q" + b")" * 4000)
    assert mask_of(matcher) == list(b")")
    matcher.rollback(6000)
    assert mask_of(matcher) == list(b"(q")
    advance_all(matcher, b"q" + b")" * 3001)
    assert matcher.can_end()


@pytest.mark.parametrize(
    ("backend", "lexer", "limit", "value", "text"),
    [
        ("earley_trie", "longest", "max_rows", 100, b"(" * 500),
        ("earley_trie", "longest", "max_row_items", 16, b"x"),
        ("earley_trie", "longest", "max_lexer_states", 100, b"y" * 500),
        *(("pushdown_trie", lexer, "max_row_items", 16, b"x") for lexer in ("longest", "any")),
    ],
)
def test_limits_are_raised_and_survived(backend, lexer, limit, value, text):
    """The matcher is where it was before the token that was too much, and goes on from there."""
    many = " | ".join(f'"x" "{letter}" x' for letter in "abcdefghijklmnopq")
    grammar = f'start: "(" start ")" | x | /y{{400,4000}}/ | "q"\nx: "q" | "x" t\nt: {many}\n'
    options = {limit: value, "lexer": lexer}
    if backend == "earley_trie":
        options["patience"] = 0  # a walk asks for the row behind a lexeme where no token goes on, a table does not
    compiled = compile_with(Grammar(grammar), tokenizer_of("bytes").vocabulary, backend, **options)
    matcher = compiled.start()
    before = mask_of(matcher)
    assert before == list(b"(qxy")
    advance_all(matcher, b"((q))")
    for _ in range(2):
        matcher = compiled.start()
        taken, error = read_to_the_limit(matcher, text)
        assert error.limit == limit
        matcher.rollback(taken)
        assert mask_of(matcher) == before
        advance_all(matcher, b"((q))")
        assert matcher.can_end()

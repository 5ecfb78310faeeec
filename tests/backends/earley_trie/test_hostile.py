"""Grammars made to hurt: bounded in time and memory, or refused by a limit, and the matcher is usable afterwards.

More of them are in `tests/backends/earley_trie` (brackets, choices, keywords, one long counter, exponentially many
parses) and beside the parts that they hurt (`test_earley`, `test_lexer`, `test_machine`, `test_lark_reader`).
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.grammar.lexed_cfgs import accepts, compile_cfg, mask_of, run
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.laws.trial import advances
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.regex.expression import ExpressionStore
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

MEGABYTE = 1 << 20


def machine_of(grammar, **limits):
    return Machine(read_lark(grammar), **limits)


def start(grammar, tokenizer="bytes", **options):
    """A matcher before the first token."""
    vocab = load_tokenizer(tokenizer).vocabulary
    return create_backend("earley_trie", vocab, **options).compile(Grammar(grammar)).start()


def advance_all(matcher, tokens):
    for token in tokens:
        matcher.advance(token)


# Depth.


def test_brackets_of_a_real_vocabulary():
    """Nested 10,000 deep by tokens of several brackets, with masks on the way; then all of it taken back."""
    tokenizer = load_tokenizer("mistral-v1")
    text = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars" / "json.lark"
    matcher = start(text.read_text(), "mistral-v1")
    before, down, up = mask_of(matcher), tokenizer.encode("[" * 10_000), tokenizer.encode("]" * 10_000)
    assert len(down) < 10_000
    tokens = down + up
    for place, token in enumerate(tokens):
        if place % 1000 == 0:
            assert token in mask_of(matcher)
        matcher.advance(token)
    assert matcher.can_end()
    assert matcher._compiled.machine.nbytes < 40 * MEGABYTE
    matcher.rollback(len(tokens))
    assert mask_of(matcher) == before
    advance_all(matcher, tokenizer.encode('{"a": [1, null]}'))
    assert matcher.can_end()


def test_tokens_of_thousands_of_brackets():
    """One walk over the trie opens and closes 2,000 brackets; as many rows as the deepest token needs."""
    sizes = [1, 2, 3, 5, 50, 500, 2000]
    tokens = [bracket * size for size in sizes for bracket in (b"(", b")")]
    vocab = Vocabulary([*tokens, b"(" * 1000 + b")" * 1000, b""], end_tokens=[len(tokens) + 1])
    matcher = create_backend("earley_trie", vocab).compile(Grammar('start: ("(" start ")")*\n')).start()
    both = len(tokens)
    assert mask_of(matcher) == [*range(0, both, 2), both, both + 1]
    matcher.advance(tokens.index(b"(" * 50))
    closing = [token for token in range(1, both, 2) if len(tokens[token]) <= 50]
    assert mask_of(matcher) == sorted([*range(0, both, 2), *closing, both])
    advance_all(matcher, [both, tokens.index(b")" * 50), both])
    assert matcher.can_end()
    assert matcher._compiled.machine.rows.row_count < 10_000


@pytest.mark.parametrize("mask", ["effects", "slices", "walk"])
def test_a_limit_on_rows_met_while_a_mask_is_made(mask):
    """No mask that needs more rows; whatever needs rows that there are goes on to work."""
    vocab = Vocabulary([b"(", b")", b"(" * 300, b"x", b""], end_tokens=[4])
    compiled = create_backend("earley_trie", vocab, max_rows=100, mask=mask).compile(
        Grammar('start: "(" start ")" | "x"\n')
    )
    known = compiled.start()
    advance_all(known, [0, 0, 3, 1, 1])
    matcher = compiled.start()
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="deeply nested"):
            mask_of(matcher)
        advance_all(matcher, [0, 0, 3, 1])
        assert mask_of(matcher) == [1]
        matcher.advance(1)
        assert mask_of(matcher) == [4]
        matcher.rollback(5)
    assert compiled.machine.rows.row_count == 100


# Many alternatives.


def literals_cfg(words):
    """A rule for each word, made without a notation to read."""
    store = ExpressionStore()
    lexemes = tuple(Lexeme(word, store.literal(word.encode())) for word in words)
    rules = tuple((len(words), (symbol,)) for symbol in range(len(words)))
    return Cfg(lexemes, (*words, "start"), rules, len(words), -1, store)


def test_a_hundred_thousand_lexemes():
    """All of them are alive in the first lexer state, and items of one row."""
    words = [f"w{number:x}" for number in range(100_000)]
    compiled = compile_cfg(literals_cfg(words), load_tokenizer("bytes").vocabulary, mask="walk")
    machine = compiled.machine
    assert machine.nbytes < 200 * MEGABYTE
    rng = random.Random(0)
    for word in [words[0], words[-1], *rng.sample(words, 200)]:
        assert accepts(machine, word.encode())
    for text in (b"wg", b"w186a0", b"x"):
        assert run(machine, machine.start, text) == -1
    matcher = compiled.start()
    assert mask_of(matcher) == [ord("w")]
    advance_all(matcher, b"w1869")
    assert mask_of(matcher) == [*b"0123456789abcdef", 256]
    assert machine.nbytes < 200 * MEGABYTE


def test_an_enum_of_five_thousand():
    """Strings as rules, as one terminal, and as a choice without a grammar: the same masks."""
    words = [f'"{number * 7919 % 5003:x} option {number}"' for number in range(5000)]
    written = [word.replace('"', '\\"') for word in words]
    tokenizer = load_tokenizer("mistral-v1")
    rules = start("start: " + " | ".join(f'"{word}"' for word in written), "mistral-v1")
    terminal = start("start: WORD\nWORD: " + " | ".join(f'"{word}"' for word in written), "mistral-v1")
    choice = create_backend("token_index", tokenizer.vocabulary, lazy=True).compile(Choice(words)).start()
    matchers = (rules, terminal, choice)
    for token in tokenizer.encode(words[4321]):
        found = mask_of(choice)
        assert token in found
        assert mask_of(rules) == mask_of(terminal) == found
        for matcher in matchers:
            matcher.advance(token)
    assert [mask_of(matcher) for matcher in matchers] == [list(tokenizer.vocabulary.end_tokens)] * 3


# Counters.


def test_counters_that_overlap():
    """Four terminals that count to 100,000 at once: a state for each length that was read, not for each that may be."""
    grammar = "start: A | B | C | D\nA: /[ab]{0,100000}x/\nB: /[a-c]{1,99999}y/\nC: /(ab?){3,90000}z/\nD: /a{70000,}/\n"
    machine = machine_of(grammar)
    assert accepts(machine, b"a" * 2500 + b"x")
    assert accepts(machine, b"ab" * 500 + b"z")
    assert accepts(machine, b"a" * 2500 + b"c" + b"y")
    assert not accepts(machine, b"a" * 2500)
    assert machine.nbytes < 60 * MEGABYTE


@pytest.mark.parametrize("count", ["", "~0..100000", "{0,100000}", "{5000}"])
def test_counted_rules(count):
    """Counting to 100,000 with rules takes few of them, and a row of few items for each number."""
    machine = machine_of(f'start: pair{count} "."\npair: "a" "b" | "c"\n')
    assert len(machine.cfg.rules) < 400
    assert accepts(machine, (b"abc" * 2500 if count else b"c") + b".")
    assert run(machine, machine.start, b"abc" * 2501 + b"a." if count else b"cc") == -1
    assert machine.rows.row_count < 10_000
    assert machine.nbytes < 60 * MEGABYTE


def test_counters_in_counters(monkeypatch):
    """Written out they would be a billion, and ambiguous. Past the limit there are masks where names see no count."""
    monkeypatch.setattr("tokdfa.backends.earley_trie.effects.NODES_PER_NAME", 0)
    matcher = start("start: A\nA: /(([ab]{1,1000}c?){1,1000}d?){1,1000}/\n", max_lexer_states=3000)
    assert matcher._compiled.machine.nbytes < 20 * MEGABYTE
    advance_all(matcher, b"abcabdab")
    assert mask_of(matcher) == [*b"abcd", 256]
    with pytest.raises(LimitExceeded) as caught:
        advance_all(matcher, b"abcd" * 100_000)
    assert caught.value.limit == "max_lexer_states"
    mask_of(matcher.fork())
    matcher.rollback(1)
    assert matcher.can_end()


# Ambiguity.


def test_a_row_that_grows_past_its_limit():
    """Ambiguity is refused by the items of one row; shorter texts are read as before."""
    matcher = start('start: start start start | start start | "a"\n', max_row_items=500)
    with pytest.raises(LimitExceeded, match="items at one place") as caught:
        advance_all(matcher, b"a" * 1000)
    assert caught.value.limit == "max_row_items"
    assert matcher.can_end()
    matcher.rollback(3)
    assert mask_of(matcher) == [ord("a"), 256]
    advance_all(matcher, b"aa")
    assert matcher.can_end()


def test_palindromes():
    """Where the middle is cannot be known: every place is one reading more."""
    machine = machine_of('start: "a" start "a" | "b" start "b" | "a" | "b" |\n')
    rng = random.Random(0)
    for size in (7, 8, 60, 200):
        half = bytes(rng.choices(b"ab", k=size))
        assert accepts(machine, half + half[::-1])
        assert accepts(machine, half + half[-2::-1])
        text = half + b"ab"
        assert accepts(machine, text) == (text == text[::-1])
    assert accepts(machine, b"a" * 401)
    assert machine.nbytes < 100 * MEGABYTE


def test_trees_of_nothing():
    """Each rule is two of the next or nothing: 2**60 trees for the empty text, and one row less than letters."""
    rules = "".join(f"r{level}: r{level + 1} r{level + 1} |\n" for level in range(60))
    machine = machine_of(f'start: r0\n{rules}r60: "a" |\n')
    for size in range(40):
        assert accepts(machine, b"a" * size)
    assert machine.nbytes < 20 * MEGABYTE
    twice = machine_of('start: x x x x x x x x\nx: y y y y y y y y\ny: z z z z z z z z |\nz: "a" | x |\n')
    assert accepts(twice, b"a" * 60)


def test_cycles_of_unit_rules():
    """Every rule derives every other by itself: as many derivations as there are walks."""
    count = 60
    every = [f"r{number}" for number in range(count)]
    rules = "".join(f'{name}: "{name}" | {" | ".join(other for other in every if other != name)}\n' for name in every)
    machine = machine_of(f"start: r0+\n{rules}")
    for text in (b"r0", b"r59", b"r7r7r7", b"r1r2r3" * 30):
        assert accepts(machine, text)
    assert run(machine, machine.start, b"r60") == -1
    rows = machine.rows.row_count
    assert accepts(machine, b"r1r2r3" * 300)
    assert machine.rows.row_count == rows
    long = "".join(f"c{number}: c{number + 1}\n" for number in range(3000))
    ring = machine_of(f'start: c0\n{long}c3000: c0 | "x" | c0 "y"\n')
    assert accepts(ring, b"x" + b"y" * 500)
    assert not accepts(ring, b"y")


def test_recursion_that_is_hidden():
    """Left recursion behind what may be empty, right recursion before it, both at once, and an empty middle."""
    rules = "empty: | empty empty | nothing\nnothing: \n"
    grammar = f'start: empty start "a" empty | "b" | empty start empty start empty\n{rules}'
    machine = machine_of(grammar)
    for text in (b"b", b"baaa", b"bb", b"bab" * 20, b"b" + b"a" * 300):
        assert accepts(machine, text), text
    assert not accepts(machine, b"")
    assert run(machine, machine.start, b"a") == -1


# All at once.


def test_masks_of_hostile_grammars_agree():
    """Partitions, slices and walks, on tokens that end several lexemes of ambiguous grammars at once."""
    letters = [b"a", b"b", b"(", b")", b"+", b" "]
    rng = random.Random(3)
    tokens = letters + [b"".join(rng.choices(letters, k=rng.randint(2, 40))) for _ in range(300)]
    vocab = Vocabulary([*dict.fromkeys(tokens), b""], end_tokens=[len(dict.fromkeys(tokens))])
    rules = 'start: e\ne: e e | e "+" e | "(" e? ")" | A | AB | n\nn: n n | | B\n'
    grammar = Grammar(rules + 'A: /a+/\nAB: /(a|b)*b/\nB: "b"\n%ignore / +/\n')
    matchers = [
        create_backend("earley_trie", vocab, mask=mask).compile(grammar).start()
        for mask in ("effects", "slices", "walk")
    ]
    for _ in range(25):
        found = [mask_of(matcher) for matcher in matchers]
        assert found[0] == found[1] == found[2]
        for token in rng.sample(range(vocab.size - 1), 20):
            assert advances(matchers[0].fork(), token) == (token in found[0])
        token = rng.choice([token for token in found[0] if token not in vocab.end_token_set])
        for matcher in matchers:
            matcher.advance(token)

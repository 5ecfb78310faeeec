"""Which texts the machine takes, against recognisers that share nothing with it; growth, limits, and hostile grammars.

Oracles: `tests.naive.cfg_recogniser` (a table of spans) for every way to cut a text; `tests.naive.lexed_earley` and
`tokdfa.backends.earley_trie.machine` for the longest match; Lark's Earley parser for grammars in its notation.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path

import lark
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import BYTES, LEXERS, accepts, machine_of
from tests.grammar import random_cfgs
from tests.grammar.grammars import LarkJudge, lark_grammars
from tests.grammar.lexed_cfgs import PATTERNS, byte_cfgs, lexed_cfgs, make_cfg, run, short_texts
from tests.naive.cfg_recogniser import CfgRecogniser
from tests.naive.lexed_earley import LexedEarley
from tokdfa.backends.earley_trie.machine import Machine as OtherMachine
from tokdfa.backends.pushdown_trie import machine_tables, program
from tokdfa.backends.pushdown_trie.machine_tables import MachineFull
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme, SpecialTokens
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.regex.expression import ExpressionStore

FOLDER = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))
MEGABYTE = 1 << 20

# Every way to cut a text: against a table of spans.


def check_texts(cfg, texts, outcomes):
    machine, twin = machine_of(cfg), CfgRecogniser(cfg, outer_skip=True)
    for text in texts:
        taken = accepts(machine, text)
        assert taken == twin.accepts(text), text
        outcomes[taken] += 1


@pytest.mark.parametrize(
    ("grammars", "texts", "least"),
    [
        (byte_cfgs(), short_texts(b"ab", 5), 200),
        (lexed_cfgs(), short_texts(b"abc", 4), 200),
        (random_cfgs.cfgs(), short_texts(b"abc", 4), 50),
    ],
    ids=["bytes", "lexemes", "useless symbols"],
)
def test_texts_are_cut_in_every_way(grammars, texts, least):
    """Recursion of every kind, nullable loops, cycles of unit rules, ambiguity, skipped and lazy lexemes."""
    outcomes = Counter()

    @settings(max_examples=50)
    @given(grammars)
    def check(cfg):
        check_texts(cfg, texts, outcomes)

    check()
    assert outcomes[True] > least
    assert outcomes[False] > least


@pytest.mark.parametrize("ignore", [False, True])
def test_texts_are_larks(ignore):
    """Lark's `dynamic_complete` on random grammars in its notation. Its %ignore needs something to stand beside."""
    texts = short_texts(b"abc" if ignore else b"ab", 4)
    outcomes = Counter()

    @settings(max_examples=10)
    @given(lark_grammars(ignore=ignore))
    def check(grammar):
        machine, judge = machine_of(grammar), LarkJudge(grammar)
        for text in texts:
            taken = accepts(machine, text)
            assert taken == judge.accepts(text.decode()), text
            outcomes[taken] += 1

    check()
    assert outcomes[True] > 50


@cache
def listed(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


#: Lark takes ignored text as long as it matches even where terminals may be cut short; here a comment may be cut, too.
CUT_COMMENTS = {"c_like": ["int x = 1 // ;"], "sexpr": ["(a ; b)"]}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tool_call_lazy"])
def test_texts_of_real_grammars_are_larks(name):
    """Lark's `dynamic_complete` takes them by any cut."""
    grammar = (FOLDER / f"{name}.lark").read_text()
    machine = machine_of(grammar)
    judge = lark.Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    texts = listed(name)
    short = [text for said in texts for text in texts[said] if len(text) < 120]
    assert len(short) > 12
    differ = []
    for text in short:
        try:
            judge.parse(text)
            taken = True
        except lark.exceptions.UnexpectedInput:
            taken = False
        if accepts(machine, text.encode()) != taken:
            differ.append(text)
    assert differ == CUT_COMMENTS.get(name, [])


@pytest.mark.parametrize("name", NAMES)
def test_texts_of_real_grammars(name):
    """By both lexers all accepted texts; by the longest match no refused one."""
    grammar = (FOLDER / f"{name}.lark").read_text()
    for lexer in LEXERS:
        machine = machine_of(grammar, lexer)
        assert [text for text in listed(name)["accepted"] if not accepts(machine, text.encode())] == []
        if lexer == "longest":
            assert [text for text in listed(name)["refused"] if accepts(machine, text.encode())] == []


# Longest match: against plain Earley over lexemes, and the other engine.


def test_longest_match_is_as_defined():
    """All texts of up to six letters: which go on, and which are complete."""
    outcomes = Counter()

    @settings(max_examples=40)
    @given(lexed_cfgs())
    def check(cfg):
        machine, twin = machine_of(cfg, "longest"), LexedEarley(cfg)
        agenda = [b""]
        while agenda:
            text = agenda.pop()
            row = machine.run_text(text)
            assert (row >= 0) == twin.goes_on(text), text
            if row < 0:
                continue
            assert machine.can_end(row) == twin.accepts(text), text
            outcomes[machine.can_end(row)] += 1
            if len(text) < 6:
                agenda += [text + letter for letter in (b"a", b"b", b"c")]

    check()
    assert min(outcomes[True], outcomes[False]) > 500


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True),
    st.text("ab", min_size=10, max_size=40).map(str.encode),
)
def test_long_texts_of_any_lexemes(patterns, text):
    """One list of all lexemes: fallbacks live long, and have fallbacks of their own."""
    cfg = make_cfg(tuple(patterns), {"s": [(), *(("s", pattern) for pattern in patterns)]})
    machine, twin = machine_of(cfg, "longest"), LexedEarley(cfg)
    for size in range(len(text) + 1):
        row = machine.run_text(text[:size])
        assert (row >= 0) == twin.goes_on(text[:size])
        if row < 0:
            break
        assert machine.can_end(row) == twin.accepts(text[:size])


def test_longest_match_is_the_other_engines():
    """Random texts of 60 bytes along what both allow: many rows, chains and groups at a time."""
    walked = Counter()

    @settings(max_examples=30)
    @given(lexed_cfgs(), st.integers(0, 1000))
    def check(cfg, seed):
        rng = random.Random(seed)
        machine, other = machine_of(cfg, "longest"), OtherMachine(cfg)
        row, there, text = 0, other.start, b""
        for _ in range(60):
            steps = {letter: (machine.step(row, letter), run(other, there, bytes([letter]))) for letter in b"abc"}
            for letter, (mine, theirs) in steps.items():
                assert (mine >= 0) == (theirs >= 0), (text, letter)
            assert machine.can_end(row) == other.can_end(there), text
            alive = [letter for letter, (mine, _) in steps.items() if mine >= 0]
            if not alive:
                break
            letter = rng.choice(alive)
            text += bytes([letter])
            row, there = steps[letter]
        walked[len(text) == 60] += 1

    check()
    assert walked[True] > 5


@pytest.mark.parametrize(
    ("grammar", "text", "taken"),
    [
        ('start: W "ed"\nW: "list" | "listen"\n', b"listened", True),
        ('start: W "ed"\nW: "list" | "listen"\n', b"listed", True),
        ('start: W "ed"\nW: "list" | "listen"\n', b"listend", False),
        ('start: (N | ".")+\nN: /[0-9]+(\\.[0-9]+)?/\n', b"1..5", True),
        ("start: ID ID\nID: /[a-z]+/\n", b"ab", False),
        ("start: ID ID\nID: /[a-z]+/\n%ignore / +/\n", b"  ab cd ", True),
        ('start: x "b"\nx[lazy]: /a*b/\n', b"aabb", True),
        ('start: x "b"\nx[lazy]: /.*END/\n', b"ENDENDb", False),
        ('start: "a" W "b"\nW: / +/\n%ignore / +/\n', b"a  b", True),
    ],
)
def test_where_a_lexeme_ends(grammar, text, taken):
    assert accepts(machine_of(grammar, "longest"), text) == taken


# Special tokens.


@pytest.mark.parametrize("lexer", LEXERS)
def test_special_tokens(lexer):
    """All sequences of up to six of three letters and a token, with skipped text and fallbacks."""
    store = ExpressionStore()
    names = ("<x>", "a|abc", "b", "c", "s", "t")
    letters = [store.literal(letter) for letter in (b"a", b"b", b"c")]
    expressions = [store.union([letters[0], store.literal(b"abc")]), letters[1], letters[2]]
    pairs = zip(names[1:], expressions, strict=False)
    lexemes = (SpecialTokens(names=("<x>",), name="<x>"), *(Lexeme(name, expression) for name, expression in pairs))
    rules = ((4, (5, 0, 5)), (4, ()), (5, (1,)), (5, (1, 2)), (5, (5, 0)))
    cfg = Cfg(lexemes, names, rules, 4, 3, store)
    machine = machine_of(cfg, lexer)
    token = frozenset({0}) if lexer == "longest" else "<x>"
    twin = LexedEarley(cfg) if lexer == "longest" else CfgRecogniser(cfg, outer_skip=True)
    taken, agenda = 0, [((), 0)]
    while agenda:
        text, row = agenda.pop()
        assert machine.can_end(row) == twin.accepts(text), text
        taken += machine.can_end(row)
        following = [(letter, machine.step(row, letter)) for letter in b"abc"]
        following.append((token, machine.take(row, {0})))
        assert (following[-1][1] >= 0) == (machine.token_sets(row) == {0})
        assert machine.take(row, set()) == -1
        for symbol, target in following:
            if lexer == "longest":
                assert (target >= 0) == twin.goes_on((*text, symbol)), (text, symbol)
            if target >= 0 and len(text) < (6 if lexer == "longest" else 5):
                agenda.append(((*text, symbol), target))
    assert taken > 30


# Growth and limits.


def test_every_table_grows():
    """The same texts by a machine that has grown step by step and by one that was asked for the longest at once."""
    grammar = 'start: e\ne: e e | "(" e ")" | e "+" e | W\nW: /[a-z]+/\n%ignore / /\n'
    for lexer in LEXERS:
        grown, fresh = machine_of(grammar, lexer), machine_of(grammar, lexer)
        texts = [b"(" * depth + b"a+b c" * 3 + b")" * depth for depth in range(25)]
        for text in texts:
            assert accepts(grown, text)
        assert accepts(fresh, texts[-1])
        for text in [*texts, b"(" * 24 + b"a+)", b"()", b"a++"]:
            assert accepts(fresh, text) == accepts(grown, text) == (text in texts)
        assert len(grown.row_flags) > 64
        assert grown.stacks.room > 64


def test_a_full_machine_goes_on_with_what_it_has():
    machine = machine_of('start: "(" start ")" | "x"\n', max_bytes=200_000)
    assert accepts(machine, b"((x))")
    for _ in range(2):
        with pytest.raises(MachineFull, match="raise table_mb"):
            machine.run_text(b"(" * 10_000)
        assert accepts(machine, b"((x))")
        assert not accepts(machine, b"((x)")
    assert machine.nbytes < 600_000


@pytest.mark.parametrize("lexer", LEXERS)
def test_too_many_items(lexer):
    """Counted in the live items of a row: 17 alternatives of two lexemes are too many for 16."""
    letters = "abcdefghijklmnopq"
    grammar = "start: " + " | ".join(f'"x" "{letter}" "y"' for letter in letters) + ' | "z"\n'
    machine = machine_of(grammar, lexer, max_items=16)
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="more than 16 ways") as caught:
            machine.run_text(b"xq")
        assert (caught.value.limit, caught.value.value) == ("max_row_items", 16)
        assert machine.run_text(b"") == 0
    assert accepts(machine_of(grammar, lexer, max_items=40), b"xqy")


def test_too_many_instructions(monkeypatch):
    monkeypatch.setattr(program, "MAX_PLACES", 10)
    with pytest.raises(LimitExceeded, match="instructions; at most 10 fit"):
        machine_of('start: "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k"\n')


def test_too_long_chains(monkeypatch):
    monkeypatch.setattr(machine_tables, "MAX_CHAIN", 100)
    machine = machine_of(make_cfg(("a|a+b", "c"), {"s": [("a|a+b", "s", "c"), ("a|a+b", "c")]}), "longest")
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="cut into lexemes") as caught:
            machine.run_text(b"a" * 2000)
        assert caught.value.limit == "max_chain"
        assert accepts(machine, b"a" * 20 + b"c" * 20)


# Hostile grammars.


@pytest.mark.parametrize("lexer", LEXERS)
def test_ten_thousand_brackets(lexer):
    machine, depth = machine_of('start: ("(" start ")" | "[" start "]")*\n', lexer), 5000
    assert accepts(machine, b"([" * depth + b"])" * depth)
    assert not accepts(machine, b"([" * depth + b"])" * (depth - 1))
    assert machine.run_text(b"([" * depth + b")") == -1
    assert machine.row_count < 41_000
    assert machine.nbytes < 80 * MEGABYTE


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize(
    "grammar",
    [
        'start: e\ne: e e | "a"\n',
        'start: start start | "a" | "aa" | start start start\n',
        'start: e\ne: e e | e "+" e | "a"\n',
    ],
)
def test_every_tree_of_a_sum(grammar, lexer):
    """Exponentially many trees; a row has as many items as there are lexemes, a stack no more entries than letters."""
    machine, size = machine_of(grammar, lexer), 150
    assert accepts(machine, b"a" * size)
    assert machine.row_count <= 2 * size + 2
    assert machine.stack_count <= 2 * size + 2
    entries = max(len(machine.stack(stack)) for stack in range(machine.stack_count))
    assert entries <= 4 * size
    assert max(len(machine.items(row)) for row in range(machine.row_count)) <= 4 * size
    assert machine.nbytes < 20 * MEGABYTE


@pytest.mark.parametrize("lexer", LEXERS)
def test_palindromes(lexer):
    """Where the middle is cannot be known: every place is one reading more."""
    machine = machine_of('start: "a" start "a" | "b" start "b" | "a" | "b" |\n', lexer)
    rng = random.Random(0)
    for size in (7, 8, 60, 200):
        half = bytes(rng.choices(b"ab", k=size))
        assert accepts(machine, half + half[::-1])
        assert accepts(machine, half + half[-2::-1])
        text = half + b"ab"
        assert accepts(machine, text) == (text == text[::-1])
    assert machine.nbytes < 40 * MEGABYTE


@pytest.mark.parametrize("lexer", LEXERS)
def test_trees_of_nothing(lexer):
    """Each rule is two of the next or nothing: 2**60 trees for the empty text."""
    rules = "".join(f"r{level}: r{level + 1} r{level + 1} |\n" for level in range(60))
    machine = machine_of(f'start: r0\n{rules}r60: "a" |\n', lexer)
    for size in range(40):
        assert accepts(machine, b"a" * size)
    twice = machine_of('start: x x x x x x x x\nx: y y y y y y y y\ny: z z z z z z z z |\nz: "a" | x |\n', lexer)
    assert accepts(twice, b"a" * 40)
    assert twice.nbytes < 20 * MEGABYTE


@pytest.mark.parametrize("lexer", LEXERS)
def test_cycles_of_unit_rules(lexer):
    count = 60
    every = [f"r{number}" for number in range(count)]
    rules = "".join(f'{name}: "{name}" | {" | ".join(other for other in every if other != name)}\n' for name in every)
    machine = machine_of(f"start: r0+\n{rules}", lexer)
    assert accepts(machine, b"r1r2r3" * 30)
    rows = machine.row_count
    assert accepts(machine, b"r1r2r3" * 300)
    assert machine.row_count == rows
    assert machine.run_text(b"r60") == -1
    ring = "".join(f"c{number}: c{number + 1}\n" for number in range(3000))
    machine = machine_of(f'start: c0\n{ring}c3000: c0 | "x" | c0 "y"\n', lexer)
    assert accepts(machine, b"x" + b"y" * 500)
    assert not accepts(machine, b"y")


def test_chains_of_calls_that_are_longer_than_one_move():
    """Three thousand frames, each the last thing of the one before, and each with something after it."""
    chain = "".join(f'c{number}: "a" c{number + 1} | "b" c{number + 1} "c"\n' for number in range(3000))
    machine = machine_of(f'start: c0\n{chain}c3000: "x"\n')
    assert accepts(machine, b"a" * 3000 + b"x")
    assert accepts(machine, b"b" * 3000 + b"x" + b"c" * 3000)
    assert accepts(machine, b"ab" * 1500 + b"x" + b"c" * 1500)
    assert not accepts(machine, b"ab" * 1500 + b"x" + b"c" * 1499)


@pytest.mark.parametrize("lexer", LEXERS)
def test_hidden_recursion(lexer):
    """Left recursion behind what may be empty, right recursion before it, both at once, and an empty middle."""
    rules = "empty: | empty empty | nothing\nnothing: \n"
    machine = machine_of(f'start: empty start "a" empty | "b" | empty start empty start empty\n{rules}', lexer)
    for text in (b"b", b"baaa", b"bb", b"bab" * 20, b"b" + b"a" * 300):
        assert accepts(machine, text), text
    assert not accepts(machine, b"")
    assert machine.run_text(b"a") == -1


@pytest.mark.parametrize("lexer", LEXERS)
def test_five_thousand_keywords(lexer):
    """One text, so one item of each row."""
    keywords = " | ".join(f'"k{number:x}"' for number in range(5000))
    machine = machine_of(f"start: (word /,/)*\nword: {keywords}\n", lexer)
    assert accepts(machine, b"k10e1,kaa,")
    assert not accepts(machine, b"kx,")
    assert max(len(machine.items(row)) for row in range(machine.row_count)) <= 2


@pytest.mark.parametrize("lexer", LEXERS)
def test_many_alternatives_that_go_on(lexer):
    """A thousand of two lexemes each: as many items, and no more than that."""
    count = 1000
    grammar = "start: " + " | ".join(f'"k{number:x}" "={number}"' for number in range(count)) + "\n"
    machine = machine_of(grammar, lexer)
    assert accepts(machine, b"k3e7=999")
    assert not accepts(machine, b"k3e7=998")
    assert len(machine.items(0)) <= count + 1
    assert machine.nbytes < 5 * MEGABYTE


@pytest.mark.parametrize("lexer", LEXERS)
def test_counters(lexer):
    """Counting to 100,000 takes a state, or a row, for each number that was read and not for each that may be."""
    machine = machine_of('start: X "y"\nX: "x"{0,100000} "z"\n', lexer)
    assert accepts(machine, b"x" * 3000 + b"zy")
    machine = machine_of('start: pair~0..100000 "."\npair: "a" "b" | "c"\n', lexer)
    assert accepts(machine, b"abc" * 2500 + b".")
    assert machine.run_text(b"abc" * 2501 + b"a.") == -1
    assert machine.nbytes < 60 * MEGABYTE
    machine = machine_of("start: A | B | C\nA: /[ab]{0,100000}x/\nB: /[a-c]{1,99999}y/\nC: /(ab?){3,90000}z/\n", lexer)
    assert accepts(machine, b"a" * 2500 + b"x")
    assert accepts(machine, b"ab" * 500 + b"z")
    assert accepts(machine, b"a" * 2500 + b"cy")
    assert machine.pool.automata.state_count < 20_000


@pytest.mark.parametrize("lexer", LEXERS)
def test_after_a_limit_the_machine_reads_on(lexer):
    """Every limit in one grammar; whatever ends a long text, the short ones are read as before."""
    grammar = 'start: e\ne: e e e | e e | "(" e ")" | "a"\n'
    machine = machine_of(grammar, lexer, max_items=60, max_bytes=400_000)
    short = [b"a", b"(a)a", b"((a)(aa))"]
    assert all(accepts(machine, text) for text in short)
    for text in (b"a" * 5000, b"(" * 5000, b"(a" * 3000):
        with pytest.raises(LimitExceeded):
            machine.run_text(text)
        assert all(accepts(machine, text) for text in short)
    assert machine.nbytes < 8 * MEGABYTE


def test_forms_of_the_reader_and_of_the_machine_have_one_vocabulary():
    """The machine itself only needs bytes; two vocabularies give the same rows."""
    cfg = read_lark('start: "(" start ")" | W\nW: /[a-z]+/\n')
    one, other = machine_of(cfg, "longest", BYTES), machine_of(cfg, "longest")
    for text in (b"((ab))", b"(", b"ab)"):
        assert one.run_text(text) == other.run_text(text)
    assert one.row_count == other.row_count

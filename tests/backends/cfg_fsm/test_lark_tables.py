"""Lark's tables as arrays, against Lark's parser at work; and what is refused, with place and remedy."""

from __future__ import annotations

import random

import lark
import numpy as np
import pytest

from tests.backends.cfg_fsm.oracles import NAMES, corpus, lark_of
from tokdfa.backends.cfg_fsm.lark_tables import read_tables
from tokdfa.backends.cfg_fsm.stacks import REFUSED, Stacks
from tokdfa.backends.cfg_fsm.strategy import CfgFsm
from tokdfa.constraint import Grammar
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, UnknownNameError, UnsupportedConstraint
from tokdfa.vocabulary.vocabulary import Vocabulary


@pytest.mark.parametrize("name", NAMES)
def test_the_parser_takes_what_larks_parser_takes(name: str) -> None:
    """Random sequences of terminals: at each step the same terminals are possible, and the same end."""
    grammar = corpus(name)[0]
    tables, rng = read_tables(grammar), random.Random(name)
    names = [terminal.name for terminal in tables.terminals]
    stacks = Stacks(tables, np.zeros(len(tables.actions), dtype=np.int32), 10_000)
    steps = 0
    for _ in range(20):
        parser, stack = lark_of(grammar).parse_interactive(""), 0
        for _ in range(12):
            possible = parser.accepts()
            taken = {known for number, known in enumerate(names) if stacks.takes(stack, number)}
            assert taken == possible - {"$END"}
            assert stacks.takes(stack, len(names)) == ("$END" in possible)
            assert {known for number, known in enumerate(names) if stacks.shift(stack, number) != REFUSED} == taken
            if not taken:
                break
            chosen = rng.choice(sorted(taken))
            parser.feed_token(lark.Token(chosen, ""))
            stack = stacks.shift(stack, names.index(chosen))
            steps += 1
    assert steps > 20


def test_terminals_are_in_larks_order() -> None:
    text = 'start: (A | B | C | D | E | "aa" | F)*\nA: /a+/\nB: /b{3}/\nC: /c{3}?/\nD: /c+|dd/\nE.2: "e"\nF: "ff"'
    order = [terminal.name for terminal in read_tables(text).terminals]
    assert order == [terminal.name for terminal in lark.Lark(text, parser="lalr", lexer="basic").parser.lexer.terminals]


def test_ignored_terminals_and_flags() -> None:
    tables = read_tables('start: "a"i A\nA.3: /b/s\n%ignore " "\n%ignore A')
    shown = {terminal.shown: terminal for terminal in tables.terminals}
    assert {tables.terminals[number].shown for number in tables.ignored} == {'" "', "A"}
    assert shown['"a"i'].is_string
    assert shown['"a"i'].flags == {"i"}
    assert (shown["A"].is_string, shown["A"].priority, shown["A"].flags) == (False, 3, {"s"})


REDUCE_REDUCE = 'start: a | b\na: "x"\nb: "x"\n'
DANGLING = 'start: "if" start ["else" start] | "x"\n'


def test_reduce_reduce_conflicts_are_reported_in_larks_words() -> None:
    with pytest.raises(UnsupportedConstraint, match=r"(?s)not LALR\(1\).*Reduce/Reduce.*<a : X>.*earley_trie"):
        read_tables(REDUCE_REDUCE)


def test_shift_reduce_conflicts_are_shifts_or_refused() -> None:
    tables = read_tables(DANGLING)
    assert len(tables.conflicts) == 1
    assert "Shift/Reduce conflict for terminal ELSE" in tables.conflicts[0]
    with pytest.raises(UnsupportedConstraint, match=r"(?s)Shift/Reduce.*ELSE.*<start : IF start>.*earley_trie"):
        read_tables(DANGLING, conflicts="refuse")
    assert read_tables('start: "a" start | "a"', conflicts="refuse").conflicts == ()


def test_rules_without_end_are_seen() -> None:
    assert not read_tables('start: start "a"').is_productive
    assert not read_tables('start: "a" | b\nb: "b" b').is_productive
    assert read_tables('start: "a" start |').is_productive


@pytest.mark.parametrize(
    ("text", "error", "place", "words"),
    [
        ('start: "a', GrammarSyntaxError, (1, 8), "cannot read"),
        ('start: "b"\n\nstart: <|x|>', GrammarSyntaxError, (3, 8), "cannot read"),
        ('start: "a" -> ', GrammarSyntaxError, (1, 15), "Alias"),
        ('start: "a"\n  | nothing', GrammarSyntaxError, (2, 5), "'nothing' used but not defined"),
        ("start: A\nA: B\nB: A", GrammarSyntaxError, (2, 1), "Recursion in terminal"),
        ('start: A\nA: "x"\nA: "y"', GrammarSyntaxError, (2, 1), "defined more than once"),
        ("start: A\nA: /(/", GrammarSyntaxError, (2, 1), "no regex"),
        ('%declare X\nstart: "a" X', GrammarUnsupported, (1, 10), "without a pattern"),
        ("start: A B\nB: /b/\nA: /a*/", GrammarUnsupported, (3, 1), "may be empty"),
    ],
)
def test_errors_name_the_place(text: str, error: type, place: tuple[int, int], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        read_tables(text)
    assert (caught.value.line, caught.value.column) == place


def test_an_unknown_start_names_the_rules() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'begin'"):
        read_tables('begin: "a"', start="begn")
    assert read_tables('other: "b"\nbegin: "a"', start="begin").terminals[0].value == "a"


def test_a_chain_of_rules_takes_work_in_proportion() -> None:
    """Each rule begins with the next one, and so do all the items of the first state."""

    def work_of(length: int) -> int:
        rules = "".join(f'r{place}: r{place + 1} "x"?\n' for place in range(length))
        constraint = Grammar(f'start: r0\n{rules}r{length}: "a"\n')
        with spending(Budget(5.0, 512.0), "a chain") as account:
            vocab = Vocabulary([b"a", b"xx", b""], end_tokens=[2])
            compiled = CfgFsm(vocab, conflicts="shift").compile(constraint)
            work = account.work_done
        matcher = compiled.start()
        for token in (0, 1, 1):
            matcher.advance(token)
        assert matcher.can_end()
        return work

    assert work_of(400) < 2.5 * work_of(200)

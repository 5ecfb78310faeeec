"""Lark's tables as arrays, against Lark's parser at work; and what is refused, with place and remedy."""

from __future__ import annotations

import pytest

from tokdfa.backends.cfg_fsm.lark_tables import read_tables
from tokdfa.backends.cfg_fsm.strategy import CfgFsm
from tokdfa.constraint import Grammar
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, UnknownNameError, UnsupportedConstraint
from tokdfa.vocabulary.vocabulary import Vocabulary

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

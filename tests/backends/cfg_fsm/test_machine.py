"""Machines accept what Lark's LALR parser accepts with its contextual lexer, no more and no less."""

from __future__ import annotations

import random
from collections import Counter

import lark
import pytest
from hypothesis import given, reject, settings

from tests.backends.cfg_fsm.oracles import (
    COMMENTS,
    NAMES,
    accepts,
    completion,
    corpus,
    lark_accepts,
    letters_of,
    machine_of,
    make_machine,
    mutated,
    run,
)
from tests.backends.cfg_fsm.random_grammars import random_grammars
from tests.strategies import short_texts
from tokdfa.errors import EmptyLanguageError, GrammarUnsupported, LimitExceeded, TokdfaError

# The examples of 003, and of the threads that it names.


def test_tokens_may_span_terminals() -> None:
    machine = machine_of('start: a b\na: "A"\nb: "B"\n')
    assert accepts(machine, "AB")
    assert [run(machine, text) >= 0 for text in ("A", "B", "AA", "ABB")] == [True, False, False, False]


def test_lexing_does_not_commit_too_early() -> None:
    """After AAB both AABD (AA, B, D) and AABC (AAB, C) are possible."""
    grammar = 'start: AA BD | AAB C\nAA: "AA"\nBD: "BD"\nAAB: "AAB"\nC: "C"\n'
    machine = machine_of(grammar)
    for text in ("AABC", "AABD"):
        assert accepts(machine, text) == lark_accepts(grammar, text)
    assert lark_accepts(grammar, "AABC")
    either = 'start: (A | B) (C | D)\nA: /AAB?/\nB: "AABX"\nC: "C"\nD: "BD"\n'
    machine = machine_of(either)
    for text in ("AAC", "AABC", "AABBD", "AABXC", "AABD"):
        assert accepts(machine, text) == lark_accepts(either, text), text
    lazy = 'start: A (C | D)\nA: /AA(?:B)??/\nC: "BC"\nD: "BD"\n'
    assert [accepts(machine_of(lazy), text) for text in ("AABC", "AABD", "AAB")] == [True, True, False]
    assert [lark_accepts(lazy, text) for text in ("AABC", "AABD", "AAB")] == [True, True, False]


def test_comments_and_regexes_after_ignored_blanks() -> None:
    machine = machine_of(COMMENTS)
    after = run(machine, "  /")
    assert after >= 0
    assert [run(machine, letter, after) >= 0 for letter in "a/b "] == [True, True, False, False]
    for text in ("  /aaa/", "  // aaa", " /aaa/  //x", "  ", "/aa"):
        assert accepts(machine, text) == lark_accepts(COMMENTS, text), text


@pytest.mark.parametrize("flags", [("", ""), ("", "i"), ("i", ""), ("i", "i")])
def test_keywords_are_no_names_where_they_may_stand(flags: tuple[str, str]) -> None:
    """A string is taken out of the lexer if a regex reads it, unless only the string is read in upper case, too."""
    grammar = f'start: "if"{flags[0]} NAME | NAME "=" NAME\nNAME: /[a-z]+/{flags[1]}\n%ignore " "\n'
    machine = machine_of(grammar)
    for text in ("if x", "if = x", "iff = x", "a = if", "ifx", "if if", "IF x", "IF = x", "a = IF", "if IF", "IFx = b"):
        assert accepts(machine, text) == lark_accepts(grammar, text), text


# A corpus.


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus(name: str) -> None:
    grammar, accepted, asked = corpus(name)
    machine = machine_of(grammar)
    assert accepted
    for text in accepted:
        here = machine.start
        for place in range(len(text)):
            here = run(machine, text[place], here)
            assert here >= 0, text[: place + 1]
        assert machine.hypotheses.can_end(here), text
    for text in asked:
        assert accepts(machine, text) == lark_accepts(grammar, text), text


@pytest.mark.parametrize("name", NAMES)
def test_mutated_texts_of_the_corpus(name: str) -> None:
    """Texts with a few characters changed: Lark accepts some of them and refuses others."""
    grammar, accepted, _ = corpus(name)
    machine, rng, outcomes = machine_of(grammar), random.Random(name), Counter()
    letters = "".join(sorted(set("".join(accepted))))
    short = [text for text in accepted if len(text) < 200]
    for _ in range(150):
        text = mutated(rng.choice(short), letters, rng)
        expected = lark_accepts(grammar, text)
        assert accepts(machine, text) == expected, text
        outcomes[expected] += 1
    assert min(outcomes[True], outcomes[False]) > 5


@pytest.mark.parametrize("name", ["arithmetic", "c_like", "csv", "json", "sexpr", "tool_call"])
def test_the_corpus_is_certified(name: str) -> None:
    """So that masks need no search."""
    assert machine_of(corpus(name)[0]).is_certified


@pytest.mark.parametrize("name", NAMES)
def test_random_walks_parse(name: str) -> None:
    """Bytes chosen at random from those that are allowed, and then a way to the end."""
    grammar, texts, _ = corpus(name)
    machine, rng, finished = machine_of(grammar), random.Random(name), 0
    letters = letters_of(texts)
    for _ in range(10):
        here, text = machine.start, ""
        for _ in range(rng.randint(0, 20)):
            options = [(letter, after) for letter in letters if (after := run(machine, letter, here)) >= 0]
            if not options:
                break
            letter, here = rng.choice(options)
            text += letter
        rest = completion(machine, here, letters)
        if rest is not None:
            finished += 1
            assert lark_accepts(grammar, text + rest), (text, rest)
    assert finished > 5


# Random grammars.


@given(random_grammars())
@settings(deadline=None, derandomize=True, max_examples=120)
def test_random_grammars_in_both_directions(grammar: str) -> None:
    """Every text up to 6 letters is accepted iff Lark accepts it; every prefix is alive iff it can be completed."""
    try:
        accepted = [text for text in TEXTS if lark_accepts(grammar, text)]
    except lark.exceptions.LarkError:
        with pytest.raises(TokdfaError):
            make_machine(grammar)
        reject()
    try:
        machine = make_machine(grammar)
    except EmptyLanguageError:
        assert not accepted
        return
    except LimitExceeded:  # an endless way that the search cannot see the end of
        reject()
    possible = {text[:length] for text in accepted for length in range(len(text) + 1)}
    situations = {"": machine.start}
    for text in TEXTS:
        if text:
            before = situations[text[:-1]]
            try:
                situations[text] = run(machine, text[-1], before) if before >= 0 else -1
            except LimitExceeded:
                reject()
        here = situations[text]
        assert (here >= 0 and machine.hypotheses.can_end(here)) == (text in set(accepted)), text
        if text in possible:
            assert here >= 0, text
        elif here >= 0 and len(text) <= 3:
            try:
                rest = completion(machine, here, list("abcA"))
            except LimitExceeded:
                reject()
            assert rest is not None, text
            assert lark_accepts(grammar, text + rest), (text, rest)


TEXTS = [*short_texts(5, "abc"), *(text for text in short_texts(6, "ab") if len(text) == 6)]


# Limits, and what is refused.


def test_a_search_without_end_is_given_up() -> None:
    with pytest.raises(LimitExceeded, match="max_search"):
        make_machine(ENDLESS, max_search=200)


#: Some way to go on nests r2 for ever deeper, never to come back: its terminals swallow what should follow them.
ENDLESS = r"""
start: T0 T0 T0 | T2 T0 | r2 T0 T1
r1: T1 T2 T0 | r2 T2
r2: T0 T2 | T0 r2 T0 | r1 r2 T1
T0.1: /(a|ab)(b|ba)?/
T1: /a*?b/
T2: /[ab]/
"""


def test_what_has_no_end_in_outline_is_refused_at_once() -> None:
    with pytest.raises(EmptyLanguageError):
        make_machine('start: "a" start "b" | C\nC: /[^\\s\\S]/\n', max_search=50)


def test_rules_without_end_lead_nowhere() -> None:
    machine = make_machine('start: "a" | b\nb: "b" b\n')
    assert accepts(machine, "a")
    assert run(machine, "b") < 0
    with pytest.raises(EmptyLanguageError):
        make_machine('start: start "a"\n')


def test_a_terminal_that_cannot_be_matched_names_its_place() -> None:
    with pytest.raises(GrammarUnsupported, match=r"(?s)the terminal B.*look-around.*line 2, column 1") as caught:
        make_machine('start: "a" B\nB: /b(?=c)/\n')
    assert (caught.value.line, caught.value.column) == (2, 1)

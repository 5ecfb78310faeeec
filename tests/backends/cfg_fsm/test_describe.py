"""Situations in words, by hand."""

from __future__ import annotations

import pytest

from tests.backends.cfg_fsm.oracles import COMMENTS, lark_accepts, machine_of, run
from tokdfa.backends.cfg_fsm.describe import IGNORED, leading_outcomes, may_become, readings, terminal_name

AAB = 'start: AABC | AA BD\nAABC: "AABC"\nAA: "AA"\nBD: "BD"\n'


def told(machine, text: str) -> set[tuple]:
    """What is said of the hypotheses after `text`, without the stacks."""
    found = readings(machine, run(machine, text))
    return {(one.begun, one.may_become, one.must_not_match, one.may_end) for one in found}


def test_what_has_not_committed_yet() -> None:
    """After AAB both AABC and AABD are possible, as Lark says."""
    machine = machine_of(AAB)
    assert [lark_accepts(AAB, text) for text in ("AABC", "AABD", "AAB")] == [True, True, False]
    # AA may have ended, but that is right only if AABC, which Lark tries first, does not match
    assert told(machine, "A") == {(True, ('"AABC"', '"AA"'), (), False)}
    assert told(machine, "AA") == {(True, ('"AABC"',), (), False), (False, ('"BD"',), ('"AABC"',), False)}
    assert told(machine, "AAB") == {(True, ('"AABC"',), (), False), (True, ('"BD"',), ('"AABC"',), False)}
    assert told(machine, "AABC") == {(True, (), (), False), (False, (), (), True)}
    assert told(machine, "AABD") == {(True, (), (), False), (False, (), (), True)}


def test_ignored_text_and_the_end() -> None:
    machine = machine_of(COMMENTS)
    assert told(machine, "") == {(False, ("COMMENT", '"/aaa/"', IGNORED), (), True)}
    ((begun, terminals, owed, may_end),) = told(machine, "/a")
    assert (begun, terminals, owed, may_end) == (True, ('"/aaa/"',), (), False)
    assert (True, ("COMMENT", IGNORED), (), False) in told(machine, "  ")


def test_stacks_are_those_of_the_parser() -> None:
    machine = machine_of('start: "(" start ")" | "a"\n')
    depths = [len(readings(machine, run(machine, "(" * depth))[0].stack) for depth in range(4)]
    assert sorted({len(one.stack) for one in readings(machine, run(machine, "((("))}) == [3, 4]
    assert depths[0] == 1
    assert readings(machine, 0)[0].stack == (machine.tables.start,)


@pytest.mark.parametrize("grammar", [AAB, 'start: A A? "b"\nA: /a+/\n'])
def test_only_what_leads_on(grammar: str) -> None:
    """Of a stack, and of a grammar that needs the search: after a run of a's no other run can come."""
    machine = machine_of(grammar)
    assert machine.is_certified == (grammar == AAB)
    leads_on = leading_outcomes(machine, 0)
    labels = {int(label) for label in machine.lexer.outcomes[leads_on, 0]}
    begin = int(machine.hypotheses.members[0][0, 0])
    assert {terminal_name(machine, label) for label in labels} == set(may_become(machine, begin, 0))
    assert set(may_become(machine, begin, 0)) == ({'"AABC"', '"AA"'} if grammar == AAB else {"A"})

"""Situations in words, by hand."""

from __future__ import annotations

from tests.backends.cfg_fsm.oracles import COMMENTS, lark_accepts, machine_of, run
from tokdfa.backends.cfg_fsm.describe import IGNORED, readings

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

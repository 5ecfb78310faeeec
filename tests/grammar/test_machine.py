"""Machine against the definitions (tests.naive.lexed_earley), and texts whose fate is known by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import accepts, lexed_cfgs, make_cfg, run, short_texts
from tests.naive.lexed_earley import LexedEarley
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.machine import Machine

RULES = [(longest, at_ends) for longest in (True, False) for at_ends in (True, False)]


@pytest.mark.parametrize(("longest", "skip_at_ends"), RULES)
def test_texts_are_read_as_defined(longest, skip_at_ends):
    """All texts of up to six letters: which go on, and which are complete."""

    @settings(max_examples=150)
    @given(lexed_cfgs())
    def check(cfg):
        machine = Machine(cfg, longest=longest, skip_at_ends=skip_at_ends)
        twin = LexedEarley(cfg, longest, skip_at_ends)
        agenda = [b""]
        while agenda:
            text = agenda.pop()
            situation = run(machine, machine.start, text)
            assert (situation >= 0) == twin.goes_on(text), text
            if situation < 0:
                continue
            assert machine.can_end(situation) == twin.accepts(text), text
            if len(text) < 6:
                agenda += [text + letter for letter in (b"a", b"b", b"c")]

    check()

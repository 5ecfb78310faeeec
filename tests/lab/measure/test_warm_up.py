from __future__ import annotations

from typing import ClassVar

import pytest

from tests.lab.measure.fakes import byte_vocabulary
from tests.lab.run.fake_backends import TRICKS, Fake, journal
from tokdfa.lab.measure.warm_up import throwaway, warm_up
from tokdfa.vocabulary.vocabulary import Vocabulary


def test_a_warm_up_compiles_fills_and_advances():
    journal.clear()
    warm_up(Fake(byte_vocabulary(), tag=4))
    once = ["compile", *(["mask", "advance", "mask"] * 2)]
    assert [what.split()[0] for tag, what in journal if tag == "4"] == once


@pytest.mark.parametrize("how", sorted({*TRICKS} & {"panic", "raise", "limit", "unsupported", "no_memory", "missing"}))
def test_what_goes_wrong_is_left_to_the_constraint_itself(how):
    journal.clear()
    warm_up(Fake(byte_vocabulary(), how=how, where="warm"))
    assert not journal


@pytest.mark.parametrize("kind", ["regex", "choice", "grammar", "json_schema"])
def test_there_is_a_throwaway_constraint_of_every_kind(kind):
    class Taker(Fake):
        kinds: ClassVar[tuple[str, ...]] = (kind,)

    constraint = throwaway(Taker(byte_vocabulary()))
    assert constraint is not None
    assert constraint.kind == kind


def test_none_where_nothing_fits():
    signs = Vocabulary([b"+", b"-", "é".encode(), b""], [3])
    assert throwaway(Fake(signs)) is None
    journal.clear()
    warm_up(Fake(signs))
    assert not journal

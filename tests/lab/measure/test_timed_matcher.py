"""The timed constraint answers as the one inside, and counts every question once."""

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.lab.measure.timed_matcher import Meter, TimedConstraint
from tokdfa.vocabulary.tokenizers import load_tokenizer


@pytest.fixture
def compiled():
    return compile(Choice(["ab", "ac", "b"]), load_tokenizer("bytes").vocabulary)


def test_it_answers_as_the_one_inside(compiled):
    timed = TimedConstraint(compiled)
    plain, matcher = compiled.start(), timed.start()
    end = compiled.vocab.end_tokens[0]
    one, other = (masks.allocate_mask(compiled.vocab.size) for _ in range(2))
    for token in (97, 98, end):
        plain.fill_mask(one)
        matcher.fill_mask(other)
        assert np.array_equal(one, other)
        assert matcher.allows(token)
        assert not matcher.allows(120)
        assert (matcher.can_end(), matcher.is_finished()) == (plain.can_end(), plain.is_finished())
        plain.advance(token)
        matcher.advance(token)
    assert matcher.is_finished()
    assert timed.meter.count == 3 + 3 + 6 + 1 + 3  # whether it is finished is asked with every other question
    matcher.rollback(2)
    assert matcher.allows(99)
    assert (timed.vocab, timed.constraint, timed.backend_name) == (
        compiled.vocab, compiled.constraint, compiled.backend_name,
    )  # fmt: skip


def test_forks_write_into_the_meter_of_their_run(compiled):
    timed = TimedConstraint(compiled)
    matcher = timed.start()
    first, timed.meter = timed.meter, Meter()
    twin = matcher.fork()
    twin.advance(98)
    assert matcher.allows(97)
    assert first.count == 1 + 1 + 1 + 1
    timed.start()
    assert timed.meter.count == 1
    assert timed.meter.ns > 0

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.lab.measure.fakes import byte_vocabulary, contenders, ignore
from tests.lab.run.fake_backends import journal
from tokdfa.constraint import Regex
from tokdfa.lab.measure.contenders import (
    measure_compiles,
    replay,
    replay_seen,
    rotated,
)
from tokdfa.lab.measure.workloads import Walk

ABC = Regex("abc|ax")
END = byte_vocabulary().end_tokens[0]


def walk(text: str, *, end: bool = True, inside: bool | None = None, given: bool = False) -> Walk:
    return Walk((*text.encode(), *([END] if end else [])), inside, end, given)


def compiled(*tricks: str, where: str = "compile"):
    racing = contenders(*tricks, where=where)
    measure_compiles(racing, ABC, 1, ignore, first_mask=False)
    journal.clear()
    return racing


def test_compiles_are_interleaved_and_everyone_goes_first_in_turn():
    racing = contenders("honest", "honest", "honest")
    journal.clear()
    measure_compiles(racing, ABC, 3, ignore)
    calls = [tag for tag, what in journal if what == "compile"]
    assert "".join(calls) == "012120201"
    for contender in racing:
        samples = contender.outcome.samples
        assert [(one.measure, one.repeat) for one in samples] == [
            (measure, repeat) for repeat in range(3) for measure in ("compile", "first_mask")
        ]
        by_measure = {name: contender.outcome.ns(name) for name in ("compile", "first_mask")}
        assert all(
            first > alone > 0 for alone, first in zip(by_measure["compile"], by_measure["first_mask"], strict=True)
        )
        assert {one.allowed for one in samples if one.measure == "first_mask"} == {1}
        assert contender.outcome.sizes == {"states": 2, "bytes": 5, "alternatives": 2}
        assert [list(phases) for phases in contender.outcome.phases] == [["read"]] * 3


def test_everyone_is_first_in_each_round_and_follows_everyone():
    turns = [rotated("abcd", turn) for turn in range(400)]
    assert all(sorted(turn) == list("abcd") for turn in turns)
    assert all({turn[0] for turn in turns[k : k + 4]} == set("abcd") for k in range(0, 400, 4))
    pairs = Counter(pair for turn in turns for pair in pairwise(turn))
    assert len(pairs) == 12
    assert max(pairs.values()) < 2 * min(pairs.values())
    assert turns == [rotated("abcd", turn) for turn in range(400)]
    assert rotated([], 5) == []


def test_all_fill_then_all_advance_in_an_order_that_rotates():
    racing = compiled("honest", "honest", "honest")
    replay(racing, [walk("ab", end=False), walk("a", end=False)], "0", 60, ignore)
    order = [(tag, what.split()[0]) for tag, what in journal]
    expected = [(tag, what) for tags in ("012", "120", "120") for what in ("mask", "advance") for tag in tags]
    assert order == expected
    samples = [one for one in racing[1].outcome.samples if one.measure != "compile"]
    assert [(one.measure, one.repeat, one.step) for one in samples] == [
        *(("mask", 0, 0), ("advance", 0, 0), ("mask", 0, 1), ("advance", 0, 1)),
        *(("mask", 1, 0), ("advance", 1, 0)),
    ]
    assert [one.allowed for one in samples if one.measure == "mask"] == [1, 2, 1]
    assert racing[1].outcome.steps == 3
    assert racing[1].outcome.counters == {"masks": 3, "steps": 3}


@pytest.mark.parametrize(("reference", "differs"), [("0", (0, 2)), ("1", (2, 0)), ("nobody", (0, 2))])
def test_masks_are_compared_with_the_reference(reference, differs):
    racing = compiled("honest", "wide")
    replay(racing, [walk("a", end=False)], reference, 60, ignore)
    masks = [next(one for one in contender.outcome.samples if one.measure == "mask") for contender in racing]
    # "wide" also allows the bytes 1, 2 and 3
    assert [one.allowed for one in masks] == [1, 4]
    assert tuple(one.differs for one in masks) == tuple(3 if count else 0 for count in differs)


def test_a_refused_token_is_a_wrong_refusal_and_the_others_go_on():
    racing = compiled("honest", "strict")
    replay(racing, [walk("abc"), walk("ax")], "0", 60, ignore)
    assert racing[0].outcome.status == "ok"
    assert racing[0].outcome.steps == 7
    assert racing[1].outcome.status == "wrong_refusal"
    assert "walk 0, step 1: token 98 (b'b') was refused after b'a'" in racing[1].outcome.message
    assert racing[1].outcome.steps == 1 + 3  # the second walk is replayed in full


@pytest.mark.parametrize("inside", [False, None])
def test_refusing_a_given_text_is_right_unless_it_is_known_to_be_inside(inside):
    racing = compiled("honest")
    replay(racing, [walk("zz", inside=inside, given=True)], "0", 60, ignore)
    assert racing[0].outcome.status == "ok"
    assert racing[0].outcome.steps == 0
    assert racing[0].outcome.counters["masks"] == 1


@pytest.mark.parametrize("given", [True, False])
def test_going_through_with_a_text_outside_is_a_wrong_acceptance(given):
    racing = compiled("lax", "honest")
    replay(racing, [walk("zz", inside=False, given=given)], "0", 60, ignore)
    assert racing[0].outcome.status == "wrong_acceptance"
    assert "b'zz'" in racing[0].outcome.message
    assert racing[1].outcome.status == "ok"  # refusing was right, whoever made the walk


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("raise", "error"),
        ("panic", "crash"),
        ("limit", "memory"),
        ("no_memory", "memory"),
        ("unsupported", "unsupported"),
    ],
)
@pytest.mark.parametrize("where", ["compile", "start", "mask", "advance"])
def test_what_a_contender_raises_is_its_own_failure(how, kind, where):
    racing = contenders(how, "honest", where=where)
    measure_compiles(racing, ABC, 2, ignore, first_mask=False)
    replay(racing, [walk("abc")], "0", 60, ignore)
    assert racing[0].dropped
    assert racing[0].outcome.status == kind
    assert racing[1].outcome.status == "ok"
    assert racing[1].outcome.steps == 4
    assert len(racing[1].outcome.ns("compile")) == 2


def test_a_wish_to_stop_is_nobodys_failure():
    racing = compiled("honest")

    def interrupt(contender: int, phase: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(racing, [walk("abc")], "0", 60, interrupt)


def test_who_uses_up_the_time_for_masks_is_dropped_with_samples_kept():
    racing = compiled("honest", "honest")
    racing[0].spent_ns = int(600e9)
    replay(racing, [walk("abc")] * 3, "0", 600, ignore)
    outcome = racing[0].outcome
    assert outcome.status == "timeout"
    assert "1 steps done" in outcome.message
    assert len(outcome.ns("mask")) == 1
    assert racing[1].outcome.status == "ok"
    assert racing[1].outcome.steps == 12


def test_seen_masks_are_filled_in_blocks_of_one_contender():
    racing = compiled("honest", "honest")
    replay_seen(racing, [walk("abc"), walk("ax"), walk("zz", end=False)], 3, 60, ignore)
    for contender in racing:
        samples = [one for one in contender.outcome.samples if one.measure == "seen"]
        # the positions before a, b, c and the end; before a, x and the end; before the z that is refused
        assert [(one.repeat, one.step) for one in samples] == [(turn, step) for turn in range(3) for step in range(8)]
    filled = [tag for tag, what in journal if what.startswith("mask")]
    assert filled == ["0"] * 8 + ["1"] * 8 + (["0"] * 9 + ["1"] * 9) * 3

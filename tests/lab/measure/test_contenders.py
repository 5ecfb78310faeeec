from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.lab.measure.fakes import byte_vocabulary, contender
from tests.lab.run.fake_backends import Panic, journal
from tokdfa.lab.measure import contenders
from tokdfa.lab.measure.contenders import Outcome, Sample, compare_masks, rotated
from tokdfa.lab.measure.workloads import Walk

END = byte_vocabulary().end_tokens[0]


def walk(text: str, *, end: bool = True, inside: bool | None = None, given: bool = False) -> Walk:
    return Walk((*text.encode(), *([END] if end else [])), inside, end, given)


def replayed(how: str, *walks: Walk, seconds: float = 60, **options) -> Outcome:
    """What comes of walks, by a contender that does a trick."""
    one = contender(how, **options)
    one.replay(walks, seconds)
    return one.outcome


def test_each_compile_is_followed_by_a_first_mask():
    one = contender()
    for repeat in range(3):
        one.measure_compile(repeat)
    outcome = one.outcome
    assert [(sample.measure, sample.repeat) for sample in outcome.samples] == [
        (measure, repeat) for repeat in range(3) for measure in ("compile", "first_mask")
    ]
    times = zip(outcome.ns("compile"), outcome.ns("first_mask"), strict=True)
    assert all(first > alone > 0 for alone, first in times)
    assert {sample.allowed for sample in outcome.samples if sample.measure == "first_mask"} == {1}
    assert {"states": 2, "bytes": 5, "alternatives": 2}.items() <= outcome.sizes.items()
    assert [list(phases) for phases in outcome.phases] == [["read"]] * 3


def test_everyone_is_first_in_each_round_and_follows_everyone():
    turns = [rotated("abcd", turn) for turn in range(400)]
    assert all(sorted(turn) == list("abcd") for turn in turns)
    assert all({turn[0] for turn in turns[k : k + 4]} == set("abcd") for k in range(0, 400, 4))
    pairs = Counter(pair for turn in turns for pair in pairwise(turn))
    assert len(pairs) == 12
    assert max(pairs.values()) < 2 * min(pairs.values())
    assert turns == [rotated("abcd", turn) for turn in range(400)]
    assert rotated([], 5) == []


@pytest.mark.parametrize("unpacked", [1, 2, 256])
def test_a_walk_fills_and_advances_in_turn(monkeypatch, unpacked):
    monkeypatch.setattr(contenders, "UNPACKED", unpacked)
    one = contender()
    one.measure_compile(0)
    journal.clear()
    one.replay([walk("ab", end=False), walk("a", end=False)], 60)
    assert [what.split()[0] for _, what in journal] == ["mask", "advance"] * 3
    samples = [sample for sample in one.outcome.samples if sample.measure in ("mask", "advance")]
    assert sorted((sample.measure, sample.repeat, sample.step) for sample in samples) == [
        (measure, *place) for measure in ("advance", "mask") for place in ((0, 0), (0, 1), (1, 0))
    ]
    assert [sample.allowed for sample in samples if sample.measure == "mask"] == [1, 2, 1]
    assert one.outcome.steps == 3
    assert one.outcome.counters == {"masks": 3, "steps": 3}


@pytest.mark.parametrize(("reference", "differs"), [("honest", (0, 3)), ("wide", (3, 0)), ("nobody", (0, 3))])
def test_masks_are_compared_with_the_reference(reference, differs):
    outcomes = [replayed(how, walk("a", end=False)) for how in ("honest", "wide")]
    compare_masks(outcomes, reference)
    masks = [next(sample for sample in outcome.samples if sample.measure == "mask") for outcome in outcomes]
    # "wide" also allows the bytes 1, 2 and 3
    assert [sample.allowed for sample in masks] == [1, 4]
    assert tuple(sample.differs for sample in masks) == differs
    assert not any(outcome.masks for outcome in outcomes)


def test_where_the_reference_has_no_mask_the_first_that_has_one_is_compared_with():
    short, first, second = replayed("strict", walk("ab")), replayed("honest", walk("ab")), replayed("wide", walk("ab"))
    compare_masks([short, first, second], "strict")
    found = [[one.differs for one in outcome.samples if one.measure == "mask"] for outcome in (short, first, second)]
    # the reference refuses b, and allows it in no mask; the third mask is compared with that of the first contender
    assert found == [[0, 0], [0, 1, 0], [3, 4, 3]]


def test_masks_of_other_languages_are_not_compared():
    outcomes = [replayed("honest", walk("a")), replayed("honest", walk("a"))]
    outcomes[1].language = "proper"
    compare_masks(outcomes, "honest")
    assert {one.differs for one in outcomes[1].samples if one.measure == "mask"} == {None}


def test_a_refused_token_is_a_wrong_refusal_and_the_walks_go_on():
    assert (replayed("honest", walk("abc"), walk("ax")).status, replayed("honest", walk("abc")).steps) == ("ok", 4)
    strict = replayed("strict", walk("abc"), walk("ax"))
    assert strict.status == "wrong_refusal"
    assert "walk 0, step 1: token 98 (b'b') was refused after b'a'" in strict.message
    assert strict.steps == 1 + 3  # the second walk is replayed in full


@pytest.mark.parametrize("inside", [False, None])
def test_refusing_a_given_text_is_right_unless_it_is_known_to_be_inside(inside):
    outcome = replayed("honest", walk("zz", inside=inside, given=True))
    assert (outcome.status, outcome.steps, outcome.counters["masks"]) == ("ok", 0, 1)


@pytest.mark.parametrize("given", [True, False])
def test_going_through_with_a_text_outside_is_a_wrong_acceptance(given):
    outside = walk("zz", inside=False, given=given)
    lax = replayed("lax", outside)
    assert lax.status == "wrong_acceptance"
    assert "b'zz'" in lax.message
    assert replayed("honest", outside).status == "ok"  # refusing was right, whoever made the walk


@pytest.mark.parametrize("where", ["compile", "start", "mask", "advance"])
def test_what_a_contender_raises_is_passed_on(where):
    one = contender("panic", where)
    with pytest.raises(Panic):
        one.replay([walk("abc")], 60)


def test_who_uses_up_the_time_for_masks_ends_with_samples_kept():
    outcome = replayed("nap", walk("abc"), walk("abc"), where="mask", seconds=0.05)
    assert outcome.status == "timeout"
    assert "1 steps done" in outcome.message
    assert len(outcome.ns("mask")) == 1


def test_seen_masks_are_filled_again_and_again():
    one = contender()
    one.measure_compile(0)
    journal.clear()
    one.fill_seen([walk("abc"), walk("ax"), walk("zz", end=False)], 3, 60)
    samples = [sample for sample in one.outcome.samples if sample.measure == "seen"]
    # the positions before a, b, c and the end; before a, x and the end; before the z that is refused
    assert [(sample.repeat, sample.step) for sample in samples] == [
        (turn, step) for turn in range(3) for step in range(8)
    ]
    assert sum(what.startswith("mask") for _, what in journal) == 8 + 3 * 8


def test_turns_are_added_up():
    whole, turn = Outcome("a", set_up_s=1.0), Outcome("a", "timeout", "late", [Sample("mask", 0, 0, 5)], steps=2)
    turn.counters, turn.sizes, turn.set_up_s = {"nodes": 3}, {"states": 1}, 2.0
    whole.count([("nodes", 4)])
    whole.add(turn)
    assert (whole.status, whole.message, whole.steps, whole.counters) == ("timeout", "late", 2, {"nodes": 7})
    assert (whole.sizes, whole.set_up_s, whole.ns("mask")) == ({"states": 1}, 2.0, [5])
    whole.add(Outcome("a"))
    assert (whole.status, whole.sizes, whole.set_up_s) == ("timeout", {"states": 1}, 2.0)

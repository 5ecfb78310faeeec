"""The sampler against a plain twin, and against the frequencies that it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.decoding.models import distance, noise
from tokdfa import mask as masks
from tokdfa.decoding import sampling
from tokdfa.decoding.sampling import Sampler, draw_index, log_total
from tokdfa.errors import EmptyMask, ModelError, OptionError

ROW = np.log(np.array([0.4, 0.25, 0.2, 0.1, 0.05]))


def plain_adjust(probabilities: list[float], allowed: list[int], temperature: float, top_p: float) -> dict[int, float]:
    """Mask, temperature, top-p, in plain Python."""
    weights = {token: probabilities[token] ** (1 / temperature) for token in allowed}
    total = sum(weights.values())
    kept, reached = {}, 0.0
    for token, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        kept[token] = weight
        reached += weight / total
        if reached >= top_p:
            break
    return {token: weight / sum(kept.values()) for token, weight in kept.items()}


def shares(sampler: Sampler, row: np.ndarray, mask: np.ndarray) -> dict[int, float]:
    """The probability with which the sampler draws each token."""
    sums = [np.ones(1)]  # one token only is not drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "draw_index", lambda cumulative, generator: sums.append(cumulative) or 0)
        token = sampler.draw(row, mask).token
    ids = masks.mask_to_ids(mask).tolist() if len(sums) > 1 else [token]
    return dict(zip(ids, (np.diff(sums[-1], prepend=0) / sums[-1][-1]).tolist(), strict=True))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.sets(st.integers(0, 39), min_size=1),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.sampled_from([1.0, 0.9, 0.5, 1e-9]),
)
def test_draw_is_the_plain_twin(counts: list[int], chosen: set[int], temperature: float, top_p: float) -> None:
    allowed = [token for token in sorted(chosen) if token < len(counts)]
    assume(any(counts[token] for token in allowed))
    probabilities = [count / sum(counts) for count in counts]
    mask = masks.mask_from_ids(allowed, len(counts))
    with np.errstate(divide="ignore"):
        row = np.log(np.array(probabilities))
    expected = plain_adjust(probabilities, allowed, temperature, top_p)
    # a sum within rounding of top_p may fall on either side
    reached = np.cumsum(sorted(plain_adjust(probabilities, allowed, temperature, 1.0).values(), reverse=True))
    assume(top_p == 1 or np.abs(reached - top_p).min() > 1e-9)
    adjusted = shares(Sampler(temperature=temperature, top_p=top_p), row, mask)
    for token in range(len(counts)):
        assert adjusted.get(token, 0.0) == pytest.approx(expected.get(token, 0.0), abs=1e-12)
    drawn = Sampler(temperature=temperature, top_p=top_p, seed=len(counts)).draw(row, mask)
    assert adjusted[drawn.token] > 0
    assert drawn.log_probability == row[drawn.token]
    assert math.exp(drawn.log_allowed) == pytest.approx(sum(probabilities[token] for token in allowed))


def test_choose_follows_the_plain_twin() -> None:
    mask = masks.mask_from_ids([0, 2, 3, 4], 5)
    sampler = Sampler(temperature=1.5, top_p=0.85, seed=3)
    twin = plain_adjust(np.exp(ROW).tolist(), [0, 2, 3, 4], 1.5, 0.85)
    expected = {bytes([token]): p for token, p in twin.items()}
    assert len(expected) == 3
    drawn = [sampler.choose(ROW, mask) for _ in range(10_000)]
    frequencies = {bytes([token]): drawn.count(token) / len(drawn) for token in set(drawn)}
    assert distance(frequencies, expected) < noise(expected, len(drawn))


def test_greedy_takes_the_first_of_the_most_probable() -> None:
    row = np.log(np.array([0.5, 0.1, 0.2, 0.2]))
    mask = masks.mask_from_ids([1, 2, 3], 4)
    sampler = Sampler(greedy=True)
    assert sampler.choose(row, mask) == 2
    assert shares(sampler, row, mask) == {2: 1}


def test_streams() -> None:
    mask = masks.mask_from_ids(range(5), 5)

    def take(sampler: Sampler, count: int = 40) -> list[int]:
        return [sampler.choose(ROW, mask) for _ in range(count)]

    assert take(Sampler(seed=7)) == take(Sampler(seed=7)) != take(Sampler(seed=8))
    one, two = Sampler(temperature=2, seed=7).spawn(2)
    assert one.temperature == 2
    assert take(one) != take(two)
    parent = Sampler(seed=7)
    first, second = parent.spawn(1) + parent.spawn(1)
    assert take(first) != take(second)
    # a single allowed token takes no random number
    interrupted, single = Sampler(seed=7), masks.mask_from_ids([3], 5)
    found = []
    for _ in range(40):
        assert interrupted.choose(ROW, single) == 3
        found += take(interrupted, 1)
    assert found == take(Sampler(seed=7))


class Scripted:
    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.sampled_from([0.0, 1e-300, 0.1, 1 / 3, 7.0]), min_size=1, max_size=20), st.floats(0, 1))
def test_draw_index_finds_its_share_and_never_a_weight_of_zero(weights: list[float], value: float) -> None:
    assume(any(weights))
    cumulative = np.cumsum(weights)
    for number in (min(value, math.nextafter(1, 0)), 0.0, math.nextafter(1, 0)):
        index = draw_index(cumulative, Scripted(number))
        assert weights[index] > 0
        assert cumulative[index] >= number * cumulative[-1]
        assert cumulative[index - 1] <= number * cumulative[-1] or index == weights.index(next(filter(None, weights)))


def test_log_total() -> None:
    assert log_total(np.array([])) == log_total(np.array([-np.inf, -np.inf])) == -math.inf
    assert log_total(np.log([0.25, 0.5])) == pytest.approx(math.log(0.75), abs=1e-15)
    assert log_total(np.array([-1000.0, -1000.0, -np.inf])) == pytest.approx(-1000 + math.log(2), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "greedy=True"),
        ({"temperature": -1.0}, "above 0"),
        ({"temperature": float("nan")}, "above 0"),
        ({"temperature": float("inf")}, "finite"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_options_out_of_range(options: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Sampler(**options)


def test_nothing_to_choose_from() -> None:
    for method in (Sampler().choose, Sampler().draw):
        with pytest.raises(EmptyMask, match="dead end"):
            method(ROW, masks.allocate_mask(5))
        with pytest.raises(ModelError, match=r"every allowed token \(1, 2\)"):
            method(np.array([0.0, -np.inf, -np.inf]), masks.mask_from_ids([1, 2], 3))
        with pytest.raises(OptionError, match="shape"):
            method(ROW, masks.allocate_mask(64))

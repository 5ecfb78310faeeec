from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.skew.distances import compare, jensen_shannon, kl_divergence, total_variation
from tokdfa.skew.distribution import Distribution, Interval

Floats = npt.NDArray[np.float64]
PROPERTY = settings(deadline=None, derandomize=True, max_examples=200)


@st.composite
def rows(draw: st.DrawFn, count: int) -> Floats:
    """A distribution over `count` texts, zeros not rare."""
    weights = draw(st.lists(st.just(0.0) | st.floats(1e-3, 1), min_size=count, max_size=count))
    weights[draw(st.integers(0, count - 1))] = 1.0
    return np.array(weights) / math.fsum(weights)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Floats, Floats]:
    count = draw(st.integers(1, 6))
    return draw(rows(count)), draw(rows(count))


def test_values_by_hand() -> None:
    p, q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
    assert total_variation(p, q) == pytest.approx(0.5, abs=1e-15)
    assert kl_divergence(p, q) == pytest.approx(math.log(2), abs=1e-15)
    assert kl_divergence(q, p) == math.inf
    # the middle is (3/8, 3/8, 1/4)
    expected = (math.log(4 / 3) + 0.5 * math.log(2 / 3) + 0.5 * math.log(2)) / 2
    assert jensen_shannon(p, q) == pytest.approx(expected, abs=1e-15)
    assert kl_divergence([0.9, 0.1], [0.5, 0.5]) == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2), abs=1e-15)


@PROPERTY
@given(pairs())
def test_inequalities(pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    variation, divergence, forward = total_variation(p, q), jensen_shannon(p, q), kl_divergence(p, q)
    assert variation == pytest.approx(total_variation(q, p), abs=1e-15)
    assert divergence == pytest.approx(jensen_shannon(q, p), abs=1e-15)
    assert 0 <= variation <= 1 + 1e-15
    assert forward >= 2 * variation**2 - 1e-12  # Pinsker
    assert variation**2 / 2 - 1e-12 <= divergence <= math.log(2) * variation + 1e-12  # Lin 1991, theorem 3, and Pinsker
    middle = (p + q) / 2
    assert divergence == pytest.approx((kl_divergence(p, middle) + kl_divergence(q, middle)) / 2, abs=1e-12)
    # the largest difference over all sets of texts
    assert variation == pytest.approx(np.maximum(p - q, 0).sum(), abs=1e-12)
    assert math.isinf(forward) == bool(np.any((p > 0) & (q == 0)))
    for distance in (total_variation, kl_divergence, jensen_shannon):
        assert distance(p, p) == 0


@st.composite
def unresolved(draw: st.DrawFn) -> tuple[Distribution, Distribution, Floats, Floats]:
    """Two distributions of which parts are hidden, and the whole ones."""
    p, q = draw(pairs())
    texts = tuple(bytes([65 + index]) for index in range(len(p)))
    shown = []
    for row in (p, q):
        kept = np.array(draw(st.lists(st.sampled_from([0, 0.5, 0.9, 1]), min_size=len(row), max_size=len(row))))
        shown.append(Distribution(texts, row * kept, float((row * (1 - kept)).sum())))
    return shown[0], shown[1], p, q


@PROPERTY
@given(unresolved())
def test_intervals_contain_what_is_hidden(case: tuple[Distribution, Distribution, Floats, Floats]) -> None:
    shown_p, shown_q, p, q = case
    found = compare(shown_p, shown_q)
    assert found.total_variation.contains(total_variation(p, q), 1e-12)
    assert found.kl_forward.contains(kl_divergence(p, q), 1e-12)
    assert found.kl_backward.contains(kl_divergence(q, p), 1e-12)
    assert found.jensen_shannon.contains(jensen_shannon(p, q), 1e-12)
    if shown_p.unresolved == shown_q.unresolved == 0:
        assert found.total_variation.lower == found.total_variation.upper == pytest.approx(total_variation(p, q))
        assert found.kl_forward.lower == found.kl_forward.upper


@PROPERTY
@given(unresolved())
def test_upper_bounds_are_reached(case: tuple[Distribution, Distribution, Floats, Floats]) -> None:
    """The largest distances are those of some division of the hidden mass that puts each on a single text."""
    p, q, _, _ = case
    found = compare(p, q)
    places = np.eye(len(p.texts))
    divided = [
        (p.probabilities + p.unresolved * one, q.probabilities + q.unresolved * other)
        for one in places
        for other in places
    ]
    for distance, bounds in (
        (total_variation, found.total_variation),
        (kl_divergence, found.kl_forward),
        (jensen_shannon, found.jensen_shannon),
    ):
        assert bounds.upper == pytest.approx(max(distance(one, other) for one, other in divided), abs=1e-12)


def test_texts_are_matched_by_name() -> None:
    p = Distribution((b"a", b"b"), np.array([0.25, 0.75]))
    q = Distribution((b"b", b"c"), np.array([0.75, 0.25]))
    found = compare(p, q)
    assert found.total_variation == Interval(0.25, 0.25)
    assert found.kl_forward == found.kl_backward == Interval(math.inf, math.inf)
    assert compare(p, Distribution((b"b", b"a"), np.array([0.75, 0.25]))).total_variation == Interval(0, 0)


def test_hidden_mass_may_or_may_not_make_kl_infinite() -> None:
    whole = Distribution((b"a", b"b"), np.array([1.0, 0.0]))
    part = Distribution((b"a", b"b"), np.array([0.75, 0.0]), 0.25)
    found = compare(part, whole)
    # all of the mass on a: no distance; some of it on b, which `whole` cannot have: inf
    assert found.kl_forward == Interval(0, math.inf)
    assert found.kl_backward.contains(0)
    assert found.kl_backward.contains(-math.log(0.75), 1e-12)
    assert found.total_variation.upper == 0.25


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([1.0], [0.5, 0.5], "one shape"),
        ([0.5, 0.4], [0.5, 0.5], "add up to 1"),
        ([1.5, -0.5], [0.5, 0.5], "add up to 1"),
        ([math.nan, 1.0], [0.5, 0.5], "add up to 1"),
        ([[1.0]], [[1.0]], r"\(1, 1\)"),
    ],
)
def test_no_distributions(p: list[float], q: list[float], message: str) -> None:
    for distance in (total_variation, kl_divergence, jensen_shannon):
        with pytest.raises(OptionError, match=message):
            distance(p, q)


def test_a_distribution_of_texts() -> None:
    made = Distribution((b"a", "é".encode()), np.array([0.5, 0.25]), 0.25)
    assert made.named("é") == made.named("é".encode()) == 0.25
    assert made.interval("a") == Interval(0.5, 0.75)
    assert made.normalised == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(UnknownNameError, match=r"no text of the distribution 'b'"):
        made.named("b")
    with pytest.raises(ValueError, match="read-only"):
        made.probabilities[0] = 1
    with pytest.raises(OptionError, match="all mass"):
        _ = Distribution((b"a",), np.array([0.0]), 1.0).normalised


@pytest.mark.parametrize(
    ("texts", "probabilities", "rest", "message"),
    [
        ((b"a",), [0.5], 0.0, r"not to 0\.5"),
        ((b"a",), [1.5], -0.5, "at least 0"),
        ((b"a", b"b"), [1.5, -0.5], 0.0, "at least 0"),
        ((b"a",), [math.nan], 0.0, "not to nan"),
        ((b"a", b"a"), [0.5, 0.5], 0.0, "distinct"),
        ((b"a",), [0.5, 0.5], 0.0, "1 texts need as many"),
    ],
)
def test_wrong_distributions(texts: tuple[bytes, ...], probabilities: list[float], rest: float, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Distribution(texts, np.array(probabilities), rest)

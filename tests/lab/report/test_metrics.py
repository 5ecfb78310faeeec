import math
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokdfa.errors import UnknownNameError
from tokdfa.lab.report.metrics import (
    METRICS,
    MISSING,
    Ratio,
    format_bytes,
    format_count,
    format_seconds,
    metric,
    short_factor,
    significant,
)

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
MEMORY = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.floats(1e-9, 1e4))
@example(0.9999)
@example(0.00099999)
@example(999.6e-9)
def test_seconds_keep_three_digits(value):
    number, unit = format_seconds(value).split()
    assert float(number.replace(",", "")) * SECONDS[unit] == pytest.approx(value, rel=5.1e-3)
    assert unit == "s" or float(number) < 1000, "the next larger unit would do"


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.floats(1, 1e12))
def test_bytes_keep_three_digits(value):
    number, unit = format_bytes(value).split()
    assert float(number.replace(",", "")) * MEMORY[unit] == pytest.approx(value, rel=5.1e-3)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.floats(1e-6, 1e9), st.integers(1, 6))
def test_significant_rounds_to_the_nearest(value, digits):
    shown = significant(value, digits)
    assert "e" not in shown
    assert float(shown.replace(",", "")) == pytest.approx(float(f"{value:.{digits - 1}e}"), rel=1e-12) or value >= 1
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_seconds(0), "0 s"),
        (format_seconds(1.5e-6), "1.50 µs"),
        (format_seconds(123.4), "123 s"),
        (format_seconds(3e-10), "0.300 ns"),
        (format_bytes(0), "0 B"),
        (format_bytes(1_500_000), "1.50 MB"),
        (format_count(131072.0), "131,072"),
        (format_count(2.138), "2.14"),
        (METRICS["density"].format(0.0123), "1.23%"),
        (METRICS["state_factor"].format(1.8), "1.80x"),
        (METRICS["compile"].format(math.nan), MISSING),
        (METRICS["compile"].format(None), MISSING),
        (METRICS["compile"].tick(3e-6), "3 µs"),
        (METRICS["compile"].tick(1.5e-3), "1.5 ms"),
        (METRICS["compile"].tick(1e-1), "100 ms"),
        (METRICS["vocab_size"].tick(50_000), "50,000"),
    ],
)
def test_formats(shown, expected):
    assert shown == expected


@pytest.mark.parametrize(
    ("ratio", "name", "expected"),
    [
        (Ratio(7.2, 1.3, 40.4, 5), "compile", "7.2x faster (1.3–40)"),
        (Ratio(0.5, 0.25, 2.0, 5), "compile", "2.0x slower (0.50–4.0)"),
        (Ratio(0.5, 0.5, 0.5, 1), "compile", "2.0x slower"),
        (Ratio(1.01, 0.9, 1.2, 3), "compile", "equal (0.90–1.2)"),
        (Ratio(1234.0, 1000.0, 2000.0, 2), "memory_peak", "1,234x less (1,000–2,000)"),
        (Ratio(0.1, 0.1, 0.1, 2), "memory_retained", "10x more"),
        (Ratio(3.0, 3.0, 3.0, 2), "states", "3.0x fewer"),
    ],
)
def test_ratios_in_words(ratio, name, expected):
    assert ratio.describe(METRICS[name]) == expected


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.floats(0.01, 100))
def test_a_ratio_and_its_inverse_say_the_same_with_opposite_words(value):
    there = Ratio(value, value, value, 1).describe(METRICS["compile"])
    back = Ratio(1 / value, 1 / value, 1 / value, 1).describe(METRICS["compile"])
    swapped = re.sub("faster|slower", lambda word: {"faster": "slower", "slower": "faster"}[word.group()], there)
    assert back == swapped


def test_axis_labels_say_which_end_is_better():
    assert METRICS["compile"].axis_label == "compile time (lower is better)"
    assert METRICS["vocab_size"].axis_label == "vocabulary size"


def test_names_are_keys_and_sources_are_complete():
    for name, entry in METRICS.items():
        assert entry.name == name
        assert (entry.quantile is not None) == (entry.source == "samples" and name != "mask_mean")
        assert entry.words[0] != entry.words[1]


def test_an_unknown_metric_names_the_nearest():
    assert metric("compile") is METRICS["compile"]
    with pytest.raises(UnknownNameError, match="mask_p50"):
        metric("mask_p5")


def test_short_factor_has_two_digits():
    assert [short_factor(value) for value in (0.518, 1.0, 7.24, 39.6, 1234.0)] == ["0.52", "1.0", "7.2", "40", "1,234"]

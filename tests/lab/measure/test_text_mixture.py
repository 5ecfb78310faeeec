"""Generated texts: the same from the same seed, of every kind, within their bounds."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from tokdfa.lab.measure.text_mixture import KINDS, MIXED, draw_texts


def test_texts_have_kinds_bounds_and_seeds() -> None:
    texts = list(islice(draw_texts(1, longest=50), 4_000))
    assert texts == list(islice(draw_texts(1, longest=50), 4_000))
    assert texts != list(islice(draw_texts(2, longest=50), 4_000))
    counts = Counter(kind for kind, _ in texts)
    assert set(counts) == {*KINDS, MIXED}
    assert min(counts.values()) > 150
    for _, text in texts:
        assert 0 < len(text) <= 50
        assert "\u2581" not in text
        text.encode()  # no lone surrogates
    assert max(len(text) for _, text in texts) == 50


def test_texts_are_as_different_as_they_claim() -> None:
    of_kind: dict[str, list[str]] = {}
    for kind, text in islice(draw_texts(3), 4_000):
        of_kind.setdefault(kind, []).append(text)
    for kind, texts in of_kind.items():
        assert len(set(texts)) > 0.75 * len(texts), kind
    everything = "".join("".join(texts) for texts in of_kind.values())
    for wanted in (
        "'re",
        "'LL",
        "\u2019s",
        "   ",
        "\r\n",
        "def ",
        '": ',
        "\u0301",
        "٣",
        "の",
        "ко",
        "שלום",
        "\U0001f389",
    ):
        assert wanted in everything, wanted
    assert any(text.strip() == "" for text in of_kind["white space"])
    assert any(ord(letter) > 0xFFFF for text in of_kind["all of Unicode"] for letter in text)

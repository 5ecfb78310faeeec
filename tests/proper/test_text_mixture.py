"""Generated texts: the same from the same seed, of every kind, within their bounds."""

from itertools import islice

from tests.proper.text_mixture import KINDS, MIXED, draw_texts


def test_texts() -> None:
    texts = list(islice(draw_texts(1, longest=50), 4_000))
    assert texts == list(islice(draw_texts(1, longest=50), 4_000))
    of_kind = {kind: [text for one, text in texts if one == kind] for kind in (*KINDS, MIXED)}
    for kind, drawn in of_kind.items():
        assert len(drawn) > 150, kind
        assert len(set(drawn)) > 0.7 * len(drawn), kind
    everything = "".join(text for _, text in texts)
    everything.encode()  # no lone surrogates
    assert "\u2581" not in everything
    assert max(len(text) for _, text in texts) == 50
    assert all(text for _, text in texts)
    for wanted in ("'re", "\u2019s", "   ", "\r\n", "def ", '": ', "\u0301", "٣", "の", "ко", "שלום", "\U0001f389"):
        assert wanted in everything, wanted

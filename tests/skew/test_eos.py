from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import EmptyLanguageError, OptionError
from tokdfa.skew.eos import check_texts


def test_the_conventions() -> None:
    for eos in ("ignored", "counted"):
        assert check_texts(["a"], eos) == (b"a",)
    for wrong in ("", "Counted", "eos"):
        with pytest.raises(OptionError, match="eos is 'ignored' or 'counted'"):
            check_texts(["a"], wrong)


def test_texts_keep_their_order_and_lose_repeats() -> None:
    assert check_texts(["b", b"a", "b", "é"], "ignored") == (b"b", b"a", "é".encode())
    assert check_texts(iter(["b"]), "counted") == (b"b",)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=6))
def test_beginnings_are_refused_iff_there_are_any(texts: list[str]) -> None:
    """Sorting finds a beginning somewhere else than comparing all pairs does, so the pairs are the oracle."""
    encoded = {text.encode() for text in texts}
    clash = any(one != other and other.startswith(one) for one in encoded for other in encoded)
    assert set(check_texts(texts, "counted")) == encoded
    if clash:
        with pytest.raises(OptionError, match=r"is the beginning of .* use eos='counted'"):
            check_texts(texts, "ignored")
    else:
        assert set(check_texts(texts, "ignored")) == encoded


@pytest.mark.parametrize("texts", [[], ()])
def test_no_texts(texts: list[str]) -> None:
    with pytest.raises(EmptyLanguageError, match="at least one text"):
        check_texts(texts, "counted")


@pytest.mark.parametrize(
    ("texts", "message"),
    [("ab", "not one text"), (b"ab", "not one text"), ([None], "not NoneType"), (["a\ud800"], "surrogates")],
)
def test_what_is_no_list_of_texts(texts: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_texts(texts, "counted")

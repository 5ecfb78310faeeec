"""A mask's table says what the mask allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.display.pages import piece_of
from tokdfa import show
from tokdfa.display.masks import MaskView
from tokdfa.errors import TokdfaError
from tokdfa.mask import allocate_mask, mask_from_ids, set_token
from tokdfa.vocabulary.vocabulary import Vocabulary

TEXTS = [b"<b>", b"<script>", b"&amp;", b"a", b"ab", b"abc", b"\xe2\x96", b" x", b"\"'", b"a", b"", b""]
VOCAB = Vocabulary(TEXTS, end_tokens=[10], special_tokens={11: "<tool>"}, size=40, name="odd")


def rows_of(view):
    return [row for row in piece_of(view).rows if row[0] not in ("begins with",)]


def test_rows():
    view = show(mask_from_ids([0, 1, 3, 5, 9, 10], VOCAB.size), VOCAB)
    assert rows_of(view) == [["a", "3", "4", "a abc"], ["<", "2", "2", "<b> <script>"]]
    assert "6 of 40 tokens, the text may end" in piece_of(view).text
    assert "end tokens: 10 <end>" in piece_of(view).text
    assert repr(view) == "MaskView(6 of 40 tokens, the text may end: a  <b>)"


def test_tokens_are_escaped():
    page = show(mask_from_ids(range(9), VOCAB.size), VOCAB)._repr_html_()
    assert page.count("<b>") == 1  # the headline
    assert "<script" not in page
    assert "&amp;amp;</code>" in page
    spelled = piece_of(show(mask_from_ids(range(9), VOCAB.size), VOCAB)).codes
    assert {"<b>", "<script>", "&amp;", "\"'", "␣x", "\\xe2\\x96"} <= set(spelled)


def test_what_is_wrong_is_said():
    mask = mask_from_ids([3, 11, 30], VOCAB.size)
    set_token(mask, 45)
    assert "wrong: 2 tokens that spell nothing, and 1 bits past the vocabulary" in piece_of(show(mask, VOCAB)).text


def test_booleans_are_masks_too():
    allowed = np.zeros(VOCAB.size, dtype=np.bool_)
    allowed[[0, 3]] = True
    assert repr(show(allowed, VOCAB)) == repr(show(mask_from_ids([0, 3], VOCAB.size), VOCAB))


@pytest.mark.parametrize("array", [np.zeros(3, np.int32), np.zeros(2, np.int64), np.zeros(39, np.bool_)])
def test_another_vocabulary(array):
    with pytest.raises(TokdfaError, match="over 40 tokens is int32 of shape"):
        show(array, VOCAB)


def test_without_a_vocabulary():
    with pytest.raises(TokdfaError, match="give its vocabulary"):
        show(allocate_mask(8))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(st.binary(min_size=1, max_size=3), min_size=1, max_size=30).flatmap(
        lambda texts: st.tuples(st.just(texts), st.sets(st.integers(0, len(texts))))
    )
)
def test_groups_are_a_partition(drawn):
    texts, ids = drawn
    vocab = Vocabulary([*texts, b""], end_tokens=[len(texts)])
    view = MaskView(mask_from_ids(sorted(ids), vocab.size), vocab)
    groups = view.groups()
    assert sorted(token for group in groups for token in group.tokens.tolist()) == sorted(ids - {len(texts)})
    assert view.may_end == (len(texts) in ids)
    for group in groups:
        spelled = [texts[token] for token in group.tokens.tolist()]
        assert all(text.startswith(group.prefix) for text in spelled)
        assert len(group.tokens) <= group.of <= sum(text.startswith(group.prefix) for text in texts)
    piece_of(view)

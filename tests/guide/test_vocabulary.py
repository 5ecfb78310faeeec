"""The vocabulary view beside outlines_core's, and what it makes of tokdfa's vocabularies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tokdfa
from tests.guide.sides import END, SIDES, TOKENS, vocabulary
from tests.vocabulary.vocabularies import ODD
from tokdfa.errors import VocabularyError
from tokdfa.guide import GuideError, GuideTypeError, Vocabulary

sides = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.__name__)


@sides
def test_reads_and_changes(side: Any) -> None:
    vocab = vocabulary(side)
    assert len(vocab) == END + 1  # the end token counts
    assert vocab.get_eos_token_id() == END
    assert vocab.get("cats") == vocab.get(token=b"cats") == [32, 33]
    assert vocab.get("é") == vocab.get("é".encode()) == [14]
    assert vocab.get("nothing") is None
    assert vocab.insert("cats", 61) is None
    assert vocab.insert(token=b"new", token_id=62) is None
    vocab.insert("new", 62)
    assert (vocab.get("cats"), vocab.get("new"), len(vocab)) == ([32, 33, 61], [62, 62], END + 4)
    vocab.get("new").append(5)
    assert vocab.remove("cats") is None
    vocab.remove(token=b"nothing")
    assert (vocab.get("cats"), vocab.get("new"), len(vocab)) == (None, [62, 62], END + 1)


@sides
def test_equality_and_copies(side: Any) -> None:
    vocab = vocabulary(side)
    assert vocab == side.Vocabulary(eos_token_id=END, map={text.encode(): ids for text, ids in TOKENS.items()})
    assert vocab != side.Vocabulary(END + 1, TOKENS)
    assert side.Vocabulary(9, {"a": [1, 2]}) != side.Vocabulary(9, {"a": [2, 1]})
    assert vocab != 3
    for twin in (copy.copy(vocab), copy.deepcopy(vocab), pickle.loads(pickle.dumps(vocab))):
        assert twin == vocab
        twin.insert("cats", 70)
        assert vocab.get("cats") == [32, 33]
        assert twin != vocab
    with pytest.raises(TypeError):
        hash(vocab)


@sides
@pytest.mark.parametrize(
    ("kind", "end", "tokens"),
    [
        (ValueError, 9, {"x": [9]}),
        (TypeError, 9, {"x": 1}),
        (TypeError, 9, {3: [1]}),
        (TypeError, 9, {"x": ["1"]}),
        (TypeError, 9, [("x", 1)]),
        (TypeError, "9", {}),
    ],
)
def test_wrong_maps(side: Any, kind: type[Exception], end: Any, tokens: Any) -> None:
    with pytest.raises(kind):
        side.Vocabulary(end, tokens)


@sides
def test_wrong_changes(side: Any) -> None:
    vocab = vocabulary(side)
    with pytest.raises(ValueError, match=r"(?i)end token|EOS"):
        vocab.insert("new", END)
    for wrong in (lambda: vocab.insert(3, 3), lambda: vocab.insert("x", "3"), lambda: vocab.get(3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        vocab.remove(None)
    assert vocab == vocabulary(side)


def test_our_own_refusals() -> None:
    for wrong in (-1, 1 << 70):
        with pytest.raises(GuideError, match="a number from 0"):
            Vocabulary(9, {"a": [wrong]})
    with pytest.raises(GuideError, match="UTF-8"):
        Vocabulary(9, {"\ud800": [1]})
    with pytest.raises(GuideError, match=r"does not download.*load_tokenizer"):
        Vocabulary.from_pretrained("gpt2", revision=None, token=None)
    for wrong_type in (TOKENS, Vocabulary(9, {})):
        with pytest.raises(GuideTypeError, match=r"Vocabulary\.of"):
            Vocabulary.of(wrong_type)  # type: ignore[arg-type]


def test_freeze_gives_the_tokens_and_follows_changes() -> None:
    vocab = vocabulary(tokdfa.guide)
    frozen = vocab.freeze()
    assert frozen is vocab.freeze()
    assert (frozen.size, vocab.size(), frozen.end_tokens) == (END + 1, END + 1, (END,))
    assert {token: frozen.token_bytes(token) for token in range(END)} == {
        token: text.encode() for text, ids in TOKENS.items() for token in ids
    }
    vocab.insert("late", 99)
    assert vocab.freeze().token_bytes(99) == b"late"
    assert (vocab.size(), frozen.size) == (100, END + 1)
    vocab.remove("late")
    assert vocab.freeze().fingerprint == frozen.fingerprint


def test_what_cannot_be_frozen() -> None:
    for tokens, said in (({"a": [1], "b": [1]}, "two texts"), ({"a": [1 << 30]}, "too large")):
        vocab = Vocabulary(9, tokens)
        with pytest.raises(GuideError, match=said) as caught:
            vocab.freeze()
        assert isinstance(caught.value.__cause__, VocabularyError)
    special = Vocabulary.of(tokdfa.Vocabulary([b"a"], [1], {2: "<tool>"}, size=3))
    special.insert("x", 2)
    with pytest.raises(GuideError, match="special"):
        special.freeze()


def test_of_keeps_ends_width_and_special_tokens() -> None:
    vocab = Vocabulary.of(ODD)
    assert vocab.freeze() is ODD
    assert (vocab.get("ab"), vocab.get(b"\xff"), vocab.get("")) == ([1, 4], [11], None)
    assert (vocab.get_eos_token_id(), len(vocab), vocab.size()) == (3, 14, 40)
    twin = pickle.loads(pickle.dumps(vocab))
    assert twin == vocab
    assert twin.freeze().fingerprint == ODD.fingerprint
    with pytest.raises(GuideError, match="end token"):
        vocab.insert("x", 12)
    vocab.insert("x", 20)
    changed = vocab.freeze()
    assert (changed.size, changed.end_tokens, changed.token_bytes(20)) == (40, (3, 12), b"x")

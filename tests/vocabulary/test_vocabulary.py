"""A vocabulary: bytes by id, special and end tokens, padding, duplicates, and everything that is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.errors import VocabularyError
from tokdfa.vocabulary.vocabulary import MAX_SIZE, MAX_TOKEN_BYTES, Vocabulary

token_lists = st.lists(st.binary(max_size=6), max_size=30)


@given(token_lists, st.integers(0, 40), st.lists(st.integers(0, 10**6), max_size=20))
def test_bytes_of_every_id(tokens: list[bytes], padding: int, picks: list[int]) -> None:
    vocab = Vocabulary([*tokens, b""], [len(tokens)], size=len(tokens) + 1 + padding)
    assert [vocab.token_bytes(token) for token in range(vocab.size)] == [*tokens, b""] + [b""] * padding
    assert len(vocab) == vocab.size
    assert vocab.lengths.tolist() == [len(token) for token in tokens] + [0] * (1 + padding)
    assert vocab.lengths.dtype == np.int32
    assert vocab.byte_data.tobytes() == b"".join(tokens)
    assert vocab.offsets.tolist() == [0, *np.cumsum(vocab.lengths).tolist()]
    sequence = [pick % vocab.size for pick in picks]
    assert vocab.spell(sequence) == b"".join([*tokens, *[b""] * (padding + 1)][token] for token in sequence)
    assert np.flatnonzero(vocab.single_byte_tokens).tolist() == sorted({t[0] for t in tokens if len(t) == 1})
    assert np.flatnonzero(vocab.used_bytes).tolist() == sorted(set(b"".join(tokens)))


def test_end_tokens_are_special_sorted_and_distinct() -> None:
    vocab = Vocabulary([b"a", b"", b"", b""], [3, 1, 3], {2: "<pad>", 3: "</s>"}, name="toy")
    assert vocab.end_tokens == (1, 3)
    assert vocab.special_tokens == {1: "<end>", 2: "<pad>", 3: "</s>"}


def test_dicts_by_text_and_by_id() -> None:
    vocab = Vocabulary.from_dict({"a": [0, 2], b"b": 1, "é": 4}, end_tokens=5)
    assert [vocab.token_bytes(token) for token in range(6)] == [b"a", b"b", b"a", b"", "é".encode(), b""]
    vocab = Vocabulary.from_dict({0: "x", 3: b"\xff"}, end_tokens=[1], special_tokens={7: "<image>"}, size=64)
    assert (vocab.size, vocab.special_tokens) == (64, {1: "<end>", 7: "<image>"})
    assert vocab.spell(range(64)) == b"x\xff"


def test_fingerprint_tells_all_parts_apart() -> None:
    def variants() -> list[Vocabulary]:
        return [
            Vocabulary([b"a", b"b", b""], [2]),
            Vocabulary([b"ab", b"", b""], [2]),
            Vocabulary([b"", b"ab", b""], [2]),
            Vocabulary([b"a", b"b", b"", b""], [2]),
            Vocabulary([b"a", b"b", b"", b""], [3]),
            Vocabulary([b"a", b"b", b"", b""], [2, 3]),
            Vocabulary([b"a", b"b", b""], [2], {2: "</s>"}),
            Vocabulary([b"a", b"c", b""], [2]),
        ]

    prints = [vocab.fingerprint for vocab in variants()]
    assert len(set(prints)) == len(prints)
    assert prints == [vocab.fingerprint for vocab in variants()]
    assert Vocabulary([b"a", b""], [1], size=5).fingerprint == Vocabulary([b"a", b"", b"", b"", b""], [1]).fingerprint
    assert Vocabulary([b"a", b""], [1], name="x").fingerprint == Vocabulary([b"a", b""], [1], name="y").fingerprint


def test_pickles() -> None:
    vocab = Vocabulary([b"a", b"b", b""], [2], {2: "</s>"}, size=9, name="toy")
    twin = pickle.loads(pickle.dumps(vocab))
    assert twin.fingerprint == vocab.fingerprint
    assert twin.name == "toy"


def test_arrays_cannot_be_written() -> None:
    vocab = Vocabulary([b"a", b""], [1])
    for array in (vocab.offsets, vocab.byte_data, vocab.trie.nodes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("token", [-1, 2, 10**9])
def test_ids_outside_are_refused(token: int) -> None:
    vocab = Vocabulary([b"a", b""], [1])
    with pytest.raises(VocabularyError, match=rf"token {token} is outside 0\.\.1"):
        vocab.token_bytes(token)
    with pytest.raises(VocabularyError, match="outside"):
        vocab.spell([0, token])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [0]), "1 to"),
        (([b"a"], []), "at least one end token"),
        (([b"a"], [1]), r"special token 1 is outside 0\.\.0"),
        (([b"a", b""], [1], {-1: "x"}), "special token -1 is outside"),
        (([b"a", b""], [0]), "token 0 is special but spells b'a'"),
        (([b"a", b""], [1], {0: "x"}), "token 0 is special but spells b'a'"),
        (([b"a", b""], [1], None, 1), "2 tokens do not fit a logit width of 1"),
        (([b"a", b""], [1], None, MAX_SIZE + 1), "1 to"),
        (([b"a", "b", b""], [2]), "token 1 is a str; tokens are bytes"),
        (([b"a", b"x" * (MAX_TOKEN_BYTES + 1), b""], [2]), f"token 1 has {MAX_TOKEN_BYTES + 1} bytes"),
    ],
)
def test_inconsistent_vocabularies_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "ends", "message"),
    [
        ({"a": 0, b"b": 0}, 1, "id 0 has two texts: b'a' and b'b'"),
        ({"a": [0, 1], "b": 1}, 2, "id 1 has two texts"),
        ({"a": -1}, 2, "token id -1 of 'a'"),
        ({"a": "0"}, 2, "token id '0' of 'a'"),
        ({"a": 1.5}, 2, r"token id 1\.5 of 'a' is not a number"),
        ({"\ud800": 0}, 1, "token '\\\\ud800' has no UTF-8 form"),
        ({0: 5}, 2, "token 5 is neither text nor bytes"),
        ({"a": 10**12}, 2, "too large"),
        ({"a": 0}, 10**12, "too large"),
        ({"a": 0}, [], "at least one end token"),
        ({"a": 0}, 0, "token 0 is special but spells"),
    ],
)
def test_dicts_with_faults_are_refused(tokens: dict[object, object], ends: object, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_dict(tokens, ends)  # type: ignore[arg-type]


def test_logits_narrower_than_the_tokens_leave_out_what_spells_nothing() -> None:
    """As of Gemma 3: a token for images, and no logit for it."""
    tokens = [b"a", b"b", b"", b"", b""]
    cut = Vocabulary(tokens, [2, 4], {3: "<image>", 4: "<turn>"}, size=3)
    assert (cut.size, cut.end_tokens, cut.special_tokens) == (3, (2,), {2: "<end>"})
    assert cut.fingerprint == Vocabulary(tokens[:3], [2]).fingerprint
    assert Vocabulary(tokens, [2, 4], {3: "<image>"}, size=4).special_tokens == {2: "<end>", 3: "<image>"}
    with pytest.raises(VocabularyError, match="5 tokens do not fit a logit width of 2: no end token is left"):
        Vocabulary(tokens, [2, 4], size=2)
    with pytest.raises(VocabularyError, match="5 tokens do not fit a logit width of 1: token 1 spells b'b'"):
        Vocabulary(tokens, [0, 2], size=1)


def test_one_model_in_two_forms_fits() -> None:
    one = Vocabulary([b"a", b"<think>", b"", b""], [2, 3])
    assert one.difference(one) == ""
    assert one.difference(Vocabulary([b"a", b"", b"", b""], [3], {1: "<think>", 2: "</s>"})) == ""
    for other, why in (
        (Vocabulary([b"a", b"<think>", b"", b""], [2], size=5), "4 against 5 tokens"),
        (Vocabulary([b"b", b"<think>", b"", b""], [2, 3]), "token 0 spells b'a' against b'b'"),
        (Vocabulary([b"a", b"<think>", b"", b"c"], [2]), ""),
        (Vocabulary([b"a", b"", b"", b""], [1]), "texts end with [2, 3] against [1]"),
    ):
        assert one.difference(other) == why

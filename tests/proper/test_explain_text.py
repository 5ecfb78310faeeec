"""Verdicts on sequences of whole texts: against the libraries' encoders, over many ways to spell the same texts."""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.proper.pretokenizers import long_texts
from tests.proper.small_tokenizers import (
    BYTE,
    USER_DEFINED,
    merge_list,
    ranked_pieces,
    scored_pieces,
    trained_byte_level,
    trained_metaspace,
)
from tests.vocabulary.tokenizer_files import byte_level, write_json
from tokdfa.errors import OptionError, TokenizerError, VocabularyError
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.explain_text import (
    Verdict,
    encode_text,
    explain_tokens,
    join_pieces,
)
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = [
    *long_texts(),
    "The quick brown fox wasn't here; they'd've said it's HERE'S 12345678 times (3.14159).\n\n  Yes!",
    '{"name": "Jos\u00e9", "ok": true, "list": [1, 20, 300, -4.5e-06], "nested": {"a": null}}',
    "    for (int i = 0; i < n; ++i) {\n\t\tsum += a[i] * b[i];  // ======\n    }\n\n\n",
    "boolean: true\nboolean: false\n",
    "a b <tool> c      d \u65e5\u672c\u8a9e\u65e5\u672c [x]y[x]b [[x]",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2603\ufe0f\u2603 " * 3,
]


def fresh(name: str) -> Tokenizer:
    """A tokenizer whose canonicity is made here, and not kept on the disk."""
    tokenizer = load_tokenizer(name)
    tokenizer.keep("canonicity", lambda: build_canonicity(tokenizer))
    return tokenizer


def read_json(name: str) -> Any:
    return json.loads(Path(name.removeprefix("hf:")).read_text(encoding="utf-8"))


def digits_and_bytes(path: Path) -> str:
    """A trained ByteLevel BPE with added tokens that text can reach; single digits are cut out before it."""
    content = json.loads(byte_level(path).read_text())
    steps = [{"type": "Digits", "individual_digits": True}, content["pre_tokenizer"]]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    return f"hf:{write_json(path, content)}?special="


def words_of_metaspace(path: Path) -> str:
    """The trained Metaspace BPE, cut at each space."""
    content = read_json(trained_metaspace(path))
    content["pre_tokenizer"] = {**content["pre_tokenizer"], "split": True}
    return f"hf:{write_json(path, content)}"


def spaces_lost(path: Path) -> str:
    """The trained ByteLevel BPE with all white space removed before it is cut."""
    content = read_json(trained_byte_level(path))
    steps = [{"type": "WhitespaceSplit"}, {**content["pre_tokenizer"], "use_regex": False}]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    return f"hf:{write_json(path, content)}"


def user_defined(path: Path) -> str:
    """A SentencePiece model with byte fallback and two user-defined pieces."""
    byte_pieces = {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    scores = dict.fromkeys("abx[]e \u2581", -9.0) | {
        "ab": -1.0,
        "x]": -2.0,
        "b[": -4.0,
        "\u2581a": -1.5,
        "\u2581\u2581": -3.0,
    }
    scores |= byte_pieces | {"[x]": 0.0, "[x]b": 0.0}
    return scored_pieces(path, scores, dict.fromkeys(byte_pieces, BYTE) | dict.fromkeys(("[x]", "[x]b"), USER_DEFINED))


def ranked(path: Path) -> str:
    """tiktoken with cl100k's pattern, with a token that is proper only as a whole piece, and some across borders."""
    across = ["s t", ". ", ", ", "1 2", "t's", "e ", ": ", "a ", "n ", " (", '": ', "d c"]
    return ranked_pieces(path, ["xb", "bc", "xyb", " t", "he", " the", "'s", "in", "ing", "  ", "   ", "12", *across])


MAKERS = {
    maker.__name__: maker
    for maker in (
        trained_byte_level,
        trained_metaspace,
        digits_and_bytes,
        words_of_metaspace,
        spaces_lost,
        user_defined,
        ranked,
    )
}
REAL = ("mistral-v1", "tekken", "llama3", "bytes")
#: The kinds of faults that each tokenizer must meet below, so that no part of the judge goes untried.
KINDS = {
    "mistral-v1": {"pair", "bytes", "utf8", "special"},
    "tekken": {"pair", "border", "utf8", "special"},
    "llama3": {"pair", "border", "utf8", "special", "token", "piece"},
    "bytes": {"utf8", "special"},
    "trained_byte_level": {"pair", "border", "utf8", "special"},
    "trained_metaspace": {"pair", "bytes", "utf8", "special"},
    "digits_and_bytes": {"pair", "border", "utf8", "special", "isolated"},
    "words_of_metaspace": {"pair", "border", "bytes", "utf8", "special"},
    "spaces_lost": {"pair", "lost", "utf8", "special"},
    "user_defined": {"pair", "bytes", "utf8", "special", "isolated"},
    "ranked": {"pair", "border", "utf8", "special", "token", "piece"},
}


@functools.cache
def by_bytes(tokenizer: Tokenizer) -> dict[bytes, list[int]]:
    """All tokens of each byte string."""
    found: dict[bytes, list[int]] = {}
    for token in range(tokenizer.vocabulary.size):
        if spelled := tokenizer.vocabulary.token_bytes(token):
            found.setdefault(spelled, []).append(token)
    return found


def reference_says(tokenizer: Tokenizer, tokens: list[int]) -> bool:
    """Whether the library encodes the text of `tokens` as `tokens`."""
    try:
        return tokenizer.encode(tokenizer.vocabulary.spell(tokens).decode()) == tokens
    except UnicodeDecodeError:
        return False


def respellings(tokenizer: Tokenizer, text: str, drawn: random.Random) -> Iterator[list[int]]:
    """The encoding of `text`, and parts of it; with a border moved, put in or taken out; with other ids, special tokens
    or letters; with tokens that are proper as whole pieces only, and what merging makes of these.
    """
    encoding, known = tokenizer.encode(text), by_bytes(tokenizer)
    spell = tokenizer.vocabulary.spell
    yield encoding
    if not encoding:
        return
    begin, end = sorted(drawn.choices(range(len(encoding) + 1), k=2))
    yield encoding[begin:end]
    for width in (1, 2, 2, 2, 3):
        at = drawn.randrange(len(encoding))
        data = spell(encoding[at : at + width])
        ways = [[one] for one in known.get(data, ())]
        for cut in range(1, len(data)):
            ways += [[one, two] for one in known.get(data[:cut], ()) for two in known.get(data[cut:], ())]
        ways = [way for way in ways if way != encoding[at : at + width]]
        if ways:
            yield [*encoding[:at], *drawn.choice(ways), *encoding[at + width :]]
    at = drawn.randrange(len(encoding))
    yield [*encoding[:at], drawn.choice(list(tokenizer.vocabulary.special_tokens)), *encoding[at:]]
    cut = drawn.randrange(len(text) + 1)
    yield [*tokenizer.encode(text[:cut]), *tokenizer.encode(text[cut:])]
    for data, rest in ((spell(encoding[at : at + 1]), encoding[at + 1 :]), (text[cut:].encode(), [])):
        letters = [known[bytes([byte])][-1] for byte in data if bytes([byte]) in known]
        yield [*encoding[: at if rest else 0], *letters, *rest]
    whole = load_canonicity(tokenizer).whole_piece_encodings
    if whole:
        token = drawn.choice(list(whole))
        yield from ([token], list(whole[token]), [*encoding, token], [token, *encoding])


@pytest.mark.parametrize("name", [*REAL, *MAKERS])
def test_verdicts_equal_the_encoder(name: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(name) if name in REAL else fresh(MAKERS[name](tmp_path / "file"))
    drawn = random.Random(7)
    seen: Counter[str] = Counter()
    for text in TEXTS * 3:
        for tokens in respellings(tokenizer, text, drawn):
            verdict = explain_tokens(tokenizer, tokens)
            expected = reference_says(tokenizer, tokens)
            shown = [tokenizer.vocabulary.token_bytes(token) for token in tokens]
            assert verdict.is_proper == expected, (tokens, shown, verdict)
            check_verdict(tokenizer, tokens, verdict)
            seen["proper" if verdict.fault is None else verdict.fault.kind] += 1
    assert seen["proper"] > 100
    assert sum(seen.values()) > 2_500
    assert KINDS[name] <= set(seen), seen


def check_verdict(tokenizer: Tokenizer, tokens: list[int], verdict: Verdict) -> None:
    """What a verdict says besides yes and no."""
    assert verdict.tokens == tuple(tokens)
    assert verdict.text == tokenizer.vocabulary.spell(tokens)
    if verdict.pieces is None:
        assert verdict.fault is not None
        assert verdict.proper_tokens is None
        return
    assert b"".join(piece.text for piece in verdict.pieces) == verdict.text
    if verdict.proper_tokens is not None:
        assert list(verdict.proper_tokens) == tokenizer.encode(verdict.text.decode())
    if verdict.fault is None:
        assert verdict.proper_tokens == verdict.tokens
    else:
        assert 0 <= verdict.fault.position < len(tokens)
        assert (verdict.fault.rule is None) == (verdict.fault.kind != "pair")


@pytest.mark.parametrize("name", ["mistral-v1", "tekken"])
def test_a_pair_at_fault_is_one_by_itself(name: str) -> None:
    """The library merges its two tokens; and in a text of one piece, what comes before it has no fault."""
    tokenizer = load_tokenizer(name)
    vocabulary, drawn, tried = tokenizer.vocabulary, random.Random(1), 0
    for text in TEXTS:
        for tokens in respellings(tokenizer, text, drawn):
            fault = explain_tokens(tokenizer, tokens).fault
            if fault is None or fault.kind != "pair":
                continue
            pair = tokens[fault.position - 1 : fault.position + 1]
            assert tokenizer.merges.encode_piece(vocabulary.spell(pair)) != pair
            begun = explain_tokens(tokenizer, tokens[: fault.position]).fault
            assert begun is None or begun.kind == "utf8" or name == "tekken"
            tried += 1
    assert tried > 100


@pytest.mark.parametrize(
    ("name", "parts", "position", "kind"),
    [
        ("llama3", ["en", "   ", "!"], 1, "border"),
        ("llama3", ["a", "bo", "ol", "   ", "!"], 1, "pair"),  # the first fault, in a piece before the border
        ("llama3", ["a", b" \xe2\x98"], 1, "utf8"),
        ("llama3", ["a", b"\x98", "b"], 1, "utf8"),
        ("llama3", ["a", 128001], 1, "special"),
        # SentencePiece reads U+2581 as a space, so its bytes are never encoded
        ("mistral-v1", ["a", *(bytes([byte]) for byte in "\u2581".encode())], 1, "lost"),
        ("spaces_lost", [*"ab c d"], 2, "lost"),
        ("digits_and_bytes", [*"a<tool>"], 1, "isolated"),
        ("user_defined", ["a", "b[", "x]", "a"], 1, "isolated"),
        ("user_defined", ["a", "b", "[x]", "b"], 1, "pair"),  # [x]b is cut out whole, but this comes first
        ("ranked", ["x", "y", "b"], 0, "piece"),
        # x y b would be the token xyb if the piece ended there; but it goes on inside the token at fault
        ("ranked", ["x", "y", "b", "e ", "c"], 3, "border"),
    ],
)
def test_places_of_faults(name: str, parts: list[str | bytes | int], position: int, kind: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(name) if name in REAL else fresh(MAKERS[name](tmp_path / "file"))
    known = by_bytes(tokenizer)
    tokens = [
        part if isinstance(part, int) else known[part if isinstance(part, bytes) else part.encode()][0]
        for part in parts
    ]
    fault = explain_tokens(tokenizer, tokens).fault
    assert fault is not None
    assert (fault.position, fault.kind) == (position, kind)


def test_texts_that_are_lost_or_cut_at_isolated_tokens(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="loses or changes a part of the text"):
        encode_text(fresh(spaces_lost(tmp_path / "lost.json")), "ab c d")
    pieces = encode_text(fresh(digits_and_bytes(tmp_path / "isolated.json")), "a12<tool>      b")
    assert [piece.text for piece in pieces] == [b"a", b"1", b"2", b"<tool>", b"      ", b"b"]


def test_bad_ids_and_texts() -> None:
    tokenizer = load_tokenizer("bytes")
    for bad in (257, -1):
        with pytest.raises(VocabularyError, match="outside"):
            explain_tokens(tokenizer, [97, bad])
    with pytest.raises(VocabularyError, match="no token id"):
        explain_tokens(tokenizer, [1.5])  # type: ignore[list-item]
    assert explain_tokens(tokenizer, np.array([97, 98])).tokens == (97, 98)
    assert explain_tokens(tokenizer, []).proper_tokens == ()
    with pytest.raises(OptionError, match="not valid Unicode"):
        encode_text(tokenizer, "a\ud800")
    with pytest.raises(TokenizerError, match=r"U\+2581"):
        encode_text(load_tokenizer("mistral-v1"), "a\u2581b")
    assert encode_text(tokenizer, "") == ()


def test_a_text_without_tokens(tmp_path: Path) -> None:
    """A character that no tokens stand for: the library drops it, so the text has no proper tokens."""
    tokenizer = fresh(merge_list(tmp_path / "t.json", "ab", [("a", "b")]))
    pieces = encode_text(tokenizer, "abc")
    assert [piece.tokens for piece in pieces] == [None]
    assert join_pieces(pieces) is None


def test_a_wrong_rule_is_an_error_not_a_verdict(tmp_path: Path) -> None:
    """If our rules were not the library's, that would be said."""
    tokenizer = fresh(trained_byte_level(tmp_path / "t.json"))
    right = load_canonicity(tokenizer)
    backwards = replace(right.rules, rank=(right.rules.rank.max() - right.rules.rank).astype(np.int32))
    parts: Any = (right.derivations, right.merge_tree, right.lists, right.fallback)
    tokenizer._kept["canonicity"] = Canonicity(right.vocabulary, right.source, backwards, *parts)
    text = "The quick brown fox jumps over the lazy dog. " * 2 + " ".join(TEXTS)
    with pytest.raises(TokenizerError, match="internal error: the tokens"):
        explain_tokens(tokenizer, tokenizer.encode(text))
    with pytest.raises(TokenizerError, match="internal error: the library's tokens"):
        encode_text(tokenizer, text)
    tokenizer._kept["canonicity"] = right
    assert explain_tokens(tokenizer, tokenizer.encode(text)).is_proper

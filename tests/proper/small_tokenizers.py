"""Small tokenizers for the tests of merging, each encoded by a library that nobody here wrote."""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.vocabulary.tokenizer_files import CORPUS, SPACE, added, byte_level, rank_file, write_json
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tokdfa.proper.canonical import Canonicity

#: Kinds of pieces in a SentencePiece model.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


@cache
def real(name: str) -> Canonicity:
    """The canonicity of a named tokenizer, made once in a test run and not from the disk."""
    return build_canonicity(load_tokenizer(name))


@st.composite
def merge_lists(draw: st.DrawFn, *, in_any_order: bool = True) -> list[tuple[str, str]]:
    """Merges over a, b and c: each joins two texts that are letters or results so far; then the list is shuffled."""
    texts = list("abc")
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(1, 9))):
        pair = (draw(st.sampled_from(texts)), draw(st.sampled_from(texts)))
        if pair not in merges and len(pair[0] + pair[1]) < 7:
            merges.append(pair)
            texts.append(pair[0] + pair[1])
    return draw(st.permutations(merges)) if in_any_order else merges


def piece_sets() -> st.SearchStrategy[list[str]]:
    """Short texts over one letter or two, long enough for irregular tokens."""
    text = st.sampled_from(["a", "ab"]).flatmap(lambda letters: st.text(letters, min_size=2, max_size=8))
    return st.lists(text, min_size=1, max_size=12, unique=True)


def merge_list(path: Path, letters: str, merges: Sequence[tuple[str, str]], **model: Any) -> str:
    """The name of a tokenizer.json over `letters` (ASCII, byte-level), encoded by the package tokenizers."""
    texts = [*letters, *(left + right for left, right in merges)]
    vocab = {text: token for token, text in enumerate(dict.fromkeys(texts))}
    vocab["<end>"] = len(vocab)
    content = {
        "version": "1.0",
        "added_tokens": [added(vocab["<end>"], "<end>")],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": [list(pair) for pair in merges], **model},
    }
    return f"hf:{write_json(path, content)}?end=<end>"


def ranked_pieces(path: Path, texts: Sequence[str]) -> str:
    """The name of a rank file: all bytes, then `texts` in order of rank; encoded by tiktoken."""
    return f"tiktoken:{rank_file(path, {text.encode(): 256 + index for index, text in enumerate(texts)})}"


def scored_pieces(path: Path, scores: Mapping[str, float], kinds: Mapping[str, int] | None = None) -> str:
    """The name of a SentencePiece BPE model: <unk>, <s>, </s> and the pieces with their scores and `kinds`."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(text, score, (kinds or {}).get(text, NORMAL)) for text, score in scores.items()]
    model = b"".join(
        _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([3 << 3, kind]))
        for text, score, kind in pieces
    )
    byte_fallback = bytes([35 << 3 & 0x7F | 0x80, 35 << 3 >> 7, any(kind == BYTE for _, _, kind in pieces)])
    model += _field(2, bytes([3 << 3, 2]) + byte_fallback) + _field(3, _field(1, b"identity") + bytes([3 << 3, 0]))
    path.write_bytes(model)
    return f"sentencepiece:{path}"


def _field(number: int, content: bytes) -> bytes:
    length = len(content)
    return bytes([number << 3 | 2]) + bytes([length & 0x7F | 0x80, length >> 7]) + content


#: Kind -> functions that write a random tokenizer over a, b, c and return its name: merge lists in any order, of which
#: tokens may be whole pieces; ranks, with several splits of one token; scores, many of them equal.
MAKERS: dict[str, st.SearchStrategy[Callable[[Path], str]]] = {
    "merges": st.builds(
        lambda merges, whole: lambda path: merge_list(path, "abc", merges, ignore_merges=whole),
        merge_lists(),
        st.booleans(),
    ),
    "ranks": piece_sets().map(lambda texts: lambda path: ranked_pieces(path, texts)),
    "scores": st.builds(
        lambda texts, ties: lambda path: scored_pieces(path, _letters_and(texts, ties)),
        piece_sets(),
        st.lists(st.integers(-3, 0), min_size=12, max_size=12),
    ),
}


def _letters_and(texts: Iterable[str], scores: Iterable[float]) -> dict[str, float]:
    return dict.fromkeys("abc", -9.0) | dict(zip(texts, scores, strict=False))


_TIES = {"aa": 1, "aaa": 3, "aaaa": 0, "aaaaa": 3, "aaaaaa": 0, "aaaaaaaa": 1}
_MORE_TIES = {"aaa": 2, "ba": 1, "baa": 2, "aaba": 1, "abab": 1, "baba": 2, "baaaa": 3, "bbbbab": 3, "bbbbbab": 0}
_MORE_TIES |= {"aaabaab": 2, "aababbbb": 2, "baabbabb": 0}
#: A regex -> such functions for it: irregular tokens, ties between rules of parts and of the whole, whole pieces.
HARD: dict[str, list[Callable[[Path], str]]] = {
    "a*": [lambda path: merge_list(path, "abc", [("a", "a"), ("aa", "a")])],
    "(a|b)*": [lambda path: merge_list(path, "abc", [("aa", "a"), ("a", "a")])],  # aaa is irregular
    "[abc]*": [lambda path: merge_list(path, "abc", [("ab", "ab"), ("ab", "a"), ("b", "ab"), ("a", "b")])],
    "(ab)*a?": [lambda path: ranked_pieces(path, ["ba", "ab", "abab"])],  # abab is a whole piece only
    "[ab]*": [
        lambda path: ranked_pieces(path, ["aaa", "aa", "aaaaa"]),
        lambda path: scored_pieces(path, _letters_and(("aa", "aaa", "aab", "baa"), [0.0] * 4)),
    ],
    "[ab]*c?": [
        lambda path: scored_pieces(path, _letters_and(_TIES, _TIES.values())),
        lambda path: scored_pieces(path, _letters_and(_MORE_TIES, _MORE_TIES.values())),
    ],
}


def trained_byte_level(path: Path) -> str:
    """A ByteLevel BPE trained by the package tokenizers, without its added tokens that text can reach."""
    content = json.loads(byte_level(path).read_text())
    content["added_tokens"] = [entry for entry in content["added_tokens"] if entry["special"]]
    texts = {entry["content"] for entry in content["added_tokens"]} - content["model"]["vocab"].keys()
    for index, entry in enumerate(entry for entry in content["added_tokens"] if entry["content"] in texts):
        entry["id"] = len(content["model"]["vocab"]) + index
    return f"hf:{write_json(path, content)}"


def trained_metaspace(path: Path) -> str:
    """A Metaspace BPE with byte fallback, trained by the package tokenizers on 500 tokens of the common characters."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="never", split=False)
    made.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<unk>", "</s>", *byte_tokens], limit_alphabet=120, show_progress=False
    )
    made.train_from_iterator([text.replace("\n", " ") for text in CORPUS], trainer)
    content = json.loads(made.to_str())
    content["added_tokens"] = content["added_tokens"][:2]
    return f"hf:{write_json(path, content)}"

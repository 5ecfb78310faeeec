"""Pre-tokenizers in use, the libraries' own pieces to compare with, and texts."""

from __future__ import annotations

import functools
import itertools
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.vocabulary.tokenizer_files import TEXTS
from tokdfa.vocabulary.loading import package_file
from tokdfa.vocabulary.word_patterns import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.proper.pretokenizer_dfa import MarkedDfa

#: pre_tokenizer.pretokenizers[0].pattern.Regex of Llama 3's tokenizer.json; Qwen 2's has \p{N} alone.
LLAMA3 = "|".join(
    (
        *(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\p{N}{1,3}"),
        *(r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"),
    )
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

#: Letters whose short texts meet contractions, digits, runs of white space and characters of two bytes.
ALPHABET = "a'l1 \né"
#: And letters of both cases, a mark, a slash and a carriage return.
CASES = "aS'\u0301/ \r"


def tiktoken_steps(pattern: str) -> list[dict[str, Any]]:
    return [{"kind": "split", "pattern": pattern, "dialect": "tiktoken"}]


def split_steps(pattern: str, **settings: Any) -> list[dict[str, Any]]:
    return [{"kind": "split", "pattern": pattern, "dialect": "oniguruma", **settings}]


@functools.cache
def tekken_pattern() -> str:
    path = package_file("mistral_common", "data/tekken_240911.json", "the pattern of tekken")
    return str(json.loads(path.read_text(encoding="utf-8"))["config"]["pattern"])


def library_split(pattern: str, behavior: str = "isolated", invert: bool = False) -> Any:
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def pieces_by_tokenizers(pre_tokenizer: Any) -> Callable[[str], list[str]]:
    return lambda text: [text[begin:end] for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text)]


def pieces_by_tiktoken(pattern: str, texts: list[str] | None = None) -> Callable[[str], list[str]]:
    """tiktoken tells tokens, not pieces. But a piece that is a token comes back whole: so make every part a token.

    With `texts`, one encoding serves all of them (and parts of them).
    """
    import tiktoken

    def encoding(wanted: list[str]) -> Any:
        parts = {data[begin:end] for text in wanted for data in [text.encode()] for begin, end in spans(len(data))}
        ranks = {part: rank for rank, part in enumerate([bytes([byte]) for byte in range(256)] + sorted(parts))}
        return tiktoken.Encoding("every part", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    shared = encoding(texts) if texts is not None else None

    def pieces(text: str) -> list[str]:
        reader = shared or encoding([text])
        return [reader.decode_single_token_bytes(token).decode() for token in reader.encode_ordinary(text)]

    return pieces


def spans(length: int) -> Iterator[tuple[int, int]]:
    """All nonempty spans but those of one byte."""
    return ((begin, end) for begin, end in itertools.combinations(range(length + 1), 2) if end > begin + 1)


@dataclass(frozen=True)
class Known:
    """A pre-tokenizer in use: its description, and how the library cuts (given texts to prepare for)."""

    steps: list[dict[str, Any]]
    reference: Callable[[list[str] | None], Callable[[str], list[str]]]


def known(name: str) -> Known:
    from tokenizers import pre_tokenizers

    if name in {*PATTERNS, "tekken"}:
        pattern = tekken_pattern() if name == "tekken" else PATTERNS[name]
        return Known(tiktoken_steps(pattern), lambda texts: pieces_by_tiktoken(pattern, texts))
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    library, steps = {
        "llama3 (tokenizers)": ([library_split(LLAMA3), plain], split_steps(LLAMA3)),
        "qwen2": ([library_split(QWEN2), plain], split_steps(QWEN2)),
        "gpt2 (tokenizers)": ([gpt2], [{"kind": "byte_level", "use_regex": True}]),
        "smollm2": (
            [pre_tokenizers.Digits(individual_digits=True), gpt2],
            [{"kind": "digits", "individual": True}, {"kind": "byte_level", "use_regex": True}],
        ),
    }[name]
    return Known(steps, lambda _texts: pieces_by_tokenizers(pre_tokenizers.Sequence(library)))


KNOWN_NAMES = (*PATTERNS, "tekken", "llama3 (tokenizers)", "qwen2", "gpt2 (tokenizers)", "smollm2")


def long_texts() -> list[str]:
    """Texts of up to 120 characters: prose, code, JSON, scripts, white space, contractions, digits, random Unicode."""
    source = Path(__file__).read_text(encoding="utf-8")
    drawn = random.Random(4)
    pools = [
        "abcXYZ'\u2019sStTlLdDmMvVeErR \n",
        "0123456789\u0663\u00b2\u2167 ,.-",
        " \t\r\n\u00a0\u2003\u2028\x85\x0b/x",
        "'\u017fsS\u212akKßé\u0301ñ ",
        "\u0130i\u01c5\u02b0\u05d0\u4e2d\u0905\u0903\u200d\U0001f389\U00010400 ",
        '{}[]":,\\/#_()=+-*<>|~` \n\tab1',
    ]
    mixed = ["".join(drawn.choices(pool, k=drawn.randint(1, 40))) for pool in pools for _ in range(12)]
    scalars = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
    wild = ["".join(map(chr, drawn.choices(scalars, k=30))) for _ in range(10)]
    low = ["".join(map(chr, drawn.choices(range(0x3000), k=30))) for _ in range(20)]
    code = [source[begin : begin + 120] for begin in range(0, 2400, 120)]
    return [text[:120] for text in TEXTS] + code + mixed + wild + low


def wrong_cuts(pieces: list[bytes], count: int, seed: int) -> Iterator[list[bytes]]:
    """Other ways to cut the same bytes: a border moved, added or dropped. `count` of them, drawn."""
    data = b"".join(pieces)
    borders = list(itertools.accumulate(map(len, pieces)))[:-1]
    inside = sorted(set(range(1, len(data))) - set(borders))
    changes = [(None, place) for place in inside] + [(border, None) for border in borders]
    changes += [(border, border + step) for border in borders for step in (-1, 1) if border + step in inside]
    for gone, new in random.Random(seed).sample(changes, min(count, len(changes))):
        changed = sorted({*borders, new} - {gone, None})
        yield [data[begin:end] for begin, end in itertools.pairwise([0, *changed, len(data)])]


def check_all_segmentations(
    dfa: MarkedDfa, reference: Callable[[str], list[str]], length: int, alphabet: str = ALPHABET
) -> None:
    """Extend texts letter by letter, with every segmentation that is not dead, and compare what is accepted."""
    unfinished = [("", [(dfa.start, b"")])]
    while unfinished:
        text, alive = unfinished.pop()
        accepted = [marked for state, marked in alive if dfa.accepting[state]]
        assert accepted == [b"\xff".join(piece.encode() for piece in reference(text))], text
        if len(text) < length:
            unfinished += [(text + letter, extend(dfa, alive, letter)) for letter in alphabet]


def extend(dfa: MarkedDfa, alive: list[tuple[int, bytes]], text: str) -> list[tuple[int, bytes]]:
    """All (state, marked text) after more text, with a marker (FF) or without before each byte."""
    for byte in text.encode():
        opened = [(dfa.after_marker(state), marked + b"\xff") for state, marked in alive]
        stepped = [(dfa.step(state, byte), marked + bytes([byte])) for state, marked in alive + opened]
        alive = [(state, marked) for state, marked in stepped if state >= 0]
    return alive

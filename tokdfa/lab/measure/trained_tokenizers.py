"""Tokenizers trained on the spot by the package tokenizers, on texts from a seed: merge lists that nobody published.

- ``byte_level``: letters are bytes, pieces are cut by GPT-2's regex;
- ``metaspace``: letters are characters, a piece begins at each space, and a character that the vocabulary lacks becomes
  the tokens of its bytes.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from tokdfa.core.packages import import_library
from tokdfa.lab.measure.text_mixture import draw_texts

if TYPE_CHECKING:
    from pathlib import Path

TRAINED = ("byte_level", "metaspace")
SPACE = "\u2581"
#: Letters of ``metaspace`` besides the byte tokens: fewer than the texts have, so that byte fallback has work.
LETTERS = 400


def train_tokenizer(kind: str, path: Path, tokens: int, texts: int, seed: int) -> str:
    """Train a BPE of the `kind` (one of `TRAINED`), with `tokens` tokens on `texts` texts; returns its name.

    The tokenizer.json is written to `path`. 5 s for 8,000 tokens and 60,000 texts. Raises MissingDependency.
    """
    library = import_library("tokenizers", "a tokenizer trained on the spot")
    made, trainer = {"byte_level": _byte_level, "metaspace": _metaspace}[kind](library, tokens)
    made.train_from_iterator([text for _, text in islice(draw_texts(seed), texts)], trainer)
    content = json.loads(made.to_str())
    content["added_tokens"] = [entry for entry in content["added_tokens"] if not entry["content"].startswith("<0x")]
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"hf:{path}"


def _byte_level(library: Any, tokens: int) -> tuple[Any, Any]:
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = library.decoders.ByteLevel()
    alphabet = sorted(library.pre_tokenizers.ByteLevel.alphabet())
    return made, library.trainers.BpeTrainer(
        vocab_size=tokens, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )


def _metaspace(library: Any, tokens: int) -> tuple[Any, Any]:
    decoders = library.decoders
    made = library.Tokenizer(library.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = library.pre_tokenizers.Metaspace(SPACE, prepend_scheme="never", split=True)
    made.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    special = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return made, library.trainers.BpeTrainer(
        vocab_size=tokens, special_tokens=special, limit_alphabet=LETTERS, show_progress=False
    )

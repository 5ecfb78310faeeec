"""What a tokenizer's file says about merging, as data. `tokdfa.proper` turns it into rules.

Byte-pair encoding starts from the *letters* of a text (its bytes, or its characters) and merges adjacent tokens. Which
pairs merge, and in which order, files say in two ways:

- ``pieces`` (SentencePiece BPE, tiktoken): any two adjacent tokens whose concatenation is a token merge, the lowest
  *rank* of the result first;
- ``pairs`` (tokenizer.json): a list of pairs, in order of precedence.

On equal rank the leftmost pair merges first. Around it stand rules that this page only names:

- *Whole pieces*: a piece whose bytes are a token becomes that token at once (tiktoken; ``ignore_merges``).
- *Byte fallback*: a character that is no token becomes the tokens of its bytes, which never merge.
- *Isolated* tokens (user-defined pieces, added tokens): their text is cut out, leftmost and longest first, before
  anything else happens. They never merge.
- *Pre-tokenizer*: how a text is cut into the pieces within which tokens merge (`PreTokenizerSource`).
- *Normalizers* change the text before all this. Only the exchange of spaces for U+2581 is undone here, because token
  bytes spell the space; a text that any other changes has no proper tokens (`tokdfa.proper.normalizers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt


@dataclass(frozen=True)
class PreTokenizerSource:
    """How a file says that text is cut into pieces.

    `dialect` "tiktoken": the matches of the regex `pattern` (of the crate fancy-regex) are the pieces, text between
    them is lost. `dialect` "oniguruma": `sections` holds "normalizer" and "pre_tokenizer" as a tokenizer.json has them,
    without a dummy prefix.
    """

    dialect: Literal["tiktoken", "oniguruma"]
    pattern: str = ""
    sections: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class MergeSource:
    """How a tokenizer merges. Cheap to make: the list of pairs is read when `read_pairs` is called.

    `rule`: "pieces" or "pairs". `unit`: what a letter is. `letters`: int32, the tokens that letters become; their token
    bytes are the letters. `ranks`: int32, shape (V,), for "pieces": the rank of each token, -1 for tokens that neither
    merge nor come out of a merge. `read_pairs`: for "pairs": int32, shape (n, 3): left, right, result, in order of
    precedence. `byte_tokens`: int32, shape (256,), the byte fallback's token of each byte (-1: none), or None.
    `encode_piece`: the reference library's tokens of one piece, given as bytes (UTF-8 when letters are characters),
    with no pre-tokenizer around it.
    """

    rule: Literal["pieces", "pairs"]
    unit: Literal["byte", "character"]
    letters: npt.NDArray[np.int32]
    encode_piece: Callable[[bytes], list[int]]
    ranks: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    read_pairs: Callable[[], npt.NDArray[np.int32]] = lambda: np.zeros((0, 3), dtype=np.int32)
    byte_tokens: npt.NDArray[np.int32] | None = None
    whole_pieces: bool = False
    isolated: tuple[int, ...] = ()
    normalizers: tuple[str, ...] = ()
    pre_tokenizer: PreTokenizerSource | None = None

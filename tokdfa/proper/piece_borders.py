"""The pre-tokenizer of a tokenizer as a marked language: from what its file says to the automaton.

`load_marked_dfa` is the front door to `tokdfa.proper.pretokenizer` for a loaded tokenizer. None stands for a tokenizer
that has no pre-tokenizer: every text is one piece. The automaton is compared with the reference library on a sample of
texts before it is used, because some files and converters lose steps on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa
from tokdfa.proper.pretokenizer_json import read_tokenizer_json
from tokdfa.proper.verify import SAMPLE
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa
    from tokdfa.proper.pretokenizer_json import Step
    from tokdfa.vocabulary.tokenizers import Tokenizer


def load_marked_dfa(tokenizer: Tokenizer) -> MarkedDfa | None:
    """The marked language of `tokenizer`, None if every text is one piece; made once, kept on disk.

    Costs 1 to 2 s on a machine that has not seen the pre-tokenizer, else 0.03 s. Raises TokenizerError,
    RegexSyntaxError or RegexUnsupported for a pre-tokenizer outside what `tokdfa.proper.pretokenizer` covers, and
    TokenizerError, naming the first difference, if the pieces are not those of the tokenizer.
    """
    return tokenizer.keep("marked_dfa", lambda: _build(tokenizer))


def pre_tokenizer_steps(tokenizer: Tokenizer) -> list[Step]:
    """The description (see `tokdfa.proper.pretokenizer`) of `tokenizer`'s pre-tokenizer; empty without one."""
    source = tokenizer.merges.pre_tokenizer
    if source is None:
        return []
    if source.dialect == "tiktoken":
        return [{"kind": "split", "dialect": "tiktoken", "pattern": source.pattern}]
    return read_tokenizer_json(source.sections)


def _build(tokenizer: Tokenizer) -> MarkedDfa | None:
    steps = pre_tokenizer_steps(tokenizer)
    if not steps:
        return None
    marked = build_marked_dfa(steps)
    check_pieces(marked, tokenizer)
    return marked


def check_pieces(marked: MarkedDfa, tokenizer: Tokenizer) -> None:
    """TokenizerError unless the pieces of a sample of texts, encoded one by one, are the tokenizer's encoding.

    Skipped: texts that hold an isolated token, and texts that the tokenizer or its pre-tokenizer loses a part of.
    """
    source = tokenizer.merges
    isolated = [tokenizer.vocabulary.token_bytes(token) for token in source.isolated]
    for text in SAMPLE:
        encoded = encode_exactly(tokenizer, tokenizer.vocabulary, text)
        if encoded is None or any(part in text.encode() for part in isolated):
            continue
        try:
            pieces = marked.pieces(text)
        except TokenizerError as error:
            raise TokenizerError(f"{tokenizer.name}: {error}, but the tokenizer does not") from None
        if [token for piece in pieces for token in source.encode_piece(piece)] != encoded:
            raise TokenizerError(
                f"{tokenizer.name}: the pieces that its pre-tokenizer makes of {text!r} are not {pieces}, as read from "
                "its file: the file does not say all that the tokenizer does"
            )

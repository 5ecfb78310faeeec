"""Special tokens in grammars: their notation, and which ids of a vocabulary it means.

``<name>`` is every special token printed so, angle brackets included; ``<[12]>``, ``<[1-5,9]>`` are ids; ``<[^1-5]>``
is every special token but these, ``<[*]>`` every special token. An id that spells text is refused: text is what the
other lexemes are for. So is an end token: it ends the text wherever the grammar allows, and stands in no grammar.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.errors import VocabularyError, nearest
from tokdfa.grammar.cfg import SpecialTokens

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

_RANGES = re.compile(r"<\[\s*(\^?)\s*(\d{1,9}(?:\s*-\s*\d{1,9})?(?:\s*,\s*\d{1,9}(?:\s*-\s*\d{1,9})?)*)\s*\]>")
_RANGE = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")


def parse_special(written: str, line: int = 0, column: int = 0) -> SpecialTokens:
    """What ``<...>`` means. Raises ValueError with the reason and the remedy."""
    if not written.startswith("<["):
        return SpecialTokens(names=(written,), name=written, line=line, column=column)
    if re.fullmatch(r"<\[\s*\*\s*\]>", written):
        return SpecialTokens(negated=True, name=written, line=line, column=column)
    match = _RANGES.fullmatch(written)
    if not match:
        raise ValueError("special tokens by id are <[12]>, <[1-5,9]>, <[^1-5]> or <[*]>")
    ranges = tuple((int(first), int(last or first)) for first, last in _RANGE.findall(match[2]))
    for first, last in ranges:
        if last < first:
            raise ValueError(f"the range {first}-{last} is empty; write the smaller id first")
    return SpecialTokens(ranges=ranges, negated=bool(match[1]), name=written, line=line, column=column)


def resolve(tokens: SpecialTokens, vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """The ids that `tokens` means: int32, sorted, at least one, no end token among them.

    O(special tokens). Raises VocabularyError for a name or an id that is not a special token of `vocabulary`, or that
    is an end token, and if nothing is left.
    """
    special = {token for token in vocabulary.special_tokens if token not in vocabulary.end_token_set}
    place = f" (line {tokens.line}, column {tokens.column} of the grammar)" if tokens.line else ""
    named: set[int] = set()
    for name in tokens.names:
        found = {token for token, printed in vocabulary.special_tokens.items() if printed == name}
        if not found:
            hint = nearest(name, set(vocabulary.special_tokens.values()))
            raise VocabularyError(f"the vocabulary has no special token {name!r}{place}; {hint}")
        named |= found
    for first, last in tokens.ranges:
        if last >= vocabulary.size:
            raise VocabularyError(f"token {last}{place} is outside the vocabulary's ids 0..{vocabulary.size - 1}")
        for token in range(first, last + 1):
            if token not in vocabulary.special_tokens:
                raise VocabularyError(
                    f"token {token}{place} is not special but {vocabulary.token_bytes(token)!r}; write text as a string"
                )
        named.update(range(first, last + 1))
    if tokens.negated:
        return _sorted(special - named, f"no special token is left by {tokens.name}{place}")
    ends = sorted(named - special)
    if ends:
        raise VocabularyError(
            f"token {ends[0]}{place} is an end token; leave it out: the text may end wherever the grammar allows it"
        )
    return _sorted(named, f"{tokens.name or 'a lexeme'}{place} means no special token; name one")


def _sorted(ids: set[int], nothing: str) -> npt.NDArray[np.int32]:
    """`ids` as an array; VocabularyError with the message `nothing` if there is none."""
    if not ids:
        raise VocabularyError(nothing)
    return np.array(sorted(ids), dtype=np.int32)

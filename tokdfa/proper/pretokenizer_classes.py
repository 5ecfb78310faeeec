r"""Character classes of pre-tokenizers, as the reference libraries see them.

What ``\p{L}``, ``\s`` or a letter without regard to case contains depends on the library and on the version of Unicode
it was built with. So the library is asked: one search over a text of all Unicode scalar values (1,112,064: all code
points but the surrogates) finds the members of one set. A search costs 0.1 to 0.4 s.

A *scalar class* holds the scalars that belong to the same sets of a pattern; patterns in use have one or two dozen.
Everything that is built from the pattern afterwards reads classes instead of characters.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.core.packages import import_library
from tokdfa.errors import LimitExceeded, TokenizerError
from tokdfa.regex.char_sets import long_foldings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.regex.syntax_tree import SourceSet

#: Which scalars belong to a set: bool, shape (1_112_064,), in the order of `all_scalars`.
Members = npt.NDArray[np.bool_]
#: Scalar -> class: uint8, shape (1_112_064,), in the same order.
ScalarClasses = npt.NDArray[np.uint8]

SCALAR_COUNT = 0x110000 - 0x800
#: One byte holds a class, and two values stay free for the marker and for what is no class.
MAX_CLASSES = 250
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800


@cache
def all_scalars() -> str:
    """The text of all Unicode scalar values, ascending."""
    points = np.arange(0x110000, dtype=np.uint32)
    return np.delete(points, slice(_FIRST_SURROGATE, _FIRST_SURROGATE + _SURROGATES)).tobytes().decode("utf-32-le")


def scalar_classes(sets: list[SourceSet]) -> tuple[ScalarClasses, Members]:
    """Sort all scalars into classes: (class of each scalar, bool of shape (sets, classes): which sets hold which).

    Without sets there is one class. Each set costs a search the first time in a process. Raises TokenizerError for a
    set that the library refuses, LimitExceeded for more than MAX_CLASSES.
    """
    packed = [_packed_members(wanted.origin, wanted.source) for wanted in sets]
    rows = [np.unpackbits(row, count=SCALAR_COUNT).view(np.bool_) for row in packed]
    classes = np.zeros(SCALAR_COUNT, dtype=np.int64)
    for row in rows:
        classes, _ = _renumber(classes * 2 + row)
    member = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    member[classes] = np.arange(SCALAR_COUNT)  # any member stands for its class
    holds = np.array([row[member] for row in rows], dtype=np.bool_).reshape(len(rows), len(member))
    return classes.astype(np.uint8), holds


def common_scalar_classes(
    first: ScalarClasses, second: ScalarClasses
) -> tuple[ScalarClasses, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The coarsest common refinement: (its classes, class -> class of `first`, class -> class of `second`)."""
    width = int(second.max()) + 1
    classes, used = _renumber(first.astype(np.int64) * width + second)
    return classes.astype(np.uint8), used // width, used % width


def _renumber(numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Small numbers counted anew without gaps: (the new numbers, the old number of each)."""
    used = np.flatnonzero(np.bincount(numbers))
    if len(used) > MAX_CLASSES:
        raise LimitExceeded(
            f"the pattern tells apart more than {MAX_CLASSES} classes of characters; use fewer character sets",
            limit="scalar classes",
            value=MAX_CLASSES,
        )
    renumbered = np.zeros(used[-1] + 1, dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    return renumbered[numbers], used


def check_pattern(pattern: str, dialect: str) -> None:
    """Let the library compile a whole pattern. Raises TokenizerError with its reason if it refuses."""
    _tiktoken_encoding(pattern) if dialect == "tiktoken" else _oniguruma_matches(pattern)


@lru_cache(maxsize=256)
def _packed_members(origin: str, source: str) -> npt.NDArray[np.uint8]:
    """The members of one set, eight scalars a byte; the array is shared."""
    found = _SEARCHES[origin](source)
    points = np.frombuffer(found.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    members = np.zeros(SCALAR_COUNT, dtype=np.bool_)
    members[np.where(points < _FIRST_SURROGATE, points, points - _SURROGATES)] = True
    return np.packbits(members)


def _find_character(source: str) -> str:
    return source


def _find_with_tiktoken(source: str) -> str:
    """What tiktoken encodes if a piece is one character of the set: all else is lost."""
    encoding = _tiktoken_encoding(source)
    return np.array(encoding.encode_ordinary(all_scalars()), dtype=np.uint8).tobytes().decode()


def _find_with_oniguruma(source: str) -> str:
    """What remains of the text if all that does not match runs of the set is removed."""
    whole = _oniguruma_matches(rf"\A(?:{source})\z")
    several = [letters for letters in long_foldings() if whole.pre_tokenize_str(letters)]
    if several:
        raise TokenizerError(f"in tokenizers, the character set {source!r} matches all of {several[0]!r} at once")
    return _pieces(_oniguruma_matches(f"(?:{source})+"))


def _find_with_pre_tokenizer(source: str) -> str:
    """What one of the pre-tokenizers removes or sets apart that look for characters without a pattern."""
    kinds = import_library("tokenizers", f"the pre-tokenizer {source}").pre_tokenizers
    if source == "Digits":  # alternating runs, the first of them control characters
        return _pieces(kinds.Digits(individual_digits=False), slice(1, None, 2))
    kept = _pieces(kinds.Punctuation("removed") if source == "Punctuation" else kinds.WhitespaceSplit())
    return all_scalars().translate(dict.fromkeys(map(ord, kept)))


def _tiktoken_encoding(pattern: str) -> Any:
    """An encoding whose tokens are the 256 bytes; TokenizerError if tiktoken refuses the pattern."""
    tiktoken = import_library("tiktoken", "a pattern in the dialect of tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    try:
        return tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError as error:
        raise TokenizerError(f"tiktoken refuses {pattern!r}: {error}") from None


def _oniguruma_matches(pattern: str) -> Any:
    """A pre-tokenizer that leaves only the matches; TokenizerError if tokenizers refuses the pattern."""
    tokenizers = import_library("tokenizers", "a pattern in the dialect of Oniguruma")
    try:
        return tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "removed", invert=True)
    except Exception as error:  # the library raises plain Exception for every fault
        raise TokenizerError(f"tokenizers refuses {pattern!r}: {error}") from None


def _pieces(splitter: Any, wanted: slice = slice(None)) -> str:
    """The chosen pieces of the text of all scalars, joined. (Offsets in characters would cost a second.)"""
    text = import_library("tokenizers", "a pre-tokenizer").PreTokenizedString(all_scalars())
    splitter.pre_tokenize(text)
    return "".join(piece for piece, *_ in text.get_splits("original", "byte")[wanted])


_SEARCHES: dict[str, Callable[[str], str]] = {
    "character": _find_character,
    "tiktoken": _find_with_tiktoken,
    "oniguruma": _find_with_oniguruma,
    "pre_tokenizer": _find_with_pre_tokenizer,
}

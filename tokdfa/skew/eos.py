"""The two conventions about the end of a text (`tokdfa.decoding.draws.Eos`), and the texts that each can take.

With eos="ignored" the probability of a text is that of its tokens; a mask that holds end tokens only ends the text with
no factor (002 counts so). If one text were the beginning of another, both would claim the mass of the longer one and
the probabilities would be no distribution, so such texts are refused. With eos="counted" the text is complete when an
end token comes, drawn like any other token; all end tokens mean the same, so their probabilities are added up.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tokdfa.decoding.draws import check_eos
from tokdfa.errors import EmptyLanguageError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_texts(texts: Iterable[str | bytes], eos: str) -> tuple[bytes, ...]:
    """The distinct texts as bytes, in their order, fit for the convention `eos`. O(n log n) comparisons of texts.

    Raises EmptyLanguageError for no texts; OptionError for a single str or bytes, for what is neither or has no UTF-8
    form, for an unknown convention, and with eos="ignored" for a text that is the beginning of another.
    """
    check_eos(eos)
    if isinstance(texts, str | bytes):
        raise OptionError("texts is a list of texts, not one text")
    encoded = dict.fromkeys(map(_encode, texts))
    if not encoded:
        raise EmptyLanguageError("a distribution needs at least one text")
    if eos == "ignored":
        # in sorted order a text that begins another one begins its right neighbour too
        for shorter, longer in pairwise(sorted(encoded)):
            if longer.startswith(shorter):
                raise ambiguous_end(shorter, longer)
    return tuple(encoded)


def ambiguous_end(text: bytes, longer: bytes | None = None) -> OptionError:
    """The error for a `text` that may end but also go on, to `longer` for instance, under eos="ignored"."""
    onward = f"is the beginning of {longer!r}" if longer is not None else "may end and may also go on"
    return OptionError(f"{text!r} {onward}, so eos='ignored' gives no distribution; use eos='counted'")


def _encode(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise OptionError(f"a text is a str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"the text {text!r} cannot be encoded as UTF-8: {error.reason}") from None

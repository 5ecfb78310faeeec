"""An interpolated Kneser-Ney n-gram model over tokens: a language model that needs no package and trains in a moment.

Theory (Kneser and Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995; the interpolated form of
Chen and Goodman, "An empirical study of smoothing techniques for language modeling", 1999, section 3). The probability
of a token w after the last k tokens h is that of its count, less a discount, and what the discounts took away goes to
the distribution after the last k - 1 tokens h':

    p(w | h) = max(a(h w) - D, 0) / A(h)  +  D * N(h) / A(h) * p(w | h'),    A(h) = sum over w of a(h w),

with N(h) the number of different tokens seen after h; a context never seen gives p(w | h'). The *adjusted count* a is
the number of occurrences for n-grams of the model's order and for those at the start of a document, and for all others
the number of different tokens seen before them: how many contexts a token continues says more about a new context
than how often it occurs. There is one discount for each length, D = n1 / (n1 + 2 n2), with n1 and n2 the numbers of
n-grams whose a is 1 and 2 (Ney, Essen and Kneser 1994), and 1/2 where one of them is 0; this is not the "modified" form
with three discounts. Below the single tokens lies the uniform distribution over all tokens that spell something
and all end tokens, so that each of them is possible everywhere; special tokens and padding are not.

A text is cut into *documents*. Before each stands a start symbol, which is a context and never a next token, after each
the vocabulary's first end token. The tokens are those of the tokenizer, so the model has seen proper sequences only:
improper ones get what smoothing leaves them.

In memory, the n-grams of one length are sorted by context, so those that follow a context lie side by side. A row is
the row of single tokens, shifted by the logarithm of what its contexts left over, with the few tokens seen
after the contexts worked out one by one.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.errors import LimitExceeded, ModelError, OptionError
from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.models.base import LogProbabilities
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: The orders that can be trained. Beyond five, counts of a text of this size are nearly all 1.
MAX_ORDER = 8
#: The largest text in bytes of UTF-8. Each takes 50 to 150 bytes of memory in training, most with one token a byte.
MAX_TEXT_BYTES = 20_000_000
#: What cuts a text file into documents: a form feed, ASCII's own end of a page.
DOCUMENT_BREAK = "\f"


class _Grams(NamedTuple):
    """The different n-grams of one length n, numbered in order of (number of their first n - 1 tokens, last token)."""

    contexts: Integers  # number of the (n-1)-gram in front
    tokens: Integers  # last token
    occurrences: Integers
    at_start: npt.NDArray[np.bool_]  # the first token is the start symbol
    first_places: Integers  # where in the stream the n-gram occurs first
    number_at: Integers  # place in the stream -> number of the n-gram that begins there


@dataclass(frozen=True)
class _Level:
    """What the model needs of the n-grams of one length: context c is followed by those in starts[c]:starts[c + 1].

    `tokens`: int32, ascending within a context; `shares`: (a - D) / A; `left_over`: float64 per context, D N / A.
    """

    tokens: npt.NDArray[np.int32]
    shares: Floats
    starts: Integers
    left_over: Floats


class NgramModel(LanguageModel):
    """See the module's page; made by `train_ngram`. A row costs O(V) for a copy and O(log) for each context token.

    `documents` are arrays of tokens that spell something, at least one array; all n-grams up to `order` are counted. A
    token of a prefix that spells nothing (an end token, a begin token, padding) begins a new document.
    """

    def __init__(self, name: str, vocabulary: Vocabulary, documents: Iterable[Integers], order: int) -> None:
        super().__init__(name, vocabulary)
        self.order = order
        self._start = vocabulary.size  # the start symbol: a symbol one past all tokens
        self._spells = vocabulary.lengths > 0
        end = vocabulary.end_tokens[0]
        stream = np.concatenate([part for document in documents for part in ([self._start], document, [end])])
        stream = stream.astype(np.int64)
        self._fingerprint = hashlib.sha256(
            f"ngram {vocabulary.fingerprint} {order} ".encode() + stream.astype("<i4").tobytes()
        ).hexdigest()[:32]
        counted = _count_grams(stream, self._start, order)
        single = _make_level(counted, 0)
        #: _levels[k]: which tokens follow k + 1 tokens.
        self._levels = [_make_level(counted, index) for index in range(1, order)]
        possible = self._spells.copy()
        possible[list(vocabulary.end_tokens)] = True
        self._base = np.where(possible, single.left_over[0] / possible.sum(), 0.0)
        self._base[single.tokens] += single.shares
        with np.errstate(divide="ignore"):
            self._log_base = np.log(self._base)
        self._added = np.zeros(vocabulary.size)  # all 0 between rows

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def sizes(self) -> dict[int, int]:
        """n -> the number of different n-grams, for n from 2 to the order."""
        return {index + 2: len(level.tokens) for index, level in enumerate(self._levels)}

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        rows = np.empty((len(prefixes), self.vocabulary.size))
        for prefix, row in zip(prefixes, rows, strict=True):
            self._fill_row(self._context(prefix), row)
        return rows

    def _context(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        """The at most order - 1 symbols that the next token depends on."""
        length = self.order - 1
        last = prefix[max(0, len(prefix) - length) :]
        self.counts.tokens += len(last)
        for index in range(len(last) - 1, -1, -1):
            if not self._spells[last[index]]:
                return (self._start, *last[index + 1 :])
        return (self._start, *last) if len(last) < length else last

    def _fill_row(self, context: tuple[int, ...], row: Floats) -> None:
        scale = 1.0  # what the longer contexts left over
        seen = []
        for index in range(len(context)):
            level = self._levels[len(context) - index - 1]
            number = self._find(context[index:])
            if number < 0:
                continue
            begin, end = level.starts[number : number + 2]
            self._added[level.tokens[begin:end]] += scale * level.shares[begin:end]
            seen.append(level.tokens[begin:end])
            scale *= float(level.left_over[number])
        np.add(self._log_base, np.log(scale), out=row)
        if seen:
            tokens = np.concatenate(seen)
            row[tokens] = np.log(scale * self._base[tokens] + self._added[tokens])
            self._added[tokens] = 0.0

    def _find(self, context: tuple[int, ...]) -> int:
        """The number of a context that something follows, -1 if it was never seen."""
        number = context[0]
        for level, token in zip(self._levels, context[1:], strict=False):
            begin, end = level.starts[number : number + 2]
            place = int(begin + level.tokens[begin:end].searchsorted(token))
            if place == end or level.tokens[place] != token:
                return -1
            number = place
        starts = self._levels[len(context) - 1].starts
        return number if starts[number] < starts[number + 1] else -1


def train_ngram(
    tokenizer: Tokenizer, text: str | Sequence[str] | None = None, order: int = 4, *, name: str = "ngram"
) -> NgramModel:
    """Train on `text`: a str, cut into documents at form feeds, or the documents themselves.

    Without a text: Python's own reference pages (`default_documents`). Tokens that spell nothing, which a tokenizer
    makes of characters it does not know, are left out. `name`: what `load_model` would call the model. Time and memory
    are linear in the text but for sorting; encoding it takes most of the time.

    Raises OptionError (`order` outside 1..MAX_ORDER, text that is none), LimitExceeded (more than MAX_TEXT_BYTES) and
    ModelError (no tokens in the text).
    """
    try:
        order = operator.index(order)
    except TypeError:
        raise OptionError(f"the order of an n-gram model is a number, not {order!r}") from None
    if not 1 <= order <= MAX_ORDER:
        raise OptionError(f"the order of an n-gram model is from 1 to {MAX_ORDER}, not {order}")
    if isinstance(text, str):
        text = text.split(DOCUMENT_BREAK)
    texts = default_documents() if text is None else list(text)
    if not all(isinstance(part, str) for part in texts):
        raise OptionError("the text of an n-gram model is a str or several, one for each document")
    _check_size(sum(len(part.encode(errors="surrogatepass")) for part in texts), "the text")
    spells = tokenizer.vocabulary.lengths > 0
    encoded = (np.array(tokenizer.encode(part), dtype=np.int64) for part in texts)
    documents = [kept for tokens in encoded if len(kept := tokens[spells[tokens]])]
    if not documents:
        raise ModelError(f"the text has no tokens of {tokenizer.name}, so there is nothing to learn from")
    return NgramModel(name, tokenizer.vocabulary, documents, order)


def default_documents() -> list[str]:
    """The text to learn from if there is no other: the 80 or so reference pages that Python brings along, in English.

    The pages change a little with the version of Python. Raises ModelError if this Python has been stripped of them.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise ModelError("this Python has no pydoc_data.topics to learn from; name a text: ngram?text=PATH") from None
    return [topics[name] for name in sorted(topics)]


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file. Raises ModelError (missing, unreadable, not UTF-8) and LimitExceeded."""
    path = Path(path).expanduser()
    try:
        if path.is_file():  # a device may have no end
            _check_size(path.stat().st_size, str(path))
            return path.read_bytes().decode()
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ModelError(f"{path} is no UTF-8 at byte {error.start}; convert it, or name another text") from None
        raise ModelError(f"the text {path} cannot be read: {error}") from None
    raise ModelError(f"there is no text file {path}")


def _check_size(size: int, what: str) -> None:
    if size > MAX_TEXT_BYTES:
        raise LimitExceeded(
            f"{what} has {size:,} bytes; an n-gram model learns from at most {MAX_TEXT_BYTES:,}, so give a part of it",
            limit="text bytes",
            value=size,
        )


def _count_grams(stream: Integers, start: int, order: int) -> list[_Grams]:
    """The n-grams of `stream` for n = 1 .. order, none across the start of a document. O(order * T log T).

    An n-gram's key is (number of its first n - 1 tokens, last token) packed in one int64, so that any order and any
    vocabulary fit: numbers are below the length of the stream.
    """
    width = start + 1
    places = np.arange(len(stream))
    occurrences = np.bincount(stream, minlength=width)
    first = np.zeros(width, dtype=np.int64)
    first[stream[::-1]] = places[::-1]
    everything = np.arange(width)
    counted = [_Grams(np.zeros_like(everything), everything, occurrences, everything == start, first, stream)]
    for n in range(2, order + 1):
        places = places[places + n - 1 < len(stream)]
        places = places[stream[places + n - 1] != start]
        keys = counted[-1].number_at[places] * width + stream[places + n - 1]
        unique, first, numbers, occurrences = np.unique(keys, True, True, True)
        number_at = np.full(len(stream), -1)
        number_at[places] = numbers
        first = places[first]
        contexts, tokens = np.divmod(unique, width)
        counted.append(_Grams(contexts, tokens, occurrences, stream[first] == start, first, number_at))
    return counted


def _make_level(counted: Sequence[_Grams], index: int) -> _Level:
    """Adjusted counts, discount and shares of the n-grams of length index + 1."""
    grams = counted[index]
    adjusted = grams.occurrences
    if index + 1 < len(counted):
        longer = counted[index + 1]
        preceding = np.bincount(grams.number_at[longer.first_places + 1], minlength=len(adjusted))
        adjusted = np.where(grams.at_start, adjusted, preceding)
    if index == 0:  # every token has a number, seen or not; the start symbol never comes next
        kept = (adjusted > 0) & ~grams.at_start
        contexts, tokens, adjusted, context_count = grams.contexts[kept], grams.tokens[kept], adjusted[kept], 1
    else:
        contexts, tokens, context_count = grams.contexts, grams.tokens, len(counted[index - 1].tokens)
    once, twice = int((adjusted == 1).sum()), int((adjusted == 2).sum())
    discount = once / (once + 2 * twice) if once and twice else 0.5
    kinds = np.bincount(contexts, minlength=context_count)
    totals = np.bincount(contexts, weights=adjusted, minlength=context_count)
    starts = np.concatenate([[0], np.cumsum(kinds)])
    shares = (adjusted - discount) / totals[contexts]
    return _Level(tokens.astype(np.int32), shares, starts, discount * kinds / np.maximum(totals, 1))

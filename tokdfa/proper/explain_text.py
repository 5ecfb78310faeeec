"""Is a sequence of tokens what the tokenizer makes of a whole text, and if not, where and why not?

`tokdfa.proper.explain` judges one piece; here is the rest of a tokenizer. A sequence is taken apart in this order:

1. Every token must spell something: special, end and padding ids stand in no encoding of a text.
2. What they spell must be a text: UTF-8, and one that the encoder keeps as it is (a pre-tokenizer may lose a part).
3. The text is cut into *pieces*: first the texts of isolated tokens are cut out, leftmost and longest first; then the
   marked language of the pre-tokenizer (`tokdfa.proper.piece_borders`) says where the borders are. Without a
   pre-tokenizer each stretch between isolated tokens is one piece.
4. A token that runs across a border of pieces is a fault; the tokens of each piece are judged as one piece.

So the verdict comes from tables and automata. The *proper tokens* of the same text, which a verdict holds too, are what
the reference library makes of the pieces, one by one, and of the whole text. Verdict and library must agree; if they do
not, that is an error of ours, and it is raised.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from tokdfa.errors import OptionError, TokenizerError, VocabularyError
from tokdfa.proper.explain import Fault, explain, show
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import HIDDEN_SPACE, load_canonicity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class Piece:
    """A piece of a text, as bytes, and its proper tokens; None if a character of it is no token nor byte tokens."""

    text: bytes
    tokens: tuple[int, ...] | None


@dataclass(frozen=True)
class Verdict:
    """What `explain_tokens` says. `text`: the bytes that the tokens spell. `fault`: the first fault, None if proper.

    `pieces`: those of the text, with its proper tokens; None if the bytes are no text that the encoder keeps.
    """

    tokens: tuple[int, ...]
    text: bytes
    fault: Fault | None
    pieces: tuple[Piece, ...] | None

    @property
    def is_proper(self) -> bool:
        """Whether the tokens are what the tokenizer makes of their text."""
        return self.fault is None

    @property
    def proper_tokens(self) -> tuple[int, ...] | None:
        """The proper tokens of the same text; None if there are none."""
        return None if self.pieces is None else join_pieces(self.pieces)


@dataclass(frozen=True)
class _Stretch:
    """A piece before its tokens are known. `isolated`: the isolated token whose text it is, or None."""

    text: bytes
    isolated: int | None = None


@dataclass(frozen=True)
class _Loss:
    """Bytes that are no text the encoder keeps: the first wrong byte, and a sentence with ``{}`` for the token."""

    place: int
    kind: Literal["utf8", "lost"]
    reason: str


def explain_tokens(tokenizer: Tokenizer, tokens: Iterable[int]) -> Verdict:
    """Judge `tokens` as an encoding of a whole text, pre-tokenizer included. About 15 us a token.

    Raises VocabularyError for an id outside the vocabulary; TokenizerError for a tokenizer that does not merge or whose
    pre-tokenizer is not covered, and if our proper tokens differ from the library's.
    """
    canonicity = load_canonicity(tokenizer)
    given = _check_ids(tokens)
    text = tokenizer.vocabulary.spell(given)
    fault = _find_special(tokenizer.vocabulary, given)
    cut = _cut_text(tokenizer, canonicity, text)
    if isinstance(cut, _Loss):
        position = _token_at(tokenizer.vocabulary, given, cut.place)
        reason = cut.reason.format(show(canonicity, given[position]))
        return Verdict(given, text, fault or Fault(position, cut.kind, reason), None)
    fault = fault or _judge_pieces(canonicity, given, cut)
    pieces = _encode_pieces(tokenizer, canonicity, cut)
    if (fault is None) != (join_pieces(pieces) == given):
        said = "proper" if fault is None else f"not proper ({fault.reason})"
        raise TokenizerError(
            f"{tokenizer.name}: internal error: the tokens {list(given[:20])} are judged {said}, but the library "
            f"encodes their text as {list((join_pieces(pieces) or ())[:20])}; please report this"
        )
    return Verdict(given, text, fault, pieces)


def encode_text(tokenizer: Tokenizer, text: str) -> tuple[Piece, ...]:
    """The pieces of `text` and their proper tokens: the library's, if our rules judge them proper.

    About 15 us a token. Raises OptionError (no UTF-8 form), TokenizerError (the encoder loses or changes a part of the
    text; a tokenizer that does not merge or is not covered; the library's tokens are not proper by our rules).
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"the text is not valid Unicode: {error.reason} at position {error.start}") from None
    canonicity = load_canonicity(tokenizer)
    cut = _cut_text(tokenizer, canonicity, data)
    if isinstance(cut, _Loss):
        where = repr(data[cut.place : cut.place + 40].decode(errors="replace"))
        raise TokenizerError(f"{tokenizer.name}: no tokens give this text back: {cut.reason.format(where)}")
    pieces = _encode_pieces(tokenizer, canonicity, cut)
    tokens = join_pieces(pieces)
    fault = None if tokens is None else _judge_pieces(canonicity, tokens, cut)
    if fault is not None:
        raise TokenizerError(
            f"{tokenizer.name}: internal error: the library's tokens of {text[:60]!r} are judged not proper "
            f"({fault.reason}); please report this with the tokenizer's file"
        )
    return pieces


def join_pieces(pieces: Sequence[Piece]) -> tuple[int, ...] | None:
    """The tokens of all pieces, None if one of them has none."""
    joined: list[int] = []
    for piece in pieces:
        if piece.tokens is None:
            return None
        joined += piece.tokens
    return tuple(joined)


def merge_steps(canonicity: Canonicity, token: int) -> list[int]:
    """The rules (indices in `MergeRules`) that merge the letters of `token`, in the order in which they are applied.

    Empty for letters, byte tokens and isolated tokens. For an improper token the steps end in other tokens. Quadratic
    in the letters of the token: 1 ms for 30 letters. Raises VocabularyError for an id outside the vocabulary.
    """
    rules = canonicity.rules
    canonicity.state_of(token)  # raises
    symbols = [token] if token in canonicity.source.isolated else _letters(canonicity, token)
    steps: list[int] = []
    while True:
        found = [(rule, place) for place, pair in enumerate(pairwise(symbols)) if (rule := rules.find(*pair)) >= 0]
        if not found:
            return steps
        rule, place = min(found, key=lambda step: rules.rank[step[0]])  # of equal ranks, the leftmost
        steps.append(rule)
        symbols[place : place + 2] = [int(rules.result[rule])]


def _check_ids(tokens: Iterable[int]) -> tuple[int, ...]:
    given = []
    for token in tokens:
        try:
            given.append(operator.index(token))
        except TypeError:
            raise VocabularyError(f"{token!r} is no token id") from None
    return tuple(given)


def _find_special(vocabulary: Vocabulary, tokens: Sequence[int]) -> Fault | None:
    """The first token that spells nothing."""
    for position, token in enumerate(tokens):
        if vocabulary.lengths[token] == 0:
            name = vocabulary.special_tokens.get(token)
            what = "is padding" if name is None else f"is the special token {name}"
            what += ", an end token" if token in vocabulary.end_token_set else ""
            return Fault(position, "special", f"token {token} {what}: it spells nothing, so no text is encoded so")
    return None


def _cut_text(tokenizer: Tokenizer, canonicity: Canonicity, data: bytes) -> list[_Stretch] | _Loss:
    """The pieces of the text `data`, or why it has none. O(bytes), about 1 us each."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        shown = repr(data[error.start : error.end])
        if error.reason == "unexpected end of data":
            return _Loss(error.start, "utf8", f"no text ends here: {shown} of {{}} begins a character without an end")
        return _Loss(error.start, "utf8", f"this is no text: {shown} of {{}} is not UTF-8")
    source = canonicity.source
    if source.rule == "pieces" and source.unit == "character" and HIDDEN_SPACE in data:  # SentencePiece
        return _Loss(data.index(HIDDEN_SPACE), "lost", "the encoder reads the character U+2581 in {} as a space")
    if source.normalizers:
        tokens = tokenizer.encode(data.decode())
        kept = tokenizer.spell(tokens)
        if kept != data:
            place = next((at for at, pair in enumerate(zip(data, kept, strict=False)) if pair[0] != pair[1]), 0)
            return _Loss(place, "lost", f"the normalizer {', '.join(source.normalizers)} changes the text at {{}}")
    dfa = load_marked_dfa(tokenizer)
    cut: list[_Stretch] = []
    for begin, end, isolated in _split_isolated(canonicity, data):
        part = data[begin:end]
        if isolated is not None or dfa is None:
            cut.append(_Stretch(part, isolated))
            continue
        borders, reach = dfa.borders(part)
        if borders is None:
            reason = "the pre-tokenizer loses or changes a part of the text, at {} or shortly before it"
            return _Loss(begin + min(reach, len(part) - 1), "lost", reason)
        cut += [_Stretch(part[first:last]) for first, last in pairwise([0, *borders, len(part)])]
    return cut


def _split_isolated(canonicity: Canonicity, data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """(begin, end, token) of the texts of isolated tokens in `data`, and of the stretches between them (None)."""
    by_text = {canonicity.vocabulary.token_bytes(token): token for token in canonicity.source.isolated}
    begin = 0
    if by_text:
        for match in re.finditer(b"|".join(map(re.escape, sorted(by_text, key=len, reverse=True))), data):
            if match.start() > begin:
                yield begin, match.start(), None
            yield match.start(), match.end(), by_text[match[0]]
            begin = match.end()
    if begin < len(data):
        yield begin, len(data), None


def _judge_pieces(canonicity: Canonicity, tokens: Sequence[int], cut: Sequence[_Stretch]) -> Fault | None:
    """The first fault of `tokens`, which all spell something, in the pieces of their text."""
    vocabulary = canonicity.vocabulary
    first, place, border = 0, 0, 0  # the piece's first token; where the next token and the next piece begin
    for number, piece in enumerate(cut):
        border += len(piece.text)
        position = first
        while place < border:
            place += int(vocabulary.lengths[tokens[position]])
            position += 1
        crosses = place > border
        if piece.isolated is not None:
            if tokens[first] != piece.isolated:
                return _isolated_fault(canonicity, tokens, first, piece.isolated)
        else:
            inside = tokens[first : position - crosses]
            fault = explain(canonicity, inside)
            # As the beginning of a longer piece, the encoding of a whole piece has no fault.
            if fault is not None and not (crosses and fault.kind == "piece"):
                return Fault(first + fault.position, fault.kind, fault.reason, fault.rule)
            if crosses:
                following = cut[number + 1]
                if following.isolated is not None:
                    return _isolated_fault(canonicity, tokens, position - 1, following.isolated)
                pieces = f"{_readable(piece.text)} and {_readable(following.text)}"
                shown = show(canonicity, tokens[position - 1])
                reason = f"token {shown} runs across the border between the pieces {pieces}"
                return Fault(position - 1, "border", reason)
        first = position
    return None


def _isolated_fault(canonicity: Canonicity, tokens: Sequence[int], position: int, isolated: int) -> Fault:
    shown, wanted = show(canonicity, tokens[position]), show(canonicity, isolated)
    reason = f"token {shown} spells part of a text that is cut out first, as the isolated token {wanted}"
    return Fault(position, "isolated", reason)


def _encode_pieces(tokenizer: Tokenizer, canonicity: Canonicity, cut: Iterable[_Stretch]) -> tuple[Piece, ...]:
    """The pieces with the library's tokens. TokenizerError unless they are the whole text's, if all have some."""
    spell = canonicity.vocabulary.spell
    pieces = []
    for stretch in cut:
        if stretch.isolated is not None:
            tokens: tuple[int, ...] = (stretch.isolated,)
        else:
            tokens = tuple(canonicity.source.encode_piece(stretch.text))
        pieces.append(Piece(stretch.text, tokens if spell(tokens) == stretch.text else None))
    apart = join_pieces(pieces)
    text = b"".join(piece.text for piece in pieces).decode()
    if apart is not None and apart != (whole := tuple(tokenizer.encode(text))):
        place = first_difference(apart, whole)
        raise TokenizerError(
            f"{tokenizer.name}: internal error: for {text[:60]!r}, from token {place} on, its pieces are encoded as "
            f"{list(apart[place : place + 6])}, but the text as {list(whole[place : place + 6])}; "
            "please report this with the tokenizer's file"
        )
    return tuple(pieces)


def _letters(canonicity: Canonicity, token: int) -> list[int]:
    """The letters that `token` is merged from; a byte token never merges."""
    fallback = canonicity.fallback
    if fallback is not None and fallback.byte_of[token] >= 0:
        return [token]
    return canonicity.rules.letters(token).tolist()


def first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    """The first index at which two sequences differ; the length of the shorter one if it begins the other."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _token_at(vocabulary: Vocabulary, tokens: Sequence[int], place: int) -> int:
    """The position of the token that spells the byte at `place`."""
    return bisect_right(list(accumulate(int(vocabulary.lengths[token]) for token in tokens)), place)


def _readable(text: bytes, length: int = 40) -> str:
    """A piece in a message, shortened."""
    shown = text.decode()
    return repr(shown) if len(shown) <= length else f"{shown[:length]!r}..."

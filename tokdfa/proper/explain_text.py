"""Is a sequence of tokens what the tokenizer makes of a whole text, and if not, where and why not?

`tokdfa.proper.explain` judges one piece; here is the rest of a tokenizer. A sequence is taken apart in this order:

1. Every token must spell something: special, end and padding ids stand in no encoding of a text.
2. What they spell must be a text: UTF-8, and one that the encoder keeps as it is (a pre-tokenizer may lose a part).
3. The text is cut into *pieces*: first the texts of isolated tokens are cut out, leftmost and longest first; then the
   marked language of the pre-tokenizer (`tokdfa.proper.piece_borders`) says where the borders are. Without a
   pre-tokenizer each stretch between isolated tokens is one piece.
4. A token that runs across a border of pieces is a fault; the tokens of each piece are judged as one piece.

So the verdict comes from tables and automata. The *proper tokens* of the same text, which a verdict holds too, are
merged anew from the letters of each piece. They must agree with the verdict and with the encoder of the reference
library; if they do not, that is an error of ours, and it is raised.

Long pieces. Merging is quadratic in the letters of a piece, and without a pre-tokenizer a text is one piece. So a piece
is merged chunk by chunk. Two proper sequences joined are proper iff the pair at the joint is (002, technical appendix,
section 4.1); if it is not, ever more tokens on both sides are merged anew until the pairs at both ends are proper.
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from tokdfa.errors import OptionError, TokenizerError, VocabularyError
from tokdfa.proper.derivations import merge_letters
from tokdfa.proper.explain import explain
from tokdfa.proper.pair_test import first_merge
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import HIDDEN_SPACE, load_canonicity
from tokdfa.proper.verify import encode_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How many bytes are merged at once; 2,000 letters take 3 ms.
CHUNK_BYTES = 2_000


@dataclass(frozen=True)
class TextFault:
    """Why a sequence is not proper, and where.

    `position`: the index of the token at fault; for a pair that merges, of its second token. `kind`: those of
    `tokdfa.proper.explain.Fault`, and "special" (the token spells nothing), "utf8" (the bytes are no text), "lost" (the
    encoder does not keep the text as it is), "border" (the token runs across a border of pieces). `rule`: for a pair,
    the index in `MergeRules` of the first rule that merges across the border. `reason`: a sentence.
    """

    position: int
    kind: Literal["token", "pair", "bytes", "piece", "isolated", "special", "utf8", "lost", "border"]
    reason: str
    rule: int | None = None


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
    fault: TextFault | None
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
        reason = cut.reason.format(_show(tokenizer.vocabulary, given[position]))
        return Verdict(given, text, fault or TextFault(position, cut.kind, reason), None)
    fault = fault or _judge_pieces(canonicity, given, cut)
    pieces = _encode_stretches(canonicity, cut)
    _compare(tokenizer, text.decode(), pieces)
    if (fault is None) != (join_pieces(pieces) == given):
        said = "proper" if fault is None else f"not proper ({fault.reason})"
        raise TokenizerError(
            f"{tokenizer.name}: internal error: the tokens {list(given[:20])} are judged {said}, but merging the "
            f"letters of their text gives {list((join_pieces(pieces) or ())[:20])}; please report this"
        )
    return Verdict(given, text, fault, pieces)


def encode_text(tokenizer: Tokenizer, text: str) -> tuple[Piece, ...]:
    """The pieces of `text` and their proper tokens, merged by our rules and compared with the library's encoding.

    About 15 us a token. Raises OptionError (no UTF-8 form), TokenizerError (the encoder loses or changes a part of the
    text; a tokenizer that does not merge or is not covered; our tokens differ from the library's).
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
    pieces = _encode_stretches(canonicity, cut)
    _compare(tokenizer, text, pieces)
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


def _find_special(vocabulary: Vocabulary, tokens: Sequence[int]) -> TextFault | None:
    """The first token that spells nothing."""
    for position, token in enumerate(tokens):
        if vocabulary.lengths[token] == 0:
            name = vocabulary.special_tokens.get(token)
            what = "is padding" if name is None else f"is the special token {name}"
            what += ", an end token" if token in vocabulary.end_token_set else ""
            return TextFault(position, "special", f"token {token} {what}: it spells nothing, so no text is encoded so")
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
    dfa = load_marked_dfa(tokenizer)
    cut: list[_Stretch] = []
    for begin, end, isolated in _split_isolated(canonicity, data):
        part = data[begin:end]
        if isolated is not None or dfa is None:
            cut.append(_Stretch(part, isolated))
            continue
        borders, reach = _find_borders(dfa, part)
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


#: The borders so far, the last one first: (place, borders before it), or None.
_Borders = tuple[int, "_Borders | None"]


def _find_borders(dfa: MarkedDfa, data: bytes) -> tuple[list[int] | None, int]:
    """(the places of the markers in `data`, its length), or (None, how many bytes could be read)."""
    alive: dict[int, _Borders | None] = {dfa.start: None}
    for place, byte in enumerate(data):
        following: dict[int, _Borders | None] = {}
        for state, borders in alive.items():
            if (target := dfa.step(state, byte)) >= 0:
                following[target] = borders
            if (target := dfa.step(dfa.after_marker(state), byte)) >= 0:
                following[target] = (place, borders)
        if not following:
            return None, place
        alive = following
    accepted = [borders for state, borders in alive.items() if dfa.accepting[state]]
    if not accepted:
        return None, len(data)
    link, places = accepted[0], []  # a text has one marking only
    while link is not None:
        places.append(link[0])
        link = link[1]
    return places[::-1], len(data)


def _judge_pieces(canonicity: Canonicity, tokens: Sequence[int], cut: Sequence[_Stretch]) -> TextFault | None:
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
                return _isolated_fault(vocabulary, tokens, first, piece.isolated)
        else:
            inside = tokens[first : position - crosses]
            fault = explain(canonicity, inside)
            # As the beginning of a longer piece, the encoding of a whole piece has no fault.
            if fault is not None and not (crosses and fault.kind == "piece"):
                return TextFault(first + fault.position, fault.kind, fault.reason, fault.rule)
            if crosses:
                following = cut[number + 1]
                if following.isolated is not None:
                    return _isolated_fault(vocabulary, tokens, position - 1, following.isolated)
                pieces = f"{_readable(piece.text)} and {_readable(following.text)}"
                shown = _show(vocabulary, tokens[position - 1])
                reason = f"token {shown} runs across the border between the pieces {pieces}"
                return TextFault(position - 1, "border", reason)
        first = position
    return None


def _isolated_fault(vocabulary: Vocabulary, tokens: Sequence[int], position: int, isolated: int) -> TextFault:
    shown, wanted = _show(vocabulary, tokens[position]), _show(vocabulary, isolated)
    reason = f"token {shown} spells part of a text that is cut out first, as the isolated token {wanted}"
    return TextFault(position, "isolated", reason)


def _encode_stretches(canonicity: Canonicity, cut: Iterable[_Stretch]) -> tuple[Piece, ...]:
    """The pieces with their proper tokens."""
    spell = canonicity.vocabulary.spell
    pieces = []
    for stretch in cut:
        if stretch.isolated is not None:
            tokens: tuple[int, ...] = (stretch.isolated,)
        else:
            tokens = tuple(_merge_piece(canonicity, stretch.text))
            whole = canonicity.whole_piece_of.get(tokens)
            tokens = tokens if whole is None else (whole,)
        pieces.append(Piece(stretch.text, tokens if spell(tokens) == stretch.text else None))
    return tuple(pieces)


def _merge_piece(canonicity: Canonicity, piece: bytes) -> list[int]:
    """What the rules make of `piece`, chunk by chunk (see the module)."""
    merged: list[int] = []
    begin = 0
    while begin < len(piece):
        end = begin + CHUNK_BYTES
        while end < len(piece) and piece[end] & 0xC0 == 0x80:  # not inside a character
            end += 1
        _append(canonicity, merged, encode_piece(canonicity, piece[begin:end]))
        begin = end
    return merged


def _append(canonicity: Canonicity, left: list[int], right: list[int]) -> None:
    """Make `left` the proper tokens of the text of ``left + right``, both of which are proper."""
    width = 0
    while True:
        begin, end = max(0, len(left) - width), min(width, len(right))
        letters = [letter for token in (*left[begin:], *right[:end]) for letter in _letters(canonicity, token)]
        middle = merge_letters(canonicity.rules, letters).tolist()
        joined = [*left[max(0, begin - 1) : begin], *middle, *right[end : end + 1]]
        joints = [pair for pair in (joined[:2], joined[-2:]) if len(pair) == 2]
        if all(first_merge(canonicity.rules, canonicity.derivations, *pair) < 0 for pair in joints):
            left[begin:] = [*middle, *right[end:]]
            return
        width = max(1, 2 * width)


def _letters(canonicity: Canonicity, token: int) -> list[int]:
    """The letters that `token` is merged from; a byte token never merges."""
    fallback = canonicity.fallback
    if fallback is not None and fallback.byte_of[token] >= 0:
        return [token]
    return canonicity.rules.letters(token).tolist()


def _compare(tokenizer: Tokenizer, text: str, pieces: Sequence[Piece]) -> None:
    """Raise TokenizerError unless the reference library encodes `text` as the tokens of `pieces`, if all have some."""
    ours = join_pieces(pieces)
    if ours is None:
        return
    theirs = tuple(tokenizer.encode(text))
    if ours != theirs:
        place = first_difference(ours, theirs)
        raise TokenizerError(
            f"{tokenizer.name}: internal error: for {text[:60]!r}, from token {place} on, our merging gives "
            f"{list(ours[place : place + 6])}, but the library gives {list(theirs[place : place + 6])}; "
            "please report this with the tokenizer's file"
        )


def first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    """The first index at which two sequences differ; the length of the shorter one if it begins the other."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _token_at(vocabulary: Vocabulary, tokens: Sequence[int], place: int) -> int:
    """The position of the token that spells the byte at `place`."""
    return bisect_right(list(accumulate(int(vocabulary.lengths[token]) for token in tokens)), place)


def _show(vocabulary: Vocabulary, token: int) -> str:
    return f"{token} {vocabulary.token_bytes(token)!r}"


def _readable(text: bytes, length: int = 40) -> str:
    """A piece in a message, shortened."""
    shown = text.decode()
    return repr(shown) if len(shown) <= length else f"{shown[:length]!r}..."

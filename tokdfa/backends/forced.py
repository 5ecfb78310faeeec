"""What must come next: the bytes that every text goes on with, and the tokens that stand for them.

*Bytes* are found by masks alone: every way of cutting them into tokens is followed from token to token, and the answer
is what all ways have in common.

*Tokens* are forced in two ways. A token that is the only bit of a mask must be taken. Where several tokens are allowed
because one text can be cut in several ways, the forced bytes are encoded by the tokenizer and cut back to the last
border that no continuation moves. A continuation moves a border by a token that reaches past the end of the forced
bytes, or, after white space, by what it begins with: most tokenizers leave the last blank to the word behind it. So for
each place where such a token may begin, because the vocabulary has it and the constraint allows it, the bytes up to
that place are encoded; what all these encodings begin with is forced. This rests on a property of BPE and Unigram: the
beginning of a text's encoding, up to any of its borders, is the encoding of that beginning. How a text is cut into
pieces first may depend on what stands before it, so some text before the forced bytes is encoded with them, if a border
of that encoding lies between.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tokdfa import mask as masks
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import numpy.typing as npt

    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


#: So many tokens before the forced bytes are encoded with them.
TOKENS_BEFORE = 32


class Forkable(Protocol):
    """What is asked of a matcher: see `tokdfa.backends.matcher.Matcher`."""

    vocab: Vocabulary
    origin: Any

    @property
    def tokens(self) -> tuple[int, ...]: ...
    def fork(self) -> Forkable: ...
    def fill_mask(self, out: Mask) -> None: ...
    def advance(self, token: int) -> None: ...
    def allows(self, token: int) -> bool: ...
    def is_finished(self) -> bool: ...
    def forced_bytes(self, limit: int = 256) -> bytes: ...
    def whereabouts(self) -> Hashable: ...


def find_forced_tokens(matcher: Forkable, limit: int) -> list[int]:
    """At most `limit` tokens that must come next: those of masks with one bit, and then those of the forced bytes."""
    forced: list[int] = []
    ahead = matcher.fork()
    mask = masks.allocate_mask(matcher.vocab.size)
    while len(forced) < limit and not ahead.is_finished():
        ahead.fill_mask(mask)
        if masks.count(mask) != 1:
            return forced + _encode_forced(ahead, limit - len(forced))
        forced.append(int(masks.mask_to_ids(mask)[0]))
        ahead.advance(forced[-1])
    return forced


def _encode_forced(matcher: Forkable, limit: int) -> list[int]:
    """The tokenizer's own tokens for the forced bytes, up to the last border that no continuation moves."""
    if matcher.vocab.tokenizer is None:
        return []
    text = matcher.forced_bytes()
    if not text or not _is_border(text, 0):
        return []
    common: list[int] | None = None
    for end in _open_borders(matcher, text):
        tokens = _encode(matcher, text[:end])
        common = tokens if common is None else common[: _count_shared(common, tokens)]
        if not common:
            return []
    taken: list[int] = []
    ahead = matcher.fork()
    for token in (common or [])[:limit]:
        if not ahead.allows(token):  # as with a limit on tokens
            break
        ahead.advance(token)
        taken.append(token)
    return taken


def _encode(matcher: Forkable, text: bytes) -> list[int]:
    """The tokenizer's tokens of a text of whole characters, after what is there; none if they do not spell it."""
    vocab = matcher.vocab
    assert vocab.tokenizer is not None
    before = (*(matcher.origin[1] if matcher.origin else ()), *matcher.tokens)[-TOKENS_BEFORE:]
    left = vocab.spell(before).decode(errors="replace").encode()
    if text and b"\xef\xbf\xbd" not in left:
        tokens = encode_exactly(vocab.tokenizer, vocab, (left + text).decode()) or []
        spelled = 0
        for place, token in enumerate(tokens):
            if spelled == len(left):
                return tokens[place:]
            spelled += len(vocab.token_bytes(token))
    return encode_exactly(vocab.tokenizer, vocab, text.decode()) or []


def _open_borders(matcher: Forkable, text: bytes) -> Iterator[int]:
    """The end of `text`, and every place in it where a token may begin that reaches past the end, or the last blank.

    Only places between characters can be encoded up to. One inside a character stands for the beginning of that
    character, and for all places from which a token reaches past it.
    """
    todo = [len(text)]
    if _is_border(text, len(text)) and text.decode()[-1].isspace():
        todo.append(len(text.decode()[:-1].encode()))
    seen = set(todo)
    while todo:
        place = todo.pop()
        border = place
        while not _is_border(text, border):
            border -= 1
        if border == place:
            yield place
        found = {border}
        if place == len(text) or border < place:
            found.update(_starts_of_longer(matcher, text, border))
        todo += found - seen
        seen |= found


def _is_border(text: bytes, place: int) -> bool:
    """Whether a place lies between two characters; at the end, whether the last one is whole."""
    if place < len(text):
        return text[place] & 0xC0 != 0x80
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _starts_of_longer(matcher: Forkable, text: bytes, end: int) -> Iterator[int]:
    """Where a token may begin that has the bytes up to `end`, and more; at the end of `text`, one that is allowed."""
    vocab, trie = matcher.vocab, matcher.vocab.trie
    order = trie.order
    for begin in range(max(0, end - trie.depth_limit), end):
        beginning = text[begin:end]
        first = bisect_right(order, beginning, key=vocab.token_bytes)
        past = bisect_right(order, beginning, first, key=lambda token: vocab.token_bytes(token)[: len(beginning)])
        if first < past and (end < len(text) or _allows_any(matcher, text[:begin], order[first:past])):
            yield begin


def _allows_any(matcher: Forkable, text: bytes, tokens: npt.NDArray[np.int32]) -> bool:
    """Whether one of some tokens may follow after `text`; True if that cannot be asked, as inside a character."""
    ahead = matcher.fork()
    spelled = _encode(matcher, text) if _is_border(text, len(text)) else []
    if not spelled and text:
        return True
    for token in spelled:
        if not ahead.allows(token):
            return True
        ahead.advance(token)
    mask = masks.allocate_mask(matcher.vocab.size)
    ahead.fill_mask(mask)
    return bool(masks.mask_to_bool(mask)[tokens].any())


def find_forced_bytes(matcher: Forkable, limit: int) -> bytes:
    """The bytes with which every text goes on that tokens can still spell, up to `limit`; b"" where it may end."""
    trie, mask = matcher.vocab.trie, masks.allocate_mask(matcher.vocab.size)
    text, bound, made = b"", limit, 0
    ways: list[tuple[int, int, Forkable]] = [(0, 0, matcher.fork())]  # bytes that it has spelled, a number, where it is
    seen: set[tuple[int, Hashable]] = set()
    while ways and ways[0][0] < bound:
        begin, _, here = heapq.heappop(ways)
        if made == limit:
            bound = begin
            break
        made += 1
        here.fill_mask(mask)
        ranks = np.sort(trie.rank_of[masks.mask_to_ids(mask)])
        if len(ranks) and ranks[0] < 0:
            bound = begin  # a token that spells nothing: the end of the text, or a special token
            break
        last = matcher.vocab.token_bytes(int(trie.order[ranks[-1]])) if len(ranks) else b""
        for token in map(int, trie.order[ranks]):  # in the order of their bytes: what is left begins alike
            first = matcher.vocab.token_bytes(token)
            shared = first[: _count_shared(first, last)]
            agreed = _count_shared(shared, text[begin:])
            if agreed < min(len(shared), len(text) - begin):
                bound = min(bound, begin + agreed)
            text = max(text, text[:begin] + shared, key=len)
            if shared != first:
                bound = min(bound, begin + len(shared))
            if begin + len(first) >= bound:
                break
            following = here.fork()
            following.advance(token)
            key = begin + len(first), following.whereabouts()
            if key not in seen:
                seen.add(key)
                heapq.heappush(ways, (key[0], len(seen), following))
    return text[:bound]


def _count_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many bytes or tokens `one` and `other` begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))

"""Proper sequences of one tokenizer: which tokens may be used, and which may follow which.

`Canonicity` holds the rules of a tokenizer and everything derived from them. A sequence of tokens inside one piece is
proper iff every token is proper and every adjacent pair is (002, technical appendix, section 4.1: what may come next
depends on the last token only), with three additions that stand outside the pairs:

- byte fallback: `Canonicity.fallback`, an automaton beside the pairs (`tokdfa.proper.byte_fallback`);
- whole pieces: where a piece that is a token becomes that token at once, an improper token is proper as a whole piece,
  and the merge encoding of its bytes is not (`Canonicity.whole_piece_encodings`);
- isolated tokens (`MergeSource.isolated`) stand by themselves: their text is cut out before anything else.

`load_canonicity` (`tokdfa.proper.rules_cache`) makes one for a tokenizer, `tokdfa.proper.explain` judges sequences.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.locks import cached_property, new_lock
from tokdfa.errors import VocabularyError
from tokdfa.mask import Mask, allocate_mask, check_mask
from tokdfa.proper.adjacent_pairs import AdjacentPairs
from tokdfa.proper.bpe import merge_letters
from tokdfa.proper.intervals import BorderSide
from tokdfa.proper.merge_rules import letter_tokens
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.proper.whole_pieces import build_whole_pieces

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.proper.derivations import Derivations
    from tokdfa.proper.intervals import IntervalLists
    from tokdfa.proper.merge_rules import Int32, MergeRules
    from tokdfa.proper.merge_tree import MergeTree
    from tokdfa.proper.whole_pieces import WholePieces
    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Lists that forbid at most this many tokens are written bit by bit, which is as fast as copying a packed mask.
NARROW = 512
#: The bytes that packed masks of wide lists may take before they are dropped.
MASK_BYTES = 64 << 20


class Canonicity:
    """The proper sequences of a tokenizer. Immutable to its users and safe to share between threads.

    The parts: `rules`, `derivations`, `merge_tree`, `lists`, and `fallback` (None without byte fallback). `mask_bytes`:
    how much memory the packed masks of wide lists may take.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        source: MergeSource,
        rules: MergeRules,
        derivations: Derivations,
        merge_tree: MergeTree,
        lists: IntervalLists,
        fallback: ByteFallback | None,
        mask_bytes: int = MASK_BYTES,
    ) -> None:
        self.vocabulary, self.source = vocabulary, source
        self.rules, self.derivations, self.merge_tree, self.lists = rules, derivations, merge_tree, lists
        self.fallback = fallback
        self.mask_bytes = mask_bytes
        sizes = np.append(0, np.cumsum(lists.ends - lists.starts, dtype=np.int64))
        #: int64, shape (states,): how many tokens each state forbids next.
        self.forbidden_counts: npt.NDArray[np.int64] = np.diff(sizes[lists.list_starts])
        #: Token -> the packed mask of its state, as far as it is kept; the same dict for ever.
        self.kept_masks: dict[int, Mask] = {}
        self._mask_of: dict[int, Mask] = {}  # state -> mask
        self._lock = new_lock()

    @property
    def size(self) -> int:
        """V, the number of token ids."""
        return self.vocabulary.size

    @cached_property
    def letter_tokens(self) -> dict[bytes, int]:
        """The token of each letter (its bytes)."""
        return letter_tokens(self.vocabulary, self.source)

    @cached_property
    def usable(self) -> npt.NDArray[np.bool_]:
        """bool, shape (V,): the tokens that may stand inside a piece.

        These are the proper ones and the byte tokens that byte fallback uses, but for tokens that spell the text of an
        isolated token, which never gets as far as merging.
        """
        usable = self.merge_tree.number >= 0
        for text in map(self.vocabulary.token_bytes, self.source.isolated):
            usable[_tokens_with(self.vocabulary, text)] = False
        usable.flags.writeable = False
        return usable

    @cached_property
    def improper_tokens(self) -> Int32:
        """The tokens whose own bytes are encoded as something else, int32, ascending (588 in Llama 3).

        Byte tokens and isolated tokens are not among them.
        """
        candidates = np.diff(self.rules.spelling_starts) > 0
        candidates[np.array(self.source.isolated, dtype=np.int64)] = False
        if self.fallback is not None:
            candidates &= self.fallback.byte_of < 0
        return np.flatnonzero(candidates & ~self.derivations.is_proper).astype(np.int32)

    @cached_property
    def pairs(self) -> AdjacentPairs:
        """Which pairs of tokens may stand side by side, without lists; made at first use."""
        return AdjacentPairs(self.rules, self.derivations)

    @cached_property
    def predecessors(self) -> BorderSide:
        """Which tokens a given one may not follow, without lists; made at first use."""
        return BorderSide(self.rules, self.derivations, self.right_tree, is_left=False)

    @cached_property
    def right_tree(self) -> MergeTree:
        """The merge tree of right parts; made at first use."""
        silent = np.zeros(0, dtype=np.int32) if self.fallback is None else self.fallback.used_tokens()
        return build_merge_tree(self.derivations, silent, side="right")

    @cached_property
    def whole_piece_encodings(self) -> dict[int, tuple[int, ...]]:
        """Improper token that is a whole piece -> the merge encoding of its bytes. Empty without whole pieces.

        Such a token is proper as a piece of its own, and the encoding is not. The reference says which tokens it is.
        """
        if not self.source.whole_pieces:
            return {}
        return {
            token: tuple(merge_letters(self.rules, self.rules.letters(token)).tolist())
            for token in self.improper_tokens.tolist()
            if self.source.encode_piece(self.vocabulary.token_bytes(token)) == [token]
        }

    @cached_property
    def whole_piece_of(self) -> dict[tuple[int, ...], int]:
        """`whole_piece_encodings` the other way round: encoding -> token."""
        return {encoding: token for token, encoding in self.whole_piece_encodings.items()}

    @cached_property
    def whole_pieces(self) -> WholePieces:
        """`whole_piece_encodings` as a trie of tokens."""
        return build_whole_pieces(self.whole_piece_encodings, self.vocabulary.trie.rank_of)

    @cached_property
    def text_trie(self) -> TokenTrie:
        """The token trie of the `usable` tokens but for byte tokens, which are not read by their bytes alone."""
        keep = self.usable.copy()
        if self.fallback is not None:
            keep &= self.fallback.byte_of < 0
        return self.vocabulary.trie.filter(keep)

    @cached_property
    def letter_tries(self) -> tuple[TokenTrie, TokenTrie]:
        """The token tries of the letters and of no tokens."""
        keep, trie = np.zeros(self.size, dtype=np.bool_), self.vocabulary.trie
        nothing = trie.filter(keep)
        keep[[*self.letter_tokens.values()]] = True
        return trie.filter(keep), nothing

    @cached_property
    def _sorted_texts(self) -> list[bytes]:
        """What the tokens of `text_trie` spell, ascending."""
        return [self.vocabulary.token_bytes(token) for token in self.text_trie.order.tolist()]

    def is_cut(self, text: bytes, place: int) -> bool:
        """Whether a border of tokens stands at ``text[place]`` in the encoding of every text that begins with
        ``text[: place + 1]``, since no token could run across. Some us.
        """
        if text[place] & 0xC0 == 0x80:
            return False
        texts, end = self._sorted_texts, place + 1
        begins = (text[begin:end] for begin in range(place - 1, max(-1, place - self.text_trie.depth_limit), -1))
        found = ((bisect_left(texts, spelled), spelled) for spelled in begins)
        return not any(index < len(texts) and texts[index].startswith(spelled) for index, spelled in found)

    @cached_property
    def whole_piece_trie(self) -> TokenTrie:
        """The token trie of the improper tokens that are whole pieces."""
        keep = np.zeros(self.size, dtype=np.bool_)
        keep[self.whole_pieces.tokens] = True
        return self.vocabulary.trie.filter(keep)

    def prepare(self) -> None:
        """Make what automata need and what is otherwise made at first use: 20 to 100 ms, once."""
        tries = self.text_trie, self.whole_piece_trie
        for part in (self.usable, self.pairs, self.predecessors, *(trie.ranked_nodes for trie in tries)):
            assert part is not None

    def state_of(self, token: int) -> int:
        """The state after `token` (tokens after which the same tokens may follow share it), -1 if it is not proper."""
        if not 0 <= token < self.size:
            raise VocabularyError(f"token {token} is outside 0..{self.size - 1}")
        return int(self.lists.state_of[token])

    def pair_is_canonical(self, left: int, right: int) -> bool:
        """Whether two tokens are `usable` and no rule merges across their border. About 2 us.

        Says nothing about byte fallback, which looks at more than two tokens.
        """
        if self.state_of(left) < 0 or self.state_of(right) < 0 or not (self.usable[left] and self.usable[right]):
            return False
        return self.pairs.first_merge(left, right) < 0

    def forbidden(self, token: int) -> tuple[Int32, Int32]:
        """(starts, ends) of the intervals of `MergeTree` numbers that may not follow `token`. Views, int32.

        Tokens outside the merge_tree have no number: they may never stand inside a piece. Raises VocabularyError if
        `token` is one of them.
        """
        return self._intervals_of(self._proper_state(token))

    def forbidden_after(self, token: int) -> Mask:
        """The tokens that may not follow `token`, as a kept read-only mask: 0.1 us, or tens of us the first time.

        Empty for tokens that are not proper, as nothing is said about what follows them inside a piece.
        """
        kept = self.kept_masks.get(token)
        if kept is None:
            state = self.state_of(token)
            kept = self._no_tokens if state < 0 else self._keep_mask(token, state)
        return kept

    @cached_property
    def _no_tokens(self) -> Mask:
        mask = allocate_mask(self.size)
        mask.flags.writeable = False
        return mask

    def forbidden_mask(self, token: int, out: Mask) -> None:
        """Overwrite `out` with the proper tokens that may not follow `token`: tens of us at first, 1-2 us when kept."""
        check_mask(out, self.size)
        kept = self.kept_masks.get(token)
        np.copyto(out, self._keep_mask(token, self._proper_state(token)) if kept is None else kept)

    def _proper_state(self, token: int) -> int:
        state = self.state_of(token)
        if state < 0:
            raise VocabularyError(f"token {token} is not proper inside a piece, so nothing follows it there")
        return state

    def _intervals_of(self, state: int) -> tuple[Int32, Int32]:
        begin, end = self.lists.list_starts[state : state + 2].tolist()
        return self.lists.starts[begin:end], self.lists.ends[begin:end]

    def _keep_mask(self, token: int, state: int) -> Mask:
        """The packed mask of a state, kept until `mask_bytes` are full, and found by `token` from now on."""
        kept = self._mask_of.get(state)
        if kept is None:
            kept = allocate_mask(self.size)
            self.lists.add_listed(state, self.merge_tree.order, kept)
            kept.flags.writeable = False
        with self._lock:
            if (len(self._mask_of) + 1) * kept.nbytes > self.mask_bytes:
                self._mask_of.clear()
                self.kept_masks.clear()
            self._mask_of[state] = self.kept_masks[token] = kept
        return kept


def _tokens_with(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The tokens whose bytes hold `text`, found in all token bytes at once."""
    data = vocabulary.byte_data.tobytes()
    found = []
    place = data.find(text)
    while place >= 0:
        token = int(np.searchsorted(vocabulary.offsets, place, side="right")) - 1
        if place + len(text) <= vocabulary.offsets[token + 1]:
            found.append(token)
        place = data.find(text, place + 1)
    return found

"""Tokens that a scanner of names and items (`tokdfa.backends.unique_scanner`) may refuse only as a whole.

Most tokens are walked along the trie, as long as a byte could be refused. Beyond that, in the midst of a name or an
item that none before it begins with, a token can be refused only if it ends that and has another one behind a comma, or
closes an array or object that is compared. These are few, so they are found once for a vocabulary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from tokdfa.backends.unique_scanner import BLANKS, ITEM, NAME, STRING, Scanner, State
from tokdfa.mask import count, mask_from_ids
from tokdfa.vocabulary.mask_store import list_tokens

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

COMMA = 0x2C
_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: A whole name behind a comma or a brace.
_HAS_NAME = re.compile(rb'[,{][ \t\n\r]*"[^"]*"')
_ENDS_ONLY = re.compile(rb'[^"]*"[ \t\n\r]*[\]} \t\n\r]*,?[ \t\n\r]*"?')


class SuspectTokens:
    """The tokens of a vocabulary that are read as a whole. O(bytes of the vocabulary).

    Masks: `names`: with a name behind a comma or a brace; `commas`: those and all with a comma. Of items, by whether
    they may be arrays or objects, which a bracket closes: `suspects`: within an array whose items differ; `opening`:
    where none is open; `leaving`: within an object of such an array; `behind_numbers`: with a part behind which not all
    that a strategy allows is an item: a point, an exponent, or a comma and more. `quoted`: with a quote; `telling`:
    suspects with one that do more than to end a string, close what is open, write a comma and open the next string.
    `has_letter`: whether a letter or digit is a token.
    """

    def __init__(self, vocab: Vocabulary) -> None:
        self._trie, size = vocab.trie, vocab.size
        quoted, commas = _tokens_with(vocab, b'"'), _tokens_with(vocab, b",")
        names = [token for token in quoted.tolist() if _HAS_NAME.search(vocab.token_bytes(token))]
        self.names = mask_from_ids(np.array(names, dtype=np.int64), size)
        #: The words of `names` that are not 0, which are few, and their places.
        self._words = np.flatnonzero(self.names)
        self._of_words = self.names[self._words]
        self.commas = self.names | mask_from_ids(commas, size)
        closers = mask_from_ids(_tokens_with(vocab, b'}]"'), size)
        self.suspects = [mask_from_ids(_tokens_with(vocab, b",", behind_first=True), size)]
        self.suspects.append(self.suspects[0] | closers)
        opens = mask_from_ids(_tokens_with(vocab, b"["), size)
        self.behind_numbers = mask_from_ids(_tokens_behind_numbers(vocab), size)
        self.opening = [(suspects | self.behind_numbers) & opens for suspects in self.suspects]
        self.leaving = self.opening[1] | mask_from_ids(_tokens_with(vocab, b"}"), size)
        self.quoted = mask_from_ids(quoted, size)
        ends = self.listed(self.suspects[0] & self.quoted)
        told = [token for token in ends if not _ENDS_ONLY.fullmatch(vocab.token_bytes(token))]
        self.telling = mask_from_ids(np.array(told, dtype=np.int64), size)
        single = vocab.single_byte_tokens
        self.has_letter = any(single[byte] for byte in _LETTERS)
        self._branches: dict[int, dict[int, tuple[int, int]]] = {}
        #: The branches of the root and of all nodes that blanks lead to, but for blanks.
        self.behind_blanks: list[dict[int, tuple[int, int]]] = []
        todo = [-1]
        while todo:
            branches = self.branches(todo.pop())
            todo += [branches[blank][1] for blank in BLANKS if blank in branches]
            if others := {byte: branch for byte, branch in branches.items() if byte not in BLANKS}:
                self.behind_blanks.append(others)

    def suspects_of(self, scanner: Scanner, state: State, mask: Mask, has_items: bool, searches: bool) -> Mask | None:
        """The tokens of a mask that are read as a whole from a state of the scanner; None for none."""
        found: Mask | None = None
        is_text = bool(state) and (state[-1][0] in (STRING, NAME) or state[-1][:2] == (ITEM, '"'))  # a quote ends it
        if has_items:
            found = mask & self._suspects_of_items(scanner, state, is_text)
            if is_text:
                found &= self.telling if scanner.is_new(state) else self.quoted
        if scanner.names and (searches or (mask[self._words] & self._of_words).any()):
            names = mask & (self.commas if searches else self.names)
            if is_text and searches:
                names &= self.quoted
            found = names if found is None else found | names
        return found

    def _suspects_of_items(self, scanner: Scanner, state: State, is_text: bool) -> Mask:
        if not scanner.is_within(state):
            return self.opening[scanner.holds]
        if scanner.is_in_object(state) and not scanner.ends_at_quote:
            return self.leaving
        suspects = self.suspects[scanner.holds]
        return suspects if is_text else suspects | self.behind_numbers

    def listed(self, suspects: Mask) -> list[int]:
        """The tokens of a mask of suspects."""
        found = np.empty(count(suspects), dtype=np.int32)
        return found[: list_tokens(suspects, found)].tolist() if len(found) else []

    def branches(self, node: int) -> dict[int, tuple[int, int]]:
        """Byte -> `TokenTrie.branches` of a node of the token trie, those that were asked for before kept."""
        if node not in self._branches:
            self._branches[node] = {byte: (first, last) for byte, first, last in self._trie.branches(node)}
        return self._branches[node]


_known_tokens: WeakKeyDictionary[Vocabulary, SuspectTokens] = WeakKeyDictionary()


def suspect_tokens(vocab: Vocabulary) -> SuspectTokens:
    """Made once for a vocabulary."""
    found = _known_tokens.get(vocab)
    if found is None:
        found = _known_tokens[vocab] = SuspectTokens(vocab)
    return found


def _tokens_with(vocab: Vocabulary, signs: bytes, behind_first: bool = False) -> npt.NDArray[np.int64]:
    """The tokens with one of some signs, `behind_first`: behind their first byte."""
    found = np.flatnonzero(_is_one_of(signs)[vocab.byte_data])
    tokens = np.searchsorted(vocab.offsets, found, side="right") - 1
    return _distinct(tokens[found > vocab.offsets[tokens]] if behind_first else tokens)


def _distinct(ascending: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return ascending[np.diff(ascending, prepend=-1) != 0]


def _is_one_of(signs: bytes) -> npt.NDArray[np.bool_]:
    """For each byte whether it is one of some."""
    found = np.zeros(256, dtype=np.bool_)
    found[list(signs)] = True
    return found


def _tokens_behind_numbers(vocab: Vocabulary) -> npt.NDArray[np.int64]:
    """The tokens that have a point or an E behind a digit, or first, and those that go on behind a comma."""
    data = vocab.byte_data
    found = np.flatnonzero(_is_one_of(b"eE.,")[data])
    tokens = np.searchsorted(vocab.offsets, found, side="right") - 1
    is_digit, is_first = _is_one_of(b"0123456789")[data[found - 1]], found == vocab.offsets[tokens]
    goes_on = (data[found] != COMMA) | (vocab.offsets[tokens + 1] - vocab.offsets[tokens] > 1)
    return _distinct(tokens[is_digit | (is_first & goes_on)])

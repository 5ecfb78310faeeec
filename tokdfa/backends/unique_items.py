"""Arrays whose items must differ, over any strategy: its masks, less what would repeat an item.

Where such arrays are a schema says by paths (`tokdfa.json_schema.unique_items`). A `Scanner` reads the text beside the
strategy's matcher: which containers are open, and of an array of this kind the values that were. Its state is a tuple,
so a fork shares it and a rollback restores it; it stands beside the strategy's state, whose masks are shared and know
nothing of it.

Masks. A token is refused if some byte of it is. Tokens are walked along the trie as long as a byte could be refused, by
the bytes that matter (`Scanner.watched`); what is beyond, in the midst of text that no former item begins with, can
only be refused if a token ends an item and has another one behind a comma, so just these tokens are read as a whole,
what they begin with alike once; with items that are arrays or objects those with a closing bracket, too.

Cost: some us a byte of text; a mask within such an array 0.1 to 2 ms more, the most where an item may begin;
automata of the former values, made anew for each item. Memory: the values of open arrays, at most `MAX_REMEMBERED`
each, and some 100 bytes for each byte of an item that is an array or an object and has not closed.
"""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from tokdfa.backends.base import CompiledConstraint, Matcher
from tokdfa.backends.unique_scanner import ITEM, START, STRING, Scanner, State
from tokdfa.errors import TokenRefused
from tokdfa.mask import count, mask_from_ids
from tokdfa.vocabulary.mask_store import list_tokens_kernel
from tokdfa.vocabulary.trie import TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.compiled import PushdownTables
    from tokdfa.json_schema.unique_items import Location
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


class UniqueItems(CompiledConstraint):
    """What a strategy made of a constraint, and what it does not remember."""

    def __init__(self, plain: PushdownTables, locations: list[Location]) -> None:
        super().__init__(plain.constraint, plain.vocab, plain.backend_name)
        self.plain, self.phases, self.dropped, self.sizes = plain, plain.phases, plain.dropped, plain.sizes
        self.program = plain.program
        self.scanner = Scanner(locations)
        #: Tokens that may end an item and have something behind a comma, which are read as a whole; and those that may
        #: close one.
        self.tokens = _tokens_of(plain.vocab)

    def _start(self, context: tuple[int, ...]) -> UniqueItemsMatcher:
        return UniqueItemsMatcher(self, self.plain._start(context))

    def save(self, path: str | Path) -> None:
        """Write what the strategy writes; its `load` finds out again what is to be remembered.

        Raises UnsupportedConstraint for automata too large to save.
        """
        from tokdfa.program.program_file import write_program

        dropped = [astuple(one) for one in self.dropped]
        with self.plain.lock:  # masks that are being made explore the same automata
            write_program(path, self.program, self.constraint, self.plain.settings, dropped=dropped)


class _Tokens:
    """The tokens of a vocabulary that may end an item and have something behind a comma, which are read as a whole.

    Masks, by whether items may be arrays or objects, which a bracket closes: `suspects` within an array whose items
    differ, `opening` of those where none is open. `quoted`: tokens with a quote; `telling`: suspects with one that do
    more than to end a string, close what is open, write a comma and open the next string. O(bytes of the vocabulary).
    """

    def __init__(self, vocab: Vocabulary) -> None:
        self._trie, size = vocab.trie, vocab.size
        closers = mask_from_ids(_tokens_with(vocab, b'}]"'), size)
        self.suspects = [mask_from_ids(_tokens_with(vocab, b",", behind_first=True), size)]
        self.suspects.append(self.suspects[0] | closers)
        self._most = count(self.suspects[1])
        opens, quoted = mask_from_ids(_tokens_with(vocab, b"["), size), _tokens_with(vocab, b'"')
        self.opening = [suspects & opens for suspects in self.suspects]
        self.quoted = mask_from_ids(quoted, size)
        ends = self.listed(self.suspects[0] & self.quoted)
        told = [token for token in ends if not _ENDS_ONLY.fullmatch(vocab.token_bytes(token))]
        self.telling = mask_from_ids(np.array(told, dtype=np.int64), size)
        self._branches: dict[int, dict[int, tuple[int, int]]] = {}

    def listed(self, suspects: Mask) -> list[int]:
        """The tokens of a mask of suspects."""
        found = np.empty(self._most, dtype=np.int32)
        return found[: list_tokens_kernel(suspects, found)].tolist()

    def branches(self, node: int) -> dict[int, tuple[int, int]]:
        """Byte -> `TokenTrie.branches` of a node of the token trie, those that were asked for before kept."""
        if node not in self._branches:
            self._branches[node] = {byte: (first, last) for byte, first, last in self._trie.branches(node)}
        return self._branches[node]


_ENDS_ONLY = re.compile(rb'[^"]*"[ \t\n\r]*[\]} \t\n\r]*,?[ \t\n\r]*"?')
_known_tokens: WeakKeyDictionary[Vocabulary, _Tokens] = WeakKeyDictionary()


def _tokens_of(vocab: Vocabulary) -> _Tokens:
    """Made once for a vocabulary."""
    found = _known_tokens.get(vocab)
    if found is None:
        found = _known_tokens[vocab] = _Tokens(vocab)
    return found


def _tokens_with(vocab: Vocabulary, signs: bytes, behind_first: bool = False) -> npt.NDArray[np.int64]:
    """The tokens with one of some signs, `behind_first`: behind their first byte."""
    is_sign = np.zeros(256, dtype=np.bool_)
    is_sign[list(signs)] = True
    found = np.flatnonzero(is_sign[vocab.byte_data])
    tokens = np.searchsorted(vocab.offsets, found, side="right") - 1
    return np.unique(tokens[found > vocab.offsets[tokens]] if behind_first else tokens)


class UniqueItemsMatcher(Matcher):
    """The strategy's matcher, and the states of the scanner before each token and now."""

    _UNCOUNTED = (
        "a state holds the items that were, so there are too many to count tokens to an end; leave max_tokens out, or "
        "give the items as an enum of at most 64 values"
    )

    def __init__(self, compiled: UniqueItems, text: Matcher) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self._text, self._scanner = compiled, text, compiled.scanner
        self._states: list[State] = [START]
        self.counters = text.counters

    def _fill_mask(self, out: Mask) -> None:
        self._text.fill_mask(out)
        with self._compiled.working:
            refused = self._refused(self._states[-1], out)
        for tokens in refused:
            np.bitwise_and.at(out, tokens >> 5, ~(np.int32(1) << (tokens & 31)))

    def _refused(self, state: State, mask: Mask) -> list[npt.NDArray[np.int32]]:
        """The tokens that the scanner refuses, among those of a mask and maybe others."""
        scanner, tokens = self._scanner, self._compiled.tokens
        trie, size = self.vocab.trie, np.uint64(self.vocab.size)
        read = dict[bytes, State | None]({b"": state})
        is_text = bool(state) and (state[-1][0] == STRING or state[-1][:2] == (ITEM, '"'))  # which only a quote ends
        suspects = mask & (tokens.suspects if scanner.is_within(state) else tokens.opening)[scanner.holds]
        if is_text:
            suspects &= tokens.telling if scanner.is_new(state) else tokens.quoted
        texts = ((token, self.vocab.token_bytes(token)) for token in tokens.listed(suspects))
        whole = [token for token, text in texts if self._after(text, read) is None]
        found = [np.array(whole, dtype=np.int32)] if whole else []
        todo = [(-1, state)]
        while todo:
            node, here = todo.pop()
            if watched := scanner.watched(here):
                branches = tokens.branches(node)
                for byte in watched & branches.keys():
                    (first, last), following = branches[byte], scanner.step(here, byte)
                    if following is None:
                        ids = trie.nodes[first : trie.next(last)] >> np.uint64(TOKEN_SHIFT)
                        found.append(ids[ids < size].astype(np.int32))
                    elif trie.next(last) > last + 1:  # longer tokens begin so
                        todo.append((last, following))
        return found

    def _after(self, text: bytes, read: dict[bytes, State | None]) -> State | None:
        """The state after a text; `read`: those after texts that were read, from the same state; this one is added."""
        here = read[b""]
        for past in range(1, len(text) + 1):
            before = text[:past]
            if before not in read:
                read[before] = self._scanner.step(here, before[-1]) if here else here
            here = read[before]
        return here

    def _following(self, token: int) -> State | None:
        with self._compiled.working:
            return self._scanner.run(self._states[-1], self.vocab.token_bytes(token))

    def _advance(self, token: int) -> None:
        if token in self.vocab.end_token_set:
            self._text.advance(token)
            self._states.append(self._states[-1])
            return
        if not self._text.allows(token):
            self._text.advance(token)  # which says why
        state = self._following(token)
        if state is None:
            raise TokenRefused(token, "it would repeat an item of an array whose items must differ")
        self._text.advance(token)
        self._states.append(state)

    def _allows(self, token: int) -> bool:
        if not self._text.allows(token):
            return False
        return token in self.vocab.end_token_set or self._following(token) is not None

    def can_end(self) -> bool:
        return self._text.can_end()

    def is_finished(self) -> bool:
        return self._text.is_finished()

    def _rollback(self, count: int) -> None:
        self._text.rollback(count)
        del self._states[-count:]

    def _fork(self) -> UniqueItemsMatcher:
        twin = UniqueItemsMatcher(self._compiled, self._text.fork())
        twin._states = self._states.copy()
        return twin

    def whereabouts(self) -> Hashable:
        return self._text.whereabouts(), self._states[-1]

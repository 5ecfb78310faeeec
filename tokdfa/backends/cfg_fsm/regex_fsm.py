"""`RegexFsm`, the object that 003 designs: regexes over a vocabulary, put one after another or side by side.

``RegexFsm("[a-z]+", vocab) + RegexFsm("[0-9]+", vocab)`` allows the tokens that begin a word, a word and a number, or,
where words may be empty, a number; ``|`` those of either. Neither looks at the vocabulary again: each state of a single
regex has *vectors*, and the mask of a sequence is made from products of these.

*Labels* are the tokens, and after them every prefix of a token that is no token itself. So one product says which
tokens are allowed (the first V labels are the mask) and, where a third regex follows, which prefixes have come to the
end of the second (003: "the new legal prefix set by the IDs thereafter").

Of a state q of a regex, packed:

- over labels, `inside`: q survives the label; `ends`: it accepts the label;
- over cuts of labels, `begun`: q accepts the prefix; `taken`: q survives the suffix; `whole`: it accepts the suffix.

Concatenation is then ``inside(q) | labels of (begun(q) & taken(start of the next))``. The naive way, which forms all
strings of P x S0 x ... x Sn and looks each up in the vocabulary, is kept as `RegexFsm.naive_mask`.

This is the design by itself, over languages: Lark's order of terminals, which `cfg_fsm` needs, is in
`tokdfa.backends.cfg_fsm.contextual`. Source: 003, Outlines issue 669.
"""

from __future__ import annotations

import itertools
import math
import weakref
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.cuts import multiply
from tokdfa.backends.cfg_fsm.splits import SplitTable
from tokdfa.constraint import Regex
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.errors import ArgumentError, EmptyLanguageError, LimitExceeded
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.mask import Mask

    Packed = npt.NDArray[np.uint64]

#: Strings that the naive product forms, at most.
MAX_STRINGS = 10_000_000
NS_PER_STRING = 300


def pack(flags: npt.NDArray[np.bool_]) -> Packed:
    """Booleans as bits: uint64, shape (ceil(len(flags) / 64),)."""
    padded = np.zeros((len(flags) + 63) // 64 * 64, dtype=np.bool_)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


class Labels:
    """Tokens and other prefixes of tokens, and their cuts. Made once for a vocabulary (`labels_of`); immutable.

    `strings`: the bytes of each label, tokens first; `number`: bytes -> the first label that spells them; `wholes`,
    `prefixes`: int32, shape (cuts,), the label that is cut and the label of its prefix, cuts of tokens first;
    `token_cuts`: how many cuts tokens have. Cost: about a second for 32,000 tokens.
    """

    def __init__(self, vocab: Vocabulary) -> None:
        tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
        known = set(tokens)
        others = {token[:end]: None for token in tokens for end in range(1, len(token)) if token[:end] not in known}
        self.vocab, self.strings = vocab, [*tokens, *others]
        self.number: dict[bytes, int] = {}
        for label, string in enumerate(self.strings):
            self.number.setdefault(string, label)
        spelled = Vocabulary(self.strings, vocab.end_tokens)
        self.table = SplitTable(spelled)
        within = np.ones(len(spelled.byte_data), dtype=np.bool_)
        within[spelled.offsets[:-1][spelled.lengths > 0]] = False
        self.suffixes: npt.NDArray[np.int32] = self.table.rest_at[within]
        self.wholes: npt.NDArray[np.int32] = np.repeat(np.arange(spelled.size, dtype=np.int32), spelled.lengths)[within]
        prefixes = [self.number[string[:end]] for string in self.strings for end in range(1, len(string))]
        self.prefixes: npt.NDArray[np.int32] = np.array(prefixes, dtype=np.int32)
        self.token_cuts = int(np.maximum(vocab.lengths - 1, 0).sum())
        self.words = (len(self.strings) + 63) // 64


_labels: weakref.WeakKeyDictionary[Vocabulary, Labels] = weakref.WeakKeyDictionary()


def labels_of(vocab: Vocabulary) -> Labels:
    """The labels of a vocabulary, made once."""
    if vocab not in _labels:
        _labels[vocab] = Labels(vocab)
    return _labels[vocab]


class _Vectors(NamedTuple):
    """See the module."""

    inside: Packed
    ends: Packed
    begun: Packed
    taken: Packed
    whole: Packed


class _Terminal:
    """The automaton of one regex, and the vectors of the states that were asked for."""

    def __init__(self, pattern: str, labels: Labels) -> None:
        self.pattern, self.labels, self.dfa = pattern, labels, compile_dfa(Regex(pattern))
        if not self.dfa.state_count:
            raise EmptyLanguageError(f"no text matches {pattern!r}")
        self.byte_class = self.dfa.byte_class
        self.transitions = self.dfa.transitions
        self.outcome_of: npt.NDArray[np.int32] = np.full(self.dfa.state_count, -1, dtype=np.int32)
        self._vectors: dict[int, _Vectors] = {}

    def vectors(self, state: int) -> _Vectors:
        if state not in self._vectors:
            labels, table = self.labels, self.labels.table
            after = table.vectors(self, state).after
            accepts = (after >= 0) & self.dfa.accepting[after]
            inside, ends = np.zeros((2, len(labels.strings)), dtype=np.bool_)
            inside[table.tokens], ends[table.tokens] = after[table.wholes] >= 0, accepts[table.wholes]
            over_cuts = (ends[labels.prefixes], after[labels.suffixes] >= 0, accepts[labels.suffixes])
            self._vectors[state] = _Vectors(pack(inside), pack(ends), *map(pack, over_cuts))
        return self._vectors[state]


class _Front:
    """Where the next part may begin: at the very start (`at_start`), and after the labels in `ends` (packed)."""

    def __init__(self, labels: Labels, at_start: bool, ends: Packed, begun: Packed | None = None) -> None:
        self.labels, self.at_start, self.ends = labels, at_start, ends
        if begun is not None:
            self.begun = begun

    @cached_property
    def begun(self) -> Packed:
        """The cuts whose prefix is in `ends`."""
        labels = self.labels.prefixes
        return pack((self.ends[labels >> 6] >> (labels & 63).astype(np.uint64) & np.uint64(1)).astype(np.bool_))


class RegexFsm:
    """A regex over a vocabulary, or sums and unions of such: ``a + b``, ``a | b``. Immutable; not thread-safe.

    Masks are those of the language: a token is allowed iff some text of it begins so, and end tokens iff the empty text
    belongs to it. (Every byte that the regexes read should be a token; dead ends of other vocabularies are not seen.)
    Raises what parsing a regex raises, and EmptyLanguageError if nothing matches.
    """

    def __init__(self, pattern: str, vocab: Vocabulary) -> None:
        self.vocab = vocab
        self._terminal, self._state, self._parts = _Terminal(pattern, labels_of(vocab)), 0, ()
        self._state = self._terminal.dfa.start

    _parts: tuple[RegexFsm, ...]
    _is_union: bool = False

    def _made(self, parts: tuple[RegexFsm, ...], is_union: bool, state: int = 0) -> RegexFsm:
        made = object.__new__(RegexFsm)
        made.vocab, made._parts, made._is_union, made._state = self.vocab, parts, is_union, state
        if not parts:
            made._terminal = self._terminal
        return made

    def __add__(self, other: RegexFsm) -> RegexFsm:
        return self._made(self._with(other), False)

    def __or__(self, other: RegexFsm) -> RegexFsm:
        return self._made(self._with(other), True)

    def _with(self, other: RegexFsm) -> tuple[RegexFsm, ...]:
        if other.vocab is not self.vocab:
            raise ArgumentError("two RegexFsm can be combined if they are over the same vocabulary")
        return self, other

    def __repr__(self) -> str:
        if not self._parts:
            begun = "" if self._state == self._terminal.dfa.start else f", state {self._state}"
            return f"/{self._terminal.pattern}/{begun}"
        return "(" + (" | " if self._is_union else " + ").join(map(repr, self._parts)) + ")"

    @property
    def can_end(self) -> bool:
        """Whether the empty text belongs to it."""
        if not self._parts:
            return bool(self._terminal.dfa.accepting[self._state])
        return (any if self._is_union else all)(part.can_end for part in self._parts)

    def after(self, text: bytes) -> RegexFsm:
        """What may follow `text`. ArgumentError if nothing may."""
        here: RegexFsm | None = self
        for place, byte in enumerate(text):
            here = here._after_byte(byte) if here is not None else None
            if here is None:
                raise ArgumentError(f"no text of {self!r} begins with {text[: place + 1]!r}")
        assert here is not None
        return here

    def _after_byte(self, byte: int) -> RegexFsm | None:
        if not self._parts:
            state = self._terminal.dfa.step(self._state, byte)
            return None if state < 0 else self._made((), False, state)
        first, second = self._parts
        left = first._after_byte(byte)
        right = second._after_byte(byte) if self._is_union or first.can_end else None
        if left is not None and not self._is_union:
            left = left + second
        return left | right if left is not None and right is not None else left if left is not None else right

    def mask(self) -> Mask:
        """The allowed tokens, by products of packed vectors. Microseconds once the states' vectors are made."""
        labels = labels_of(self.vocab)
        allowed = np.zeros(labels.words, dtype=np.uint64)
        self._run(_Front(labels, True, np.zeros_like(allowed)), allowed, is_last=True)
        return self._as_mask(masks.mask_to_bool(allowed.view(np.int32), self.vocab.size))

    def _as_mask(self, allowed: npt.NDArray[np.bool_]) -> Mask:
        allowed[list(self.vocab.end_tokens)] = self.can_end
        return masks.mask_from_bool(allowed)

    def _run(self, front: _Front, allowed: Packed, is_last: bool) -> _Front:
        """Allow the labels that run from `front` into this and no further; where the next part begins then.

        `is_last`: nothing follows, so that is not asked for.
        """
        if self._is_union:
            found = [part._run(front, allowed, is_last) for part in self._parts]
            at_start = any(one.at_start for one in found)
            return _Front(front.labels, at_start, reduce(np.bitwise_or, (one.ends for one in found)))
        for part in self._parts:
            front = part._run(front, allowed, is_last and part is self._parts[-1])
        return front if self._parts else self._run_terminal(front, allowed, is_last)

    def _run_terminal(self, front: _Front, allowed: Packed, is_last: bool) -> _Front:
        labels, vectors, may_be_empty = front.labels, self._terminal.vectors(self._state), self.can_end
        if front.at_start and not front.ends.any():  # the first of a sequence: all is there
            allowed |= vectors.inside
            return _Front(labels, may_be_empty, vectors.ends, vectors.begun)
        multiply(front.begun, vectors.taken, labels.wholes, allowed)
        ends = np.zeros_like(allowed)
        if not is_last:
            multiply(front.begun, vectors.whole, labels.wholes, ends)
            if may_be_empty:
                ends |= front.ends
        if front.at_start:
            allowed |= vectors.inside
            ends |= vectors.ends
        return _Front(labels, front.at_start and may_be_empty, ends)

    def naive_mask(self, max_strings: int = MAX_STRINGS) -> Mask:
        """The same mask by the naive product: every string of P x S0 x ... x Sn is formed and looked up.

        P: the prefixes of tokens that end the first regex; the S between: what is whole in the next; the last one: what
        begins it. LimitExceeded past `max_strings` strings.
        """
        labels = labels_of(self.vocab)
        found = np.zeros(self.vocab.size, dtype=np.bool_)
        tokens: dict[bytes, list[int]] = {}
        for token, string in enumerate(labels.strings[: self.vocab.size]):
            if string:
                tokens.setdefault(string, []).append(token)
        pieces = {string[begin:end] for string in tokens for begin in range(len(string)) for end in
                  range(begin + 1, len(string) + 1)}  # fmt: skip
        for parts in self._sequences():
            for count in range(1, len(parts) + 1):
                factors = [*(part._strings(pieces, whole=True) for part in parts[: count - 1])]
                factors.append(parts[count - 1]._strings(pieces, whole=False))
                size = math.prod(map(len, factors))
                if size > max_strings:
                    message = f"the naive product of {self!r} has {size:,} strings; take smaller regexes or mask()"
                    raise LimitExceeded(message, limit="max_strings", value=max_strings)
                spend(NS_PER_STRING * size)
                for strings in itertools.product(*factors):
                    found[tokens.get(b"".join(strings), [])] = True
        return self._as_mask(found)

    def _sequences(self) -> list[tuple[RegexFsm, ...]]:
        """The single regexes in a row, for each choice of alternatives."""
        if not self._parts:
            return [(self,)]
        first, second = (part._sequences() for part in self._parts)
        return first + second if self._is_union else [(*left, *right) for left in first for right in second]

    def _strings(self, pieces: set[bytes], whole: bool) -> list[bytes]:
        """The pieces of tokens that this regex accepts, or, unless `whole`, that it survives."""
        dfa, state = self._terminal.dfa, self._state
        after = {piece: dfa.run(piece, state) for piece in pieces}
        kept = [piece for piece, end in after.items() if end >= 0 and (not whole or dfa.accepting[end])]
        return [b"", *kept] if whole and self.can_end else kept

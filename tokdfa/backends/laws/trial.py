"""One backend at work on one case: what the laws look at, and how they name what they saw.

The laws look at matchers after certain token sequences, the *prefixes*: all short ones of a small vocabulary, some of
a large one, in order of length, and then those along random *walks*, which follow the backend's own masks. A matcher
after a prefix is always made by starting and advancing, so that no law relies on fork or rollback but those about them.
"""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.brute_force import BruteForce, BruteForceConstraint
from tokdfa.backends.encoded_texts import EncodedTexts
from tokdfa.core.locks import cached_property
from tokdfa.errors import TokdfaError, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.backends.laws.cases import Case
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

Prefix = tuple[int, ...]

#: Up to this size all tokens are tried, above it a sample.
SMALL_SIZE = 600
_WALKS, _WALK_LENGTH = 4, 12
_END_PROBABILITY = 0.3


class Trial:
    """A backend and a case. `compiled` is None if compiling failed; then `refusal` is the error.

    `oracle`: the brute force on the same case, None for grammars and for the brute force itself. It leaves dead ends
    of tokens in where the backend declares that it does. For a backend that allows only proper sequences it is the list
    of all encodings, None where there are too many.
    """

    def __init__(self, backend: Backend, case: Case) -> None:
        self.backend, self.case, self.vocab = backend, case, case.vocab
        self.refusal: TokdfaError | None = None
        self.compiled: CompiledConstraint | None = None
        try:
            self.compiled = case.compile(backend)
        except TokdfaError as error:
            self.refusal = error
        self.is_small = self.vocab.size <= SMALL_SIZE
        self._short_prefixes: dict[tuple[int, int], list[Prefix]] = {}

    def random(self, purpose: str) -> random.Random:
        """A generator of its own for each case and purpose."""
        return random.Random(f"{self.case.seed} {self.case.name} {purpose}")

    @cached_property
    def oracle(self) -> CompiledConstraint | None:
        """See the class; compiled when first asked for."""
        if self.is_proper:
            return self._encodings()
        leaves_dead_ends = self.case.gaps and "no_dead_end_with_gaps" in self.backend.known_differences
        return self.brute_force("bytes" if leaves_dead_ends else "tokens")

    @property
    def is_proper(self) -> bool:
        """Whether the backend allows only proper sequences."""
        return self.backend.token_language == "proper"

    def _encodings(self) -> CompiledConstraint | None:
        oracle = EncodedTexts(self.vocab)
        if type(self.backend) is EncodedTexts or not oracle.supports(self.case.constraint):
            return None
        return oracle.compile(self.case.constraint)

    def brute_force(self, liveness: str) -> BruteForceConstraint | None:
        """The brute force with the given option on this case, if it can take it and is not what is on trial.

        None too for a kind of which the backend has a reading of its own.
        """
        judge = self.case.constraint if self.case.service is None else self.case.judge
        if judge is None or (judge is self.case.constraint and type(self.backend) is BruteForce):
            return None
        if judge.kind not in BruteForce.kinds or judge.kind in self.backend.own_readings:
            return None
        return _brute_force(self.vocab, judge, liveness)

    def at(self, prefix: Sequence[int], compiled: CompiledConstraint | None = None) -> Matcher:
        """A new matcher (of the backend, or of `compiled`) after `prefix`."""
        matcher = (compiled or self.started).start()
        for token in prefix:
            matcher.advance(token)
        return matcher

    @property
    def started(self) -> CompiledConstraint:
        """The compiled constraint, which there must be."""
        assert self.compiled is not None
        return self.compiled

    def mask_of(self, matcher: Matcher) -> npt.NDArray[np.bool_]:
        """Its mask as booleans, shape (size,)."""
        packed = masks.allocate_mask(self.vocab.size)
        matcher.fill_mask(packed)
        return masks.mask_to_bool(packed, self.vocab.size)

    @cached_property
    def end_ids(self) -> npt.NDArray[np.intp]:
        """The end tokens as an index."""
        return np.array(self.vocab.end_tokens, dtype=np.intp)

    @cached_property
    def walks(self) -> list[Prefix]:
        """Random walks, at most 12 tokens each; some of them end with an end token."""
        choose = self.random("walks")
        walks = []
        for _ in range(_WALKS):
            matcher = self.started.start()
            walk: list[int] = []
            while len(walk) < _WALK_LENGTH and not matcher.is_finished():
                allowed = self.mask_of(matcher)
                ends = allowed[self.end_ids].all()
                allowed[self.end_ids] = False
                text_tokens = np.flatnonzero(allowed).tolist()
                if not text_tokens and not ends:
                    break
                end_now = ends and (not text_tokens or choose.random() < _END_PROBABILITY)
                token = choose.choice(self.vocab.end_tokens if end_now else text_tokens)
                if not advances(matcher, token):
                    break  # a law of its own says that this must not happen
                walk.append(token)
            walks.append(tuple(walk))
        return walks

    @cached_property
    def prefixes(self) -> list[Prefix]:
        """Short prefixes, shortest first, then those of the walks; end tokens only at their ends."""
        found = self.short_prefixes(depth=2, limit=30 if self.is_small else 8)
        along = {walk[:length] for walk in self.walks for length in range(len(walk) + 1)}
        return [*found, *sorted(along - set(found), key=lambda prefix: (len(prefix), prefix))]

    def short_prefixes(self, depth: int, limit: int) -> list[Prefix]:
        """Prefixes of at most `depth` tokens that can be taken, breadth first; at most `limit`. Remembered."""
        if (depth, limit) not in self._short_prefixes:
            self._short_prefixes[depth, limit] = self._find_short_prefixes(depth, limit)
        return self._short_prefixes[depth, limit]

    def _find_short_prefixes(self, depth: int, limit: int) -> list[Prefix]:
        choose = self.random("prefixes")
        found: list[Prefix] = [()]
        for prefix in found:
            if len(prefix) == depth:
                break
            here = self.at(prefix)
            if here.is_finished():
                continue
            allowed = np.flatnonzero(self.mask_of(here)).tolist()
            if not self.is_small:
                allowed = sorted(choose.sample(allowed, min(4, len(allowed))))
            for token in allowed:
                if len(found) == limit:
                    return found
                if advances(self.at(prefix), token):
                    found.append((*prefix, token))
        return found

    def some_tokens(self, ids: Iterable[int], purpose: str) -> list[int]:
        """All of `ids` if the vocabulary is small, otherwise a sample."""
        listed = list(map(int, ids))
        return listed if self.is_small else sorted(self.random(purpose).sample(listed, min(30, len(listed))))

    @cached_property
    def equal_tokens(self) -> list[tuple[int, int]]:
        """Pairs of tokens with equal bytes: each but the first of its kind, with the one before."""
        order = self.vocab.trie.order.tolist()
        pairs = pairwise(order)
        return [pair for pair in pairs if self.vocab.token_bytes(pair[0]) == self.vocab.token_bytes(pair[1])]

    @property
    def outside(self) -> tuple[int, ...]:
        """Numbers that are no token."""
        return -1, self.vocab.size, self.vocab.size + 31, 1 << 31, 1 << 40

    def masks_along(self, matcher: Matcher, walk: Sequence[int]) -> Iterator[npt.NDArray[np.bool_]]:
        """The masks of a matcher before and after each token of a walk."""
        yield self.mask_of(matcher)
        for token in walk:
            matcher.advance(token)
            yield self.mask_of(matcher)

    def spellings(self, text: bytes) -> Iterator[list[int]]:
        """Some token sequences that spell `text`: shortest tokens, longest tokens, random ones, the tokenizer's own.

        Only the last of them if the backend allows proper sequences only.
        """
        choose = self.random(repr(text))
        by_bytes: dict[bytes, list[int]] = {}
        for token in range(self.vocab.size):
            spelled = self.vocab.token_bytes(token)
            if spelled and spelled in text:
                by_bytes.setdefault(spelled, []).append(token)

        def spell(pick: Callable[[list[int]], int]) -> list[int] | None:
            tokens: list[int] = []
            place = 0
            while place < len(text):
                lengths = [size for size in range(1, len(text) - place + 1) if text[place : place + size] in by_bytes]
                if not lengths:
                    return None
                size = pick(lengths)
                tokens.append(choose.choice(by_bytes[text[place : place + size]]))
                place += size
            return tokens

        picks: tuple[Callable[[list[int]], int], ...] = (min, max, choose.choice, choose.choice)
        for pick in () if self.is_proper else picks:
            found = spell(pick)
            if found is not None:
                yield found
        if self.case.encode is not None:
            encoded = self.case.encode(text.decode())
            if self.vocab.spell(encoded) == text:
                yield encoded

    # Names for messages.

    def name_token(self, token: int) -> str:
        """A token with what it spells."""
        if not 0 <= token < self.vocab.size:
            return f"id {token} (outside the vocabulary)"
        if token in self.vocab.end_token_set:
            return f"end token {token}"
        spelled = self.vocab.token_bytes(token)
        return f"token {token} ({spelled!r})" if spelled else f"token {token} (which spells nothing)"

    def name_prefix(self, prefix: Sequence[int]) -> str:
        """A prefix with what it spells."""
        return f"after {self.vocab.spell(prefix)!r}, tokens {list(prefix)}" if prefix else "at the start"

    def difference(
        self, left: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], names: tuple[str, str]
    ) -> str | None:
        """The first token in which two masks differ and which side allows it; None if they are equal."""
        differing = np.flatnonzero(left != right)
        if not len(differing):
            return None
        token = int(differing[0])
        allows, refuses = names if left[token] else names[::-1]
        more = f" ({len(differing)} tokens differ)" if len(differing) > 1 else ""
        return f"{allows} allows {self.name_token(token)}, {refuses} refuses it{more}"


@lru_cache(maxsize=8)
def _brute_force(vocab: Vocabulary, constraint: Constraint, liveness: str) -> BruteForceConstraint:
    """Kept, because the next backend is often tried on the same case and the brute force remembers its states."""
    return BruteForce(vocab, liveness=liveness)._compile(constraint)


def advances(matcher: Matcher, token: int) -> bool:
    """Whether `advance` takes the token; only TokenRefused counts as a refusal."""
    try:
        matcher.advance(token)
    except TokenRefused:
        return False
    return True

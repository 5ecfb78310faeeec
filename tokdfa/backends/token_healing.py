"""Token healing: a prompt that ends inside a token loses its last tokens, and their text is forced.

A prompt is cut into tokens before anybody knows how the text goes on. After ``http:`` a model that has only seen the
token ``://`` writes no ``//``. `heal` takes the last tokens back, as many as some longer token begins with, and makes a
constraint of the rest: the *head*, the text that was taken back, and then a text of the constraint. A token may lie
across the border, and no matter how head and text are cut, exactly the tokens are allowed that spell them.

It works with every strategy, through its matchers alone. In the head, a token is allowed if

- it is a part of what is left of the head, and the rest can be spelled; or
- it begins with what is left of the head, and the *remainder* of its bytes is the beginning of a text: the strategy's
  matcher takes it in tokens that spell it, mostly single bytes.

A remainder that no tokens spell (its bytes are missing as tokens) cannot be asked about, and such a token is left out.
Strategies that allow proper sequences only are refused: they know one way to cut a text, and would have to know the
prompt's.

Cost: the first mask in the head takes a step of the strategy for every prefix of a remainder that may begin a text; a
head like a blank has most of the vocabulary behind it, which matters where a text may begin with anything; a
constraint that begins with one of a few characters costs next to nothing. Masks of the head are kept. After the head,
matchers are the strategy's own. `max_tokens` counts the tokens of the head as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.matcher import Matcher
from tokdfa.backends.matcher_situations import MatcherSituations
from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.state_matcher import StateMatcher
from tokdfa.core.arguments import as_integer, as_tokens
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock
from tokdfa.errors import ArgumentError, TokenRefused, UnsupportedConstraint, a_type

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.backends.remembered_ends import Memory
    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]

#: What a node of the token trie behind the head takes, besides a step of the strategy.
NS_PER_NODE = 5_000
#: A state of the constraint behind the head: a matcher, or the number of a situation.
StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Healed:
    """What `heal` made of a prompt and a constraint.

    `prompt`: the tokens that are left of it; `head`: the text of those that were taken back; `compiled`: the constraint
    whose texts begin with the head. Where nothing is taken back, `head` is empty and `compiled` is the one that was
    given.
    """

    prompt: tuple[int, ...]
    head: bytes
    compiled: CompiledConstraint

    def start(self, max_tokens: int | None = None) -> Matcher:
        """A matcher after `prompt`: first the head, then a text of the constraint, within `max_tokens` tokens both."""
        return self.compiled.start(self.prompt, max_tokens)


def heal(compiled: Any, prompt: Sequence[int], taken_back: int | None = None) -> Healed:
    """Take back the last tokens of a prompt, and force their text before that of a constraint.

    `compiled`: a compiled constraint, or what `tokdfa.constrain` returns. `taken_back`: how many tokens; None: the most
    whose text some longer token begins with, none if there is no such token. Tokens that spell nothing stay.

    Raises ArgumentError for a number that the prompt does not have or that reaches a token that spells nothing, and
    UnsupportedConstraint for strategies with proper sequences only.
    """
    compiled = getattr(compiled, "compiled", compiled)
    if not isinstance(compiled, CompiledConstraint):
        raise ArgumentError(f"compiled is what tokdfa.compile or constrain returns, not {a_type(compiled)}")
    vocab = compiled.vocab
    tokens = as_tokens(prompt, vocab.size, "prompt")
    lengths = [len(vocab.token_bytes(token)) for token in tokens]
    spelling = next((k for k, length in enumerate(reversed(lengths)) if not length), len(tokens))
    if taken_back is None:
        taken_back = 0
        for count in range(1, spelling + 1):
            head = vocab.spell(tokens[-count:])
            if len(head) >= vocab.trie.depth_limit:
                break
            node = vocab.trie.find(head)
            if node >= 0 and vocab.trie.next(node) > node + 1:
                taken_back = count
    elif as_integer(taken_back, "taken_back", 0, len(tokens)) > spelling:
        raise ArgumentError(f"taken_back: of the prompt's last {taken_back} tokens one spells nothing; take {spelling}")
    if not taken_back:
        return Healed(tokens, b"", compiled)
    cut = len(tokens) - int(taken_back)
    head = vocab.spell(tokens[cut:])
    return Healed(tokens[:cut], head, HealedConstraint(compiled, head))


class HealedConstraint(CompiledConstraint):
    """The texts that are `head` and then one of a compiled constraint."""

    def __init__(self, inner: CompiledConstraint, head: bytes) -> None:
        kind, settings = inner.made_by or (None, {})
        if getattr(kind, "is_proper", False) or settings.get("proper"):
            raise UnsupportedConstraint(
                f"{inner.backend_name} allows proper sequences only, which depend on how the prompt is cut; heal a "
                "constraint that is compiled without proper=True"
            )
        super().__init__(inner.constraint, inner.vocab, inner.backend_name)
        self.inner, self.head, self.phases, self.dropped = inner, head, inner.phases, inner.dropped
        self.sizes, self.working.budget = inner.sizes, inner.working.budget
        trie = self.vocab.trie
        self._single = {byte: trie.token(first) for byte, first, _ in trie.branches() if trie.token(first) >= 0}
        self._lock = new_lock()
        self._masks: dict[int, Mask] = {}
        #: For strategies that have no table of their own; contexts make no difference to them.
        self._situations: MatcherSituations | None = None
        self._spelled = self._find_spelled()

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return HealingMatcher(self, context)

    def __reduce__(self) -> tuple[Callable[..., CompiledConstraint], tuple[Any, ...]]:
        return HealedConstraint, (self.inner, self.head)

    def _find_spelled(self) -> list[bool]:
        """By position, whether tokens spell the rest of the head."""
        spelled = [False] * len(self.head) + [True]
        for position in reversed(range(len(self.head))):
            found = self.vocab.trie.prefixes_of(self.head[position:])
            spelled[position] = any(spelled[position + len(self.vocab.token_bytes(token))] for token in found)
        return spelled

    def mask_at(self, position: int) -> Mask:
        """The mask after `position` bytes of the head, fewer than it has. Not to be changed. Raises LimitExceeded."""
        with self._lock, self.working:
            found = self._masks.get(position)
            if found is None:
                rest = self.head[position:]
                inside = [token for token in self.vocab.trie.prefixes_of(rest) if self._goes_on(position, token)]
                across = self.across(rest, self.inner.start(), Matcher.allows, _after)
                allowed = sorted({*inside, *(token for token, _, _ in across)})
                found = self._masks[position] = masks.mask_from_ids(allowed, self.vocab.size)
        return found

    def _goes_on(self, position: int, token: int) -> bool:
        """Whether a token that is a part of the head leads to where it can be completed."""
        after = position + len(self.vocab.token_bytes(token))
        return self._spelled[after] or bool(self.mask_at(after).any())

    def across(
        self, rest: bytes, start: StateT, allows: Callable[[StateT, int], bool], after: Callable[[StateT, int], StateT]
    ) -> Iterator[tuple[int, StateT, int]]:
        """The tokens that are `rest` and the beginning of a text, at least a byte of it.

        `start`: a state of the constraint before its texts; `allows`, `after`: what it does with a token. With each
        token comes a state, and an allowed token that leads from it to where the remainder is read.
        """
        trie = self.vocab.trie
        node = trie.find(rest)
        if node < 0:
            return
        text = bytearray()
        at: list[StateT | None] = [start]  # by length of a prefix of `text`: the state after it
        node, end = node + 1, trie.next(node)
        while node < end:
            spend(NS_PER_NODE)
            depth, following = trie.depth(node) - len(rest), trie.next(node)
            del text[depth:], at[depth + 1 :]
            text.append(trie.byte(node))
            spelled = self._spell(text, at, allows)
            if spelled is None:
                at.append(None)
                # its last byte was asked about, so no text goes on so
                if at[depth] is not None and text[-1] in self._single:
                    node = following
                    continue
            else:
                if trie.token(node) >= 0:
                    yield trie.token(node), *spelled
                at.append(after(*spelled) if following > node + 1 else None)
            node += 1

    def _spell(
        self, text: bytes | bytearray, at: list[StateT | None], allows: Callable[[StateT, int], bool]
    ) -> tuple[StateT, int] | None:
        """A state after a prefix of `text`, and an allowed token that spells the rest; None: there is none."""
        for cut in reversed(range(len(text))):
            state = at[cut]
            if state is None:
                continue
            token = self._token_of(bytes(text[cut:]))
            if token >= 0:
                # equal texts are equal states, however they are spelled
                return (state, token) if allows(state, token) else None
        return None

    def _token_of(self, text: bytes) -> int:
        """A token that spells `text`, or -1."""
        if len(text) == 1:
            return self._single.get(text[0], -1)
        trie = self.vocab.trie
        return next((t for t in trie.prefixes_of(text) if len(self.vocab.token_bytes(t)) == len(text)), -1)

    def enter(self, remainder: bytes, context: tuple[int, ...]) -> Matcher | None:
        """A matcher of the constraint after the bytes of a remainder; None if no text begins with them."""
        at: list[Matcher | None] = [self.inner.start(context)]
        for length in range(1, len(remainder) + 1):
            spelled = self._spell(remainder[:length], at, Matcher.allows)
            at.append(None if spelled is None else _after(*spelled))
        return at[-1]

    def situations(self, matcher: Matcher, context: tuple[int, ...]) -> HealingSituations:
        """Where tokens lead: in the head, and from states of `matcher`, one of the constraint. See `_UNCOUNTED`."""
        start, texts = self.inner.start(context).plain, matcher.situation_source()
        if texts is None:
            assert isinstance(start, StateMatcher)
            if self._situations is None:
                self._situations = MatcherSituations(start)
            texts = self._situations
        return HealingSituations(self, texts, texts.number(start.whereabouts()))


def _after(matcher: Matcher, token: int) -> Matcher:
    following = matcher.fork()
    following.advance(token)
    return following


@dataclass(frozen=True)
class HealingSituations(SituationSource):
    """The bytes of the head that are there, and after the head those of the constraint: see
    `tokdfa.backends.situation_source`. `start`: where the constraint's texts begin.
    """

    compiled: HealedConstraint
    texts: SituationSource
    start: int

    def number(self, state: Any) -> int:
        return state if isinstance(state, int) else len(self.compiled.head) + self.texts.number(state[0])

    def step(self, situation: int, token: int) -> int:
        behind = situation - len(self.compiled.head)
        if behind < 0:
            return int(self.targets(situation)[token])
        found = self.texts.step(behind, token)
        return found if found < 0 else len(self.compiled.head) + found

    def targets(self, situation: int) -> Int32:
        compiled, texts = self.compiled, self.texts
        length = len(compiled.head)
        if situation >= length:
            found = texts.targets(situation - length)
            return np.where(found < 0, -1, found + length).astype(np.int32)
        rest, found = compiled.head[situation:], np.full(compiled.vocab.size, -1, dtype=np.int32)
        for token in compiled.vocab.trie.prefixes_of(rest):
            if masks.contains(compiled.mask_at(situation), token):
                after = situation + len(compiled.vocab.token_bytes(token))
                found[token] = after if after < length else length + self.start
        across = compiled.across(rest, self.start, lambda state, token: texts.step(state, token) >= 0, texts.step)
        for token, state, last in across:
            found[token] = length + texts.step(state, last)
        return found

    def following(self, situation: int) -> Int32 | None:
        """See `SituationSource.following`. A head is short, and searched token by token."""
        length = len(self.compiled.head)
        found = self.texts.following(situation - length) if situation >= length else None
        return None if found is None else np.where(found < 0, -1, found + length).astype(np.int32)

    def rank(self, situation: int) -> int:
        return self.texts.rank(situation - len(self.compiled.head))

    def fill(self, situation: int, out: Mask) -> None:
        if situation < len(self.compiled.head):
            out[:] = self.compiled.mask_at(situation)
        else:
            self.texts.fill(situation - len(self.compiled.head), out)

    def can_end(self, situation: int) -> bool:
        return situation >= len(self.compiled.head) and self.texts.can_end(situation - len(self.compiled.head))


@dataclass(frozen=True)
class _MemoryBehind:
    """What is remembered of a text behind so many bytes of the head."""

    left: int
    memory: Memory

    @property
    def is_endless(self) -> bool:
        """As that of the text."""
        return self.memory.is_endless

    def read(self, text: bytes) -> Memory | None:
        """What it comes to; None if it refuses the text."""
        if len(text) < self.left:
            return _MemoryBehind(self.left - len(text), self.memory)
        return self.memory.read(text[self.left :])

    def exceptions(self, allowed: Mask) -> tuple[Int32, Mapping[int, Memory]]:
        """None: a text has begun with one token at most."""
        return np.empty(0, dtype=np.int32), {}


class HealingMatcher(Matcher):
    """In the head: how many of its bytes are there. After it: a matcher of the constraint."""

    def __init__(self, compiled: HealedConstraint, context: tuple[int, ...]) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self._context = compiled, context
        #: Bytes of the head before each token that began in it, and now.
        self._positions = [0]
        self._inner: Matcher | None = None

    @property
    def head_left(self) -> bytes:
        """What is left of the head."""
        return b"" if self._inner is not None else self._compiled.head[self._positions[-1] :]

    def can_end(self) -> bool:
        return self._inner is not None and self._inner.can_end()

    def is_finished(self) -> bool:
        return self._inner is not None and self._inner.is_finished()

    def _fill_mask(self, out: Mask) -> None:
        if self._inner is not None:
            self._inner.fill_mask(out)
        else:
            out[:] = self._compiled.mask_at(self._positions[-1])

    def _advance(self, token: int) -> None:
        if self._inner is not None:
            self._inner.advance(token)
            return
        left, spelled = self.head_left, self.vocab.token_bytes(token)
        if not self._allows(token):
            raise TokenRefused(token, f"its bytes {spelled!r} do not go on with {left!r}, and then with the constraint")
        if len(spelled) >= len(left):
            self._inner = self._compiled.enter(spelled[len(left) :], self._context)
            self.counters = self._inner.counters if self._inner is not None else self.counters
        self._positions.append(self._positions[-1] + len(spelled))

    def _allows(self, token: int) -> bool:
        if self._inner is not None:
            return self._inner.allows(token)
        return masks.contains(self._compiled.mask_at(self._positions[-1]), token)

    def _rollback(self, count: int) -> None:
        after = len(self._tokens) - (len(self._positions) - 1)  # tokens taken by the inner matcher
        if self._inner is not None and count <= after:
            self._inner.rollback(count)
        else:
            self._inner = None
            del self._positions[len(self._positions) - (count - after) :]

    def _fork(self) -> HealingMatcher:
        twin = HealingMatcher(self._compiled, self._context)
        twin._positions = self._positions.copy()
        twin._inner = None if self._inner is None else self._inner.fork()
        twin.counters = self.counters if twin._inner is None else twin._inner.counters
        return twin

    def whereabouts(self) -> Hashable:
        return self._positions[-1] if self._inner is None else (self._inner.whereabouts(),)

    def counted(self) -> Any:
        return self._positions[-1] if self._inner is None else (self._inner.counted(),)

    def memory(self) -> Memory | None:
        if self._inner is not None:
            return self._inner.memory()
        memory = self._compiled.inner.start(self._context).memory()
        return None if memory is None else _MemoryBehind(len(self.head_left), memory)

    def situation_source(self) -> SituationSource:
        inner = self._inner if self._inner is not None else self._compiled.inner.start(self._context)
        return self._compiled.situations(inner, self._context)

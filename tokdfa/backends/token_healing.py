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
matchers are the strategy's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.matcher import Matcher
from tokdfa.core.arguments import as_integer, as_tokens
from tokdfa.core.locks import new_lock
from tokdfa.errors import ArgumentError, TokenRefused, UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tokdfa.mask import Mask


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

    def start(self) -> Matcher:
        """A matcher after `prompt`: first the head, then a text of the constraint."""
        return self.compiled.start(self.prompt)


def heal(compiled: Any, prompt: Sequence[int], taken_back: int | None = None) -> Healed:
    """Take back the last tokens of a prompt, and force their text before that of a constraint.

    `compiled`: a compiled constraint, or what `tokdfa.constrain` returns. `taken_back`: how many tokens; None: the most
    whose text some longer token begins with, none if there is no such token. Tokens that spell nothing stay.

    Raises ArgumentError for a number that the prompt does not have or that reaches a token that spells nothing, and
    UnsupportedConstraint for strategies with proper sequences only.
    """
    compiled = getattr(compiled, "compiled", compiled)
    if not isinstance(compiled, CompiledConstraint):
        raise ArgumentError(f"compiled is what tokdfa.compile or constrain returns, not a {type(compiled).__name__}")
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
        self.sizes = inner.sizes
        single: dict[int, int] = {}
        for child in self.vocab.trie.children():
            if self.vocab.trie.token(child) >= 0:
                single.setdefault(self.vocab.trie.byte(child), self.vocab.trie.token(child))
        self._single = single
        self._lock = new_lock()
        self._masks: dict[int, Mask] = {}
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
        """The mask after `position` bytes of the head, fewer than it has. Not to be changed."""
        with self._lock:
            found = self._masks.get(position)
            if found is None:
                rest = self.head[position:]
                inside = [token for token in self.vocab.trie.prefixes_of(rest) if self._goes_on(position, token)]
                found = self._masks[position] = masks.mask_from_ids(
                    sorted({*inside, *self._across(rest)}), self.vocab.size
                )
        return found

    def _goes_on(self, position: int, token: int) -> bool:
        """Whether a token that is a part of the head leads to where it can be completed."""
        after = position + len(self.vocab.token_bytes(token))
        return self._spelled[after] or bool(self.mask_at(after).any())

    def _across(self, rest: bytes) -> list[int]:
        """The tokens that are `rest` and the beginning of a text, at least a byte of it."""
        trie = self.vocab.trie
        node = trie.find(rest)
        if node < 0:
            return []
        found: list[int] = []
        text = bytearray()
        at: list[Matcher | None] = [self.inner.start()]  # by length of a prefix of `text`: a matcher after it
        node, end = node + 1, trie.next(node)
        while node < end:
            depth, following = trie.depth(node) - len(rest), trie.next(node)
            del text[depth:], at[depth + 1 :]
            text.append(trie.byte(node))
            matcher, token = self._spell(text, at)
            if matcher is None:
                at.append(None)
                # its last byte was asked about, so no text goes on so
                if at[depth] is not None and text[-1] in self._single:
                    node = following
                    continue
            else:
                if trie.token(node) >= 0:
                    found.append(trie.token(node))
                if following > node + 1:
                    matcher = matcher.fork()
                    matcher.advance(token)
                    at.append(matcher)
                else:
                    at.append(None)
            node += 1
        return found

    def _spell(self, text: bytes | bytearray, at: Sequence[Matcher | None]) -> tuple[Matcher | None, int]:
        """A matcher after a prefix of `text`, and an allowed token that spells the rest; (None, -1): none."""
        for cut in reversed(range(len(text))):
            matcher = at[cut]
            if matcher is None:
                continue
            token = self._token_of(bytes(text[cut:]))
            if token >= 0:
                # equal texts are equal states, however they are spelled
                return (matcher, token) if matcher.allows(token) else (None, -1)
        return None, -1

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
            matcher, token = self._spell(remainder[:length], at)
            if matcher is not None:
                matcher = matcher.fork()
                matcher.advance(token)
            at.append(matcher)
        return at[-1]


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

    def _whereabouts(self) -> Hashable:
        return self._positions[-1] if self._inner is None else (self._inner._whereabouts(),)

    def shortest_completion(self) -> list[int]:
        if self._inner is None:
            raise UnsupportedConstraint("how few tokens end a text is not known before the head of a healed prompt")
        return self._inner.shortest_completion()

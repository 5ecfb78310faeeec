"""Workloads: which tokens are replayed on every contender.

A *walk* is a token sequence, decided once per (tokenizer, constraint, workload, seed) and then replayed on all
contenders, so that all do the same work. Three kinds:

- `RandomWalk`: at each step one of the allowed tokens, all equally likely. On a large vocabulary this visits states
  that a model would rarely choose, which is the point: it is unkind to caches.
- `Strings`: given texts, encoded by the tokenizer, then an end token. Texts may lie outside the language; refusing them
  is right.
- `Texts`: each constraint's own texts, which are known to be in its language; also where no oracle could tell. With
  `repeat`, of two texts: a beginning, and what is repeated after it up to so many tokens. The text need not end there.

Random choices come from `random.Random` seeded by a hash of what they depend on, never from Python's `hash`, so a walk
is the same on every machine and in every process, whatever ran before it.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from tokdfa import mask as masks
from tokdfa.errors import OptionError, TokenRefused
from tokdfa.lab.measure.oracle import in_language
from tokdfa.lab.measure.settings import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

Walks = Annotated[int, Field(ge=1, le=100_000)]
Steps = Annotated[int, Field(ge=1, le=1_000_000)]


class _Workload(Strict):
    #: Short name for tables; by default the kind and its numbers.
    label: str = ""

    def key(self) -> str:
        """What the walks depend on, as canonical JSON: everything but the label."""
        return canonical_json(self.model_dump(mode="json", exclude={"label"}))


class RandomWalk(_Workload):
    """`walks` walks of at most `steps` tokens, each uniform among the allowed ones; an end token ends a walk."""

    kind: Literal["random_walk"] = "random_walk"
    walks: Walks = 5
    steps: Steps = 40

    @property
    def default_label(self) -> str:
        return f"{self.kind} {self.walks}x{self.steps}"


class Strings(_Workload):
    """The given texts, one walk each."""

    kind: Literal["strings"] = "strings"
    texts: Annotated[list[str], Field(min_length=1)]

    @property
    def default_label(self) -> str:
        return f"strings {len(self.texts)}"


class Texts(_Workload):
    """The texts of each constraint, one walk each: `texts` is empty in an experiment and filled in for each item.

    `repeat`: the tokens of the one walk that repeats the second text after the first.
    """

    kind: Literal["texts"] = "texts"
    texts: list[str] = Field(default_factory=list)
    repeat: Steps | None = None

    @property
    def default_label(self) -> str:
        return "texts" if self.repeat is None else f"{self.repeat} tokens"


Workload = RandomWalk | Strings | Texts


class Encoder(Protocol):
    """What a workload needs of a tokenizer."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    def encode(self, text: str) -> Sequence[int]: ...


@dataclass(frozen=True)
class Walk:
    """Tokens to replay. `inside`: whether the whole text is in the language, as an independent oracle says, None if
    it does not know; `complete`: the last token is an end token; `given`: a text of the user's, not made from masks;
    `proper`: the text tokens are what the tokenizer itself makes of their text.
    """

    tokens: tuple[int, ...]
    inside: bool | None
    complete: bool
    given: bool
    proper: bool = False


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def derive_seed(*parts: str | int) -> int:
    """A seed in 0 .. 2^63 - 1 that depends on every part, by SHA-256 of their canonical JSON."""
    return int.from_bytes(hashlib.sha256(canonical_json(parts).encode()).digest()[:8], "little") >> 1


def follow(compiled: CompiledConstraint, tokens: Iterable[int]) -> Iterator[Matcher]:
    """A matcher before each of the tokens, as far as these are allowed: the same one, which moves on when asked."""
    matcher = compiled.start()
    for token in tokens:
        yield matcher
        try:
            matcher.advance(token)
        except TokenRefused:
            return


def plan_walks(
    workload: Workload,
    constraint: Constraint,
    tokenizer: Encoder,
    start: Callable[[], Matcher] | None,
    seed: int,
    begin: Callable[[], None] = lambda: None,
) -> list[Walk]:
    """The walks of a workload. `start` gives a matcher at the start (not needed for texts); `begin` is called before
    each step, so that a watcher can tell a slow step from a hang. Errors of the matcher are the caller's to handle.
    """
    if isinstance(workload, Texts) and workload.repeat:
        repeated = _repeated(workload.texts, tokenizer, workload.repeat)
        return [Walk(repeated, None, complete=False, given=True, proper=True)]
    if isinstance(workload, Strings | Texts):
        claimed = isinstance(workload, Texts)
        return [_text_walk(text, constraint, tokenizer, claimed) for text in workload.texts]
    if start is None:
        raise ValueError(f"a {workload.kind} workload needs a matcher to be decided with")
    walks = []
    for repetition in range(workload.walks):
        choose = random.Random(derive_seed(seed, repetition))
        tokens = _walk_under_masks(start(), workload, choose, begin)
        complete = bool(tokens) and tokens[-1] in tokenizer.vocabulary.end_token_set
        inside = in_language(constraint, tokenizer.vocabulary.spell(tokens)) if complete else None
        proper = complete and _is_proper(tokens[:-1], tokenizer)
        walks.append(Walk(tuple(tokens), inside, complete, given=False, proper=proper))
    return walks


def _walk_under_masks(
    matcher: Matcher, workload: RandomWalk, choose: random.Random, begin: Callable[[], None]
) -> list[int]:
    mask = masks.allocate_mask(matcher.vocab.size)
    tokens: list[int] = []
    while len(tokens) < workload.steps and not matcher.is_finished():
        begin()
        matcher.fill_mask(mask)
        allowed = masks.mask_to_ids(mask)
        if not len(allowed):  # a dead end, which the contract forbids; the replay shows it to everyone
            break
        tokens.append(int(allowed[choose.randrange(len(allowed))]))
        matcher.advance(tokens[-1])
    return tokens


def _repeated(texts: Sequence[str], tokenizer: Encoder, count: int) -> tuple[int, ...]:
    """The first `count` tokens of the first text and as many of the second as it takes."""
    if len(texts) != 2 or not texts[1]:
        raise OptionError("a workload that repeats needs constraints of two texts: a beginning, and what is repeated")
    times = count
    while len(found := tokenizer.encode(texts[0] + texts[1] * times)) < count:
        times *= 2
    return tuple(int(token) for token in found[:count])


def _text_walk(text: str, constraint: Constraint, tokenizer: Encoder, claimed: bool) -> Walk:
    """`claimed`: whether somebody vouches for the text, which counts where the oracle does not know."""
    vocab = tokenizer.vocabulary
    tokens = tuple(int(token) for token in tokenizer.encode(text))
    # What counts is what the tokens spell: some tokenizers put a space in front of a text.
    spelled = vocab.spell(tokens)
    inside = in_language(constraint, spelled)
    if inside is None and claimed and spelled == text.encode():
        inside = True
    return Walk((*tokens, vocab.end_tokens[0]), inside, complete=True, given=True, proper=True)


def _is_proper(tokens: Sequence[int], tokenizer: Encoder) -> bool:
    try:
        text = tokenizer.vocabulary.spell(tokens).decode()
    except UnicodeDecodeError:
        return False
    return [int(token) for token in tokenizer.encode(text)] == list(tokens)

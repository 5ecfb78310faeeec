"""Which matcher belongs to which row of generate(), which hands over nothing but the tokens of all rows.

A row is found again by its own tokens, so it does not matter where in the batch it stands: beam search, which drops,
doubles and reorders rows, needs no special care. In most calls each row is one of the last call and one token more. A
row that goes on from one that others go on from too gets a fork of its matcher.

*Drafts.* Assisted generation asks about tokens that it may take back, and its assistant asks in between. So a row may
also go on from any beginning of a row of the last call, its prompt included.

*A new call.* Rows that do not go on from those of the last call begin anew, as when a pipeline generates once for each
prompt: everything in them is the prompt. A prompt that is a prompt of the last call, or goes on from one by tokens
that the constraint allows, goes on.

*Dead rows.* A beam search that looks for more sequences than the constraint has goes on with refused tokens of score
minus infinity. Such a row is dead; its matcher stays before the token that was refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import TokenRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import Matcher

    Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """A row of a batch. `prompt`: which prompt of the batch it goes on from; rows of one prompt compete in beam search.

    `matcher`: None for a row without a constraint. `refusal`: why it is dead, if it is.
    """

    prompt: Hashable
    tokens: Tokens
    matcher: Matcher | None
    refusal: TokenRefused | None = None

    @property
    def is_finished(self) -> bool:
        """Whether its text has ended."""
        return self.matcher is not None and self.matcher.is_finished()


class GeneratedRows:
    """The rows of the last call. `start`: the matcher of a prompt, by its place in the batch; `ends`: the tokens that
    may follow after the end of a text.
    """

    def __init__(self, start: Callable[[int, Tokens], Matcher | None], ends: set[int]) -> None:
        self._start, self._ends = start, ends
        self._width = self._prompt = 0
        #: (place of the prompt, its tokens) -> its matcher, before the first token.
        self._roots: dict[tuple[int, bytes], Matcher | None] = {}
        self._rows: dict[tuple[int, bytes], Row] = {}

    def find(self, tokens: Tokens, places: Sequence[int]) -> list[Row]:
        """The rows of a call. `tokens`: int64, shape (rows, width); `places`: by row, that of its prompt in the batch,
        or 0 for all where prompts are told apart by their tokens alone.
        """
        keys = list(zip(places, tokens, strict=True))
        found = self._step(keys) or self._resume(keys) or self._begin(keys)
        self._width = tokens.shape[1]
        self._rows = {(place, row.tokens.tobytes()): row for place, row in zip(places, found, strict=True)}
        return found

    def _step(self, keys: Sequence[tuple[int, Tokens]]) -> list[Row] | None:
        """The rows, if each is one of the last call and one token more."""
        parents = [(place, tokens[:-1].tobytes()) for place, tokens in keys]
        if len(keys[0][1]) != self._width + 1 or not self._rows.keys() >= set(parents):
            return None
        children = Counter(parents)
        return [
            self._extended(self._rows[parent], tokens, children[parent] > 1)
            for parent, (_, tokens) in zip(parents, keys, strict=True)
        ]

    def _extended(self, row: Row, tokens: Tokens, is_shared: bool) -> Row:
        """A row one token on."""
        matcher = row.matcher
        if matcher is None or row.refusal is not None or matcher.is_finished():
            return Row(row.prompt, tokens, matcher, row.refusal)
        return _advanced(row.prompt, tokens, matcher.fork() if is_shared else matcher, int(tokens[-1]))

    def _resume(self, keys: Sequence[tuple[int, Tokens]]) -> list[Row] | None:
        """The rows, if each goes on from a beginning of one of the last call."""
        found = []
        for place, tokens in keys:
            key = place, tokens[: self._prompt].tobytes()
            if len(tokens) < self._prompt or key not in self._roots:
                return None
            row = self._resumed(place, key, tokens)
            if row is None:
                return None
            found.append(row)
        return found

    def _resumed(self, place: int, key: tuple[int, bytes], tokens: Tokens) -> Row | None:
        root = self._roots[key]
        if root is None:
            return Row(key, tokens, None)
        shared, base = 0, root
        for (other_place, _), row in self._rows.items():
            if other_place == place and row.matcher is not None and row.prompt == key:
                length = min(_count_shared(row.tokens, tokens) - self._prompt, _taken(row.matcher, root))
                if length > shared:
                    shared, base = length, row.matcher
        matcher = base.fork()
        matcher.rollback(_taken(matcher, root) - shared)
        ahead = tokens[self._prompt + shared :].tolist()
        for place_ahead, token in enumerate(ahead):
            if matcher.is_finished():
                return Row(key, tokens, matcher) if self._ends.issuperset(ahead[place_ahead:]) else None
            row = _advanced(key, tokens, matcher, token)
            if row.refusal is not None:
                return row if len(ahead) == 1 else None
        return Row(key, tokens, matcher)

    def _begin(self, keys: Sequence[tuple[int, Tokens]]) -> list[Row]:
        """The rows of a new call: each is a prompt. Equal ones at one place share a matcher, which is forked."""
        self._prompt, self._roots = len(keys[0][1]), {}
        found = []
        for place, tokens in keys:
            key = place, tokens.tobytes()
            if key not in self._roots:
                self._roots[key] = self._start(place, tokens)
            root = self._roots[key]
            found.append(Row(key, tokens, None if root is None else root.fork()))
        return found


def _advanced(prompt: Hashable, tokens: Tokens, matcher: Matcher, token: int) -> Row:
    """A row whose matcher takes a token, or dies of it."""
    try:
        matcher.advance(token)
    except TokenRefused as error:
        return Row(prompt, tokens, matcher, error)
    return Row(prompt, tokens, matcher)


def _taken(matcher: Matcher, root: Matcher) -> int:
    """How many tokens a matcher has taken since the prompt."""
    return len(matcher.tokens) - len(root.tokens)


def _count_shared(one: Tokens, other: Tokens) -> int:
    """How many tokens two rows begin with alike."""
    length = min(len(one), len(other))
    different: Any = np.flatnonzero(one[:length] != other[:length])
    return int(different[0]) if len(different) else length

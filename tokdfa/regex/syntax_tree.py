r"""The parsed form of a regex: what is left once notation is gone.

Groups, greedy and lazy quantifiers, flags and escapes are notation; the parser resolves them. What remains are seven
kinds of node, and an eighth that no notation writes. A node denotes a *match relation*: for a text, the pairs
(start, end) of positions it may match.

- `Empty`: every (i, i).
- `CharSet`: (i, i + 1) if the code point at i is in the set. The empty set, `NEVER`, matches nowhere.
- `Concat`, `Alternation`, `Repeat`: composition, union and bounded iteration of relations.
- `Assertion`: those (i, i) where something holds of the text around i (`ASSERTION_KINDS`).
- `LookAhead`: those (i, i) from which the body matches to some end (`negative`: to none).
- `Symbol`: a letter that is no code point, inserted by whoever rewrites a tree; `tokdfa.token_automata.muting` does.

The language of a regex is the set of texts whose whole span (0, length) is in the relation. Texts are sequences of code
points here; `tokdfa.regex.lower` goes down to bytes.

Two facts are kept in each node when it is made, so that nobody walks the tree for them: `nullable` (without assertions:
accepts the empty text; an assertion counts as empty) and `assertions` (the kinds that occur inside).
The functions `concat`, `alternation` and `repeat` build nodes and drop what is trivially superfluous.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokdfa.regex.char_sets import Ranges, difference, intersection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What an `Assertion` may assert. Words are ASCII letters, digits and ``_``; a line ends before ``\n`` only.
ASSERTION_KINDS = ("text_start", "text_end", "line_start", "line_end", "word_boundary", "not_word_boundary")
#: What a `LookAhead` adds to `Node.assertions`, beside what its body has.
LOOK_AHEAD = "look_ahead"


@dataclass(frozen=True)
class Node:
    """Base of all nodes. `nullable`: matches some (i, i); `assertions`: the kinds of assertion inside."""

    nullable: bool = field(init=False, repr=False, compare=False)
    assertions: frozenset[str] = field(init=False, repr=False, compare=False)

    def _set_facts(self, nullable: bool, parts: Iterable[Node] = (), own: Iterable[str] = ()) -> None:
        object.__setattr__(self, "nullable", nullable)
        object.__setattr__(self, "assertions", frozenset(own).union(*(part.assertions for part in parts)))


@dataclass(frozen=True)
class Empty(Node):
    """The empty text."""

    def __post_init__(self) -> None:
        self._set_facts(nullable=True)


@dataclass(frozen=True)
class CharSet(Node):
    """One code point out of `ranges` (see `tokdfa.regex.char_sets`). Surrogates in it occur in no UTF-8 text."""

    ranges: Ranges

    def __post_init__(self) -> None:
        self._set_facts(nullable=False)


@dataclass(frozen=True)
class Concat(Node):
    """`parts` one after the other; at least two."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._set_facts(all(part.nullable for part in self.parts), self.parts)


@dataclass(frozen=True)
class Alternation(Node):
    """One of `options`; at least two."""

    options: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._set_facts(any(option.nullable for option in self.options), self.options)


@dataclass(frozen=True)
class Repeat(Node):
    """`body` from `low` to `high` times; `high` None means without bound."""

    body: Node
    low: int
    high: int | None

    def __post_init__(self) -> None:
        self._set_facts(self.low == 0 or self.body.nullable, (self.body,))


@dataclass(frozen=True)
class Assertion(Node):
    """A position, of one of the `ASSERTION_KINDS`."""

    kind: str

    def __post_init__(self) -> None:
        self._set_facts(nullable=True, own=(self.kind,))


@dataclass(frozen=True)
class LookAhead(Node):
    """A position from which `body` matches; if `negative`, from which it does not."""

    body: Node
    negative: bool

    def __post_init__(self) -> None:
        self._set_facts(nullable=True, parts=(self.body,), own=(LOOK_AHEAD,))


@dataclass(frozen=True)
class Symbol(Node):
    """One letter outside Unicode, written as the bytes `code`, which begin with a byte that no UTF-8 text contains."""

    code: bytes

    def __post_init__(self) -> None:
        self._set_facts(nullable=False)


EMPTY_NODE = Empty()
#: Matches nowhere.
NEVER = CharSet(())


def concat(parts: Iterable[Node]) -> Node:
    """`parts` in sequence: flattened, without `Empty`; `NEVER` if one of them is.

    A look-ahead for one character before a character is a smaller set: ``(?![aeiou])[a-z]`` is ``[b-df-hj-np-tv-z]``.
    """
    flat: list[Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Concat) else (part,):
            while isinstance(piece, CharSet) and flat and isinstance(before := flat[-1], LookAhead):
                if not isinstance(before.body, CharSet):
                    break
                narrow = difference if before.negative else intersection
                piece = CharSet(narrow(piece.ranges, before.body.ranges))
                flat.pop()
            if piece == NEVER:
                return NEVER
            if not isinstance(piece, Empty):
                flat.append(piece)
    if len(flat) < 2:
        return flat[0] if flat else EMPTY_NODE
    return Concat(tuple(flat))


def alternation(options: Iterable[Node]) -> Node:
    """One of `options`: flattened, without `NEVER`."""
    flat: list[Node] = []
    for option in options:
        if isinstance(option, Alternation):
            flat.extend(option.options)
        elif option != NEVER:
            flat.append(option)
    if len(flat) < 2:
        return flat[0] if flat else NEVER
    return Alternation(tuple(flat))


def repeat(body: Node, low: int, high: int | None) -> Node:
    """`body` from `low` to `high` (None: any number of) times."""
    if high == 0 or isinstance(body, Empty):
        return EMPTY_NODE
    if body == NEVER:
        return EMPTY_NODE if low == 0 else NEVER
    return body if (low, high) == (1, 1) else Repeat(body, low, high)


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        match current:
            case Concat(parts=children) | Alternation(options=children):
                pending.extend(reversed(children))
            case Repeat(body=body) | LookAhead(body=body):
                pending.append(body)

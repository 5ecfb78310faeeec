r"""The parsed form of a regex: what is left once notation is gone.

Groups, flags and escapes are notation; the parser resolves them. A node denotes a *match relation*: for a text, the
pairs (start, end) of positions it may match.

- `Empty`: every (i, i).
- `CharSet`: (i, i + 1) if the code point at i is in the set. The empty set, `NEVER`, matches nowhere.
- `Concat`, `Alternation`, `Repeat`: composition, union and bounded iteration of relations.
- `Assertion`: those (i, i) where something holds of the text around i.
- `LookAhead`: those (i, i) from which the body matches to some end (`negative`: to none).
- `LookBehind`: those (i, i) to which the body matches from some start (`negative`: from none).
- `Symbol`: a letter that is no code point, inserted by whoever rewrites a tree; `tokdfa.backends.tokens_dfa.muting`
  does.

The language of a regex is the set of texts whose whole span (0, length) is in the relation. Texts are sequences of code
points here; `tokdfa.regex.lower` goes down to bytes.

Where a library searches a text with a pattern and takes the match that it prefers (`tokdfa.proper.pretokenizer`), more
is asked than the relation. Trees of such dialects also have `Repeat.lazy` and `Atomic`, the order of options counts,
and their sets are `SourceSet`: which characters belong to one is the library's business.

Three facts are kept in each node when it is made, so that nobody walks the tree for them: `nullable` (without
assertions: accepts the empty text; an assertion counts as empty), `assertions` (the kinds that occur inside) and `text`
(of a literal). The functions `concat`, `alternation` and `repeat` build nodes and drop what is trivially superfluous; a
`NodePool` calls them and makes equal nodes once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokdfa.regex.char_sets import Ranges, difference, intersection, union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: What a `LookAhead` adds to `Node.assertions`, beside what its body has.
LOOK_AHEAD = "look_ahead"
#: What a `LookBehind` adds.
LOOK_BEHIND = "look_behind"
_NO_ASSERTIONS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Node:
    """Base of all nodes.

    `nullable`: matches some (i, i); `assertions`: the kinds of assertion inside; `text`: the only text that it matches,
    as UTF-8, if it is written as one (symbols as their codes; not so `Empty`).
    """

    nullable: bool = field(init=False, repr=False, compare=False)
    assertions: frozenset[str] = field(init=False, repr=False, compare=False)
    text: bytes | None = field(init=False, repr=False, compare=False)

    def _set_facts(
        self, nullable: bool, assertions: frozenset[str] = _NO_ASSERTIONS, text: bytes | None = None
    ) -> None:
        self.__dict__.update(nullable=nullable, assertions=assertions, text=text)


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
        self._set_facts(nullable=False, text=_only_text(self.ranges))


@dataclass(frozen=True)
class SourceSet(Node):
    """One character out of a set that is known by the words that describe it.

    `source`: the character itself (`origin` "character"), the pattern of one character in the dialect `origin`, or what
    else `origin` reads. `position`: its offset in the pattern.
    """

    origin: str
    source: str
    position: int = 0

    def __post_init__(self) -> None:
        self._set_facts(nullable=False)


@dataclass(frozen=True)
class Concat(Node):
    """`parts` one after the other; at least two."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        nullable, assertions = True, _NO_ASSERTIONS
        texts: list[bytes] = []
        for part in self.parts:
            if not part.nullable:
                nullable = False
            if part.assertions:
                assertions |= part.assertions
            if part.text is not None:
                texts.append(part.text)
        self._set_facts(nullable, assertions, b"".join(texts) if len(texts) == len(self.parts) else None)


@dataclass(frozen=True)
class Alternation(Node):
    """One of `options`; at least two."""

    options: tuple[Node, ...]

    def __post_init__(self) -> None:
        nullable, assertions = False, _NO_ASSERTIONS
        for option in self.options:
            if option.nullable:
                nullable = True
            if option.assertions:
                assertions |= option.assertions
        self._set_facts(nullable, assertions)


@dataclass(frozen=True)
class Repeat(Node):
    """`body` from `low` to `high` times; `high` None means without bound. If `lazy`, fewer times are preferred."""

    body: Node
    low: int
    high: int | None
    lazy: bool = False

    def __post_init__(self) -> None:
        self._set_facts(self.low == 0 or self.body.nullable, self.body.assertions)


@dataclass(frozen=True)
class Atomic(Node):
    """The preferred match of `body`, whatever follows; a possessive repeat is an atomic greedy one."""

    body: Node

    def __post_init__(self) -> None:
        self._set_facts(self.body.nullable, self.body.assertions)


@dataclass(frozen=True)
class Assertion(Node):
    """A position where something holds of the text around it.

    `kind`: ``text_start``, ``text_end``, ``line_start``, ``line_end``, ``word_boundary`` or ``not_word_boundary``.
    Words are ASCII letters, digits and ``_``; a line ends before ``\n`` only. With ``_to_all`` or ``_to_any`` at its
    end, a boundary is (or is not) there to all dialects that judge schemas, or to any (`char_sets.word_zones`).
    """

    kind: str

    def __post_init__(self) -> None:
        self._set_facts(nullable=True, assertions=frozenset((self.kind,)))


@dataclass(frozen=True)
class LookAhead(Node):
    """A position from which `body` matches; if `negative`, from which it does not."""

    body: Node
    negative: bool

    def __post_init__(self) -> None:
        self._set_facts(nullable=True, assertions=self.body.assertions | {LOOK_AHEAD})


@dataclass(frozen=True)
class LookBehind(Node):
    """A position before which `body` matches; if `negative`, before which it does not. `position`: in the pattern."""

    body: Node
    negative: bool
    position: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        self._set_facts(nullable=True, assertions=self.body.assertions | {LOOK_BEHIND})


@dataclass(frozen=True)
class Symbol(Node):
    """One letter outside Unicode, written as the bytes `code`, which begin with a byte that no UTF-8 text contains."""

    code: bytes

    def __post_init__(self) -> None:
        self._set_facts(nullable=False, text=self.code)


def _only_text(ranges: Ranges) -> bytes | None:
    """The only member of a set, as UTF-8; a surrogate has no encoding."""
    if len(ranges) != 1 or ranges[0][0] != ranges[0][1] or 0xD800 <= ranges[0][0] < 0xE000:
        return None
    return chr(ranges[0][0]).encode()


EMPTY_NODE = Empty()
#: Matches nowhere.
NEVER = CharSet(())


def concat(parts: Iterable[Node]) -> Node:
    """`parts` in sequence: flattened, without `Empty`; `NEVER` if one of them is.

    A look-ahead for one character before a character is a smaller set: ``(?![aeiou])[a-z]`` is ``[b-df-hj-np-tv-z]``.
    """
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if isinstance(part, Concat) else (part,)
    kinds = set(map(type, flat))  # most often characters only, and then nothing need be done
    if Empty in kinds:
        flat = [piece for piece in flat if not isinstance(piece, Empty)]
    if LookAhead in kinds:
        flat = _narrow(flat)
    for piece in flat:
        if type(piece) is CharSet and not piece.ranges:
            return NEVER
    if len(flat) < 2:
        return flat[0] if flat else EMPTY_NODE
    return Concat(tuple(flat))


def _narrow(parts: Iterable[Node]) -> list[Node]:
    """`parts` without look-aheads for one character that stand before a character."""
    narrowed: list[Node] = []
    for part in parts:
        while isinstance(part, CharSet) and narrowed and isinstance(before := narrowed[-1], LookAhead):
            if not isinstance(before.body, CharSet):
                break
            combine = difference if before.negative else intersection
            part = CharSet(combine(part.ranges, before.body.ranges))
            narrowed.pop()
        narrowed.append(part)
    return narrowed


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


def repeat(body: Node, low: int, high: int | None, lazy: bool = False) -> Node:
    """`body` from `low` to `high` (None: any number of) times."""
    if high == 0 or isinstance(body, Empty):
        return EMPTY_NODE
    if body == NEVER:
        return EMPTY_NODE if low == 0 else NEVER
    return body if (low, high) == (1, 1) else Repeat(body, low, high, lazy)


class NodePool:
    """`concat`, `alternation` and `repeat` that make the same node of the same parts.

    So a subtree that a pattern repeats is one object, which `tokdfa.regex.lower` visits once. (Hashing the parts
    themselves would walk them each time.)
    """

    def __init__(self) -> None:
        # nodes by the identities of their parts, which are kept with them, so that the identities stay theirs
        self._made: dict[tuple[object, ...], tuple[tuple[Node, ...], Node]] = {}
        self._repeats: dict[tuple[int, int, int | None, bool], tuple[Node, Node]] = {}

    def concat(self, parts: Sequence[Node]) -> Node:
        return parts[0] if len(parts) == 1 else self._make(concat, parts)

    def alternation(self, options: Sequence[Node]) -> Node:
        return options[0] if len(options) == 1 else self._make(alternation, options)

    def repeat(self, body: Node, low: int, high: int | None, lazy: bool = False) -> Node:
        key = id(body), low, high, lazy
        if key not in self._repeats:
            self._repeats[key] = body, repeat(body, low, high, lazy)
        return self._repeats[key][1]

    def _make(self, function: Callable[[Sequence[Node]], Node], parts: Sequence[Node]) -> Node:
        key = (function, *map(id, parts))
        if key not in self._made:
            self._made[key] = tuple(parts), function(parts)
        return self._made[key][1]


def width_of(node: Node) -> int | None:
    """How many characters every match of a tree without assertions has; None if it varies, or is not known."""
    match node:
        case Empty():
            return 0
        case CharSet():
            return 1
        case Concat(parts=parts):
            widths = [width_of(part) for part in parts]
            return None if None in widths else sum(width for width in widths if width is not None)
        case Alternation(options=options):
            first, *others = {width_of(option) for option in options}
            return None if others else first
        case Repeat(body=body, low=low, high=high) if low == high:
            width = width_of(body)
            return None if width is None else low * width
    return None


def first_of(parts: Sequence[Node]) -> tuple[Ranges, bool] | None:
    """The characters that a match of `parts` in a row may begin with, and whether it may be empty; None: not known.

    What stands behind the end of the text cannot be reached, so that end closes the row.
    """
    found: list[Ranges] = []
    for part in parts:
        match part:
            case Empty():
                continue
            case CharSet(ranges=ranges):
                one: tuple[Ranges, bool] | None = ranges, False
            case Concat(parts=inner):
                one = first_of(inner)
            case Alternation(options=options):
                firsts = [first_of([option]) for option in options]
                if None in firsts:
                    return None
                known = [first for first in firsts if first is not None]
                one = union(*(ranges for ranges, _ in known)), any(is_empty for _, is_empty in known)
            case Repeat(body=body, low=low):
                inside = first_of([body])
                one = None if inside is None else (inside[0], low == 0 or inside[1])
            case Assertion(kind="text_end"):
                one = (), False
            case _:
                one = None
        if one is None:
            return None
        found.append(one[0])
        if not one[1]:
            return union(*found), False
    return union(*found), True


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        match current:
            case Concat(parts=children) | Alternation(options=children):
                pending.extend(reversed(children))
            case Repeat(body=body) | Atomic(body=body) | LookAhead(body=body) | LookBehind(body=body):
                pending.append(body)

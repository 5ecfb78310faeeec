"""unevaluatedProperties and unevaluatedItems: a schema for the parts that nothing else has looked at.

*Looking.* properties, items and the like look at parts of a value, those of subschemas that apply to the same value
among them, if they hold. What allOf and references look at is certain. anyOf, oneOf, ``if`` and dependentSchemas look
at parts only where their branches hold, so what is left over depends on the value.

*Claims.* A branch that holds looks at some parts, whether others hold or not: so each part on its own is in the
unevaluated state, or some branch that looks at it holds. No branch has to be negated (but ``if``, for its ``else``).
Of an object this is one choice for each name that branches look at; of an array, whose branches look at first items,
only the branch that looks furthest matters. Where branches look at patterns, or count items by ``contains`` (2020-12),
what they look at together is more than what each does, so the keyword is a union over the sets of those that hold.

Items that are left over are in the unevaluated state, or in that of a ``contains`` which looks at the items that it
counts. ``not`` looks at nothing.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_2020, Node, escape_key
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import (
    ANYTHING,
    EVERYTHING,
    NOTHING,
    ArrayClause,
    ObjectClause,
    Scope,
    Shape,
    State,
    check_size,
    intersect_states,
    lone_scope,
    unite,
)
from tokdfa.json_schema.solve.complement import negations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.json_schema.solve.oracle import Oracle

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
#: Branches that look at patterns, or count items, of one keyword at most.
MAX_JOINT = 8


#: Keywords of which the value says what is looked at.
_LOOKING = ("properties", "patternProperties", "prefixItems", "items", "contains")


class Seen(NamedTuple):
    """What keywords look at: names, patterns and a number of first items, and the items that some nodes count."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    items: int = 0
    contains: frozenset[Node] = frozenset()
    #: Everything.
    all: bool = False

    def join(self, other: Seen) -> Seen:
        """What either looks at."""
        if self.all or other.all:
            return Seen(all=True)
        return Seen(
            self.names | other.names,
            self.patterns | other.patterns,
            max(self.items, other.items),
            self.contains | other.contains,
        )

    def holds(self, other: Seen) -> bool:
        """Whether all that `other` looks at is looked at here, too."""
        return self.join(other) == self


class Claim(NamedTuple):
    """If `state` holds and the names `present` are there, `seen` is looked at."""

    state: State = EVERYTHING
    present: frozenset[str] = frozenset()
    seen: Seen = Seen()

    def join(self, other: Claim) -> Claim:
        """Both."""
        return Claim(
            intersect_states(self.state, other.state), self.present | other.present, self.seen.join(other.seen)
        )

    @property
    def is_certain(self) -> bool:
        """Whether nothing is asked for."""
        return not self.state and not self.present


#: Work (`tokdfa.core.budget`) of joining two alternatives, or comparing them, in nanoseconds.
JOIN_WORK = 3_000


def unevaluated_shape(
    oracle: Oracle,
    join: Callable[[Shape, Shape, Node, str], Shape],
    node: Node,
    keyword: str,
) -> Shape:
    """What the keyword demands. `join`: what two shapes hold.

    Raises SchemaUnsupported if that depends on too many branches.
    """
    state = oracle.part(node, node.schema[keyword], keyword)
    if not state:
        return ANYTHING
    return _Demand(oracle, join, node, keyword, state).shape()


class _Demand:
    """One run of `unevaluated_shape`; `state`: of the parts that are left over."""

    def __init__(
        self,
        oracle: Oracle,
        join: Callable[[Shape, Shape, Node, str], Shape],
        node: Node,
        keyword: str,
        state: State,
    ) -> None:
        self.oracle, self.node, self.keyword, self.state = oracle, node, keyword, state
        self._join = join
        claims = dict.fromkeys(_Reader(oracle, keyword).claims(node, (), Claim()))
        #: What is looked at for certain, and what else may be.
        self.seen = reduce(Seen.join, (claim.seen for claim in claims if claim.is_certain), Seen())
        self.claims = [claim for claim in claims if not claim.is_certain and not self.seen.holds(claim.seen)]

    def join(self, one: Shape, other: Shape) -> Shape:
        """What both shapes hold."""
        return self._join(one, other, self.node, self.keyword)

    def shape(self) -> Shape:
        """The whole demand."""
        if self.seen.all:
            return ANYTHING
        joint = [claim for claim in self.claims if claim.seen.patterns or claim.seen.contains]
        if len(joint) > MAX_JOINT:
            message = (
                f"what is left over depends on more than {MAX_JOINT} branches that look at patterns or count items"
            )
            raise SchemaUnsupported(message, self.node.pointer, self.keyword)
        shapes = []
        for bits in range(1 << len(joint)):
            held = reduce(Claim.join, (claim for k, claim in enumerate(joint) if bits >> k & 1), Claim())
            spend(JOIN_WORK * (1 + len(joint)))
            seen = self.seen.join(held.seen)
            left_over = self._members(seen) if self.keyword == "unevaluatedProperties" else self._items(seen)
            shapes.append(self.join(self._held(held), left_over))
        return check_size(unite(shapes), self.node, self.keyword)

    def _held(self, claim: Claim) -> Shape:
        """What a claim asks for."""
        shape = self.oracle.shape_of(claim.state)
        if claim.present:
            shape = self.join(shape, Shape(objects=(ObjectClause(required=tuple(sorted(claim.present))),)))
        return shape

    def _items(self, seen: Seen) -> Shape:
        """The arrays of which what is left over of `seen`, or of that and what one claim looks at, is in the state."""
        if seen.all:
            return ANYTHING
        shapes = []
        for claim in (Claim(), *self.claims):
            if claim.is_certain or claim.seen.all or claim.seen.items > seen.items:
                rest = _or_counted(self.oracle, self.node, self.state, seen.contains)
                array = ArrayClause((EVERYTHING,) * max(seen.items, claim.seen.items), rest)
                left_over = ANYTHING if claim.seen.all else ANYTHING._replace(arrays=(array,))
                shapes.append(self.join(self._held(claim), left_over))
        return check_size(unite(shapes), self.node, self.keyword)

    def _members(self, seen: Seen) -> Shape:
        """The objects of which each member is in `seen`, in the state, or looked at by a claim that holds."""
        if seen.all:
            return ANYTHING
        patterns = tuple((pattern, EVERYTHING) for pattern in sorted(seen.patterns))
        names = dict.fromkeys(sorted(seen.names.union(*(claim.seen.names for claim in self.claims))), EVERYTHING)
        others = Scope(names, patterns, self.state)
        result = self._unless(others, [claim for claim in self.claims if claim.seen.all])
        for name in names:
            if name not in seen.names and not any(StringSet(patterns=(each,)).holds(name) for each in seen.patterns):
                looking = [claim for claim in self.claims if claim.seen.all or name in claim.seen.names]
                result = self.join(result, self._unless(lone_scope(name, self.state), looking))
        return result

    def _unless(self, scope: Scope, claims: list[Claim]) -> Shape:
        """Objects of a scope, or for which one of some claims holds."""
        return unite([ANYTHING._replace(objects=(ObjectClause(scopes=(scope,)),)), *map(self._held, claims)])


def _or_counted(oracle: Oracle, node: Node, state: State, contains: frozenset[Node]) -> State:
    """The state of items that are in `state` or counted by a ``contains`` of one of some nodes."""
    if not contains or not state:
        return state
    owners = sorted(contains, key=lambda owner: owner.number)
    if state == NOTHING and len(owners) == 1:
        return oracle.part(owners[0], owners[0].schema["contains"], "contains")
    if any(owner.scope != node.scope for owner in owners):
        raise SchemaUnsupported("contains looks at items in another dynamic scope", node.pointer, "unevaluatedItems")
    for owner in owners:  # so that the schemas are known by where they stand
        oracle.part(owner, owner.schema["contains"], "contains")
    choices = [*(owner.schema["contains"] for owner in owners), node.schema["unevaluatedItems"]]
    place = "/unevaluatedItems(" + ", ".join(str(owner.number) for owner in owners) + ")"
    return oracle.state(oracle.synthesize(node, place, {"anyOf": choices}))


class _Reader:
    """Finds the claims of one keyword."""

    def __init__(self, oracle: Oracle, keyword: str) -> None:
        self.oracle, self.keyword = oracle, keyword

    def claims(self, node: Node, above: tuple[int, ...], given: Claim) -> Iterator[Claim]:
        """The claims of a node, which holds if `given` does.

        `above`: the nodes on the way to it, as loops in place add nothing.
        """
        schema = node.schema
        if not isinstance(schema, dict) or node.number in above:
            return
        spend(JOIN_WORK)
        yield given._replace(seen=self._own(node, bool(above)))
        above = (*above, node.number)
        for part, more in self._applied(node):
            yield from self.claims(part, above, given.join(more))

    def _own(self, node: Node, inside: bool) -> Seen:
        """What the keywords of a node itself look at."""
        schema = node.schema
        if inside and self.keyword in schema:
            return Seen(all=True)
        if any(self.oracle.is_dropped(node, keyword) for keyword in _LOOKING):
            return Seen(all=True)  # nobody knows what it would look at
        if self.keyword == "unevaluatedProperties":
            if "additionalProperties" in schema:
                return Seen(all=True)
            return Seen(frozenset(_named(schema, "properties")), frozenset(_named(schema, "patternProperties")))
        in_2020 = node.draft >= DRAFT_2020
        listed = schema.get("prefixItems" if in_2020 else "items")
        rest = "items" if in_2020 or not isinstance(listed, list) else "additionalItems"
        if rest in schema:
            return Seen(all=True)
        counted = frozenset([node] if in_2020 and "contains" in schema else [])
        return Seen(items=len(listed) if isinstance(listed, list) else 0, contains=counted)

    def _applied(self, node: Node) -> Iterator[tuple[Node, Claim]]:
        """The schemas that are applied to the same value, and what they ask for to hold."""
        schema, oracle, document = node.schema, self.oracle, self.oracle.document
        for keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            if keyword in schema and (keyword == "$ref" or (keyword == "$dynamicRef") == (node.draft >= DRAFT_2020)):
                yield document.target(node, keyword, schema[keyword]), Claim()
        for keyword in ("allOf", "anyOf", "oneOf"):
            for place, part in enumerate(_listed(schema, keyword)):
                state = EVERYTHING if keyword == "allOf" else oracle.part(node, part, keyword, place)
                yield document.child(node, part, f"/{keyword}/{place}"), Claim(state)
        if "if" in schema:
            condition = oracle.part(node, schema["if"], "if")
            yield document.child(node, schema["if"], "/if"), Claim(condition)
            if "then" in schema:
                yield document.child(node, schema["then"], "/then"), Claim(condition)
            if "else" in schema:
                for broken in negations(condition):
                    yield document.child(node, schema["else"], "/else"), Claim(broken)
        for name, part in _named(schema, "dependentSchemas").items():
            key = f"/dependentSchemas{escape_key(name)}"
            yield document.child(node, part, key), Claim(present=frozenset([name]))


def _named(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """The value of a keyword that has schemas by name; whoever applies it refuses what is none."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _listed(schema: dict[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []

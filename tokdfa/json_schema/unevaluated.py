"""unevaluatedProperties and unevaluatedItems: a schema for the parts that nothing else has looked at.

*Looking.* properties, items and the like look at parts of a value, those of subschemas that apply to the same value
among them, if they hold. What allOf and references look at is certain. anyOf, oneOf, ``if`` and dependentSchemas look
at parts only where their branches hold, so what is left over depends on the value.

*Alternatives.* A value is valid if there is a set of branches that all hold, and what these (and the certain rest) do
not look at is in the unevaluated state. It need not be all branches that hold: another one could only look at more,
and leave less over. So no branch has to be negated (but ``if``, for its ``else``), and the keyword is a union over sets
of branches. Each is an `Alternative`: states that hold, names that are there, and what is then looked at. One that asks
for more than another and sees no more is left out.

In 2020-12 ``contains`` looks at the items that it counts: the items that are left over are then in its state or in the
unevaluated one. ``not`` looks at nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.clauses import (
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
    join,
    unite,
)
from tokdfa.json_schema.complement import negations
from tokdfa.json_schema.document import DRAFT_2020, Node, escape_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tokdfa.json_schema.schema_states import SchemaStates

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
#: Alternatives of one keyword at most.
MAX_ALTERNATIVES = 256


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


class Alternative(NamedTuple):
    """If `state` holds and the names `present` are there, `seen` is looked at."""

    state: State = EVERYTHING
    present: frozenset[str] = frozenset()
    seen: Seen = Seen()

    def join(self, other: Alternative) -> Alternative:
        """Both."""
        return Alternative(
            intersect_states(self.state, other.state), self.present | other.present, self.seen.join(other.seen)
        )

    def covers(self, other: Alternative) -> bool:
        """Whether `other` asks for as much and looks at no more."""
        return self.state <= other.state and self.present <= other.present and self.seen.holds(other.seen)


#: Work (`tokdfa.core.budget`) of joining two alternatives, or comparing them, in nanoseconds.
JOIN_WORK = 3_000
#: What is always so.
PLAIN = Alternative()


def unevaluated_shape(schemas: SchemaStates, shape_of: Callable[[State], Shape], node: Node, keyword: str) -> Shape:
    """What the keyword demands. `shape_of`: the shape of a state.

    Raises SchemaUnsupported if that depends on too many branches.
    """
    state = schemas.part(node, node.schema[keyword], keyword)
    if not state:
        return ANYTHING
    found = _Reader(schemas, node, keyword).alternatives(node, ())
    shapes = []
    for alternative in found:
        left_over = _left_over(schemas, node, keyword, state, alternative.seen)
        shape = join(shape_of(alternative.state), left_over, node, keyword)
        if alternative.present:
            names = ObjectClause(required=tuple(sorted(alternative.present)))
            shape = join(shape, Shape(objects=(names,)), node, keyword)
        shapes.append(shape)
    return check_size(unite(shapes), node, keyword)


def _left_over(schemas: SchemaStates, node: Node, keyword: str, state: State, seen: Seen) -> Shape:
    """The shape of values whose parts are in `state`, but for those that are looked at."""
    if seen.all:
        return ANYTHING
    if keyword == "unevaluatedItems":
        array = ArrayClause((EVERYTHING,) * seen.items, _or_counted(schemas, node, state, seen.contains))
        return Shape(ANYTHING.constants, ANYTHING.numbers, ANYTHING.strings, (array,), ANYTHING.objects)
    patterns = tuple((pattern, EVERYTHING) for pattern in sorted(seen.patterns))
    clause = ObjectClause(scopes=(Scope(dict.fromkeys(sorted(seen.names), EVERYTHING), patterns, state),))
    return Shape(ANYTHING.constants, ANYTHING.numbers, ANYTHING.strings, ANYTHING.arrays, (clause,))


def _or_counted(schemas: SchemaStates, node: Node, state: State, contains: frozenset[Node]) -> State:
    """The state of items that are in `state` or counted by a ``contains`` of one of some nodes."""
    if not contains or not state:
        return state
    owners = sorted(contains, key=lambda owner: owner.number)
    if state == NOTHING and len(owners) == 1:
        return schemas.part(owners[0], owners[0].schema["contains"], "contains")
    if any(owner.scope != node.scope for owner in owners):
        raise SchemaUnsupported("contains looks at items in another dynamic scope", node.pointer, "unevaluatedItems")
    for owner in owners:  # so that the schemas are known by where they stand
        schemas.part(owner, owner.schema["contains"], "contains")
    choices = [*(owner.schema["contains"] for owner in owners), node.schema["unevaluatedItems"]]
    place = "/unevaluatedItems(" + ", ".join(str(owner.number) for owner in owners) + ")"
    return schemas.state(schemas.synthesize(node, place, {"anyOf": choices}))


class _Reader:
    """Finds the alternatives of one keyword."""

    def __init__(self, schemas: SchemaStates, node: Node, keyword: str) -> None:
        self.schemas, self.outermost, self.keyword = schemas, node, keyword

    def alternatives(self, node: Node, above: tuple[int, ...]) -> list[Alternative]:
        """The alternatives of a node; `above`: the nodes on the way to it, as loops in place add nothing."""
        schema = node.schema
        if not isinstance(schema, dict) or node.number in above:
            return [PLAIN]
        spend(JOIN_WORK)
        found = [Alternative(seen=self._own(node, bool(above)))]
        above = (*above, node.number)
        for options in self._applied(node, above):
            if len(options) > 1 or options[0] != PLAIN:
                spend(JOIN_WORK * len(found) * len(options))
                found = self._prune([one.join(other) for one, other in product(found, options)])
        return found

    def _own(self, node: Node, inside: bool) -> Seen:
        """What the keywords of a node itself look at."""
        schema = node.schema
        if inside and self.keyword in schema:
            return Seen(all=True)
        if any(self.schemas.is_dropped(node, keyword) for keyword in _LOOKING):
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

    def _applied(self, node: Node, above: tuple[int, ...]) -> Iterator[list[Alternative]]:
        """For each keyword that applies schemas to the same value, or for each of its branches, the alternatives."""
        schema, schemas = node.schema, self.schemas
        for keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            if keyword in schema and (keyword == "$ref" or (keyword == "$dynamicRef") == (node.draft >= DRAFT_2020)):
                yield self.alternatives(schemas.document.target(node, keyword, schema[keyword]), above)
        for place, part in enumerate(_listed(schema, "allOf")):
            yield self._below(node, part, f"/allOf/{place}", above)
        exclusive = [PLAIN]
        for keyword in ("anyOf", "oneOf"):
            for place, part in enumerate(_listed(schema, keyword)):
                claim = Alternative(schemas.part(node, part, keyword, place))
                options = [claim.join(one) for one in self._below(node, part, f"/{keyword}/{place}", above)]
                if keyword == "anyOf":
                    yield self._prune([PLAIN, *options])
                else:
                    exclusive += options
        yield self._prune(exclusive)
        if "if" in schema:
            yield self._prune(list(self._conditional(node, above)))
        for name, part in _named(schema, "dependentSchemas").items():
            there = Alternative(present=frozenset([name]))
            below = self._below(node, part, f"/dependentSchemas{escape_key(name)}", above)
            yield self._prune([PLAIN, *(there.join(one) for one in below)])

    def _conditional(self, node: Node, above: tuple[int, ...]) -> Iterator[Alternative]:
        """The alternatives of ``if``: nothing is known of it; it holds, and so does ``then``; it does not."""
        schema = node.schema
        condition = self.schemas.part(node, schema["if"], "if")
        yield PLAIN
        branches = [PLAIN] if "then" not in schema else self._below(node, schema["then"], "/then", above)
        for one, other in product(self._below(node, schema["if"], "/if", above), branches):
            yield Alternative(condition).join(one).join(other)
        if "else" in schema:
            for broken in negations(condition):
                for other in self._below(node, schema["else"], "/else", above):
                    yield Alternative(broken).join(other)

    def _below(self, node: Node, part: Any, key: str, above: tuple[int, ...]) -> list[Alternative]:
        return self.alternatives(self.schemas.document.child(node, part, key), above)

    def _prune(self, alternatives: Iterable[Alternative]) -> list[Alternative]:
        """Those that none of the others covers."""
        found: list[Alternative] = []
        for one in dict.fromkeys(alternatives):
            spend(JOIN_WORK * (1 + 2 * len(found)))
            if not any(other.covers(one) for other in found):
                found = [other for other in found if not one.covers(other)] + [one]
        if len(found) > MAX_ALTERNATIVES:
            message = f"what is left over depends on more than {MAX_ALTERNATIVES} combinations of branches"
            raise SchemaUnsupported(message, self.outermost.pointer, self.keyword)
        return found


def _named(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """The value of a keyword that has schemas by name; whoever applies it refuses what is none."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _listed(schema: dict[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []

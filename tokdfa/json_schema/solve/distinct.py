"""Where a name may come twice in one object, although none may (``duplicates="refused"``) and no matcher remembers it.

Names are equal if their decoded texts are. Declared names come once by themselves, and undeclared names of small kinds
are remembered (`tokdfa.json_schema.solve.object_plan`); one member that may have any name repeats none. Everything else
takes a memory without bound: two members or more whose names are too many. The matchers of the grammar engines have it
(`tokdfa.backends.unique_items`). For other strategies, and for schemas in grammars, the states that a text can reach
are looked at in advance, and where one holds such objects, the schema is refused; with `lenient` the place is listed.

What is refused is named by the schema that lets the names in: the pointer of the schema with the keywords of the
object, or of what stands for any value (``{}``), and the keyword that leaves the names open, given or absent.

Cost: a plan of each object that can be reached, before the lowering makes them again.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_7, DRAFT_2020, NESTED, Dropped, Node, escape_key
from tokdfa.json_schema.read.keyword_names import ARRAY_KEYWORDS, MEMBER_KEYWORDS
from tokdfa.json_schema.solve.choices import choices_of
from tokdfa.json_schema.solve.clauses import EVERYTHING, LOOKUP_WORK, intersect_states
from tokdfa.json_schema.solve.complement import negations
from tokdfa.json_schema.solve.object_plan import MAX_REMEMBERED, plan_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.json_schema.solve.clauses import ArrayClause, Count, ObjectClause, Shape, State
    from tokdfa.json_schema.solve.object_plan import ObjectPlan
    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder

REASON = (
    f"undeclared names are remembered if they are at most {MAX_REMEMBERED} in one object, which is not known of these,"
    " so one could come twice; say {remedy}, or which names there are (propertyNames with an enum), or"
    ' duplicates="declared", or take pushdown_trie or earley_trie for the schema alone, which remember all'
)
#: What closes an object, by the keyword that leaves it open; for others, the first of these.
REMEDIES = {
    "additionalProperties": "additionalProperties: false",
    "unevaluatedProperties": "unevaluatedProperties: false",
    "patternProperties": "patterns of few names",
}
ANY_VALUE = "nothing says what items may be, so objects of any names are among them; "


#: Work (`tokdfa.core.budget`) of looking at a state beside making its plans, in nanoseconds.
PLACE_WORK = 5_000


class Place(NamedTuple):
    """Where a schema lets any value in: its pointer, and the keyword to blame."""

    pointer: str
    keyword: str = "additionalProperties"


class Part(NamedTuple):
    """A member or an item: the state of its value, its name if the plan has it, its place if it is an item."""

    value: State
    name: str | None = None
    item: int | None = None


def find_repeatable(shape_builder: ShapeBuilder, root: State, lenient: bool) -> list[Dropped]:
    """The places at which a name may come twice, each once; none unless `lenient`. O(states that a text can reach).

    Raises SchemaUnsupported for the first one unless `lenient`, and what making shapes and plans raises.
    """
    search = _Search(shape_builder)
    found: dict[Place, Dropped] = {}
    for place in search.places(root):
        reason = REASON.format(remedy=REMEDIES.get(place.keyword, REMEDIES["additionalProperties"]))
        if place.keyword in ("items", "additionalItems"):
            reason = ANY_VALUE + reason
        if not lenient:
            raise SchemaUnsupported(reason, place.pointer, place.keyword)
        found.setdefault(place, Dropped(place.pointer, place.keyword, reason))
    return list(found.values())


class Parts:
    """The members and items that values of a shape can have."""

    def __init__(self, shape_builder: ShapeBuilder) -> None:
        self.shape_builder = shape_builder

    def plans(self, shape: Shape) -> Iterator[tuple[ObjectClause, ObjectPlan]]:
        """The clauses of objects that some object meets, and their plans."""
        known = self.shape_builder.plans
        for clause in shape.objects:
            if clause not in known and self.shape_builder.object_has_value(clause):
                known[clause] = plan_object(self.shape_builder, clause)
            if clause in known:
                yield clause, known[clause]

    def of(self, shape: Shape) -> Iterator[Part]:
        """All of a shape."""
        for clause, plan in self.plans(shape):
            yield from self.members(clause, plan)
        for array in shape.arrays:
            if self.shape_builder.array_has_value(array):
                yield from self.items(array)

    def members(self, clause: ObjectClause, plan: ObjectPlan) -> Iterator[Part]:
        """The members of objects of a clause."""
        has_room = plan.room is None or plan.room > 0
        choices = choices_of(self.shape_builder, clause, plan, any_order=False) if clause.choices else None

        def guesses(member: int, value: State) -> list[State]:
            found = [(value, ())] if choices is None else choices.claims(member, choices.start, value)
            return [state for state, _ in found]

        for k, (name, state, required) in enumerate(zip(plan.names, plan.states, plan.required, strict=True)):
            for guess in guesses(k, state) if required or has_room else ():
                yield from self._claims(clause, guess, plan.demands[k], name)
        for k, kind in enumerate(plan.kinds if has_room else ()):
            for guess in guesses(~k, kind.value):
                yield from self._claims(clause, guess, kind.demands, None)

    def _claims(self, clause: ObjectClause, state: State, demands: tuple[int, ...], name: str | None) -> Iterator[Part]:
        """A member that meets none of the demands that it can meet, or some of them."""
        for size in range(len(demands) + 1):
            for claimed in combinations(demands, size):
                value = state
                for k in claimed:
                    value = intersect_states(value, clause.demands[k].value)
                if self.shape_builder.has_value(value):
                    yield Part(value, name)

    def items(self, clause: ArrayClause) -> Iterator[Part]:
        """The items, each as those that are counted and those that are not."""
        for k in range(len(clause.prefix) + 1):
            if (clause.most is not None and k >= clause.most) or not self.shape_builder.has_value(clause.at(k)):
                return
            for chosen in product(*(_ways_to_count(count, k) for count in clause.counts)):
                value = clause.at(k)
                for each in chosen:
                    value = intersect_states(value, each)
                if self.shape_builder.has_value(value):
                    yield Part(value, item=k)


class _Search:
    """One run of `find_repeatable`, from the root outwards."""

    def __init__(self, shape_builder: ShapeBuilder) -> None:
        self.shape_builder, self.parts = shape_builder, Parts(shape_builder)

    def places(self, root: State) -> Iterator[Place]:
        """The places; some may come more than once."""
        shape_builder = self.shape_builder
        #: States with the place that a text came by, for those that no schema stands for.
        waiting: list[tuple[State, Place]] = [(root, Place(""))]
        met = {root}
        for state, place in waiting:
            shape = shape_builder.shape_of(state)
            spend(PLACE_WORK)
            if self._has_open_object(shape):
                yield self._place_of_names(state, place)
            for part in self.parts.of(shape):
                spend(LOOKUP_WORK)
                if part.value not in met:
                    met.add(part.value)
                    waiting.append((part.value, self._place_of(part, state, place)))

    def _has_open_object(self, shape: Shape) -> bool:
        return any(plan.may_repeat for _, plan in self.parts.plans(shape))

    # Places, for messages.

    def _nodes(self, state: State) -> list[tuple[Node, bool]]:
        """The schemas of the text that a state demands, and whether they are negated."""
        node_of = self.shape_builder.document.node
        found = [(node_of(literal >> 1), bool(literal & 1)) for literal in sorted(state)]
        return [(node, negated) for node, negated in found if not node.pointer.startswith(NESTED)]

    def _place_of_names(self, state: State, place: Place) -> Place:
        """The schema that leaves the names of a state's objects open; `place` if any value will do."""
        nodes = self._nodes(state)
        if not nodes:
            return place
        node, negated = nodes[0]
        if negated:
            return Place(node.pointer if node.parent is None else node.parent.pointer, node.key.split("/")[1])
        node = self._owner(node, MEMBER_KEYWORDS | {"unevaluatedProperties"}, self._has_open_object)
        schema = node.schema if isinstance(node.schema, dict) else {}
        closed = [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
        if "patternProperties" in schema and False in closed:
            return Place(node.pointer, "patternProperties")
        if "unevaluatedProperties" in schema and "additionalProperties" not in schema and closed[1] is not False:
            return Place(node.pointer, "unevaluatedProperties")
        return Place(node.pointer)

    def _place_of(self, part: Part, state: State, place: Place) -> Place:
        """Where any value is let in as a part of the values of a state, at `place` itself."""
        nodes = self._nodes(state)
        if not nodes or self._nodes(part.value):
            return place
        keywords = ARRAY_KEYWORDS if part.item is not None else MEMBER_KEYWORDS
        node = self._owner(
            nodes[0][0], keywords, lambda shape: any(one.value == part.value for one in self.parts.of(shape))
        )
        schema = node.schema if isinstance(node.schema, dict) else {}
        if part.item is not None:
            return _place_of_item(node, schema, part.item)
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        if part.name is not None and part.name in properties:
            return Place(node.pointer + "/properties" + escape_key(part.name))
        for pattern in patterns:
            if part.name is not None and self.shape_builder.may_match(pattern, part.name):
                return Place(node.pointer + "/patternProperties" + escape_key(pattern))
        return Place(node.pointer + ("/additionalProperties" if "additionalProperties" in schema else ""))

    def _owner(self, node: Node, keywords: frozenset[str], wanted: Callable[[Shape], bool]) -> Node:
        """The schema with one of some keywords, at `node` or among those that apply to the same value.

        Of several branches it is the first of which the shape is as wanted.
        """
        met: set[int] = set()
        while node.number not in met and isinstance(node.schema, dict) and keywords.isdisjoint(node.schema):
            met.add(node.number)
            shape_builder = self.shape_builder
            branches = (
                child for child in self._branches(node) if wanted(shape_builder.shape_of(shape_builder.state(child)))
            )
            node = next(branches, node)
        return node

    def _branches(self, node: Node) -> Iterator[Node]:
        """The schemas that a schema applies to the same value."""
        schema, document = node.schema, self.shape_builder.document
        for keyword in ("$ref", "$dynamicRef" if node.draft >= DRAFT_2020 else "$recursiveRef"):
            if isinstance(schema.get(keyword), str) and (keyword == "$ref" or node.draft > DRAFT_7):
                yield document.target(node, keyword, schema[keyword])
        for keyword in ("allOf", "anyOf", "oneOf"):
            for k, part in enumerate(schema.get(keyword, ())):
                yield document.child(node, part, escape_key(keyword) + escape_key(k))
        for keyword in ("then", "else"):
            if "if" in schema and keyword in schema:
                yield document.child(node, schema[keyword], escape_key(keyword))


def _ways_to_count(count: Count, place: int) -> list[State]:
    """The states that a count may ask of an item at a place, which stands for all behind it, too."""
    ways = [] if count.most is not None and place >= count.first else [EVERYTHING]
    if count.most is not None:
        ways += negations(count.value)
    return [*ways, count.value] if (count.least if count.most is None else count.most) > 0 else ways


def _place_of_item(node: Node, schema: dict[str, object], item: int) -> Place:
    """Where a schema lets any item in; the schema itself if it says nothing of them."""
    for keyword in ("prefixItems", "items"):
        listed = schema.get(keyword)
        if isinstance(listed, list):
            if item < len(listed):
                return Place(node.pointer + escape_key(keyword) + escape_key(item))
        elif listed is not None:
            return Place(node.pointer + escape_key(keyword))
    if "additionalItems" in schema:
        return Place(node.pointer + "/additionalItems")
    return Place(node.pointer, "additionalItems" if isinstance(schema.get("items"), list) else "items")

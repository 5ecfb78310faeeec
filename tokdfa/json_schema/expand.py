"""Expanding: the shape of a literal, and of a state, with the keywords that apply schemas to the same value.

allOf and ``$ref`` intersect, anyOf unites, not complements, ``if`` is (if and then) or (not if and else), oneOf is each
branch and none of the others. A branch of oneOf is only joined with the complements of those that it may overlap with,
which `emptiness` decides; mostly there are none.

A literal that comes up again while its own shape is made is a loop in place. Where all on the way must hold at once, it
adds nothing; where there is a choice or a complement on the way, the schema means nothing certain and is refused.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tokdfa.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, SchemaError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.json_schema.clauses import (
    ANYTHING,
    CLAUSE_BYTES,
    CLAUSE_WORK,
    EVERYTHING,
    IMPOSSIBLE,
    LOOKUP_WORK,
    NEVER,
    NOTHING,
    SHAPE_WORK,
    ObjectClause,
    Shape,
    State,
    TooManyClauses,
    intersect,
    lone_scope,
    unite,
)
from tokdfa.json_schema.complement import NotOneState, complement
from tokdfa.json_schema.disjoint import candidates
from tokdfa.json_schema.document import DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, Node
from tokdfa.json_schema.keywords import TYPED_KEYWORDS, local_shape, plain_shape
from tokdfa.json_schema.string_set import StringSet
from tokdfa.json_schema.unevaluated import UNEVALUATED, unevaluated_shape
from tokdfa.json_schema.values import shape_of_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.json_schema.document import Document
    from tokdfa.json_schema.emptiness import Inhabited

#: Clauses of one shape at most.
MAX_CLAUSES = 3_000
#: Work (`tokdfa.budget`) of asking whether a name matches a pattern whose automaton there is, in nanoseconds.
MATCH_WORK = 10_000
#: Work of asking whether two shapes overlap, beside joining their clauses.
PAIR_WORK = 30_000
#: So many branches of a oneOf are compared each with each.
FEW_BRANCHES = 4
#: Schemas applied inside each other to one value at most.
MAX_DEPTH = 150
#: References to references that are followed at once.
MAX_HOPS = 10
#: Shapes inside of loops in place at most; they are made anew each time.
MAX_REMADE = 10_000

#: Keywords that apply schemas to the same value -> the first draft that has them, the last.
APPLICATORS: dict[str, tuple[int, int]] = {
    "enum": (0, 9),
    "const": (DRAFT_6, 9),
    "allOf": (0, 9),
    "anyOf": (0, 9),
    "oneOf": (0, 9),
    "not": (0, 9),
    "if": (DRAFT_7, 9),
    "$ref": (0, 9),
    "$recursiveRef": (DRAFT_2019, DRAFT_2019),
    "$dynamicRef": (DRAFT_2020, 9),
    "dependencies": (0, DRAFT_7),
    "dependentRequired": (DRAFT_2019, 9),
    "dependentSchemas": (DRAFT_2019, 9),
    "unevaluatedProperties": (DRAFT_2019, 9),
    "unevaluatedItems": (DRAFT_2019, 9),
}


#: A schema without any of these demands its `type` and nothing else.
DEMANDING = TYPED_KEYWORDS | APPLICATORS.keys() | {"$schema"}


class InProgress(Exception):
    """A shape was asked for that somebody further out is making."""


class Expander:
    """Makes the shapes of a document's literals and states, each once.

    `dropped`: (pointer, keyword) of keywords that are left out (`lenient`). `distinct`: no object has two equal names.
    """

    def __init__(
        self, document: Document, dropped: frozenset[tuple[str, str]] = frozenset(), distinct: bool = False
    ) -> None:
        from tokdfa.json_schema.emptiness import Inhabited

        self.document, self.dropped, self.distinct = document, dropped, distinct
        self._shapes: dict[int, Shape] = {}
        self._states: dict[State, Shape] = {EVERYTHING: ANYTHING, NOTHING: IMPOSSIBLE}
        self._synthetic: dict[tuple[int, str], Node] = {}
        #: Literals whose shapes are being made, with how many choices and complements enclosed them then.
        self._active: dict[int, int] = {}
        self._choices = 0
        #: The outermost literal that a loop has come back to, as its position in `_active`.
        self._loop = 1 << 30
        self._remade = 0
        #: Literals in whose shapes keywords are left out; whether one was while the present shape is made.
        self._loose: set[int] = set()
        self._left_out = False
        #: Literals whose shapes somebody further out is making.
        self._suspended: set[int] = set()
        self._plain: dict[tuple[str, int], State] = {}
        #: Reference, where plain pointers lead -> the state of its target.
        self._targets: dict[str, State] = {}
        self._matches: dict[tuple[str, str], bool] = {}
        self._may_match: dict[tuple[str, str], bool] = {}
        self._empty: dict[StringSet, bool] = {}
        self.inhabited: Inhabited = Inhabited(self)

    @property
    def is_active(self) -> bool:
        """Whether a shape is being made."""
        return bool(self._active)

    def is_dropped(self, node: Node, keyword: str) -> bool:
        """Whether a keyword of a node is left out. What is made of the node then holds more than it should."""
        if self.dropped and (node.pointer, keyword) in self.dropped:
            self._left_out = True
            return True
        return False

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave aside what is being made, to ask for other shapes. They may raise InProgress."""
        active, choices, loop, left_out = self._active, self._choices, self._loop, self._left_out
        added = active.keys() - self._suspended
        self._suspended |= added
        self._active, self._choices, self._loop = {}, 0, 1 << 30
        try:
            yield
        finally:
            self._active, self._choices, self._loop, self._left_out = active, choices, loop, left_out
            self._suspended -= added

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern, however that is read (`tokdfa.json_schema.patterns`)."""
        key = pattern, name
        spend(LOOKUP_WORK)
        if key not in self._matches:
            spend(MATCH_WORK + LOOKUP_WORK * len(name), CLAUSE_BYTES)
            self._matches[key] = StringSet(patterns=(pattern,)).holds(name)
        return self._matches[key]

    def may_match(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern in one of its readings."""
        if self.matches(pattern, name):
            return True
        key = pattern, name
        if key not in self._may_match:
            spend(MATCH_WORK + LOOKUP_WORK * len(name))
            plain = name.isascii() and name.isprintable()  # to these all readings are one
            self._may_match[key] = not plain and not StringSet(not_patterns=(pattern,)).holds(name)
        return self._may_match[key]

    def is_empty(self, strings: StringSet) -> bool:
        """Whether a clause of strings holds none."""
        if strings.simple and strings.values is None:
            return strings.max_length is not None and strings.max_length < strings.min_length
        found = self._empty.get(strings)
        if found is None:
            try:
                found = self._empty[strings] = strings.is_empty()
            except LimitExceeded as error:
                if is_spent(error):
                    raise
                raise SchemaUnsupported(str(error), self.document.root.pointer, "pattern") from None
        return found

    def state(self, node: Node) -> State:
        """The state that a node alone demands."""
        schema = node.schema
        if schema is True or schema == {}:
            return EVERYTHING
        return NOTHING if schema is False else frozenset([2 * node.number])

    def child_state(
        self, parent: Node, schema: Any, keyword: str, key: str | int | None = None, follows: bool = True
    ) -> State:
        """The state that a schema inside `parent` demands, at a keyword and (if not None) a key there.

        Schemas that are a plain type and nothing else have one state, whatever their annotations; most schemas are. A
        reference has the state of what it refers to, so that this is lowered once, if it is followed (`follows`).
        """
        if isinstance(schema, dict):
            if schema.keys().isdisjoint(DEMANDING):
                name = schema.get("type")
                if isinstance(name, str):
                    plain = name, parent.draft
                    found = self._plain.get(plain)
                    if found is None:
                        found = self._plain[plain] = self._plain_state(name, self._child(parent, schema, keyword, key))
                    return found
            elif follows and "$ref" in schema:
                referred = self._referred(parent, schema)
                if referred is not None:
                    return referred
        return self.state(self._child(parent, schema, keyword, key))

    def _plain_state(self, name: str, node: Node) -> State:
        """The state of a node that demands a type and nothing else: what there is to know about it is known."""
        found = self.state(node)
        shape = plain_shape(name, node.draft)
        if shape is not None and not self.dropped:
            self._shapes[2 * node.number] = self._states[found] = shape
            self.inhabited.learn(found)
        return found

    def _referred(self, parent: Node, schema: dict[str, Any], hops: int = 0) -> State | None:
        """The state of what a schema inside `parent` refers to; None if it is more than a reference, or a broken one.

        Whoever then asks for the shape of the schema itself, gets the error. `hops`: references followed before.
        """
        reference = schema["$ref"]
        if self.dropped or not isinstance(reference, str) or self.document.id_keyword in schema:
            return None
        if len(schema) > 1 and ("type" in schema or schema.keys() & DEMANDING != {"$ref"}):
            return None
        plain = reference if parent.resolver is None and not parent.scope else ""
        found = self._targets.get(plain) if plain else None
        if found is None:
            try:
                target = self.document.target(parent, "$ref", reference)
            except (SchemaError, SchemaUnsupported):
                return None
            found = self.state(target)
            if isinstance(target.schema, dict):
                name = target.schema.get("type")
                if isinstance(name, str) and target.schema.keys().isdisjoint(DEMANDING):
                    found = self._plain.setdefault((name, target.draft), found)
                elif "$ref" in target.schema and hops < MAX_HOPS:
                    further = self._referred(target, target.schema, hops + 1)
                    found = found if further is None else further
            if plain:
                self._targets[plain] = found
        return found

    def _child(self, parent: Node, schema: Any, keyword: str, key: str | int | None) -> Node:
        return self.document.child(parent, schema, (keyword, key))

    def synthesize(self, node: Node, place: str, schema: Any) -> Node:
        """A node for a schema that is not in the document, known by the place it comes from."""
        key = node.number, place
        found = self._synthetic.get(key)
        if found is None:
            found = self._synthetic[key] = self.document.child(node, schema, place)
        return found

    def shape(self, state: State) -> Shape:
        """The shape of a state. Raises SchemaError or SchemaUnsupported."""
        found = self._states.get(state)
        if found is None:
            if len(state) == 1:
                (literal,) = state
                found = self.literal(literal)
            else:
                spend(SHAPE_WORK, CLAUSE_BYTES)
                found = ANYTHING
                for literal in sorted(state):
                    found = self.join(found, self.literal(literal), self._node(literal), "allOf")
            if not self._active:
                self._states[state] = found
        if self._loose:
            self._left_out |= not self._loose.isdisjoint(state)
        return found

    def _node(self, literal: int) -> Node:
        return self.document.nodes[literal >> 1]

    def literal(self, literal: int) -> Shape:
        """The shape of a literal."""
        if literal == NEVER:
            return IMPOSSIBLE
        found = self._shapes.get(literal)
        if found is None:
            left_out, self._left_out = self._left_out, False
            try:
                found = self._make(literal)
            finally:
                if self._left_out:
                    self._loose.add(literal)
                self._left_out |= left_out
        elif self._loose:
            self._left_out |= literal in self._loose
        return found

    def _make(self, literal: int) -> Shape:
        """The shape of a literal that is not known."""
        spend(SHAPE_WORK, CLAUSE_BYTES)
        node = self._node(literal)
        if not literal & 1 and isinstance(node.schema, dict) and node.schema.keys().isdisjoint(APPLICATORS):
            found = self._shapes[literal] = local_shape(self, node)
            return found
        if literal in self._suspended:
            raise InProgress
        if literal in self._active:
            if self._active[literal] != self._choices:
                raise SchemaUnsupported("the schema refers to itself in place, under a choice", node.pointer, "$ref")
            self._loop = min(self._loop, list(self._active).index(literal))
            return ANYTHING
        if len(self._active) > MAX_DEPTH:
            raise SchemaUnsupported(f"more than {MAX_DEPTH} schemas apply to one value", node.pointer, "allOf")
        position = len(self._active)
        if not position:
            self._loop = 1 << 30  # whatever an error left there
        self._active[literal] = self._choices
        try:
            found = self._complement(node, literal) if literal & 1 else self._positive(node)
        finally:
            del self._active[literal]
        if self._loop < position:
            self._remade += 1
            if self._remade > MAX_REMADE:
                raise SchemaUnsupported("schemas refer to each other in place in too many ways", node.pointer, "$ref")
            return found  # true only inside of the loop
        self._loop = 1 << 30
        self._shapes[literal] = found
        return found

    def _complement(self, node: Node, literal: int) -> Shape:
        self._choices += 1
        # the keyword that applies the schema is the one that cannot be enforced
        outer, keyword = (node, "not") if node.parent is None else (node.parent, node.key.split("/")[1])
        try:
            positive = self.literal(literal ^ 1)
            if self._left_out:
                return ANYTHING  # as it holds too much, its complement would hold too little
            return complement(positive, lambda one, other: self.join(one, other, outer, keyword))
        except NotOneState:
            raise SchemaUnsupported("the negation is too involved", outer.pointer, keyword) from None
        except SchemaUnsupported:
            raise
        except UnsupportedConstraint as error:
            raise SchemaUnsupported(str(error), outer.pointer, keyword) from None
        finally:
            self._choices -= 1

    def check(self, shape: Shape, node: Node, keyword: str) -> Shape:
        """Refuse a shape of too many clauses."""
        if shape.size > MAX_CLAUSES:
            raise self._too_many_clauses(node, keyword)
        return shape

    def join(self, first: Shape, second: Shape, node: Node, keyword: str) -> Shape:
        """Both. Raises SchemaUnsupported, which names the keyword, for too many clauses."""
        try:
            return intersect(first, second, MAX_CLAUSES)
        except TooManyClauses:
            raise self._too_many_clauses(node, keyword) from None

    def _too_many_clauses(self, node: Node, keyword: str) -> SchemaUnsupported:
        message = f"more than {MAX_CLAUSES} alternatives have to be told apart"
        return SchemaUnsupported(message, node.pointer, keyword)

    def _positive(self, node: Node) -> Shape:
        """The shape of a schema, its keywords applied in the order in which they stand, unevaluated ones last."""
        schema, draft = node.schema, node.draft
        if not isinstance(schema, dict):
            return ANYTHING if schema else IMPOSSIBLE
        if draft <= DRAFT_7 and isinstance(schema.get("$ref"), str):
            return self._reference(node, "$ref")
        applied = sorted((key for key in schema if key in APPLICATORS), key=lambda key: key in UNEVALUATED)
        local = local_shape(self, node)
        if not applied:
            return local
        keys = list(schema)
        position = keys.index("properties") if "properties" in schema else -1
        result, pending = ANYTHING, True
        for keyword in applied:
            first, last = APPLICATORS[keyword]
            if not first <= draft <= last or self.is_dropped(node, keyword):
                continue
            if pending and keys.index(keyword) > position:
                result, pending = self.join(result, local, node, keyword), False
            result = self.join(result, self._applied(node, keyword), node, keyword)
        return self.join(result, local, node, applied[-1]) if pending else result

    def _applied(self, node: Node, keyword: str) -> Shape:
        """What one applicator demands."""
        value = node.schema[keyword]
        if keyword in ("enum", "const"):
            if keyword == "enum" and not isinstance(value, list):
                raise SchemaError("it must be a list of values", node.pointer, keyword)
            return shape_of_values(self, node, keyword, value if keyword == "enum" else [value])
        if keyword in ("allOf", "anyOf", "oneOf"):
            if not isinstance(value, list) or not value:
                raise SchemaError("it must be a list of at least one schema", node.pointer, keyword)
            spend(CLAUSE_WORK * len(value))
            literals = [self.part(node, schema, keyword, place) for place, schema in enumerate(value)]
            if keyword == "allOf":
                shape = ANYTHING
                for state in literals:
                    shape = self.join(shape, self.shape(state), node, keyword)
                return shape
            return self._choose(lambda: self._any_of(literals) if keyword == "anyOf" else self._one_of(node, literals))
        if keyword == "not":
            return self._choose(lambda: self.negated(self.part(node, value, keyword)))
        if keyword == "if":
            return self._choose(lambda: self._conditional(node))
        if keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            return self._reference(node, keyword)
        if keyword in UNEVALUATED:
            return self._choose(lambda: unevaluated_shape(self, node, keyword))
        return self._choose(lambda: self._dependencies(node, keyword))

    def part(self, node: Node, schema: Any, keyword: str, place: int | str | None = None) -> State:
        """The state of a schema that a keyword applies; of a reference that of its own node, which messages name."""
        return self.child_state(node, schema, keyword, place, follows=False)

    def _choose(self, make: Callable[[], Shape]) -> Shape:
        """What `make` makes, as one of several alternatives."""
        self._choices += 1
        try:
            return make()
        finally:
            self._choices -= 1

    def negated(self, state: State) -> Shape:
        """The complement of a state of at most one literal."""
        if not state:
            return IMPOSSIBLE
        (literal,) = state
        return ANYTHING if literal == NEVER else self.literal(literal ^ 1)

    def _any_of(self, states: list[State]) -> Shape:
        return unite([self.shape(state) for state in states])

    def _one_of(self, node: Node, states: list[State]) -> Shape:
        shapes = [self.shape(state) for state in states]
        if len(states) == 1:
            return shapes[0]
        overlaps: list[list[int]] = [[] for _ in states]
        # to look for the pairs that may have a value in common pays where there are many
        pairs = candidates(self, shapes) if len(shapes) > FEW_BRANCHES else combinations(range(len(shapes)), 2)
        for first, second in pairs:
            spend(PAIR_WORK)
            joined = self.join(shapes[first], shapes[second], node, "oneOf")
            if not joined.is_nothing and self.inhabited.shape(joined):
                overlaps[first].append(second)
                overlaps[second].append(first)
        found: list[Shape] = []
        for exact, others in zip(shapes, overlaps, strict=True):
            for other in sorted(others):
                exact = self.join(exact, self.negated(states[other]), node, "oneOf")
            found.append(exact)
        return self.check(unite(found), node, "oneOf")

    def _conditional(self, node: Node) -> Shape:
        schema = node.schema
        condition = self.part(node, schema["if"], "if")
        accepted, refused = self.shape(condition), self.negated(condition)
        if "then" in schema:
            accepted = self.join(accepted, self.shape(self.part(node, schema["then"], "then")), node, "if")
        if "else" in schema:
            refused = self.join(refused, self.shape(self.part(node, schema["else"], "else")), node, "if")
        return unite([accepted, refused])

    def _dependencies(self, node: Node, keyword: str) -> Shape:
        """If a name is there, others have to be, or a schema holds."""
        value = node.schema[keyword]
        if not isinstance(value, dict):
            raise SchemaError("it must be an object", node.pointer, keyword)
        result = ANYTHING
        for name, demand in value.items():
            spend(CLAUSE_WORK)
            absent = _objects(ObjectClause(scopes=(lone_scope(name, NOTHING),)))
            if isinstance(demand, list) and keyword != "dependentSchemas":
                if not demand:
                    continue
                spend(LOOKUP_WORK * len(demand))
                if not all(isinstance(other, str) for other in demand):
                    raise SchemaError("what a name requires is a list of names", node.pointer, keyword)
                present = Shape(objects=(ObjectClause(required=tuple(dict.fromkeys([name, *demand]))),))
            elif keyword == "dependentRequired":
                raise SchemaError("it must be an object of lists of names", node.pointer, keyword)
            else:
                shape = self.shape(self.part(node, demand, keyword, name))
                present = self.join(Shape(objects=(ObjectClause(required=(name,)),)), shape, node, keyword)
            result = self.join(result, unite([absent, present]), node, keyword)
        return result

    def _reference(self, node: Node, keyword: str) -> Shape:
        return self.shape(self.state(self.document.target(node, keyword, node.schema[keyword])))


def _objects(clause: ObjectClause) -> Shape:
    """All values, objects only if `clause` holds."""
    return Shape(ANYTHING.constants, ANYTHING.numbers, ANYTHING.strings, ANYTHING.arrays, (clause,))

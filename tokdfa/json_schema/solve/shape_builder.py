"""Expanding: the shape of a literal, and of a state, with the keywords that apply schemas to the same value.

allOf and ``$ref`` intersect, anyOf unites, not complements, ``if`` is (if and then) or (not if and else), oneOf is each
branch and none of the others, type by type. A branch of oneOf is only joined with the complements of those that it may
overlap with, which `emptiness` decides; mostly there are none.

A literal that comes up again while its own shape is made is a loop in place. Where all on the way must hold at once, it
adds nothing: ``V: string and V`` is string. Under an anyOf, it holds no value that the other alternatives do not hold,
the least solution: ``V: string or V`` is string, too. Unions and intersections distribute over each other, so to put
nothing in its place once is that solution. Under any other choice, or a complement, the schema means nothing certain
and is refused.
"""

from __future__ import annotations

from itertools import combinations, takewhile
from math import prod
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.json_schema.read.document import DRAFT_7, Node
from tokdfa.json_schema.read.keyword_names import APPLICATORS, is_in_draft
from tokdfa.json_schema.solve.clauses import (
    ANYTHING,
    CLAUSE_BYTES,
    CLAUSE_WORK,
    IMPOSSIBLE,
    LOOKUP_WORK,
    MAX_CLAUSES,
    MULTIPLIED,
    NEVER,
    NOTHING,
    SHAPE_WORK,
    ObjectClause,
    Shape,
    State,
    TooManyClauses,
    check_size,
    exactly_one,
    intersect,
    is_choice,
    lone_scope,
    too_many_clauses,
    unite,
)
from tokdfa.json_schema.solve.complement import NotOneState, complement
from tokdfa.json_schema.solve.disjoint import candidates
from tokdfa.json_schema.solve.emptiness import Emptiness, InProgress
from tokdfa.json_schema.solve.keywords import local_shape
from tokdfa.json_schema.solve.oracle import NO_LOOP
from tokdfa.json_schema.solve.unevaluated import UNEVALUATED, unevaluated_shape
from tokdfa.json_schema.solve.values import shape_of_values

if TYPE_CHECKING:
    from collections.abc import Callable


#: Work (`tokdfa.core.budget`) of asking whether two shapes overlap, beside joining their clauses.
PAIR_WORK = 30_000
#: So many branches of a oneOf are compared each with each, and so many ways to break the others multiplied out.
FEW_BRANCHES = 4
#: Schemas applied inside each other to one value at most.
MAX_DEPTH = 150
#: Shapes inside of loops in place at most; they are made anew each time.
MAX_REMADE = 10_000


class ShapeBuilder(Emptiness):
    """Makes the shapes of a document's literals and states, each once, and answers whatever may be asked of them."""

    _remade = 0

    def shape_of(self, state: State) -> Shape:
        """The shape of a state. Raises SchemaError or SchemaUnsupported."""
        found = self.shapes.get(state)
        if found is None:
            if len(state) == 1:
                (literal,) = state
                found = self.literals.get(literal)
                if found is None:
                    found = self.literal(literal) if self.dropped else self._make(literal)
            else:
                spend(SHAPE_WORK, CLAUSE_BYTES)
                found = ANYTHING
                for literal in sorted(state):
                    node = self.document.node(literal >> 1)
                    found = self._join(found, self.literal(literal), node, "allOf")
                found = self._settled(found)
            if not self.active:
                self.shapes[state] = found
        if self.loose and not self.loose.isdisjoint(state):
            self.left_out = True
        return found

    def _join(self, first: Shape, second: Shape, node: Node, keyword: str) -> Shape:
        """What both shapes hold. Raises SchemaUnsupported, which names the keyword, for more than MAX_CLAUSES."""
        if first is ANYTHING or second is ANYTHING:
            return check_size(second if first is ANYTHING else first, node, keyword)
        try:
            return intersect(first, second, MAX_CLAUSES, self.listed.contradicts)
        except TooManyClauses:
            raise too_many_clauses(node, keyword) from None

    def literal(self, literal: int) -> Shape:
        """The shape of a literal."""
        if literal == NEVER:
            return IMPOSSIBLE
        found = self.literals.get(literal)
        if found is None:
            if not self.dropped:
                return self._make(literal)
            left_out, self.left_out = self.left_out, False
            try:
                found = self._make(literal)
            finally:
                if self.left_out:
                    self.loose.add(literal)
                self.left_out |= left_out
        if literal in self.loose:
            self.left_out = True
        return found

    def _make(self, literal: int) -> Shape:
        """The shape of a literal that is not known."""
        spend(SHAPE_WORK, CLAUSE_BYTES)
        node = self.document.node(literal >> 1)
        if not literal & 1 and isinstance(node.schema, dict) and node.schema.keys().isdisjoint(APPLICATORS):
            found = self.literals[literal] = local_shape(self, node)
            return found
        if literal in self.set_aside:
            raise InProgress
        if literal in self.active:
            choices, unions = self.active[literal]
            if choices != self.choices:
                raise SchemaUnsupported("the schema refers to itself in place, under a choice", node.pointer, "$ref")
            self.loop = min(self.loop, list(self.active).index(literal))
            return ANYTHING if unions == self.unions else IMPOSSIBLE
        if len(self.active) > MAX_DEPTH:
            raise SchemaUnsupported(
                f"nested too deep: more than {MAX_DEPTH} schemas apply to one value", node.pointer, "allOf"
            )
        position = len(self.active)
        if not position:
            self.loop = NO_LOOP  # whatever an error left there
        self.active[literal] = self.choices, self.unions
        try:
            found = self._complement(node, literal) if literal & 1 else self._positive(node)
        finally:
            del self.active[literal]
        if self.loop < position:
            self._remade += 1
            if self._remade > MAX_REMADE:
                raise SchemaUnsupported("schemas refer to each other in place in too many ways", node.pointer, "$ref")
            return found  # true only inside of the loop
        self.loop = NO_LOOP
        self.literals[literal] = found
        return found

    def _complement(self, node: Node, literal: int) -> Shape:
        self.choices += 1
        # the keyword that applies the schema is the one that cannot be enforced
        outer, keyword = (node, "not") if node.parent is None else (node.parent, node.key.split("/")[1])
        try:
            positive = self.literal(literal ^ 1)
            if self.left_out:
                return ANYTHING  # as it holds too much, its complement would hold too little
            return complement(positive, lambda one, other: self._join(one, other, outer, keyword), self.listed)
        except NotOneState:
            raise SchemaUnsupported("the negation is too involved", outer.pointer, keyword) from None
        except SchemaUnsupported:
            raise
        except UnsupportedConstraint as error:
            raise SchemaUnsupported(str(error), outer.pointer, keyword) from None
        finally:
            self.choices -= 1

    def _positive(self, node: Node) -> Shape:
        """The shape of a schema, its keywords applied in the order in which they stand, unevaluated ones last."""
        schema, draft = node.schema, node.draft
        if not isinstance(schema, dict):
            return ANYTHING if schema else IMPOSSIBLE
        if draft <= DRAFT_7 and isinstance(schema.get("$ref"), str):
            return self._reference(node, "$ref")
        applied = [key for key in schema if key in APPLICATORS]
        if len(applied) > 1:
            applied.sort(key=UNEVALUATED.__contains__)
        local = local_shape(self, node)
        if not applied:
            return local
        # what the types demand comes where `properties` stands, as names come in the order in which they are met
        before = frozenset(takewhile("properties".__ne__, schema)) if "properties" in schema else frozenset[str]()
        result, pending = ANYTHING, True
        for keyword in applied:
            is_known = is_in_draft(keyword, draft) or (keyword == "dependencies" and self.document.asserts == "all")
            if not is_known or (self.dropped and self.is_dropped(node, keyword)):
                continue
            if pending and keyword not in before:
                result, pending = self._join(result, local, node, keyword), False
            result = self._join(result, self._applied(node, keyword), node, keyword)
        return self._settled(self._join(result, local, node, applied[-1]) if pending else result)

    def _settled(self, shape: Shape) -> Shape:
        """A shape without choices that are settled already."""
        for clause in shape.objects:
            if clause.choices:
                found = [each for clause in shape.objects for each in self.listed.settle(clause)]
                return shape._replace(objects=tuple(dict.fromkeys(found)))
        return shape

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
                    shape = self._join(shape, self.shape_of(state), node, keyword)
                return shape
            return self._any_of(literals) if keyword == "anyOf" else self._choose(lambda: self._one_of(node, literals))
        if keyword == "not":
            return self._choose(lambda: self.negated(self.part(node, value, keyword)))
        if keyword == "if":
            return self._choose(lambda: self._conditional(node))
        if keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            return self._reference(node, keyword)
        if keyword in UNEVALUATED:
            return self._choose(lambda: unevaluated_shape(self, self._join, node, keyword))
        return self._choose(lambda: self._dependencies(node, keyword))

    def _choose(self, make: Callable[[], Shape]) -> Shape:
        """What `make` makes, as one of several alternatives."""
        self.choices += 1
        try:
            return make()
        finally:
            self.choices -= 1

    def negated(self, state: State) -> Shape:
        """The complement of a state of at most one literal."""
        if not state:
            return IMPOSSIBLE
        (literal,) = state
        return ANYTHING if literal == NEVER else self.literal(literal ^ 1)

    def _any_of(self, states: list[State]) -> Shape:
        self.unions += 1
        try:
            return unite([self.shape_of(state) for state in states])
        finally:
            self.unions -= 1

    def _one_of(self, node: Node, states: list[State]) -> Shape:
        shapes = [self.shape_of(state) for state in states]
        if len(states) == 1:
            return shapes[0]
        once = twice = 0
        for shape in shapes:
            once, twice = once | shape.constants, twice | once & shape.constants
        found = [Shape(constants=once & ~twice)]
        for kind in ("numbers", "strings", "arrays", "objects"):
            # types are apart: branches that share numbers may still be told apart as objects
            parts = [Shape(**{kind: getattr(shape, kind)}) for shape in shapes]
            if sum(not part.is_nothing for part in parts) < 2:
                found += parts
                continue
            whole = [at for at, part in enumerate(parts) if getattr(part, kind) == getattr(ANYTHING, kind)]
            # what was loosened may hold less than it seems to: then its complement is not empty
            if len(whole) < 2 or sum(not getattr(self.negated(states[at]), kind) for at in whole) < 2:
                found += self._one_of_type(node, kind, states, parts)
        return check_size(unite(found), node, "oneOf")

    def _one_of_type(self, node: Node, kind: str, states: list[State], shapes: list[Shape]) -> list[Shape]:
        """What exactly one of some states holds of the values of one type, of which their shapes are."""
        overlaps: list[list[int]] = [[] for _ in states]
        # to look for the pairs that may have a value in common pays where there are many
        pairs = (
            candidates(self.listed, shapes) if len(shapes) > FEW_BRANCHES else list(combinations(range(len(shapes)), 2))
        )
        if kind == "objects" and len(pairs) > MULTIPLIED * len(shapes):
            branches = [
                (shape.objects, self.negated(state).objects) for shape, state in zip(shapes, states, strict=True)
            ]
            if all(
                inside and outside and is_choice((*inside, *outside)) and not any(each.demands for each in inside)
                for inside, outside in branches
            ):
                return [Shape(objects=(exactly_one(branches),))]
        for first, second in pairs:
            spend(PAIR_WORK)
            joined = self._join(shapes[first], shapes[second], node, "oneOf")
            if not joined.is_nothing and (self.shape_has_value(joined) or self._may_have_value(joined)):
                overlaps[first].append(second)
                overlaps[second].append(first)
        found: list[Shape] = []
        for exact, others in zip(shapes, overlaps, strict=True):
            outside = [getattr(self.negated(states[other]), kind) for other in sorted(others)]
            if kind == "objects" and prod(map(len, outside)) > FEW_BRANCHES:
                chosen = [clauses for clauses in outside if is_choice(clauses)]
                outside = [clauses for clauses in outside if not is_choice(clauses)]
                outside.append((ObjectClause(choices=tuple(dict.fromkeys(chosen))),))
            for clauses in outside:
                exact = self._join(exact, Shape(**{kind: clauses}), node, "oneOf")
            found.append(exact)
        return found

    def _may_have_value(self, shape: Shape) -> bool:
        """Whether some judge may find a value of a shape that has none to all of them."""
        if not self.has_doubts:
            return False
        with self.read_widely():
            return self.shape_has_value(shape)

    def _conditional(self, node: Node) -> Shape:
        schema = node.schema
        condition = self.part(node, schema["if"], "if")
        accepted, refused = self.shape_of(condition), self.negated(condition)
        if "then" in schema:
            accepted = self._join(accepted, self.shape_of(self.part(node, schema["then"], "then")), node, "if")
        if "else" in schema:
            refused = self._join(refused, self.shape_of(self.part(node, schema["else"], "else")), node, "if")
        return unite([accepted, refused])

    def _dependencies(self, node: Node, keyword: str) -> Shape:
        """If a name is there, others have to be, or a schema holds."""
        value = node.schema[keyword]
        if not isinstance(value, dict):
            raise SchemaError("it must be an object", node.pointer, keyword)
        result = ANYTHING
        for name, demand in value.items():
            spend(CLAUSE_WORK)
            absent = ANYTHING._replace(objects=(ObjectClause(scopes=(lone_scope(name, NOTHING),)),))
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
                shape = self.shape_of(self.part(node, demand, keyword, name))
                present = self._join(Shape(objects=(ObjectClause(required=(name,)),)), shape, node, keyword)
            result = self._join(result, unite([absent, present]), node, keyword)
        return result

    def _reference(self, node: Node, keyword: str) -> Shape:
        return self.shape_of(self.state(self.document.target(node, keyword, node.schema[keyword])))

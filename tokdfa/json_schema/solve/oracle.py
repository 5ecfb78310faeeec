"""What may be asked of a document: its states, whether names match patterns, and whether strings are none.

A *state* (`tokdfa.json_schema.solve.clauses`) says what a schema at some place stands for. Equal demands should be one
state, as each is lowered once: schemas of a plain type share one, and a reference has that of what it refers to.

What the shape of a state is, and whether it has a value, depend on each other. They are answered above
(`tokdfa.json_schema.solve.emptiness`, `tokdfa.json_schema.solve.shape_builder`): plans, automata of members and items,
and the lowering ask one object everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tokdfa.core.budget import is_spent, spend
from tokdfa.core.locks import cached_property
from tokdfa.errors import LimitExceeded, SchemaError, SchemaUnsupported
from tokdfa.json_schema.read.document import id_keyword_of
from tokdfa.json_schema.read.keyword_names import DEMANDING
from tokdfa.json_schema.sets.string_doubts import may_hold_a_text
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import (
    ANYTHING,
    CLAUSE_BYTES,
    EVERYTHING,
    IMPOSSIBLE,
    LOOKUP_WORK,
    NOTHING,
    Shape,
    State,
)
from tokdfa.json_schema.solve.listed import Listed
from tokdfa.json_schema.solve.plain_types import PLAIN_STATES, SCALAR_STATES, plain_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.read.document import Document, Node
    from tokdfa.json_schema.solve.clauses import ArrayClause, ObjectClause

#: Further out than any loop comes back to.
NO_LOOP = 1 << 30
#: References to references that are followed at once.
MAX_HOPS = 10
#: Work (`tokdfa.core.budget`) of asking whether a name matches a pattern whose automaton there is, in nanoseconds.
MATCH_WORK = 10_000


#: Shapes of states that any document may have, and that they have values.
_SHAPES: dict[State, Shape] = {EVERYTHING: ANYTHING, NOTHING: IMPOSSIBLE, **PLAIN_STATES}
_INHABITED: dict[State, bool] = {state: state is not NOTHING for state in _SHAPES}


class Oracle(ABC):
    """`dropped`: (pointer, keyword) of keywords that are left out (`lenient`). `distinct`: no object has two equal
    names. `remembers`: items that must differ may be left to the matcher (`tokdfa.json_schema.solve.unique_items`).
    """

    #: Whether a keyword was left out since this was set to False.
    left_out = False
    #: Choices and complements around what is being made.
    choices = unions = 0
    #: The outermost literal that a loop has come back to, as its position in `active`.
    loop = NO_LOOP

    def __init__(
        self,
        document: Document,
        dropped: frozenset[tuple[str, str]] = frozenset(),
        distinct: bool = False,
        remembers: bool = False,
    ) -> None:
        self.document, self.dropped, self.distinct, self.remembers = document, dropped, distinct, remembers
        #: Whether the document may have arrays whose items must differ.
        self.compares = document.may_have("uniqueItems")
        #: Shapes that are known: those of plain types from the start, others as they are made.
        self.shapes = _SHAPES.copy()
        #: Whether there is a value in a state: as `shapes`.
        self.inhabited = _INHABITED.copy()
        self._synthetic: dict[tuple[int, str], Node] = {}
        self._plain: dict[tuple[str, int], State] = {}
        #: Reference, where plain pointers lead -> the state of its target.
        self._targets: dict[str, State] = {}
        self._matches: dict[tuple[str, str], bool] = {}
        self._may_match: dict[tuple[str, str], bool] = {}
        self._empty: dict[StringSet, bool] = {}
        #: Whether what any judge may find in a set of strings counts; and what is known of states then.
        self.widely = False
        self._inhabited_widely = _INHABITED.copy()
        #: Shapes of literals that are known, and literals in whose shapes keywords are left out.
        self.literals: dict[int, Shape] = {}
        self.loose: set[int] = set()
        #: Literals whose shapes are being made, from the outside in: each with how many choices and anyOfs enclosed
        #: it.
        self.active: dict[int, tuple[int, int]] = {}
        #: Literals whose shapes somebody further out is making.
        self.set_aside: set[int] = set()
        #: States of which it is asked whether they have a value, from the outside in: each with its position.
        self.asked: dict[State, int] = {}
        #: States that are empty if the states asked are, up from some place in `asked`.
        self.doubtful: dict[State, int] = {}
        #: Clauses that take an automaton to see that they have a value, of which that is known.
        self.possible: set[ArrayClause | ObjectClause] = set()
        #: Plans that were made before their objects are written.
        self.plans: dict[ObjectClause, Any] = {}
        #: The choices of a clause (`tokdfa.json_schema.solve.choices`) that were made last, and what of.
        self.chosen: dict[ObjectClause, Any] = {}

    @cached_property
    def listed(self) -> Listed:
        """What is seen of states without making their shapes."""
        return Listed(self.document, self.dropped)

    @abstractmethod
    def shape_of(self, state: State) -> Shape:
        """The shape of a state. Raises SchemaError or SchemaUnsupported."""

    @abstractmethod
    def has_value(self, state: State) -> bool:
        """Whether some value is in a state. Raises SchemaError or SchemaUnsupported."""

    def is_dropped(self, node: Node, keyword: str) -> bool:
        """Whether a keyword of a node is left out. What is made of the node then holds more than it should."""
        if self.dropped and (node.pointer, keyword) in self.dropped:
            self.left_out = True
            return True
        return False

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
                    return self._plain.get((name, parent.draft)) or self._plain_state(parent, schema, (keyword, key))
            elif follows and "$ref" in schema:
                referred = self._referred(parent, schema)
                if referred is not None:
                    return referred
        return self.state(self.document.child(parent, schema, (keyword, key)))

    def _plain_state(self, parent: Node, schema: dict[str, Any], key: tuple[str, str | int | None]) -> State:
        """The state of schemas that demand a type and nothing else, of which this is the first."""
        kind = schema["type"], parent.draft
        found = SCALAR_STATES.get(kind)
        if found is not None and not self.document.has_ids:
            self.document.plain_places[min(found) >> 1] = parent, schema, key
        else:
            found = self.state(self.document.child(parent, schema, key))
            shape = plain_shape(*kind)
            if shape is not None and not self.dropped:
                self.shapes[found], self.inhabited[found] = shape, True
        self._plain[kind] = found
        return found

    def _referred(self, parent: Node, schema: dict[str, Any], hops: int = 0) -> State | None:
        """The state of what a schema inside `parent` refers to; None if it is more than a reference, or a broken one.

        Whoever then asks for the shape of the schema itself, gets the error. `hops`: references followed before.
        """
        reference = schema["$ref"]
        if self.dropped or not isinstance(reference, str) or id_keyword_of(parent.draft) in schema:
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

    def synthesize(self, node: Node, place: str, schema: Any) -> Node:
        """A node for a schema that is not in the document, known by the place it comes from."""
        key = node.number, place
        found = self._synthetic.get(key)
        if found is None:
            found = self._synthetic[key] = self.document.child(node, schema, place)
        return found

    def part(self, node: Node, schema: Any, keyword: str, place: int | str | None = None) -> State:
        """The state of a schema that a keyword applies; of a reference that of its own node, which messages name."""
        return self.child_state(node, schema, keyword, place, follows=False)

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern, however that is read (`tokdfa.json_schema.sets.patterns`)."""
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

    @cached_property
    def has_doubts(self) -> bool:
        """Whether there are patterns or formats, on which judges may differ."""
        return any(map(self.document.may_have, ("pattern", "patternProperties", "format")))

    @contextmanager
    def read_widely(self) -> Iterator[None]:
        """Ask whether there are values that any judge may find to be valid."""
        kept = self.widely, self.inhabited, self.asked, self.doubtful
        self.widely, self.inhabited, self.asked, self.doubtful = True, self._inhabited_widely, {}, {}
        try:
            yield
        finally:
            self.widely, self.inhabited, self.asked, self.doubtful = kept

    def is_empty(self, strings: StringSet) -> bool:
        """Whether a clause of strings holds none (`widely`: to any judge)."""
        if self.widely:
            return not may_hold_a_text(strings)
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

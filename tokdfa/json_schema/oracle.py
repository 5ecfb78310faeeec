"""What may be asked of a schema's states, and of names and strings: for plans, automata of members and items, lowering.

Answers about states come from functions that are handed in (`shape_of`, `has_value`): shapes are made by looking at
whether others have values, and whether a state has a value depends on its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.clauses import CLAUSE_BYTES, LOOKUP_WORK
from tokdfa.json_schema.listed import Listed
from tokdfa.json_schema.string_set import StringSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.json_schema.clauses import Shape, State
    from tokdfa.json_schema.schema_states import SchemaStates

#: Work (`tokdfa.core.budget`) of asking whether a name matches a pattern whose automaton there is, in nanoseconds.
MATCH_WORK = 10_000


class Oracle:
    """`shape_of`: the shape of a state; `has_value`: whether some value is in it; both raise SchemaError and
    SchemaUnsupported. `distinct`: no object has two equal names. `remembers`: matchers remember items that must differ.
    """

    def __init__(
        self,
        schemas: SchemaStates,
        shape_of: Callable[[State], Shape],
        has_value: Callable[[State], bool],
        distinct: bool,
        remembers: bool = False,
    ) -> None:
        self.remembers = remembers
        #: Whether the document may have arrays whose items must differ.
        self.compares = schemas.document.may_have("uniqueItems")
        self.schemas, self.shape_of, self.has_value, self.distinct = schemas, shape_of, has_value, distinct
        #: What is seen of states without making their shapes.
        self.listed = Listed(schemas)
        self._matches: dict[tuple[str, str], bool] = {}
        self._may_match: dict[tuple[str, str], bool] = {}
        self._empty: dict[StringSet, bool] = {}

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
                raise SchemaUnsupported(str(error), self.schemas.document.root.pointer, "pattern") from None
        return found

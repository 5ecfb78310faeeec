"""What is being made at a time: shapes that others wait for, and loops in place.

A literal whose shape is asked for while it is made is a loop. Emptiness asks for shapes while others are made; these
are then left aside, and what comes back to one of them cannot be answered yet (`InProgress`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.schema_states import SchemaStates

#: Further out than any loop comes back to.
NO_LOOP = 1 << 30


class InProgress(Exception):
    """A shape was asked for that somebody further out is making."""


class Making:
    """The literals whose shapes are being made."""

    def __init__(self, schemas: SchemaStates) -> None:
        self._schemas = schemas
        #: From the outside in: each with how many choices and complements enclosed it.
        self.active: dict[int, int] = {}
        self.choices = 0
        #: The outermost literal that a loop has come back to, as its position in `active`.
        self.loop = NO_LOOP
        #: Literals whose shapes somebody further out is making.
        self.set_aside: set[int] = set()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave aside what is being made, to ask for other shapes. They may raise InProgress."""
        schemas = self._schemas
        active, choices, loop, left_out = self.active, self.choices, self.loop, schemas.left_out
        added = active.keys() - self.set_aside
        self.set_aside |= added
        self.active, self.choices, self.loop = {}, 0, NO_LOOP
        try:
            yield
        finally:
            self.active, self.choices, self.loop, schemas.left_out = active, choices, loop, left_out
            self.set_aside -= added

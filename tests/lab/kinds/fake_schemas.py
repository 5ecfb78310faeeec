"""A backend for JSON schemas that knows the texts it accepts from the schema, and does what a test asks of it.

``{"texts": [...]}`` are the texts of its language; ``"trick"`` is what it does wrong, ``"where"`` (compile, mask or
advance; compile by default) when: those of `tests.lab.run.fake_backends`, and some of its own. Importable by worker
processes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from tests.lab.run.fake_backends import Fake, FakeCompiled, play
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported, TokenRefused
from tokdfa.lab.measure.warm_up import LABEL as WARM_UP

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.constraint import Constraint

ERRORS = {
    "refuse": SchemaUnsupported("too hard", "/properties/a", "uniqueItems"),
    "be empty": EmptyLanguageError("no value is valid"),
    "mutter": ValueError("cannot do minItems here"),
}


class FakeSchemas(Fake):
    name = "fake_schemas"
    summary = "accepts the texts that a schema lists"
    kinds: ClassVar[tuple[str, ...]] = ("json_schema",)

    def __init__(self, vocab: Any, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.compiled = 0

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        self.compiled += constraint.label != WARM_UP
        compiled = SchemaCompiled(constraint, self)
        compiled.act("compile")
        return compiled


class SchemaCompiled(FakeCompiled):
    def __init__(self, constraint: Any, backend: FakeSchemas) -> None:
        super().__init__(constraint, backend)
        self.schema = constraint.schema
        self.texts = [text.encode() for text in self.schema.get("texts", ["0"])]
        self.hogged: list[bytearray] = []

    def act(self, where: str) -> None:
        trick = self.schema.get("trick")
        if trick == "go back on it" and where == "advance":
            raise TokenRefused(0)
        if trick is None or where != self.schema.get("where", "compile"):
            return
        if trick == "nap":
            time.sleep(0.3)
        elif trick in ERRORS:
            raise ERRORS[trick]
        else:
            play(trick, self.hogged)

"""A backend for JSON schemas that knows the texts it accepts from the schema, and does what a test asks of it.

``{"texts": [...]}`` are the texts of its language; ``"trick"`` is what it does wrong, ``"where"`` (compile, mask or
advance; compile by default) when. Importable by worker processes.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import time
from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported, TokenRefused
from tokdfa.lab.measure.warm_up import LABEL as WARM_UP

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask


class Panic(BaseException):
    """As raised by a compiled engine that breaks down."""


class FakeSchemas(Backend):
    name = "fake_schemas"
    summary = "accepts the texts that a schema lists"
    kinds = ("json_schema",)
    options = (Option("broken", bool, False, "whether it cannot be made"),)

    def __init__(self, vocab: Any, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.compiled = 0
        if self.settings["broken"]:
            raise RuntimeError("it cannot be made")

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        self.compiled += constraint.label != WARM_UP
        return FakeCompiled(constraint, self)


class FakeCompiled(CompiledConstraint):
    def __init__(self, constraint: Any, backend: FakeSchemas) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.schema = constraint.schema
        self.texts = [text.encode() for text in self.schema.get("texts", ["0"])]
        self.hogged: list[bytearray] = []
        self.act("compile")

    def act(self, where: str) -> None:
        """Do the trick if this is its place."""
        trick = self.schema.get("trick")
        if trick is None or where != self.schema.get("where", "compile"):
            return
        if trick == "sleep":
            time.sleep(60)
        elif trick == "nap":
            time.sleep(0.3)
        elif trick == "segfault":
            faulthandler.disable()  # pytest's would write to the terminal
            ctypes.string_at(0)
        elif trick == "exit":
            os.write(2, b"so long")
            os._exit(7)
        elif trick == "hog":
            for _ in range(20):
                self.hogged.append(bytearray(b"x" * (16 * 2**20)))
                time.sleep(0.02)
            time.sleep(60)
        elif trick == "panic":
            raise Panic("the engine broke down")
        elif trick == "raise":
            raise RuntimeError("on purpose")
        elif trick == "refuse":
            raise SchemaUnsupported("too hard", "/properties/a", "uniqueItems")
        elif trick == "be empty":
            raise EmptyLanguageError("no value is valid")
        elif trick == "mutter":
            raise ValueError("cannot do minItems here")

    def _start(self, context: tuple[int, ...]) -> FakeMatcher:
        return FakeMatcher(self)


class FakeMatcher(StateMatcher[bytes]):
    def __init__(self, compiled: FakeCompiled) -> None:
        super().__init__(compiled.vocab, b"")
        self.compiled = compiled

    def _step(self, state: bytes, token: int) -> bytes | None:
        text = state + self.vocab.token_bytes(token)
        return text if text != state and any(one.startswith(text) for one in self.compiled.texts) else None

    def _accepts(self, state: bytes) -> bool:
        return state in self.compiled.texts

    def _fill(self, state: bytes, out: Mask) -> None:
        self.compiled.act("mask")
        allowed = [token for token in range(self.vocab.size) if self._next(token) is not None]
        out[:] = masks.mask_from_ids(allowed, self.vocab.size)

    def _fork_empty(self) -> FakeMatcher:
        return FakeMatcher(self.compiled)

    def advance(self, token: int) -> None:
        self.compiled.act("advance")
        if self.compiled.schema.get("trick") == "go back on it":
            raise TokenRefused(token)
        super().advance(token)

"""The setting `engines` of kinds that compare backends themselves: backends with options, checked before a run.

What an engine cannot do is a result (`tokdfa.lab.measure.limits.attempt`). `EngineSet` keeps the backends of one
vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from tokdfa.backends.registry import backend_class, create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import UnknownNameError
from tokdfa.lab.measure.constraint_entry import SCHEMA_OPTIONS
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.settings import Strict, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary


class Engine(Strict):
    """A backend with its options. `label` is its name in tables, by default the backend's.

    Raises UnknownNameError for a backend or an option, OptionError for a value.
    """

    backend: str
    options: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    label: str = ""

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        known = {option.name: option for option in backend_class(self.backend).options}
        for name, value in self.options.items():
            if name not in known:
                raise UnknownNameError(f"option of backend {self.backend}", name, known)
            known[name].check(value)
        return self

    @property
    def name(self) -> str:
        return self.label or self.backend


#: The setting of kinds whose engines have no more to say.
Engines = Annotated[list[Engine], Field(min_length=1), distinct("engines")]


class EngineSet:
    """The engines of an experiment over one vocabulary; a backend that cannot be made is kept as its failure."""

    def __init__(self, engines: Sequence[Engine], vocabulary: Vocabulary) -> None:
        self._backends = {
            engine.name: attempt(create_backend, engine.backend, vocabulary, **engine.options) for engine in engines
        }

    def backend(self, name: str) -> Backend | Failure:
        """The backend of an engine."""
        return self._backends[name]

    def compile(self, name: str, constraint: Constraint) -> CompiledConstraint | Failure:
        """`constraint` compiled by the engine called `name`."""
        backend = self._backends[name]
        return backend if isinstance(backend, Failure) else attempt(backend.compile, constraint)


def schema_with(options: Mapping[str, Any], schema: str, **more: Any) -> JsonSchema:
    """A schema with the options that an engine has for it. Raises UnknownNameError and OptionError."""
    for name in options:
        if name not in SCHEMA_OPTIONS:
            raise UnknownNameError("option of a JSON schema", name, SCHEMA_OPTIONS)
    return JsonSchema(schema, **{**more, **options})

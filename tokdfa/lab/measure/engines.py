"""The setting `engines` of kinds that compare backends themselves: backends with options, checked before a run.

What an engine cannot do is a result (`tokdfa.lab.measure.limits.attempt`). `EngineSet` keeps the backends of one
vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import AfterValidator, Field

from tokdfa.backends.registry import backend_class, create_backend
from tokdfa.errors import UnknownNameError
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.settings import Strict, check_distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

Item = TypeVar("Item")


class Engine(Strict):
    """A backend with its options. `label` is its name in tables, by default the backend's."""

    backend: str
    options: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.backend


def check_engines(engines: Sequence[Engine]) -> None:
    """Raise UnknownNameError for a backend or an option, OptionError for a value or for a label given twice."""
    for engine in engines:
        known = {option.name: option for option in backend_class(engine.backend).options}
        for name, value in engine.options.items():
            if name not in known:
                raise UnknownNameError(f"option of backend {engine.backend}", name, known)
            known[name].check(value)
    check_distinct("engines", [engine.name for engine in engines])


def _checked(engines: list[Engine]) -> list[Engine]:
    check_engines(engines)
    return engines


#: The setting of kinds whose engines have no more to say.
Engines = Annotated[list[Engine], Field(min_length=1), AfterValidator(_checked)]


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


def spread(entries: Sequence[Item], limit: int | None) -> list[Item]:
    """At most `limit` of the entries, evenly spread and in their order; all for None."""
    count = len(entries) if limit is None else min(limit, len(entries))
    return [entries[index * len(entries) // count] for index in range(count)]

"""Which of tokdfa's kernels an experiment needs: those of its engines, and what its special kinds use themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import backend_class
from tokdfa.core import jit
from tokdfa.lab.kinds import find_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.declare.kind import Kind


def steps_of_experiment(config: ExperimentConfig) -> tuple[str, ...]:
    """The warm-up steps that reach every kernel an experiment uses; none if it uses none."""
    found = set(steps_of_entries(config.backends))
    for kind, settings in config.sections.items():
        found.update(steps_of_kind(find_kind(kind), settings))
    return jit.in_order(found)


def steps_of_entries(entries: Iterable[BackendEntry]) -> tuple[str, ...]:
    """The steps of the backends of a grid."""
    return jit.in_order(step for entry in entries for step in _steps(entry.name, entry.options))


def steps_of_kind(kind: Kind, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The steps of an item of a special kind. All, unless the kind says what it needs and its settings name engines."""
    engines = list(_engines(dict(settings)))
    if kind.kernels is None or not engines:
        return tuple(jit.WARMUP_STEPS)
    return jit.in_order({*kind.kernels, *(step for name, options in engines for step in _steps(name, options))})


def _steps(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The steps of one of tokdfa's own backends, which run on its kernels; none of a peer."""
    backend = backend_class(name)
    own = backend.__module__.startswith("tokdfa.") and not backend.packages
    return jit.steps_of(name, proper=bool(options.get("proper"))) if own else ()


def _engines(settings: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and options of whatever names a backend, at any depth."""
    if isinstance(settings, dict):
        if isinstance(settings.get("backend"), str):
            yield settings["backend"], settings.get("options") or {}
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for value in settings:
            yield from _engines(value)

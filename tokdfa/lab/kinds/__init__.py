"""What an experiment can ask: one file a kind, found by its name.

A file ``NAME.py`` of this folder holds the kind NAME as its ``KIND`` (`tokdfa.lab.declare.kind`); other packages add
kinds by entry points of the group ``tokdfa.kinds``. Nothing is imported before a kind is asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare.kind import GROUP, Kind

#: Kinds of this process alone: name -> "module:attribute".
ADDED: dict[str, str] = {}


def targets() -> dict[str, str]:
    """Every kind with the place of its `Kind`, "module:attribute"; those of other packages last."""
    own = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {**_others(), **{name: f"{__name__}.{name}:KIND" for name in own}, **ADDED}


@cache
def _others() -> dict[str, str]:
    """The kinds of other packages, name -> "module:attribute"; a scan of all that is installed."""
    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def find_kind(name: str) -> Kind:
    """A kind by its name; imports its module. Raises UnknownNameError, OptionError for an entry point without one."""
    known = targets()
    if name not in known:
        raise UnknownNameError("kind of experiment", name, known)
    return load_kind(known[name])


@cache
def load_kind(target: str) -> Kind:
    """The kind at a place. Raises OptionError if there is none."""
    name, _, attribute = target.partition(":")
    module = importlib.import_module(name)
    kind = getattr(module, attribute, None)
    if not isinstance(kind, Kind):
        raise OptionError(f"{target}, the entry point of a kind of experiment, is no Kind but {kind!r}")
    return kind


def starts_engines(name: str) -> bool:
    """Whether a special kind starts a process for each engine, so that one may have an interpreter of its own: its
    settings have ``pythons``.
    """
    model = find_kind(name).settings
    return model is not None and "pythons" in model.model_fields

"""Checks of raw YAML data, shared by all readers of an experiment file. Each fault is a ConfigError with its place."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from tokdfa.errors import UnknownNameError
from tokdfa.lab.config.yaml_source import YamlSource, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    #: The way to a value: keys and list positions.
    Where = tuple[str | int, ...]

ModelT = TypeVar("ModelT", bound=BaseModel)

#: No list in an experiment may be longer; with the limit on grids this bounds what one file can ask for.
MAX_ENTRIES = 10_000


def read_beside(source: YamlSource, name: Any, where: Where) -> YamlSource:
    """The YAML file called `name`, relative to the folder of `source`."""
    return read_yaml(path_beside(source, name, where))


def path_beside(source: YamlSource, name: Any, where: Where, what: Literal["file", "folder"] = "file") -> Path:
    """The path of the file or folder called `name`, relative to the folder of `source`; it exists."""
    if not isinstance(name, str) or not name:
        raise source.error(f"the name of a {what} is expected, not {name!r}", where)
    path = source.path.parent / name
    if not (path.is_file() if what == "file" else path.is_dir()):
        raise source.error(f"there is no {what} {path}", where)
    return path


def texts_beside(source: YamlSource, name: Any, where: Where) -> list[str]:
    """The texts of a file beside `source`: a list, alone or under the key ``accepted``."""
    included = read_beside(source, name, where)
    inside: Where = ("accepted",) if isinstance(included.data, dict) and "accepted" in included.data else ()
    texts = as_list(included, included.data["accepted"] if inside else included.data, inside)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise included.error(f"a text is expected, not {text!r}; quote it", (*inside, index))
    if not texts:
        raise source.error(f"{included.path} has no texts", where)
    return texts


def as_mapping(source: YamlSource, value: Any, where: Where) -> dict[str, Any]:
    """`value` if it is keys and values, all keys being text."""
    if not isinstance(value, dict):
        what = (
            "the file is empty" if value is None and not where else f"keys and values are expected, not {brief(value)}"
        )
        raise source.error(what, where)
    for key in value:
        if not isinstance(key, str):
            raise source.error(f"the key {key!r} is not a text; quote it", where)
    return value


def as_list(source: YamlSource, value: Any, where: Where) -> list[Any]:
    """`value` if it is a list of at most MAX_ENTRIES."""
    if not isinstance(value, list):
        raise source.error(f"a list is expected, not {brief(value)}", where)
    if len(value) > MAX_ENTRIES:
        raise source.error(f"{len(value)} entries; at most {MAX_ENTRIES} are taken", where)
    return value


def require_known(source: YamlSource, where: Where, what: str, name: Any, known: Iterable[str]) -> None:
    """Refuse a `name` that is none of the `known` ones; the message names the nearest."""
    known = list(known)
    if not isinstance(name, str):
        missing = "is missing" if name is None else f"is a text, not {brief(name)}"
        raise source.error(f"the {what} {missing}; known: {', '.join(known)}", where)
    if name not in known:
        raise source.error(str(UnknownNameError(what, name, known)), where)


def refuse_twice(source: YamlSource, what: str, names: Sequence[str], places: Sequence[Where]) -> None:
    """Refuse names that are not distinct; `places` are theirs."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        last = max(index for index, name in enumerate(names) if name == twice[0])
        raise source.error(f"{what} {twice[0]!r} is given twice", places[last])


def as_model(source: YamlSource, model: type[ModelT], data: Any, where: Where) -> ModelT:
    """`data` as a model; its first fault as a ConfigError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        first = faults[0]
        place = (*where, *(part for part in first["loc"] if isinstance(part, int) or part in _spelled(data)))
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise source.error(_fault(first, model) + more, place) from None


def _spelled(data: Any) -> set[str]:
    """All keys in the data: pydantic's locations also name alternatives of a union, which no user has written."""
    if isinstance(data, dict):
        return set(data).union(*map(_spelled, data.values()))
    return set().union(*map(_spelled, data)) if isinstance(data, list) else set()


def _fault(fault: Any, model: type[BaseModel]) -> str:
    value = fault.get("input")
    if fault["type"] == "extra_forbidden":
        return str(UnknownNameError("key", str(fault["loc"][-1]), model.model_fields))
    if fault["type"] == "missing":
        return f"key {fault['loc'][-1]!r} is missing"
    if fault["type"] == "union_tag_invalid":
        key, tags = fault["ctx"]["discriminator"].strip("'"), re.findall("'(.*?)'", fault["ctx"]["expected_tags"])
        return str(UnknownNameError(key, fault["ctx"]["tag"], tags))
    if fault["type"] == "union_tag_not_found":
        return f"key {fault['ctx']['discriminator']} is missing"
    hint = "; YAML reads yes, no, on and off as true and false: quote the text" if isinstance(value, bool) else ""
    return f"{fault['msg'][0].lower()}{fault['msg'][1:]}, not {brief(value)}{hint}"


def brief(value: Any) -> str:
    """A value as Python writes it, shortened to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"

"""Folders of JSON schemas with instances of which somebody has said whether they are valid.

Words. An *instance* is a JSON value that is compared with a schema. A *test* is an instance with its label, valid or
not. A *case* is a schema with its tests. A *split* is a group of cases that are reported together.

Two layouts are read:

- one file for each case, ``{"schema": ..., "tests": [{"valid": true, "data": ...}, ...]}`` (`read_cases`). It is that
  of MaskBench (JSONSchemaBench, arXiv 2501.10868) and of our own corpus in ``experiments/inputs/schemas``;
- one file for each keyword, a list of ``{"description": ..., "schema": ..., "tests": [...]}``, in a folder named after
  the draft (`read_suite`). It is that of the JSON-Schema-Test-Suite, which json-schema.org maintains.

Constraints are made of texts, so a case holds texts, not Python values, and every number is spelled as in the file: a
float would turn 0.1000000000000000055 into 0.1 and 1e400 into infinity. The *schema text* has no blanks. The text of an
instance is the one that MaskBench encodes but for the numbers, ``json.dumps(data, ensure_ascii=False)``: a blank after
each comma and colon, and no escapes but those that JSON demands and half a surrogate pair, which has no UTF-8 form.

A file that is not well formed, has two members of one name in one object (readers disagree on which counts), or is laid
out otherwise, is refused with the place of the fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from tokdfa.core.nesting import read_json, with_room
from tokdfa.errors import ConfigError, LimitExceeded, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Folder of the JSON-Schema-Test-Suite -> what a schema of that draft declares as its ``$schema``.
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
#: Where the documents of the suite's folder ``remotes`` are, to its schemas.
REMOTES = "http://localhost:1234/"
#: The split of a case whose name tells none.
OTHER = "other"

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SPLIT = re.compile(r"(.+?)---|(.+?)_\d+$")


class SchemaTest(NamedTuple):
    """An instance as JSON text (it has a UTF-8 form), and its label."""

    valid: bool
    text: str


class SchemaCase(NamedTuple):
    """A schema as JSON text, its tests, and in `note` what its author says about it, if anything."""

    name: str
    schema_text: str
    tests: tuple[SchemaTest, ...]
    split: str
    note: str = ""


class _Test(BaseModel):
    model_config = ConfigDict(strict=True)

    valid: bool
    data: Any


class _Case(BaseModel):
    model_config = ConfigDict(strict=True)

    of_case: Any = Field(alias="schema")
    tests: list[_Test]
    note: str = ""
    description: str = ""

    @field_validator("of_case")
    @classmethod
    def _is_schema(cls, value: Any) -> Any:
        if not isinstance(value, dict | bool):
            raise ValueError("a schema is an object, true or false")
        return value


def read_cases(folder: Path, names: Sequence[str] | None = None) -> list[SchemaCase]:
    """The cases of a folder in the order of their names, or those of `names` in that order, with or without ``.json``.

    The files are ``folder/*.json``, one for each case. O(bytes of the files that are read). Raises ConfigError for a
    file that cannot be read and for a folder without such files, UnknownNameError for a name without a file.
    """
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if not files:
        raise ConfigError("there are no files *.json; give the folder that holds them", str(folder))
    chosen = list(files) if names is None else [name.removesuffix(".json") for name in names]
    for name in chosen:
        if name not in files:
            raise UnknownNameError(f"schema in {folder}", name, files)
    return [read_case(files[name]) for name in chosen]


def read_case(path: Path) -> SchemaCase:
    """The case of one file. Raises ConfigError, which names the file and the place in it."""
    case = _read(path, _Case)
    return _case(path, path.stem, case.of_case, case.tests, split_of(path.stem), case.note or case.description)


def entry_of_case(case: SchemaCase) -> dict[str, Any]:
    """A case as experiments spell a constraint, its valid instances the texts."""
    valid = [test.text for test in case.tests if test.valid]
    return {"label": case.name, "json_schema": case.schema_text, **({"texts": valid} if valid else {})}


def read_suite(folder: Path) -> list[SchemaCase]:
    """The cases below a folder of the JSON-Schema-Test-Suite, such as ``tests/draft2020-12`` or a folder in it.

    ``tests`` is all drafts that are known; folders of others beside them (``draft3``, ``draft-next``) are left out.
    Each schema is a case of its own, its split the file from the draft's folder on, as in ``draft7/optional/bignum``.
    The nearest folder above a file that is named in `DRAFTS` tells the draft: schemas without ``$schema`` get it as
    their first member (the boolean schemas mean the same in every draft). O(bytes of the files). Raises ConfigError
    for a file that cannot be read or belongs to no such draft, and for a folder without files.
    """
    files = sorted(folder.rglob("*.json"))
    if not files:
        raise ConfigError("there are no files *.json in it or below; give a draft's folder of the suite", str(folder))
    if any((folder / draft).is_dir() for draft in DRAFTS):
        files = [path for path in files if path.relative_to(folder).parts[0] in DRAFTS]
    found = []
    for path in files:
        draft = next((parent for parent in path.absolute().parents if parent.name in DRAFTS), None)
        if draft is None:
            known = ", ".join(DRAFTS)
            raise ConfigError(f"no folder above it is named after a draft that is known: {known}", str(path))
        split = path.absolute().relative_to(draft.parent).with_suffix("").as_posix()
        for index, case in enumerate(_read(path, list[_Case])):
            schema, note = case.of_case, case.description
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": DRAFTS[draft.name], **schema}
            found.append(_case(path, f"{split}[{index}] {note}".strip(), schema, case.tests, split, note))
    return found


def read_remotes(folder: Path) -> str:
    """What schemas of the JSON-Schema-Test-Suite refer to, its folder ``remotes``, as the `registry` of a `JsonSchema`:
    the JSON of URIs, below `REMOTES`, and schemas.

    A folder named in `DRAFTS` tells the draft of what is in it, as above; other drafts are left out. O(bytes of the
    files). Raises ConfigError for a file that cannot be read, and for a folder without files.
    """
    found = {}
    for path in sorted(folder.rglob("*.json")):
        place = path.relative_to(folder)
        draft = DRAFTS.get(place.parts[0])
        if draft is None and place.parts[0].startswith("draft"):
            continue
        schema = _read(path, dict[str, Any] | bool)
        if isinstance(schema, dict) and draft is not None and "$schema" not in schema:
            schema = {"$schema": draft, **schema}
        found[REMOTES + place.as_posix()] = schema
    if not found:
        raise ConfigError("there are no files *.json in it or below; give the folder remotes of the suite", str(folder))
    return _written(found, ",", ":")


def split_of(name: str) -> str:
    """The split of a case: what stands before ``---``, or else before a number at the end, or else `OTHER`."""
    found = _SPLIT.match(name)
    return OTHER if found is None else found[1] or found[2]


def _case(path: Path, name: str, schema: Any, tests: Sequence[_Test], split: str, note: str) -> SchemaCase:
    def read() -> SchemaCase:
        texts = tuple(SchemaTest(test.valid, _written(test.data, ", ", ": ")) for test in tests)
        return SchemaCase(name, _written(schema, ",", ":"), texts, split, note)

    return with_room(read)


class _Number(NamedTuple):
    """A number as it is spelled; so one of more than 4,300 digits, which int would refuse, is one."""

    text: str


def _written(value: Any, comma: str, colon: str) -> str:
    """A value as JSON, its numbers as they were."""
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, list):
        return f"[{comma.join([_written(item, comma, colon) for item in value])}]"
    if isinstance(value, dict):
        members = [f"{_written(name, '', '')}{colon}{_written(item, comma, colon)}" for name, item in value.items()]
        return f"{{{comma.join(members)}}}"
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False))


def _read(path: Path, kind: Any) -> Any:
    """What a file holds, as a `kind`. Raises ConfigError with the place of what is wrong."""
    hooks: Any = {"parse_float": _Number, "parse_int": _Number, "parse_constant": _refuse_constant}
    try:
        text = path.read_text(encoding="utf-8")
        content = read_json(text, "this", json.JSONDecoder(object_pairs_hook=_refuse_twins, **hooks))
    except LimitExceeded as error:
        raise ConfigError(str(error), str(path)) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"this is no file of JSON in UTF-8: {error}", str(path)) from None
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise ConfigError(first["msg"][0].lower() + first["msg"][1:], str(path), place.lstrip(".")) from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twin, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has two members named {twin!r}")
    return members

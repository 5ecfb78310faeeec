"""Folders of JSON schemas with instances of which somebody has said whether they are valid.

Words. An *instance* is a JSON value that is compared with a schema. A *test* is an instance with its label, valid or
not. A *case* is a schema with its tests. A *split* is a group of cases that are reported together.

Two layouts are read:

- one file for each case, ``{"schema": ..., "tests": [{"valid": true, "data": ...}, ...]}`` (`read_cases`). It is that
  of MaskBench (JSONSchemaBench, arXiv 2501.10868) and of our own corpus in ``experiments/inputs/schemas``;
- one file for each keyword, a list of ``{"description": ..., "schema": ..., "tests": [...]}``, in a folder named after
  the draft (`read_suite`). It is that of the JSON-Schema-Test-Suite, which json-schema.org maintains.

Constraints are made of texts, so a case holds texts, not Python values, and every number is spelled as in the file: a
float would turn 0.1000000000000000055 into 0.1 and 1e400 into infinity. The *schema text* is what stands in the file
without the blanks between its parts. The text of an instance is the one that MaskBench encodes, ``json.dumps(data,
ensure_ascii=False)``: a blank after each comma and colon, and no escapes but those that JSON demands. The two differ in
the spelling of numbers alone. Half a surrogate pair, which has no UTF-8 form, keeps its escape.

A file that is not well formed, has two members of one name in one object (readers disagree on which counts), or is laid
out otherwise, is refused with the place of the fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tokdfa.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: Folder of the JSON-Schema-Test-Suite -> what a schema of that draft declares as its ``$schema``.
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
#: The split of a case whose name tells none.
OTHER = "other"

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_STRING_OR_BLANKS = re.compile(rf"{_STRING}|[ \t\n\r]+")
_STRING_OR_SEPARATOR = re.compile(rf"{_STRING}|[,:]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SPLIT = re.compile(r"(.+?)---|(.+?)_\d+$")


class SchemaTest(NamedTuple):
    """An instance as JSON text (it has a UTF-8 form), its label, and what its author says about it, if anything."""

    valid: bool
    text: str
    note: str = ""


class SchemaCase(NamedTuple):
    """A schema as JSON text, its tests, and in `note` what its author says about it, if anything."""

    name: str
    schema_text: str
    tests: tuple[SchemaTest, ...]
    split: str
    note: str = ""


def read_cases(folder: Path, names: Sequence[str] | None = None) -> list[SchemaCase]:
    """The cases of a folder in the order of their names, or those of `names` in that order, with or without ``.json``.

    The files are ``folder/*.json``, one for each case. O(bytes of the files that are read). Raises ConfigError for a
    file that cannot be read and for a folder without such files, UnknownNameError for a name without a file.
    """
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if not files:
        raise ConfigError("there are no files *.json; give the folder that holds them", str(folder))
    if names is None:
        return [read_case(path) for path in files.values()]
    chosen = [name.removesuffix(".json") for name in names]
    for name in chosen:
        if name not in files:
            raise UnknownNameError(f"schema in {folder}", name, files)
    return [read_case(files[name]) for name in chosen]


def read_case(path: Path) -> SchemaCase:
    """The case of one file. Raises ConfigError, which names the file and the place in it."""
    members = _members(_read_json(path), path, "")
    return SchemaCase(
        path.stem,
        _schema(members, path, ""),
        _tests(members, path, ""),
        split_of(path.stem),
        _words(members, ("note", "description"), path, ""),
    )


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
    return [case for path in files for case in _read_suite_file(path)]


def split_of(name: str) -> str:
    """The split of a case: what stands before ``---``, or else before a number at the end, or else `OTHER`."""
    found = _SPLIT.match(name)
    return OTHER if found is None else found[1] or found[2]


def describe(cases: Iterable[SchemaCase]) -> str:
    """Markdown: for each split a heading and a table of its cases, with the numbers of valid and invalid instances.

    The names are links to the files, which stand beside the page.
    """
    by_split: dict[str, list[SchemaCase]] = {}
    for case in cases:
        by_split.setdefault(case.split, []).append(case)
    lines: list[str] = []
    for split, members in by_split.items():
        lines += ["", f"## {split} ({len(members)})", "", "| schema | what it is about | valid | invalid |"]
        lines.append("|---|---|--:|--:|")
        for case in members:
            valid = sum(test.valid for test in case.tests)
            short, note = case.name.removeprefix(f"{split}---"), case.note.replace("|", "\\|")
            lines.append(f"| [{short}]({case.name}.json) | {note} | {valid} | {len(case.tests) - valid} |")
    return "\n".join(lines[1:]) + "\n"


def _read_suite_file(path: Path) -> Iterator[SchemaCase]:
    draft_folder = next((parent for parent in path.absolute().parents if parent.name in DRAFTS), None)
    if draft_folder is None:
        raise ConfigError(f"no folder above it is named after a draft that is known: {', '.join(DRAFTS)}", str(path))
    split = path.absolute().relative_to(draft_folder.parent).with_suffix("").as_posix()
    for index, group in enumerate(_elements(_read_json(path), path, "")):
        where = f"[{index}]"
        members = _members(group, path, where)
        note = _words(members, ("description",), path, where)
        schema_text = _declare(_schema(members, path, where), DRAFTS[draft_folder.name])
        yield SchemaCase(f"{split}{where} {note}".strip(), schema_text, _tests(members, path, where), split, note)


def _declare(schema_text: str, draft: str) -> str:
    """The schema with `draft` as its ``$schema``, unless it declares one or is a boolean."""
    if schema_text[0] != "{" or any(json.loads(name) == "$schema" for name in list(_parts(schema_text))[::2]):
        return schema_text
    rest = schema_text[1:]
    return f'{{"$schema":"{draft}"{"" if rest == "}" else ","}{rest}'


def _schema(members: dict[str, str], path: Path, where: str) -> str:
    text = _member(members, "schema", path, where)
    if text[0] != "{" and text not in ("true", "false"):
        raise ConfigError("a schema is an object, true or false", str(path), _join(where, "schema"))
    return text


def _tests(members: dict[str, str], path: Path, where: str) -> tuple[SchemaTest, ...]:
    place = _join(where, "tests")
    tests = []
    for index, element in enumerate(_elements(_member(members, "tests", path, where), path, place)):
        here = f"{place}[{index}]"
        test = _members(element, path, here)
        valid = _member(test, "valid", path, here)
        if valid not in ("true", "false"):
            raise ConfigError("the label is true or false", str(path), _join(here, "valid"))
        text = _STRING_OR_SEPARATOR.sub(_respell, _member(test, "data", path, here))
        tests.append(SchemaTest(valid == "true", text, _words(test, ("note", "description"), path, here)))
    return tuple(tests)


def _words(members: dict[str, str], names: Sequence[str], path: Path, where: str) -> str:
    """The string in the first of the members `names` that exists; empty if none does."""
    for name in names:
        if name in members:
            words = json.loads(members[name]) if members[name][0] == '"' else None
            if words is None:
                raise ConfigError("this is a string", str(path), _join(where, name))
            return str(words)
    return ""


def _respell(piece: re.Match[str]) -> str:
    """A string, comma or colon as ``json.dumps(..., ensure_ascii=False)`` writes it."""
    text = piece[0]
    if text[0] != '"':
        return f"{text} "
    written = json.dumps(json.loads(text), ensure_ascii=False)
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", written)


def _member(members: dict[str, str], name: str, path: Path, where: str) -> str:
    if name not in members:
        raise ConfigError(f"there is no member {name!r}", str(path), where)
    return members[name]


def _members(text: str, path: Path, where: str) -> dict[str, str]:
    """The members of an object: name -> text of the value. `text` is well formed and has no blanks between parts."""
    if text[0] != "{":
        raise ConfigError("this is an object", str(path), where)
    parts = _parts(text)
    return {json.loads(name): value for name, value in zip(parts, parts, strict=True)}


def _elements(text: str, path: Path, where: str) -> list[str]:
    """The texts of the elements of an array. `text` is well formed and has no blanks between parts."""
    if text[0] != "[":
        raise ConfigError("this is an array", str(path), where)
    return list(_parts(text))


def _parts(text: str) -> Iterator[str]:
    """The elements of an array, or the names and values of an object in turn, each as it is written."""
    position = 1
    while text[position] not in "]}":
        _, end = _READER.raw_decode(text, position)
        yield text[position:end]
        position = end + (text[end] in ",:")


def _read_json(path: Path) -> str:
    """The text of a file without the blanks between its parts, once it is known to be well formed."""
    try:
        text = path.read_text(encoding="utf-8")
        _READER.decode(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"this is no file of JSON in UTF-8: {error}", str(path)) from None
    except RecursionError:
        raise ConfigError("this is nested too deeply to be read", str(path)) from None
    return _STRING_OR_BLANKS.sub(lambda piece: piece[0] if piece[0][0] == '"' else "", text)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twin, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has two members named {twin!r}")
    return members


# The numbers it returns are never looked at: int would refuse more than 4,300 digits.
_READER = json.JSONDecoder(
    object_pairs_hook=_refuse_twins, parse_constant=_refuse_constant, parse_float=float, parse_int=float
)

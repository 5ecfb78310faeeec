"""The constraints of an experiment: entries of the file itself, and those that files and folders stand for.

An entry of the file is a constraint by itself, or names files: ``{file: inputs/regexes.yaml, only: [email]}`` is those
of a list of entries, ``{schema_folder: inputs/schemas, only: [values---month]}`` an entry for each schema of a folder,
``{function_calls: 1000}`` as many schemas of function calls, drawn by the experiment's seed, ``{label: letters,
regex: '[a-z]{1,n}', n: [8, 16]}`` the members of a family that grows. Keys beside these are added to each
entry. ``grammar_file``, ``schema_file`` and ``texts_file`` stand for what their files hold.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tokdfa.errors import RegexUnsupported, TokdfaError
from tokdfa.lab.config import checks
from tokdfa.lab.config.yaml_source import YamlSource, read_text
from tokdfa.lab.measure.constraint_entry import CONSTRAINT_KEYS, ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.function_calls import draw_calls
from tokdfa.lab.measure.growing import fill_grammar, fill_schema, fill_template
from tokdfa.lab.measure.schema_corpus import entry_of_case, read_case

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tokdfa.lab.config.checks import Where


#: What looks like a file's name where a text is expected -> the key that takes one.
_FILE = re.compile(r"[\w./~\\-]+\.(lark|gbnf|ebnf|txt|json|ya?ml)")
_FILE_KEYS = {"grammar": "grammar_file", "json_schema": "schema_file"}


def read_constraints(source: YamlSource, raw: dict[str, Any], key: str = "constraints") -> list[ConstraintEntry]:
    """All entries of an experiment below `key`, their labels distinct. Raises ConfigError with file, line and key."""
    entries: list[ConstraintEntry] = []
    places: list[Where] = []
    for index, entry in enumerate(checks.as_list(source, raw.get(key, []), (key,))):
        where: Where = (key, index)
        found = _included(source, entry, where, raw.get("seed", 0)) or [_constraint(source, entry, where)]
        entries += found
        places += [where] * len(found)
        if len(entries) > checks.MAX_ENTRIES:
            raise source.error(f"more than {checks.MAX_ENTRIES} constraints", where)
    checks.refuse_twice(source, "constraint label", [entry.label for entry in entries], places)
    return entries


def _included(source: YamlSource, entry: Any, where: Where, seed: Any) -> list[ConstraintEntry]:
    """The entries that one with a key such as ``file`` stands for; none for one that is a constraint by itself."""
    if not isinstance(entry, dict):
        return []
    if "file" in entry:
        return _entries_of_file(source, entry, where)
    if "n" in entry:
        return _family(source, entry, where, seed)
    if "function_calls" in entry:
        return _drawn_calls(source, entry, where, seed)
    return _entries_of_folder(source, entry, where) if "schema_folder" in entry else []


def _beside(entry: dict[str, Any], *own: str) -> dict[str, Any]:
    """The keys of an entry that are added to each of those that it stands for."""
    return {key: value for key, value in entry.items() if key not in own}


def _entries_of_file(source: YamlSource, entry: dict[str, Any], where: Where) -> list[ConstraintEntry]:
    """The entries of ``{file: inputs/regexes.yaml, only: [email, date]}``, in the order of `only` if it is given.

    ``texts_file``: a file with the texts of each, by label.
    """
    included = checks.read_beside(source, entry["file"], (*where, "file"))
    items = checks.as_list(included, included.data, ())
    if not items:
        raise source.error(f"{included.path} has no constraints", (*where, "file"))
    more, texts = _beside(entry, "file", "only", "texts_file"), {}
    if "texts_file" in entry:
        of_label = checks.read_beside(source, entry["texts_file"], (*where, "texts_file"))
        texts = {label: {"texts": own} for label, own in checks.as_mapping(of_label, of_label.data, ()).items()}
    places: list[Where] = [(index,) for index in range(len(items))]
    found = []
    for raw, place in zip(items, places, strict=True):
        item = checks.as_mapping(included, raw, place)
        found.append(_constraint(included, {**item, **texts.get(item.get("label", ""), {}), **more}, place))
    checks.refuse_twice(included, "constraint label", [one.label for one in found], places)
    by_label = {one.label: one for one in found}
    return [by_label[label] for label in _chosen(source, entry, where, str(included.path), by_label)]


def _family(source: YamlSource, entry: dict[str, Any], where: Where, seed: Any) -> list[ConstraintEntry]:
    """A constraint for each size ``n`` of a template (`tokdfa.lab.measure.growing`), called ``LABEL, n=SIZE``."""
    if not isinstance(entry.get("regex", entry.get("grammar")), str) and "json_schema" not in entry:
        raise source.error("n is for a regex, a grammar or a JSON schema that is a template", (*where, "n"))
    found = []
    for place, n in enumerate(checks.as_list(source, entry["n"], (*where, "n"))):
        if not isinstance(n, int) or n < 1:
            raise source.error(f"a size is expected, not {checks.brief(n)}", (*where, "n", place))
        plain = {key: value for key, value in entry.items() if key != "n"}
        try:
            if "regex" in plain:
                plain["regex"] = fill_template(plain["regex"], n, seed)
            elif "json_schema" in plain:
                plain["json_schema"] = fill_schema(plain["json_schema"], n)
            else:
                plain["grammar"], text = fill_grammar(plain["grammar"], n)
                plain["texts"] = [text]
        except TokdfaError as error:
            raise source.error(str(error), (*where, "n", place)) from None
        found.append(_constraint(source, {**plain, "label": f"{entry.get('label', 'family')}, n={n}"}, where))
    return found


def _drawn_calls(source: YamlSource, entry: dict[str, Any], where: Where, seed: Any) -> list[ConstraintEntry]:
    """So many function calls (`tokdfa.lab.measure.function_calls`)."""
    count = entry["function_calls"]
    if not isinstance(count, int) or not 0 < count <= checks.MAX_ENTRIES:
        raise source.error(f"a number of calls is expected, not {checks.brief(count)}", (*where, "function_calls"))
    drawn = [
        {"label": label, "json_schema": schema, "texts": texts} for label, schema, texts in draw_calls(count, seed)
    ]
    return [_constraint(source, {**one, **_beside(entry, "function_calls")}, where) for one in drawn]


def _entries_of_folder(source: YamlSource, entry: dict[str, Any], where: Where) -> list[ConstraintEntry]:
    """The schemas of ``{schema_folder: inputs/schemas, only: [values---month]}``."""
    name, more = entry["schema_folder"], _beside(entry, "schema_folder", "only")
    folder = checks.path_beside(source, name, (*where, "schema_folder"), "folder")
    known = sorted(path.stem for path in folder.glob("*.json"))
    if not known:
        raise source.error(f"there are no files *.json in {folder}", (*where, "schema_folder"))
    chosen = _chosen(source, entry, where, str(folder), known)
    return [_constraint(source, {"schema_file": f"{name}/{stem}.json", **more}, where) for stem in chosen]


def _chosen(source: YamlSource, entry: dict[str, Any], where: Where, origin: str, known: Iterable[str]) -> list[Any]:
    """The labels in ``only``, which are `known` and at least one; all if it is not given."""
    wanted = checks.as_list(source, entry.get("only", list(known)), (*where, "only"))
    for index, label in enumerate(wanted):
        checks.require_known(source, (*where, "only", index), f"constraint in {origin}", label, known)
    if not wanted:
        raise source.error("this list chooses nothing", (*where, "only"))
    return wanted


def _constraint(source: YamlSource, raw: Any, where: Where) -> ConstraintEntry:
    entry = _files_read(source, checks.as_mapping(source, raw, where), where)
    typed = checks.as_model(source, ConstraintEntry, entry, where)
    if (fault := fault_of_keys(entry)) is not None:
        message, key = fault
        raise source.error(message, (*where, key) if key else where)
    for key in ("grammar", "json_schema"):
        if isinstance(entry.get(key), str) and _FILE.fullmatch(entry[key].strip()):
            said = f"{entry[key].strip()!r} looks like the name of a file: write {_FILE_KEYS[key]} for {key}"
            raise source.error(said, (*where, key))
    try:
        constraint = typed.build()
        _parse_pattern(typed)
    except TokdfaError as error:
        kind = next(key for key in CONSTRAINT_KEYS if key in entry)
        raise source.error(str(error), (*where, kind)) from None
    return typed if typed.label else typed.model_copy(update={"label": constraint.name})


def _files_read(source: YamlSource, entry: dict[str, Any], where: Where) -> dict[str, Any]:
    """`entry` with the contents of ``grammar_file``, ``schema_file`` and ``texts_file`` in the place of their names.

    A grammar or a schema from a file is called after it. A file of texts is a list, or a mapping whose ``accepted`` is
    one. A file with a schema holds it alone, or is a case of `tokdfa.lab.measure.schema_corpus`, whose valid instances
    are the texts then, unless others are given; they have a blank after each comma and colon.
    """
    entry = dict(entry)
    for key, target in (("grammar_file", "grammar"), ("schema_file", "json_schema"), ("texts_file", "texts")):
        if key not in entry:
            continue
        if target in entry:
            raise source.error(f"give either {target} or {key}", (*where, key))
        name = entry.pop(key)
        path = checks.path_beside(source, name, (*where, key))
        if target == "grammar":
            entry = {"label": path.stem, **entry, "grammar": read_text(path)}
        elif target == "json_schema":
            of_file = _schema_of_file(path)
            if "texts_file" in entry:
                of_file.pop("texts", None)
            entry = {**of_file, **entry}
        else:
            entry["texts"] = checks.texts_beside(source, name, (*where, key))
    return entry


def _schema_of_file(path: Path) -> dict[str, Any]:
    """The schema of a file, its label, and where the file is a case, its valid instances. Raises ConfigError."""
    text = read_text(path)
    try:
        is_case = {"schema", "tests"} <= set(json.loads(text))
    except (ValueError, TypeError, RecursionError):  # no JSON, or a boolean: the constraint says what is wrong
        is_case = False
    if not is_case:
        return {"label": path.stem, "json_schema": text}
    return entry_of_case(read_case(path))


def _parse_pattern(entry: ConstraintEntry) -> None:
    """Raise RegexSyntaxError for a pattern that nobody can read. What only some backends take is left to them."""
    if entry.regex is None:
        return
    from tokdfa.regex.parse import parse

    with suppress(RegexUnsupported):
        parse(entry.regex, entry.flags, entry.ascii_classes)

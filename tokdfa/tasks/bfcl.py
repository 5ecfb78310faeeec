"""Function calls of the Berkeley Function Calling Leaderboard (Patil et al. 2025) from a folder of yours; Apache-2.0.

``load_task("bfcl", folder)`` reads ``BFCL_*.json`` of the published data and ``possible_answer/`` beside them: JSON
objects, one a line, with ``id``, ``question`` (turns of messages) and ``function`` there, and ``id`` and
``ground_truth`` here: a list of one call, ``{FUNCTION: {ARGUMENT: [VALUES]}}``, where "" among the values means that
the argument may be left out. Files without answers (multi-turn, irrelevance) and items with several calls are left out.

A call is ``{"name": ..., "arguments": {...}}``. It is valid if it names a function given and has arguments for
its parameters; the score is the share of the name and the arguments that are among the values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import JsonSchema
from tokdfa.errors import OptionError
from tokdfa.tasks.base import Item, Task, few_shot

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names of types in the data -> in JSON Schema; "any" is left out.
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
#: Types in JSON Schema -> of `json`.
_PYTHON: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
}  # fmt: skip
#: What is taken over of a function's parameters.
_KEYWORDS = ("type", "enum", "items", "properties", "required")


def bfcl(folder: str) -> Task:
    """The task of a folder. Raises OptionError, which names the file and the line, for another format."""
    items, truths = [], {}
    answered = sorted(Path(folder).glob("possible_answer/BFCL_*.json"))
    if not answered:
        raise OptionError(
            f"bfcl: there is no possible_answer/BFCL_*.json in {folder}; give the published data's folder"
        )
    for path in answered:
        answers = {found["id"]: found["ground_truth"] for _, found in _lines(path, "ground_truth")}
        for line, found in _lines(Path(folder) / path.name, "question", "function"):
            truth = answers.get(found["id"])
            if truth is None or len(truth) != 1:
                continue
            try:
                asked = found["question"][0][-1]["content"]
                schemas = {one["name"]: _schema(one["parameters"]) for one in found["function"]}
                ((name, values),) = truth[0].items()
                call = {"name": name, "arguments": {key: given[0] for key, given in values.items() if given[0] != ""}}
            except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
                where = f"{Path(folder) / path.name}, line {line}"
                raise OptionError(f"bfcl: {where}: no question with functions and one call: {error!r}") from None
            told = json.dumps([{"name": name, **schema} for name, schema in schemas.items()])
            constraint = JsonSchema({"anyOf": [_call(*one) for one in schemas.items()]}, profile="generation")
            prompt = few_shot("Call one of these functions: " + told, [], asked)
            items.append(Item(str(found["id"]), prompt, constraint, json.dumps(call)))
            truths[str(found["id"])] = (schemas, name, values)

    def is_valid(item: Item, text: str) -> bool:
        try:
            call = json.loads(text)
        except ValueError:
            return False
        schemas = truths[item.label][0]
        if not isinstance(call, dict) or set(call) != {"name", "arguments"} or str(call["name"]) not in schemas:
            return False
        return _fits(schemas[str(call["name"])], call["arguments"])

    def is_right(item: Item, text: str) -> float:
        _, name, values = truths[item.label]
        call = json.loads(text)
        if call["name"] != name:
            return 0.0
        given = call["arguments"]
        right = sum(given[key] in some if key in given else "" in some for key, some in values.items())
        return (1 + right) / (1 + len(values.keys() | given.keys()))

    return Task("bfcl", "function calls of BFCL", "Apache-2.0", tuple(items), is_valid, is_right, max_tokens=128)


def _lines(path: Path, *members: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their lines; each has an id and the `members`."""
    if not path.is_file():
        raise OptionError(f"bfcl: there is no file {path}")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found = json.loads(line)
            missing = {"id", *members} - set(found)
            if missing:
                raise ValueError(f"no {', '.join(sorted(missing))}")
        except (ValueError, TypeError) as error:
            raise OptionError(
                f"bfcl: {path}, line {number}: not an object with {', '.join(members)}: {error}"
            ) from None
        yield number, found


def _schema(given: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema for parameters in the data's notation."""
    found = {key: given[key] for key in _KEYWORDS if key in given}
    if "type" in found:
        found["type"] = _TYPES.get(found["type"], found["type"])
    if found.get("type") == "any":
        del found["type"]
    if "items" in found:
        found["items"] = _schema(found["items"])
    if "properties" in found:
        found["properties"] = {key: _schema(one) for key, one in found["properties"].items()}
        found["additionalProperties"] = False
    return found


def _fits(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value has the types and choices of parameters."""
    kinds = _PYTHON.get(schema.get("type", ""))
    if kinds is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, list) and "items" in schema:
        return all(_fits(schema["items"], one) for one in value)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return set(schema.get("required", ())) <= set(value) <= set(known) and all(
            _fits(known[key], one) for key, one in value.items()
        )
    return True


def _call(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    members = {"name": {"const": name}, "arguments": schema}
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}

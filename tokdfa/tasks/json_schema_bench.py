"""Instances of the schemas of JSONSchemaBench (Geng et al. 2025, arXiv 2501.10868) from a folder of yours.

``load_task("jsonschemabench", folder)`` reads the ``*.json`` files of a folder as MaskBench has them, a schema each:
``{"schema": ..., "tests": [{"valid": true, "data": ...}, ...]}``. An answer is valid, and right, if the package
`jsonschema` finds it so, formats included; the reference is the first valid test's data, empty if there is none. The
share of valid answers is the paper's empirical coverage, a schema that a backend refuses lacks declared coverage. The
schemas have licences of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokdfa.constraint import JsonSchema
from tokdfa.core.packages import is_importable, missing_dependency
from tokdfa.errors import OptionError
from tokdfa.tasks.base import Item, Task, few_shot


def json_schema_bench(folder: str) -> Task:
    """The task of a folder. Raises OptionError, which names the file, for another format; MissingDependency."""
    if not is_importable("jsonschema"):
        raise missing_dependency("jsonschema", "judging the task jsonschemabench")
    items, validators = [], {}
    paths = sorted(Path(folder).glob("*.json"))
    if not paths:
        raise OptionError(f"jsonschemabench: there are no *.json in {folder}; give a folder of MaskBench's files")
    for path in paths:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            schema = found["schema"]
            references = [json.dumps(test["data"]) for test in found.get("tests", ()) if test["valid"]]
            validators[path.stem] = _validator(schema)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wanted = '{"schema": ..., "tests": [{"valid": ..., "data": ...}]}'
            raise OptionError(f"jsonschemabench: {path}: not {wanted}: {error!r}") from None
        prompt = few_shot("Write JSON that is valid under the schema.", [], json.dumps(schema))
        constraint = JsonSchema(schema, profile="generation")
        items.append(Item(path.stem, prompt, constraint, references[0] if references else ""))

    def is_valid(item: Item, text: str) -> bool:
        try:
            return bool(validators[item.label].is_valid(json.loads(text)))
        except ValueError:
            return False

    summary = "instances of the schemas of JSONSchemaBench"
    return Task("jsonschemabench", summary, "those of the schemas", tuple(items), is_valid, lambda item, text: 1.0, 512)


def _validator(schema: Any) -> Any:
    """Of `jsonschema`, by the draft that the schema declares, formats asserted. Raises ValueError for no schema."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    made = validator_for(schema, default=Draft202012Validator)
    try:
        made.check_schema(schema)
    except SchemaError as error:
        raise ValueError(error.message) from None
    return made(schema, format_checker=made.FORMAT_CHECKER)

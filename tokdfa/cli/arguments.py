"""Arguments that several commands have: how they are declared, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokdfa.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint, JsonSchema

Regex = Annotated[str | None, typer.Option("--regex", "-r", help="The constraint: a regular expression.")]
Choice = Annotated[list[str] | None, typer.Option("--choice", "-c", help="The constraint: a text; repeat.")]
Grammar = Annotated[
    Path | None, typer.Option("--grammar", "-g", help="The constraint: a file that holds a Lark grammar.")
]
Schema = Annotated[
    Path | None,
    typer.Option("--schema", "-s", help="The constraint: a file with a JSON schema, or a case with its tests."),
]
SchemaOptions = Annotated[
    list[str] | None,
    typer.Option("--schema-option", help="How the schema is read, as NAME=VALUE, such as order=any; repeat."),
]
Search = Annotated[bool, typer.Option("--search", help="The text contains a match, instead of being one.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="A backend option as NAME=VALUE; may be repeated.")
]
_TOKENIZER = typer.Option("--tokenizer", "-t", help="A name that `tokdfa tokenizers` lists, a file, or a folder.")
Tokenizer = Annotated[str, _TOKENIZER]
OptionalTokenizer = Annotated[str | None, _TOKENIZER]


def read_settings(given: list[str]) -> dict[str, Any]:
    """``["data=DIR", "max_cases=5"]`` as names and values. Raises OptionError."""
    import yaml

    settings: dict[str, Any] = {}
    for entry in given:
        name, sign, text = entry.partition("=")
        if not sign or not name:
            raise OptionError(f"{entry!r}: a setting is given as NAME=VALUE")
        try:
            settings[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise OptionError(f"{entry!r}: the value is not YAML; quote it within the quotes of the shell") from None
    return settings


def read_options(backend: str, given: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts as typed settings of `backend`. Raises OptionError or UnknownNameError."""
    from tokdfa.backends.registry import backend_class

    known = {option.name: option for option in backend_class(backend).options}
    settings: dict[str, Any] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator:
            raise OptionError(f"an option is NAME=VALUE, not {text!r}")
        if name not in known:
            raise UnknownNameError(f"option of backend {backend}", name, known)
        settings[name] = known[name].parse(value)
    return settings


def read_constraint(
    regex: str | None,
    search: bool,
    choices: list[str] | None,
    grammar: Path | None,
    schema: Path | None,
    schema_options: list[str] | None,
    profile: str = "all",
) -> Constraint:
    """The one constraint that the arguments give, a schema with that profile unless its options name another.

    Raises OptionError, and what reading it raises.
    """
    from tokdfa import constraint

    if (regex is not None) + bool(choices) + (grammar is not None) + (schema is not None) != 1:
        raise OptionError(
            "give one constraint: --regex PATTERN, --choice TEXT once or more, --grammar FILE, or --schema FILE"
        )
    if search and regex is None:
        raise OptionError("--search is for --regex: leave it out, or write the texts as a pattern")
    if schema_options and schema is None:
        raise OptionError("--schema-option is for --schema; leave it out")
    if grammar is not None or schema is not None:
        from tokdfa.lab.config.yaml_source import read_text

        if schema is not None:
            return read_schema(schema, [f"profile={profile}", *(schema_options or [])])
        assert grammar is not None
        return constraint.Grammar(read_text(grammar), label=grammar.stem)
    return constraint.Regex(regex, search=search) if regex is not None else constraint.Choice(choices or [])


def read_schema(path: Path, options: list[str]) -> JsonSchema:
    """The constraint of a file with a JSON schema, or with a case of a benchmark: a schema and its tests."""
    import json

    from tokdfa.constraint import JsonSchema, option_names
    from tokdfa.lab.config.yaml_source import read_text

    text, settings = read_text(path), read_settings(options)
    known = option_names(JsonSchema) - {"label"}
    for name in settings.keys() - known:
        raise UnknownNameError("option of a schema", name, known)
    try:
        data = json.loads(text)
        if isinstance(data, dict) and "schema" in data and "tests" in data:
            text = json.dumps(data["schema"])
        return JsonSchema(text, label=path.stem, **settings)
    except json.JSONDecodeError as error:
        raise OptionError(f"{path} is not JSON: {error}") from None

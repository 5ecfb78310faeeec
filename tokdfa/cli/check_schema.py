"""``tokdfa check-schema``: all that is wrong, refused, suspicious or ignored in a JSON schema."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import Annotated

import typer
from rich.console import Console

from tokdfa.cli import arguments
from tokdfa.cli.text import print_plain, print_table

#: Findings that a compile raises an error for.
FATAL = frozenset(["wrong", "impossible", "refused"])


def check_schema(
    file: Annotated[Path, typer.Argument(help="A file with a JSON schema, or a case with its tests.")],
    schema_option: arguments.SchemaOptions = None,
) -> None:
    """List what is wrong, refused, suspicious or ignored in a JSON schema; exit status 1 if it cannot be compiled."""
    from tokdfa.json_schema.write.survey import survey_schema

    findings = survey_schema(arguments.read_schema(file, schema_option or []))
    console = Console()
    if findings:
        rows = [(each.verdict, f"#{each.pointer}", each.keyword, each.reason) for each in findings]
        print_table(console, ("", "where", "keyword", "why"), rows)
    else:
        print_plain(console, "every keyword is enforced")
    if any(each.verdict in FATAL for each in findings):
        raise typer.Exit(1)

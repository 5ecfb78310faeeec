"""Constraints with texts from a folder of JSON schemas: the regex of each schema, and its instances that match it.

Every file ``*.json`` holds ``{"schema": ..., "tests": [{"data": ..., "valid": true}, ...]}`` (the layout of MaskBench).
`outlines_core.json_schema.build_regex_from_schema` makes the regex. What becomes of a schema is often narrower than the
schema (it fixes the order of the members, for instance), so an instance may not match; it is written in the first of
the `SEPARATORS` that do. What is left out says why by one of `SKIPPED`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.constraint import Regex
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.measure.engines import attempt
from tokdfa.lab.measure.limits import NOT_ASKED, Failure, failure_of
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tokdfa.constraint import Constraint

#: The file has another layout; none of its instances is valid; no regex can be made of the schema; its regex is over a
#: limit; the regex does not match a valid instance; a setting left it out.
UNREADABLE, NO_INSTANCE, REFUSED = "unreadable", "no_instance", "refused"
TOO_LARGE, NOT_MATCHED = "too_large", "not_matched"
SKIPPED = (UNREADABLE, NO_INSTANCE, REFUSED, TOO_LARGE, NOT_MATCHED, NOT_ASKED)
#: How an instance may be written: as json.dumps does, and without spaces.
SEPARATORS = ((", ", ": "), (",", ":"))
#: What is kept of the words about a schema, some of which repeat all of it, and of an instance that does not match.
MAX_MESSAGE = 300


class Case(NamedTuple):
    """A constraint with texts of its language. `skipped`: what is not measured, as (status, message, text)."""

    name: str
    constraint: Constraint | None
    texts: tuple[str, ...]
    skipped: tuple[tuple[str, str, str], ...] = ()


class SchemaLimits(NamedTuple):
    """At most `schemas` of a folder, spread evenly over the names, and `instances` of each; at most `pattern`
    characters of a regex and `states` of its byte DFA; none begins after `seconds`.
    """

    schemas: int
    instances: int
    pattern: int
    states: int
    seconds: float


def schema_cases(folder: Path, limits: SchemaLimits) -> Iterator[Case]:
    """A case for each schema. Raises OptionError without files, MissingDependency without outlines-core."""
    try:
        from outlines_core.json_schema import build_regex_from_schema
    except ImportError:
        raise missing_dependency("outlines-core", "the setting schemas of saved_calls") from None
    files = sorted(folder.glob("*.json"))
    if not files:
        raise OptionError(f"settings.schemas: there are no files *.json in {folder}")
    count = min(len(files), limits.schemas)
    chosen = {files[index * len(files) // count] for index in range(count)}
    started = time.monotonic()
    for file in files:
        if file not in chosen:
            yield _skipped(file, NOT_ASKED, f"only {count} of {len(files)} schemas are measured")
        elif time.monotonic() - started > limits.seconds:
            yield _skipped(file, NOT_ASKED, f"the {limits.seconds:g} s for all schemas are over")
        else:
            yield _schema_case(file, build_regex_from_schema, limits)


def _skipped(file: Path, status: str, message: str) -> Case:
    return Case(file.stem, None, (), ((status, message[:MAX_MESSAGE], ""),))


def _schema_case(file: Path, build: Callable[[str], str], limits: SchemaLimits) -> Case:
    try:
        content = json.loads(file.read_bytes())
        schema, tests = content["schema"], content["tests"]
        instances = [test["data"] for test in tests if test["valid"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        return _skipped(file, UNREADABLE, f"{type(error).__name__}: {error}")
    if not instances:
        return _skipped(file, NO_INSTANCE, "no test is valid")
    pattern = attempt(build, json.dumps(schema))
    if isinstance(pattern, Failure):
        return _skipped(file, REFUSED, pattern.message)
    if len(pattern) > limits.pattern:
        return _skipped(file, TOO_LARGE, f"the regex has more than {limits.pattern:,} characters")
    constraint = Regex(pattern, label=file.stem)
    try:
        language = compile_dfa(constraint, max_states=limits.states)
    except TokdfaError as error:
        failure = failure_of(error)
        return _skipped(file, TOO_LARGE if failure.kind == "memory" else REFUSED, failure.message)
    texts: list[str] = []
    skipped: list[tuple[str, str, str]] = []
    for instance in instances:
        written = [json.dumps(instance, ensure_ascii=False, separators=pair) for pair in SEPARATORS]
        # half a surrogate pair has no UTF-8 form, so no regex matches it
        matching = [text for text in written if language.accepts(text.encode(errors="surrogatepass"))]
        if matching and len(texts) < limits.instances:
            texts.append(matching[0])
            continue
        status, message = NOT_MATCHED, "the regex does not match a valid instance"
        if matching:
            status, message = NOT_ASKED, f"only {limits.instances} instances of a schema are measured"
        skipped.append((status, message, json.dumps(instance)[:MAX_MESSAGE]))
    return Case(file.stem, constraint if texts else None, tuple(texts), tuple(skipped))

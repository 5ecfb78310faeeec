"""The regexes of MaskBench's JSON schemas, with strings from the same cases to try them on, if the data is at hand.

The folder is named by the environment variable ``TOKDFA_MASKBENCH``, else it is ``../shared/maskbench`` seen from the
root of the checkout; below it ``dev/*`` are JSON files ``{"schema": .., "tests": [{"data": ..}]}``.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(os.environ.get("TOKDFA_MASKBENCH") or Path(__file__).parents[3] / "shared" / "maskbench")
ABSENT = f"MaskBench is not at {FOLDER}; set TOKDFA_MASKBENCH"


@cache
def patterns() -> dict[str, list[str]]:
    """Each distinct pattern -> strings to try: those of its cases, shortest first, and the pattern's own letters."""
    samples: dict[str, set[str]] = {}
    for path in sorted((FOLDER / "dev").iterdir()):
        case = json.loads(path.read_text(encoding="utf-8"))
        strings = {string for test in case["tests"] for string in _strings(test["data"])}
        for pattern in _patterns(case["schema"]):
            letters = "".join(character for character in pattern if character not in "^$\\()?:")
            samples.setdefault(pattern, {"", "a", " ", "é\n1", letters}).update(strings)
    return {pattern: sorted(strings, key=lambda text: (len(text), text)) for pattern, strings in samples.items()}


def _patterns(schema: Any) -> Iterator[str]:
    """Every value of ``pattern`` and every key below ``patternProperties``, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]
    for child in _children(schema):
        yield from _patterns(child)


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    if isinstance(data, dict):
        yield from data
    for child in _children(data):
        yield from _strings(child)


def _children(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []

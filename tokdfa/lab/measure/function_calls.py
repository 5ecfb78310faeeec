"""A workload of function calls: schemas as tools declare them, and calls that meet them, drawn from a seed.

Table 2 of 002 is measured on 1,000 JSON strings of a public data set of function calls (glaive-function-calling-v2),
which is not at hand. What is drawn here has that shape, and nothing of its content: an object with the ``name`` of a
function and its ``arguments``, one to six of them, with values of the types that tools ask for. Most are free strings;
others are integers, numbers, booleans, choices, dates, lists of strings, and objects in objects. Words are our own.
"""

from __future__ import annotations

import json
import random
from typing import Any

#: What is drawn from, words between blanks: names of functions, names of arguments by type, and what strings hold.
VERBS = "get find create update delete send convert calculate book search track list check generate translate"
NOUNS = (
    "weather flight recipe invoice reminder playlist contact exchange_rate meeting ticket parcel stock_price password "
    "movie route order note event workout holiday dictionary_entry news tip mortgage quote barcode device room"
)
KEYS = {
    "string": "city title message query description subject email address artist language destination author text",
    "integer": "count age year quantity limit duration people rating",
    "number": "amount price weight height latitude longitude temperature interest_rate",
    "boolean": "urgent include_tax public notify round_trip vegetarian",
    "choice": "unit currency category priority format mode",
    "date": "date start_date due_date birthday",
    "strings": "tags ingredients keywords participants attachments",
    "object": "location options customer filters recipient",
}
CHOICES = (
    "celsius fahrenheit",
    "USD EUR GBP JPY",
    "low medium high",
    "news sports music science travel",
    "pdf html text",
)
WORDS = (
    "Berlin Lisbon quick summary of the meeting on Monday red bicycle with two wheels Anna O'Neil tomato soup and rice "
    "São Paulo please call me back after 5 p.m. https://example.org/a?b=1 50% off coffee & cake Zürich train no. 17 "
    "latest results (final) 東京 blue-green café"
)
#: How often each type is drawn: mostly strings, as in calls.
SHARES = {
    "string": 45,
    "integer": 12,
    "number": 10,
    "boolean": 7,
    "choice": 9,
    "date": 6,
    "strings": 6,
    "object": 5,
}
MAX_MEMBERS, MAX_ITEMS = 6, 4


def draw_calls(count: int, seed: int) -> list[tuple[str, dict[str, Any], list[str]]]:
    """(label, JSON schema, three texts that meet it) of `count` functions; equal arguments give equal calls.

    Texts are written with a blank after each comma and colon, other characters than ASCII as they are.
    """
    rng = random.Random(f"function calls {seed}")
    made = []
    for number in range(count):
        name = f"{_draw_word(rng, VERBS)}_{_draw_word(rng, NOUNS)}"
        arguments = _draw_object(rng, rng.randint(1, MAX_MEMBERS), nested=True)
        schema = {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        texts = [
            json.dumps({"name": name, "arguments": _draw_value(rng, arguments)}, ensure_ascii=False) for _ in range(3)
        ]
        made.append((f"{number:04d} {name}", schema, texts))
    return made


def _draw_word(rng: random.Random, words: str) -> str:
    return rng.choice(words.split())


def _draw_object(rng: random.Random, members: int, nested: bool) -> dict[str, Any]:
    """The schema of an object of so many members, in a fixed order; all are required but now and then the last."""
    kinds = [kind for kind in SHARES if nested or kind != "object"]
    properties: dict[str, Any] = {}
    while len(properties) < members:
        (kind,) = rng.choices(kinds, [SHARES[kind] for kind in kinds])
        properties.setdefault(_draw_word(rng, KEYS[kind]), _draw_schema(rng, kind))
    required = list(properties)
    if members > 1 and rng.random() < 0.25:
        required.pop()
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _draw_schema(rng: random.Random, kind: str) -> dict[str, Any]:
    if kind == "choice":
        return {"enum": rng.choice(CHOICES).split()}
    if kind == "date":
        return {"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"}
    if kind == "strings":
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}
    if kind == "object":
        return _draw_object(rng, rng.randint(1, 3), nested=False)
    return {"type": kind}


def _draw_value(rng: random.Random, schema: dict[str, Any]) -> Any:
    """A value that meets a schema of `_draw_schema`."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "pattern" in schema:
        return f"{rng.randint(1950, 2030)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    kind = schema["type"]
    if kind == "object":
        kept = {
            name: part
            for name, part in schema["properties"].items()
            if name in schema["required"] or rng.random() < 0.5
        }
        return {name: _draw_value(rng, part) for name, part in kept.items()}
    if kind == "array":
        return [_draw_value(rng, schema["items"]) for _ in range(rng.randint(1, MAX_ITEMS))]
    if kind == "integer":
        return rng.choice([rng.randint(0, 9), rng.randint(10, 99), rng.randint(1000, 99999)])
    if kind == "number":
        return rng.choice([rng.randint(0, 500), round(rng.uniform(0, 1000), 2), round(rng.uniform(-90, 90), 4)])
    if kind == "boolean":
        return rng.random() < 0.5
    return " ".join(_draw_word(rng, WORDS) for _ in range(rng.randint(1, 8)))

"""Two tasks in JSON: members from a short text (``extraction``), and calls of functions (``calls``).

The score is the share of members, or of the function's name and arguments, that equal those of the reference.
"""

from __future__ import annotations

import json
from typing import Any

from tokdfa.constraint import JsonSchema
from tokdfa.tasks.base import OURS, Item, Task, draws, few_shot

NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Iris", "Jon", "Kim", "Lena", "Max", "Nora"]
CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Paris", "Quito", "Delhi", "Tokyo", "Sofia", "Berlin"]
COLOURS = ["red", "green", "blue", "white", "black"]

_PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "maxLength": 12},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
#: Function -> its arguments: texts, numbers or choices.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "weather": {"city": str},
    "timer": {"minutes": int},
    "light": {"colour": COLOURS, "level": int},
}


def _dump(value: Any) -> str:
    return json.dumps(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return value in kind
    return isinstance(value, kind) and not isinstance(value, bool)


def _schema(kind: Any) -> dict[str, Any]:
    if isinstance(kind, list):
        return {"enum": kind}
    return {"type": "string", "maxLength": 12} if kind is str else {"type": "integer", "minimum": 0, "maximum": 120}


def extraction() -> Task:
    """Name, age and city of a person."""
    schema = JsonSchema(_PERSON, profile="generation")
    items = []
    templates = (
        "{name} is {age} years old and lives in {city}.",
        "In {city} we met {name}, aged {age}.",
        "{name} of {city} turned {age} last week.",
    )
    for label, stream in draws(1):
        person = {"name": stream.choice(NAMES), "age": stream.randint(18, 90), "city": stream.choice(CITIES)}
        shown = [
            (
                "Otto, who is 33, moved to Vienna.",
                _dump({"name": "Otto", "age": 33, "city": "Vienna"}),
            )
        ]
        prompt = few_shot("Write the person as JSON.", shown, stream.choice(templates).format(**person))
        items.append(Item(label, prompt, schema, _dump(person)))

    def is_valid(item: Item, text: str) -> bool:
        value = _value(text)
        return (
            isinstance(value, dict)
            and set(value) == set(_PERSON["properties"])
            and all(isinstance(value[name], str) and len(value[name]) <= 12 for name in ("name", "city"))
            and _fits(value["age"], int)
            and 0 <= value["age"] <= 120
        )

    def is_right(item: Item, text: str) -> float:
        wanted = json.loads(item.reference)
        return sum(_value(text)[name] == value for name, value in wanted.items()) / len(wanted)

    return Task("extraction", "a person's name, age and city as JSON", OURS, tuple(items), is_valid, is_right, 48)


def calls() -> Task:
    """One of three functions with its arguments."""
    alternatives = [
        {
            "type": "object",
            "properties": {
                "name": {"const": name},
                "arguments": {
                    "type": "object",
                    "properties": {key: _schema(kind) for key, kind in arguments.items()},
                    "required": list(arguments),
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name, arguments in FUNCTIONS.items()
    ]
    schema = JsonSchema({"anyOf": alternatives}, profile="generation")
    items = []
    for label, stream in draws(2):
        name = stream.choice(sorted(FUNCTIONS))
        city, number, colour = stream.choice(CITIES), stream.randint(1, 99), stream.choice(COLOURS)
        asked, arguments = {
            "weather": (f"How is the weather in {city}?", {"city": city}),
            "timer": (f"Wake me in {number} minutes.", {"minutes": number}),
            "light": (f"Make the lamp {colour}, at {number} percent.", {"colour": colour, "level": number}),
        }[name]
        shown = [
            ("Is it raining in Madrid?", _dump({"name": "weather", "arguments": {"city": "Madrid"}})),
            ("Set a timer for 7 minutes.", _dump({"name": "timer", "arguments": {"minutes": 7}})),
            ("Red light, please, half of it.", _dump({"name": "light", "arguments": {"colour": "red", "level": 50}})),
        ]
        prompt = few_shot("Call a function: weather, timer or light.", shown, asked)
        items.append(Item(label, prompt, schema, _dump({"name": name, "arguments": arguments})))

    def is_valid(item: Item, text: str) -> bool:
        value = _value(text)
        if not isinstance(value, dict) or set(value) != {"name", "arguments"} or not isinstance(value["name"], str):
            return False
        kinds, given = FUNCTIONS.get(value["name"]), value["arguments"]
        if kinds is None or not isinstance(given, dict) or set(given) != set(kinds):
            return False
        return all(_fits(given[key], kind) for key, kind in kinds.items())

    def is_right(item: Item, text: str) -> float:
        wanted, value = json.loads(item.reference), _value(text)
        if wanted["name"] != value["name"]:
            return 0.0
        arguments = wanted["arguments"].items()
        return (1 + sum(value["arguments"][key] == one for key, one in arguments)) / (1 + len(arguments))

    return Task("calls", "a function call with arguments as JSON", OURS, tuple(items), is_valid, is_right, 48)

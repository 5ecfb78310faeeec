"""Four tasks on short texts: ``topics`` (choices), ``dates`` and ``units`` (regexes), ``sums`` (word problems).

An answer is right or not.
"""

from __future__ import annotations

import re

from tokdfa.constraint import Choice, Regex
from tokdfa.tasks.base import OURS, Item, Task, draws, few_shot

TOPICS = {
    "weather": ["The storm will reach the coast tonight.", "Rain and fog are expected.", "A cold front brings snow."],
    "sport": ["The team won the match by two goals.", "She ran the race in an hour.", "The coach left the club."],
    "food": ["The soup needs salt and pepper.", "Bake the bread for an hour.", "They served rice with fish."],
    "money": ["The bank raised its interest rates.", "Shares fell by four percent.", "The loan must be repaid in May."],
}
_WHEN = ["Yesterday I read:", "The paper says:", "Somebody wrote:", "On the radio:", "My brother said:", "Note:"]
_WHERE = ["", " That is all.", " Nobody was surprised.", " We heard it twice.", " So they say."]
MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
UNITS = {
    "kilometre": "km", "metre": "m", "centimetre": "cm", "kilogram": "kg", "gram": "g",
    "litre": "l", "millilitre": "ml", "hour": "h", "minute": "min", "second": "s",
}  # fmt: skip
_ONES = ["two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_QUANTITY = re.compile(rf"[1-9][0-9]?(\.5)? ({'|'.join(UNITS.values())})")
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")


def _equals(item: Item, text: str) -> float:
    return float(text == item.reference)


def _of_pattern(name: str, summary: str, items: list[Item], pattern: re.Pattern[str], max_tokens: int) -> Task:
    """A task whose answers have the form of a pattern, and are right if they equal the reference."""
    return Task(
        name,
        summary,
        OURS,
        tuple(items),
        lambda item, text: pattern.fullmatch(text) is not None,
        _equals,
        max_tokens=max_tokens,
    )


def topics() -> Task:
    """Which of four topics a text is about."""
    constraint = Choice(tuple(TOPICS))
    items = []
    for label, stream in draws(3):
        topic = stream.choice(sorted(TOPICS))
        text = f"{stream.choice(_WHEN)} {stream.choice(TOPICS[topic])}{stream.choice(_WHERE)}"
        shown = [("Sunny all week, and warm.", "weather"), ("The striker scored twice.", "sport"),
                 ("Peel the apples for the pie.", "food"), ("Taxes go up next year.", "money")]  # fmt: skip
        items.append(Item(label, few_shot(f"Topic: {', '.join(TOPICS)}.", shown, text), constraint, topic))
    return Task(
        "topics", "one of four topics", OURS, tuple(items), lambda item, text: text in TOPICS, _equals, max_tokens=8
    )


def dates() -> Task:
    """A date in words as year-month-day."""
    constraint = Regex(_DATE.pattern)
    items = []
    for label, stream in draws(4):
        year, month, day = stream.randint(1900, 2030), stream.randint(1, 12), stream.randint(1, 28)
        name = MONTHS[month - 1]
        asked = stream.choice((f"{day} {name} {year}", f"{name} {day}, {year}", f"the {day}. of {name} in {year}"))
        shown = [("4 May 1987", "1987-05-04"), ("December 31, 2001", "2001-12-31")]
        reference = f"{year}-{month:02d}-{day:02d}"
        items.append(Item(label, few_shot("Write the date as YYYY-MM-DD.", shown, asked), constraint, reference))
    return _of_pattern("dates", "a date in words as YYYY-MM-DD", items, _DATE, max_tokens=14)


def units() -> Task:
    """A quantity in words as a number and the symbol of a unit."""
    constraint = Regex(_QUANTITY.pattern)
    items = []
    for label, stream in draws(8):
        unit = stream.choice(sorted(UNITS))
        tens, ones, half = stream.randint(0, 8), stream.randint(0, 7), stream.random() < 0.3
        number = 10 * (tens + 1) + ones + 2 if tens else ones + 2
        words = f"{_TENS[tens - 1]}-{_ONES[ones]}" if tens else _ONES[ones]
        asked = f"{words}{' and a half' if half else ''} {unit}s"
        shown = [("four and a half miles", "4.5 mi"), ("thirty tons", "30 t"), ("sixty-one inches", "61 in")]
        reference = f"{number}{'.5' if half else ''} {UNITS[unit]}"
        prompt = few_shot("Write the quantity as a number and a unit.", shown, asked)
        items.append(Item(label, prompt, constraint, reference))
    return _of_pattern("units", "a quantity in words as a number and a unit", items, _QUANTITY, max_tokens=10)


def sums() -> Task:
    """Word problems with two operations."""
    constraint = Regex("-?[0-9]{1,4}")
    items = []
    for label, stream in draws(5):
        first, second, third = stream.randint(3, 30), stream.randint(2, 12), stream.randint(1, 20)
        asked, answer = stream.choice(
            (
                (f"A box has {first} pens. How many pens are in {second} boxes, and {third} more?",
                 first * second + third),
                (f"Ann has {first + third} coins, gives {third} away and finds {second}. How many has she?",
                 first + second),
                (f"A train has {first} cars with {second} seats each; {third} seats are taken. How many are free?",
                 first * second - third),
            )
        )  # fmt: skip
        shown = [
            ("A bag has 4 apples. How many apples are in 3 bags, and 2 more?", "14"),
            ("Tom has 9 cards, loses 5 and buys 3. How many has he?", "7"),
        ]
        items.append(Item(label, few_shot("Answer with a number.", shown, asked), constraint, str(answer)))
    return Task(
        "sums",
        "word problems with two operations",
        OURS,
        tuple(items),
        lambda item, text: re.fullmatch("-?[0-9]{1,4}", text) is not None,
        lambda item, text: float(int(text) == int(item.reference)),
        max_tokens=8,
    )

"""What a task is; see `tokdfa.tasks` for the words."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.constraint import Constraint

#: The licence of the items that this package makes.
OURS = "CC0-1.0"
#: How many items each task of ours has.
ITEMS = 120


@dataclass(frozen=True)
class Item:
    """`prompt`: what a model goes on from; `constraint`: of its answer; `reference`: a right answer, valid itself."""

    label: str
    prompt: str
    constraint: Constraint
    reference: str


@dataclass(frozen=True, eq=False)
class Task:
    """Items and how their answers are judged.

    `is_valid(item, text)`: whether an answer has the form; `is_right(item, text)`: the score of a valid answer, 0 to 1;
    `licence`: of the items, an SPDX name; `max_tokens`: enough for any tokenizer's answer, the end token included.
    """

    name: str
    summary: str
    licence: str
    items: tuple[Item, ...]
    is_valid: Callable[[Item, str], bool]
    is_right: Callable[[Item, str], float]
    max_tokens: int = 32

    def __post_init__(self) -> None:
        labels = {item.label for item in self.items}
        if not self.items or len(labels) < len(self.items):
            raise OptionError(f"the task {self.name!r} has no items, or two with the same label")

    def score(self, item: Item, text: str) -> float:
        """From 0 to 1; 0 for a text that is not valid."""
        return float(self.is_right(item, text)) if self.is_valid(item, text) else 0.0


def draws(seed: int) -> Iterator[tuple[str, random.Random]]:
    """A label and a random stream for each item of a task of ours: the same in every version of Python we support."""
    for number in range(ITEMS):
        yield f"{number:03d}", random.Random(1000 * seed + number)


def few_shot(instruction: str, shown: list[tuple[str, str]], question: str) -> str:
    """A prompt with examples: small models follow these better than instructions.

    It ends with a line break, not a blank: after " " a tokenizer that joins a blank with the next word has no proper
    tokens for an answer.
    """
    parts = [f"Input: {asked}\nOutput:\n{answer}\n\n" for asked, answer in shown]
    return f"{instruction}\n\n{''.join(parts)}Input: {question}\nOutput:\n"

"""Schemas whose compile, first mask, mask or advance takes long: the slowest steps, each with its schema.

    python -m tests.slow_steps                       # 100 schemas of slow kinds, drawn from seed 0
    python -m tests.slow_steps --seed 7 --count 400  # others
    python -m tests.slow_steps --schemas DIR         # the cases of a folder in MaskBench's form

A step is measured in processor time of its thread: the least of three processes, each of which reads all schemas in
turn, as a server does. So whichever comes first pays for what a vocabulary keeps for all its constraints; a plain
schema, which is not measured, comes before all. Masks and advances are those along the valid texts of a case, or along
a random walk. The garbage collector sees what a case makes, and not what was there before it, such as these figures.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import multiprocessing
import random
import time
import warnings
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.errors import TokdfaError
from tokdfa.lab.measure.schema_corpus import SchemaCase, read_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.backends.base import Matcher

RUNS = 3
#: Tokens of a text, and of a random walk, at most; the longest steps whose part of the sum is printed.
TOKENS, WALK, LONGEST = 400, 60, 10

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}


class Maker:
    """Draws schemas of kinds that were slow at some time; each method is a kind."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def _word(self) -> str:
        return "".join(self.rng.choices("abcdefghijklmnopqrstuvwxyz", k=self.rng.randint(3, 10)))

    def _words(self, least: int, most: int) -> list[str]:
        return list({self._word(): None for _ in range(self.rng.randint(least, most))})

    def _value(self) -> Schema:
        kinds: list[Schema] = [
            STRING,
            {"type": "string", "minLength": self.rng.randint(0, 3), "maxLength": self.rng.randint(4, 5_000)},
            {"type": self.rng.choice(["integer", "number", "boolean"])},
            {"enum": self._words(2, 20)},
            {"type": "array", "items": STRING, "maxItems": self.rng.randint(1, 300)},
            {"type": "string", "format": self.rng.choice(["date-time", "uri", "email", "uuid", "hostname"])},
            {"type": "string", "pattern": f"^{self._word()}-[0-9]{{{self.rng.randint(1, 9)}}}$"},
        ]
        return self.rng.choice(kinds)

    def _object(self, least: int, most: int, **more: Any) -> Schema:
        made = {name: self._value() for name in self._words(least, most)}
        return {
            "type": "object",
            "properties": made,
            "required": [name for name in made if self.rng.random() < 0.4],
        } | more

    def branches_of_enums(self) -> Schema:
        """A oneOf of objects with many enums, told apart by a tag or not at all."""
        tag, branches = self._word(), [self._object(3, 12) for _ in range(self.rng.randint(3, 30))]
        for branch in branches:
            branch["properties"] |= {tag: {"enum": self._words(1, 20)}, self._word(): {"enum": self._words(5, 60)}}
            branch["required"] += [tag] if self.rng.random() < 0.7 else []
            branch["additionalProperties"] = self.rng.random() < 0.5
        return {"type": "array", "items": {self.rng.choice(["oneOf", "anyOf"]): branches}}

    def copies(self) -> Schema:
        """A oneOf of large objects that are the same but for a few members."""
        inside = {"type": "array", "items": {"oneOf": [self._object(3, 9) for _ in range(self.rng.randint(2, 12))]}}
        shared = self._object(5, 15)["properties"] | {self._word(): inside}
        branches = [{"type": "object", "properties": shared | {self._word(): self._value()}} for _ in range(2)]
        return {"oneOf": json.loads(json.dumps(branches))}

    def patterns_of_names(self) -> Schema:
        """Language tags, and ten patterns of names beside `propertyNames` and `not`."""
        tag = self.rng.choice(["^[a-z]{2}(-[A-Z]{2})?$", "^[a-zA-Z]{2,8}(-[a-zA-Z0-9]{1,8})*$"])
        patterns = {tag: self._value()} | {f"^{word}[A-Z_]*": self._value() for word in self._words(0, 12)}
        names = {"pattern": "^[a-z_][A-Za-z_0-9-]*$", "maxLength": self.rng.randint(20, 60)}
        made = self._object(1, 5, patternProperties=patterns, propertyNames=names)
        return made | {"not": {"required": [self._word()]}}

    def product_of_lengths(self) -> Schema:
        parts = "".join(f"[{self._word()}]{{0,{self.rng.randint(9, 99)}}}-?" for _ in range(self.rng.randint(1, 4)))
        return {"type": "string", "pattern": f"^({parts})+$", "maxLength": self.rng.randint(20, 200)}

    def unicode_classes(self) -> Schema:
        first, other = self.rng.sample(["\\p{L}", "\\p{Lu}", "\\p{N}", "\\w", "\\s", "\\S", "[^\\p{P}]", "[À-ÿ]"], 2)
        return {"type": "string", "pattern": f"^{first}{{1,{self.rng.randint(5, 64)}}}{other}*$"}

    def own_ids(self) -> Schema:
        inside = {name: self._object(1, 4, **{"$id": f"http://{name}.example/schema"}) for name in self._words(2, 12)}
        return {"$defs": inside, "properties": {name: {"$ref": one["$id"]} for name, one in inside.items()}}

    def distinct_items(self) -> Schema:
        items = self.rng.choice([STRING, {"type": "integer"}, {"enum": self._words(3, 40)}, self._object(1, 3)])
        inner = {"type": "array", "items": items, "uniqueItems": True, "maxItems": self.rng.randint(2, 50)}
        return {"type": "object", "properties": dict.fromkeys(self._words(1, 20), inner)}

    def conditions(self) -> Schema:
        """One `if` for each value of a tag, all of which hold."""
        tag, values = self._word(), self._words(2, 15)
        tests = [{"properties": {tag: {"const": value}}, "required": [tag]} for value in values]
        rules = [{"if": test, "then": self._object(1, 4)} for test in tests]
        return {"type": "object", "properties": {tag: {"enum": values}}, "required": [tag], "allOf": rules}

    def large_lists(self) -> Schema:
        return self._object(2, 8) | {"properties": {name: {"enum": self._words(50, 800)} for name in self._words(1, 6)}}

    def many_definitions(self) -> Schema:
        names = self._words(10, 80)
        made = {name: self._object(2, 15) for name in names}
        for one in made.values():
            one["properties"] |= {name: {"$ref": f"#/$defs/{name}"} for name in self.rng.sample(names, 4)}
        return {"$defs": made, "$ref": f"#/$defs/{names[0]}"}


KINDS = [value for name, value in vars(Maker).items() if name[0] != "_"]


def drawn_cases(seed: int, count: int) -> Iterator[SchemaCase]:
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        schema = kind(Maker(random.Random(f"{seed}/{number}")))
        yield SchemaCase(f"{kind.__name__} {seed}/{number}", json.dumps(schema), (), "", "")


class Steps:
    """The steps of one case."""

    def __init__(self, case: SchemaCase, tokenizer: tokdfa.Tokenizer, order: str) -> None:
        self.case, self.vocabulary = case, tokenizer.vocabulary
        self.mask = tokdfa.allocate_mask(self.vocabulary.size)
        #: Step -> its time in milliseconds.
        self.found: dict[str, float] = {}
        texts = [list(tokenizer.encode(text))[:TOKENS] for _, text in filter(itemgetter(0), case.tests)]
        with contextlib.suppress(TokdfaError):  # what is refused has no steps from there on
            constraint = tokdfa.JsonSchema(case.schema_text, order=order)
            compiled = self._timed("compile", tokdfa.compile, constraint, self.vocabulary)
            for number, planned in enumerate(texts or [None]):
                self._follow(compiled.start(), number, planned)

    def _follow(self, matcher: Matcher, number: int, planned: list[int] | None) -> None:
        """The masks and advances of a text, or of a walk."""
        rng, ends = random.Random(self.case.name), self.vocabulary.end_token_set
        for step in range(WALK if planned is None else len(planned)):
            what = f"mask {number}.{step}" if number or step else "first mask"
            self._timed(what, matcher.fill_mask, self.mask)
            if planned is not None:
                token = planned[step]
            else:
                token = rng.choice([one for one in tokdfa.mask_to_ids(self.mask).tolist() if one not in ends] or [-1])
            if token < 0 or not tokdfa.mask.contains(self.mask, token):
                return
            self._timed(f"advance {number}.{step}", matcher.advance, token)

    def _timed(self, what: str, do: Callable[..., Any], *arguments: Any) -> Any:
        began = time.thread_time_ns()
        try:
            return do(*arguments)
        finally:
            self.found[what] = (time.thread_time_ns() - began) / 1e6


def measure(given: argparse.Namespace) -> list[tuple[float, str, str]]:
    """(milliseconds, step, case) of all cases, in the order in which they come."""
    warnings.simplefilter("ignore")
    tokenizer = tokdfa.load_tokenizer("llama3")
    cases = read_cases(given.schemas) if given.schemas else drawn_cases(given.seed, given.count)
    Steps(
        SchemaCase("plain", json.dumps({"type": "object", "properties": {"a": STRING}}), (), "", ""),
        tokenizer,
        given.order,
    )
    found = []
    for case in cases:
        gc.freeze()
        found += [(ms, what, case.name) for what, ms in Steps(case, tokenizer, given.order).found.items()]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--schemas", type=Path, help="folder of cases in MaskBench's form, in place of drawn ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="schemas drawn")
    parser.add_argument("--order", default="schema", choices=("schema", "any"))
    parser.add_argument("--top", type=int, default=20, help="steps of each kind that are printed")
    given = parser.parse_args()
    runs = []
    for _ in range(RUNS):
        with multiprocessing.get_context("spawn").Pool(1) as process:
            runs.append(process.apply(measure, [given]))
    steps = [min(same) for same in zip(*runs, strict=True)]
    for kind in ("compile", "first mask", "mask", "advance"):
        slowest = sorted((step for step in steps if step[1].startswith(kind)), reverse=True)
        times = [ms for ms, *_ in slowest]
        print(f"{kind}: {len(times)} steps, {sum(times):.0f} ms, of which {sum(times[:LONGEST]):.0f} in the longest")
        for ms, what, name in slowest[: given.top]:
            print(f"{ms:10.2f} ms  {what}  {name}")


if __name__ == "__main__":
    main()

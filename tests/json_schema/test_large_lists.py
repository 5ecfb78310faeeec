"""Lists of more texts than one table of names takes: they are split, and mean the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import tokdfa
from tests.walks import accepts, masks_along
from tokdfa.program import builder

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
LETTERS = 'ab"\\é𝄞\n'


def words(count: int, length: int, letters: str = LETTERS) -> list[str]:
    draw = random.Random(count)
    return ["".join(draw.choices(letters, k=draw.randint(0, length))) for _ in range(count)]


def compiled(schema: Any, **options: Any) -> tokdfa.backends.CompiledConstraint:
    return tokdfa.compile(tokdfa.JsonSchema(schema, **options), BYTES, backend="pushdown_trie")


def properties(names: list[str], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "null"} for name in names}, **more}


@pytest.mark.parametrize("limit", [1, 7, 40])
@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ({"enum": words(60, 6)}, {}),
        ({"enum": [*words(60, 6), 1, [None]]}, {}),
        ({"type": "array", "items": {"enum": words(30, 9)}}, {"escapes": "needed"}),
        ({"type": "object", "propertyNames": {"enum": words(20, 5)}}, {}),
        (properties(words(40, 5), additionalProperties=False), {}),
        (properties(words(40, 5), additionalProperties=False), {"order": "any"}),
        (properties(words(40, 5), required=words(40, 5)[:3]), {"order": "any"}),
        (properties(words(40, 5), required=words(40, 5)[:3], additionalProperties=False), {}),
        (properties(words(40, 5), additionalProperties={"type": "boolean"}), {}),
        (properties(words(20, 5), minProperties=2, patternProperties={"^a": True}), {}),
    ],
)
def test_a_list_means_the_same_when_it_is_split(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], options: dict[str, Any], limit: int
) -> None:
    whole = [masks_along(compiled(schema, **options), seed, 30) for seed in range(20)]
    monkeypatch.setattr(builder, "TABLE_CHARACTERS", limit)
    assert len(builder.split_names(tuple(words(60, 6)))) > 1
    assert [masks_along(compiled(schema, **options), seed, 30) for seed in range(20)] == whole


@pytest.mark.parametrize("limit", [3, 20, 100])
def test_each_stretch_fits_one_table(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """The nodes of its trie, counted by a set of all beginnings, two for a character beyond U+FFFF."""
    monkeypatch.setattr(builder, "TABLE_CHARACTERS", limit)
    for names in (tuple(words(80, 3)), tuple(sorted(words(80, 3)))):
        stretches = builder.split_names(names)
        assert [name for first, past in stretches for name in names[first:past]] == list(names)
        for first, past in stretches:
            begun = {name[: end + 1] for name in names[first:past] for end in range(len(name))}
            assert past == first + 1 or sum(2 if text[-1] > "\uffff" else 1 for text in begun) <= limit


def test_a_hundred_thousand_long_texts() -> None:
    texts = ["".join(random.Random(index).choices("abcdefghijklmnopqrstuvwxyz -", k=24)) for index in range(100_000)]
    allowed = compiled({"enum": texts})
    for text in (*texts[:3], *texts[-3:]):
        assert accepts(allowed.start(), json.dumps(text))
        assert not accepts(allowed.start(), json.dumps(text[:-1]))
        assert not accepts(allowed.start(), json.dumps(text + "x"))


def test_an_object_of_twenty_thousand_long_names() -> None:
    names = ["".join(random.Random(index).choices("abcdefghijklmnopqrstuvwxyz -", k=24)) for index in range(20_000)]
    closed, open_ = compiled(properties(names, additionalProperties=False)), compiled(properties(names))
    for named, text in ((True, names[0]), (True, names[-1]), (False, "other")):
        assert accepts(closed.start(), json.dumps({text: None})) == named
        assert accepts(open_.start(), json.dumps({text: None}))
        assert accepts(open_.start(), json.dumps({text: 1})) != named

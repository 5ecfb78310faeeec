"""What proper masks give back: against sums over all spellings of the choices, and what is told of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tokdfa
from tests.lab.kinds.telling import Told
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.errors import TokenRefused
from tokdfa.lab.kinds.proper_gain import KIND, LARGE, _masks
from tokdfa.models.registry import load_model
from tokdfa.skew.improper_mass import improper_mass
from tokdfa.tasks.registry import load_task
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 3
TEXT = "A list of the remaining items in the iterable is then assigned to the starred target."
TEXTS = [{"label": "one", "kind": "prose", "text": TEXT}, {"label": "two", "kind": "umlauts", "text": "süß"}]


@pytest.fixture(scope="module")
def tokenizer_name(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("t") / "tokenizer.json"
    return str(trained_byte_level(path))


@pytest.fixture(scope="module")
def rows(tokenizer_name: str) -> list[dict[str, Any]]:
    models = [{"name": "table?seed=1", "tokenizer": tokenizer_name, "label": "m"}]
    settings = {
        "models": models,
        "tasks": ["topics", "dates", "calls", "code"],
        "items": ITEMS,
        "batch": 2,
        "texts": TEXTS,
    }
    assert KIND.measure is not None
    return KIND.measure(settings, 0)


def test_the_masses_are_sums_over_spellings(rows: list[dict[str, Any]], tokenizer_name: str) -> None:
    tokenizer = load_tokenizer(tokenizer_name)
    vocabulary = tokenizer.vocabulary
    model = load_model("table?seed=1", tokenizer)
    found = [row for row in rows if row.get("task") == "topics"]
    spelled = {token: vocabulary.token_bytes(token) for token in range(vocabulary.size)}
    assert len(found) == ITEMS
    for row, item in zip(found, load_task("topics").items, strict=False):
        texts = [choice.encode() for choice in item.constraint.choices]  # type: ignore[attr-defined]
        ends = vocabulary.end_tokens
        own = [(*tokenizer.encode(text.decode()), ends[0]) for text in texts]
        context = (*model.start_tokens, *tokenizer.encode(item.prompt))
        tokens = next(one for one in own if vocabulary.spell(one[:-1]) == item.reference.encode())
        gains, masked = [], 0.0
        for place, token in enumerate(tokens):
            before = vocabulary.spell(tokens[:place])
            (logs,) = model.log_probabilities([(*context, *tokens[:place])])
            allowed = {
                t for t, data in spelled.items() if data and any(text.startswith(before + data) for text in texts)
            }
            proper = {one[place] for one in own if len(one) > place and one[:place] == tokens[:place]} - {*ends}
            end = {*ends} if before in texts else set()
            mass, proper_mass = (sum(math.exp(logs[t]) for t in one | end) for one in (allowed, proper))
            gains.append(math.log2(mass / proper_mass))
            masked -= math.log2(math.exp(logs[token]) / mass)
        assert row["tokens"] == len(tokens)
        assert row["gain"] == pytest.approx(sum(gains))
        assert row["gain_first"] == pytest.approx(gains[0])
        assert row["masked"] == pytest.approx(masked)
        assert row["proper"] == pytest.approx(masked - sum(gains))
        assert row["places"] == sum(gain > -math.log2(1 - LARGE) for gain in gains)


def test_nothing_is_taken_and_every_constraint_is_told(rows: list[dict[str, Any]]) -> None:
    mine = [row for row in rows if row["part"] == "answer"]
    assert {(row["status"], row["message"]) for row in mine} == {("ok", "")}
    assert {(row["task"], row["kind"]) for row in mine} == {
        *(("texts", "prose"), ("texts", "umlauts")),
        *(("topics", "choice"), ("dates", "regex"), ("calls", "json_schema"), ("code", "grammar")),
    }
    assert min(row["gain"] for row in mine) > -1e-9
    assert max(row["gain"] for row in mine) > 1
    told = Told(KIND, rows)
    assert [name for (name,) in told.values("proper_gain", "constraint and task")] == [
        *("choice, topics", "regex, dates", "json_schema, calls", "grammar, code"),
    ]


def test_texts_are_under_no_constraint(rows: list[dict[str, Any]], tokenizer_name: str) -> None:
    tokenizer = load_tokenizer(tokenizer_name)
    found = improper_mass(load_model("table?seed=1", tokenizer), tokenizer, TEXT)
    one, two = (row for row in rows if row.get("task") == "texts")
    mass = np.frombuffer(one["mass"], "<f4")
    assert mass == pytest.approx(np.exp(found.log_mass), rel=1e-6)
    assert (one["tokens"], one["places"]) == (len(mass), (mass > LARGE).sum())
    assert one["gain"] == pytest.approx(-np.log2(1 - np.exp(found.log_mass)).sum())
    assert one["masked"] == pytest.approx(-found.log_chosen.sum() / math.log(2))
    told = Told(KIND, rows)
    table = told.tables["improper_mass"].set_index("constraint and task")
    assert table["mean"]["prose, texts"] == pytest.approx(mass.mean(), rel=1e-5)
    assert table["p50"]["prose, texts"] == pytest.approx(np.median(mass))
    assert two["tokens"] == 4  # a token of its own for ß, two bytes for ü


def test_a_reference_that_is_no_answer_is_a_failure() -> None:
    """Up to its last token it is: only the end is refused."""
    tokenizer = load_tokenizer("bytes")
    compiled = tokdfa.compile(tokdfa.Regex("[0-9]{3}"), tokenizer.vocabulary)
    with pytest.raises(TokenRefused):
        list(_masks(compiled, (), (*b"12", tokenizer.vocabulary.end_tokens[0])))
    assert len(list(_masks(compiled, (), (*b"123", tokenizer.vocabulary.end_tokens[0])))) == 4

"""One prompt, every engine: against plain enumeration, and against the calls of `tokdfa.skew.exact` themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.proper.small_tokenizers import merge_list
from tests.skew.enumeration import all_spellings, by_text, masked_masses, model_masses
from tokdfa.backends.registry import create_backend
from tokdfa.lab.measure import skew_rows
from tokdfa.lab.measure.engines import Engine, EngineSet
from tokdfa.lab.measure.model_bench import Prompt
from tokdfa.lab.measure.skew_rows import exact_rows, language_of
from tokdfa.models.cache import CachedModel
from tokdfa.models.table import random_table
from tokdfa.skew.distances import total_variation
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.vocabulary.tokenizers import Tokenizer

CHOICES = ("abab", "ba", "bb")
ENGINES = [
    Engine(backend="token_index"),
    Engine(backend="tokens_dfa"),
    Engine(backend="cartesian_merge"),
    Engine(backend="encoded_texts"),
    Engine(backend="tokens_dfa", label="muted", options={"mute_literals": True}),
]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return load_tokenizer(merge_list(tmp_path / "tokenizer.json", "ab", [("a", "b"), ("ab", "ab"), ("b", "b")]))


def compared(
    tokenizer: Tokenizer, engines: list[Engine] = ENGINES, choices: tuple[str, ...] = CHOICES, **limits: Any
) -> dict[str, dict[str, Any]]:
    model = CachedModel(random_table(tokenizer.vocabulary, seed=3))
    prompt, engine_set = Prompt(label="p", prompt="", choices=list(choices)), EngineSet(engines, tokenizer.vocabulary)
    asked = {"eos": "ignored", "tolerance": 0.0, "max_prefixes": 10_000} | limits
    return {row["engine"]: row for row in exact_rows(prompt, model, tokenizer, engines, engine_set, **asked)}


@pytest.mark.parametrize("eos", ["ignored", "counted"])
def test_every_distribution_is_the_enumerated_one(tokenizer: Tokenizer, eos: str) -> None:
    vocabulary = tokenizer.vocabulary
    found = compared(tokenizer, eos=eos)
    assert list(found) == ["ideal", "token_index", "tokens_dfa", "cartesian_merge", "encoded_texts", "muted"]
    model, texts = random_table(vocabulary, seed=3), [choice.encode() for choice in CHOICES]
    spelled = all_spellings(vocabulary, texts)
    proper = {tuple(tokenizer.encode(choice)) for choice in CHOICES}
    masses = {
        "ideal": model_masses(model, (), spelled, eos),
        "token_index": masked_masses(model, (), spelled, eos),
        "cartesian_merge": masked_masses(model, (), proper, eos),
    }
    ideal = np.array(by_text(vocabulary, texts, masses["ideal"]))
    ideal /= ideal.sum()
    for name, expected in masses.items():
        values = np.array(by_text(vocabulary, texts, expected))
        values /= values.sum()
        assert json.loads(found[name]["probabilities"]) == pytest.approx(values, abs=1e-12)
        if name != "ideal":
            assert found[name]["total_variation"] == pytest.approx(total_variation(ideal, values), abs=1e-12)
    assert total_variation(ideal, values) > 0.01  # the skew that the test is about is there


def test_engines_of_one_language_agree_and_a_disagreement_is_seen(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compared(tokenizer)
    assert {name: row["language"] for name, row in found.items()} == {
        **{"ideal": "all", "token_index": "all", "tokens_dfa": "all", "cartesian_merge": "proper"},
        **{"encoded_texts": "proper", "muted": "muted"},
    }
    assert language_of(create_backend("tokens_dfa", tokenizer.vocabulary, proper=True)) == "proper"
    assert {(row["first"], name, row["same"]) for name, row in found.items() if "first" in row} == {
        ("token_index", "tokens_dfa", True),
        ("cartesian_merge", "encoded_texts", True),
    }
    monkeypatch.setattr(skew_rows, "MUTED", "all")  # an engine that is said to admit every spelling, and does not
    liar = compared(tokenizer)["muted"]
    plain, muted = (np.array(json.loads(found[name]["probabilities"])) for name in ("token_index", "muted"))
    assert (liar["first"], liar["same"]) == ("token_index", False)
    assert liar["difference"] == pytest.approx(np.abs(plain - muted).max())

"""One prompt, every engine: against plain enumeration, and against the calls of `tokdfa.skew.exact` themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.small_tokenizers import merge_list
from tests.skew.enumeration import all_spellings, by_text, masked_masses, model_masses
from tokdfa.backends.registry import create_backend
from tokdfa.lab.measure.engines import Engine, EngineSet
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.skew_comparison import Entrant, Limits, agreements, compare_engines, language_of
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
EXACT = Limits("ignored", 0.0, 10_000)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return load_tokenizer(merge_list(tmp_path / "tokenizer.json", "ab", [("a", "b"), ("ab", "ab"), ("b", "b")]))


def compared(
    tokenizer: Tokenizer, engines: list[Engine] = ENGINES, limits: Limits = EXACT, choices: tuple[str, ...] = CHOICES
) -> dict[str, Entrant]:
    model = CachedModel(random_table(tokenizer.vocabulary, seed=3))
    engine_set = EngineSet(engines, tokenizer.vocabulary)
    found = list(compare_engines(model, (), choices, engines, engine_set, limits))
    return {entrant.name: entrant for entrant in found}


@pytest.mark.parametrize("eos", ["ignored", "counted"])
def test_every_distribution_is_the_enumerated_one(tokenizer: Tokenizer, eos: str) -> None:
    vocabulary = tokenizer.vocabulary
    found = compared(tokenizer, limits=Limits(eos, 0.0, 10_000))  # type: ignore[arg-type]
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
        entrant = found[name]
        assert not isinstance(entrant.result, Failure)
        values = np.array(by_text(vocabulary, texts, expected))
        values /= values.sum()
        assert entrant.result.distribution.probabilities == pytest.approx(values, abs=1e-12)
        if name != "ideal":
            assert entrant.distances is not None
            assert entrant.distances.total_variation.lower == pytest.approx(total_variation(ideal, values), abs=1e-12)
    assert found["ideal"].distances is None
    assert total_variation(ideal, values) > 0.01  # the skew that the test is about is there


def test_rows_are_shared_and_counted(tokenizer: Tokenizer) -> None:
    found = compared(tokenizer)
    prefixes = {name: entrant.result.prefixes for name, entrant in found.items()}  # type: ignore[union-attr]
    assert found["ideal"].rows_computed == prefixes["ideal"]
    assert found["token_index"].rows_computed == prefixes["token_index"] - prefixes["ideal"] >= 0
    assert [found[name].rows_computed for name in ("tokens_dfa", "cartesian_merge", "encoded_texts", "muted")] == [
        0
    ] * 4
    assert all(entrant.seconds > 0 for entrant in found.values())


def test_engines_of_one_language_agree_and_a_disagreement_is_seen(tokenizer: Tokenizer) -> None:
    found = compared(tokenizer)
    assert {name: entrant.language for name, entrant in found.items()} == {
        **{"ideal": "all", "token_index": "all", "tokens_dfa": "all", "cartesian_merge": "proper"},
        **{"encoded_texts": "proper", "muted": "muted"},
    }
    assert language_of(create_backend("tokens_dfa", tokenizer.vocabulary, proper=True)) == "proper"
    pairs = agreements(list(found.values()))
    assert [(one.language, one.first, one.other, one.holds) for one in pairs] == [
        ("all", "token_index", "tokens_dfa", True),
        ("proper", "cartesian_merge", "encoded_texts", True),
    ]
    # a muted engine that is said to admit every spelling disagrees with one that does
    wrong = Entrant("liar", "tokens_dfa", "all", found["muted"].result, found["muted"].distances)
    (liar,) = agreements([found["token_index"], wrong])
    assert not liar.holds
    plain, muted = (found[name].result.distribution.probabilities for name in ("token_index", "muted"))  # type: ignore[union-attr]
    assert liar.difference == pytest.approx(np.abs(plain - muted).max())


def test_failures_are_entrants_and_nobody_follows_an_ideal_that_fails(tokenizer: Tokenizer) -> None:
    small = Engine(backend="direct_merge", label="small", options={"max_transitions": 1})
    found = compared(tokenizer, [Engine(backend="token_index"), small])
    assert not isinstance(found["token_index"].result, Failure)
    assert isinstance(found["small"].result, Failure)
    assert agreements(list(found.values())) == []
    (ideal,) = compared(tokenizer, limits=Limits("ignored", 0.0, 1), choices=("baa", "aaa")).values()
    assert isinstance(ideal.result, Failure)
    assert ideal.result.kind == "memory"

"""What holds for every way to draw: the mass without bias, the target in the limit, costs, limits and errors."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.decoding.models import (
    APART,
    LETTERS,
    SPECIAL,
    WORDS,
    A,
    DeadEnd,
    by_text,
    compile_words,
    distance,
    masked_sequences,
    skewed_model,
    target_sequences,
)
from tokdfa.backends.token_index import TokenIndex
from tokdfa.constraint import Choice
from tokdfa.decoding.adaptive_rejection import draw_by_adaptive_rejection
from tokdfa.decoding.adaptrack import draw_by_adaptrack
from tokdfa.decoding.asap import draw_by_asap
from tokdfa.decoding.cars import draw_by_cars
from tokdfa.decoding.mcmc import draw_by_mcmc
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.errors import EmptyMask, ModelError, NothingDrawn, OptionError
from tokdfa.models.table import TableModel
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.decoding.draws import Draws, Eos
    from tokdfa.models.base import LanguageModel

COMPILED = compile_words(WORDS)
#: Strategy -> its function, and what it calls the number of sequences.
DRAWS: dict[str, tuple[Any, str]] = {
    "rejection": (partial(draw_by_rejection, max_drafts=20_000, batch=64), "samples"),
    "asap": (partial(draw_by_asap, weighted=True), "samples"),
    "smc": (draw_by_smc, "particles"),
    "adaptive_rejection": (draw_by_adaptive_rejection, "particles"),
    "cars": (draw_by_cars, "samples"),
    "adaptrack": (draw_by_adaptrack, "samples"),
    "mcmc": (partial(draw_by_mcmc, steps=3, proposal="priority"), "samples"),
}
#: Those that ask about single tokens and fill no masks.
BY_CHECKS = ("rejection", "adaptive_rejection")
#: Those whose sequences all count the same.
EQUAL = ("rejection", "cars", "adaptrack", "mcmc")
each = pytest.mark.parametrize("name", DRAWS)
#: A chain approaches the target with its steps, not with their number: `test_mcmc` has its law.
each_of_many = pytest.mark.parametrize("name", [name for name in DRAWS if name != "mcmc"])


def draw(
    name: str, model: LanguageModel, count: int, context: Any = (), compiled: Any = COMPILED, **more: Any
) -> Draws:
    function, number = DRAWS[name]
    return function(model, compiled, context, **{number: count}, **more)


@pytest.mark.parametrize("eos", ["counted", "ignored"])
@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("rejection", 2, {"max_drafts": 1000, "batch": 32}),
        ("rejection", 5, {"max_drafts": 12, "batch": 32}),
        ("asap", 6, {"max_drafts": 6}),
        ("cars", 6, {"max_drafts": 6}),
        ("mcmc", 6, {"steps": 0}),
        *(("smc", 6, {"threshold": threshold}) for threshold in (0, 0.5, 1)),
        *(("adaptive_rejection", 8, {"threshold": threshold}) for threshold in (0, 0.5)),
    ],
)
def test_the_mass_is_estimated_without_bias(name: str, count: int, options: dict[str, float], eos: Eos) -> None:
    """That of the whole constraint and, where sequences have weights, that of one text."""
    model, words = skewed_model(seed=9), WORDS if eos == "counted" else APART
    target, compiled = target_sequences(model, words, eos=eos), compile_words(words)
    masses, parts, text = [], [], max(by_text(target), key=by_text(target).get)
    for seed in range(300):
        draws = draw(name, model, count, compiled=compiled, eos=eos, seed=seed, **options)
        masses.append(math.exp(draws.log_mass))
        parts.append(sum(np.exp(draws.log_weights)[[spelled == text for spelled in draws.texts]]) / count)
    checked = [(masses, sum(target.values()))]
    if name not in EQUAL:
        checked.append((parts, by_text(target)[text] * sum(target.values())))
    for values, truth in checked:
        # nearly standard normal: beyond 4 with probability 6e-5
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / math.sqrt(len(values))
    # not because the error is large
    assert np.std(masses) / math.sqrt(len(masses)) < 0.1 * sum(target.values())


@each_of_many
def test_many_come_near_to_the_target(name: str) -> None:
    model = skewed_model()
    truth = by_text(target_sequences(model, WORDS))
    assert distance(by_text(masked_sequences(model, WORDS)), truth) > 0.12, "local masking would not pass"
    away = {
        count: np.mean([distance(draw(name, model, count, seed=seed).text_probabilities(), truth) for seed in range(5)])
        for count in (10, 1000)
    }
    assert away[1000] < 0.06
    assert away[1000] < away[10] / 2


@each
def test_costs_are_what_the_model_saw_and_draws_those_of_the_seed(name: str) -> None:
    model = skewed_model()
    draws = draw(name, model, 50)
    assert (draws.model_rows, draws.model_calls) == (model.counts.rows, model.counts.batches)
    assert draws.seconds > draws.model_seconds >= model.counts.seconds > 0
    assert (draws.masks == 0) == (name in BY_CHECKS)
    assert (draws.single_token_checks == 0) == (name not in BY_CHECKS)
    assert len(draws.sequences) == 50 <= draws.drafts
    assert draws.sequences == draw(name, model, 50).sequences
    assert draws.sequences != draw(name, model, 50, seed=1).sequences


@each_of_many
def test_what_is_too_long_has_no_weight(name: str) -> None:
    model = skewed_model()
    draws = draw(name, model, 2000, max_tokens=3)
    target = {tokens: p for tokens, p in target_sequences(model, WORDS).items() if len(tokens) <= 2}
    assert math.exp(draws.log_mass) == pytest.approx(sum(target.values()), rel=0.1)
    assert {tokens for tokens, w in zip(draws.sequences, draws.log_weights, strict=True) if w > -np.inf} <= set(target)
    assert distance(draws.text_probabilities(), by_text(target)) < 0.06


@each
def test_a_model_without_mass_on_the_constraint(name: str) -> None:
    nowhere = TableModel(LETTERS, lambda prefix: np.eye(LETTERS.size)[A])
    draws = draw(name, nowhere, 3, max_tokens=9)
    assert draws.log_mass == -math.inf
    with pytest.raises(NothingDrawn):
        draws.text_probabilities()


@each
def test_errors(name: str) -> None:
    model = skewed_model()
    with pytest.raises(OptionError, match=DRAWS[name][1]):
        draw(name, model, 0)
    for wrong in ({"max_tokens": 0}, {"eos": "maybe"}, {"seed": -3}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            draw(name, model, 3, **wrong)
    with pytest.raises(OptionError, match="may also go on"):
        draw(name, model, 100, eos="ignored")
    wider = TokenIndex(Vocabulary([b"a", b"b"], end_tokens=[2], size=12)).compile(Choice(["ab"]))
    with pytest.raises(ModelError, match="different vocabularies"):
        draw(name, model, 1, compiled=wider)
    if name not in BY_CHECKS:  # the others do not look at masks
        with pytest.raises(EmptyMask, match="dead end"):
            draw(name, model, 2, compiled=DeadEnd(COMPILED))
    model.context_limit = 2
    with pytest.raises(ModelError, match="longer than the 2"):
        draw(name, model, 2, (SPECIAL, SPECIAL))

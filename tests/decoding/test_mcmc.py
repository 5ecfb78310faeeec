"""Markov chains over sequences: the exact transition matrix leaves the target as it is and draws everything to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.decoding.models import (
    LETTERS,
    WORDS,
    compile_words,
    explore,
    masked_sequences,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding import mcmc, prefix_tree
from tokdfa.decoding.draws import Costs, Target
from tokdfa.decoding.mcmc import draw_by_mcmc, log_proposal
from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from tokdfa.decoding.draws import Eos
    from tokdfa.decoding.mcmc import Proposal

PROPOSALS = ("uniform", "priority", "restart")
FEW = (b"ab", b"cb", b"cca", b"c")
each = pytest.mark.parametrize("proposal", PROPOSALS)


def chain_of(proposal: Proposal, max_tokens: int = 256, words: tuple[bytes, ...] = FEW, eos: Eos = "counted") -> object:
    target = Target(skewed_model(3), compile_words(words), (), max_tokens, eos)
    return mcmc._Chain(target, np.random.default_rng(0), proposal, Costs())


def states(monkeypatch: pytest.MonkeyPatch, max_tokens: int) -> tuple[dict, dict]:
    """All sequences that local masking draws, as states, and their chances."""

    def run(draw: object) -> object:
        for place in (mcmc, prefix_tree):
            monkeypatch.setattr(place, "draw_index", lambda cumulative, generator: draw(cumulative))
        return chain_of("restart", max_tokens).here

    found, chances = {}, {}
    for probability, state in explore(run):
        found[tuple(state.tokens)] = state
        chances[tuple(state.tokens)] = probability
    return found, chances


def transitions(proposal: Proposal, monkeypatch: pytest.MonkeyPatch, max_tokens: int) -> tuple[list, np.ndarray]:
    """The sequences, those that are complete first, and the matrix of the chances to go from one to another."""
    chain = chain_of(proposal, max_tokens)
    found, _ = states(monkeypatch, max_tokens)
    names = sorted(found, key=lambda tokens: not found[tokens].is_complete)
    matrix = np.zeros((len(names), len(names)))
    for row, name in enumerate(names):

        def run(draw: object, name: tuple[int, ...] = name) -> tuple[int, ...]:
            for place in (mcmc, prefix_tree):
                monkeypatch.setattr(place, "draw_index", lambda cumulative, generator: draw(cumulative))
            chain.here = found[name]
            chain.step()
            return tuple(chain.here.tokens)

        for probability, reached in explore(run):
            matrix[row, names.index(reached)] += probability
    assert np.allclose(matrix.sum(axis=1), 1)
    return names, matrix


@each
@pytest.mark.parametrize("max_tokens", [256, 3])
def test_the_target_is_stationary_and_the_distance_never_grows(
    proposal: Proposal, max_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, matrix = transitions(proposal, monkeypatch, max_tokens)
    model = skewed_model(3)
    masses = {tokens: p for tokens, p in target_sequences(model, FEW).items() if len(tokens) < max_tokens}
    chances = states(monkeypatch, max_tokens)[1]
    target = np.zeros(len(names))
    for place, name in enumerate(names):  # an end token is one of two
        if name[:-1] in masses and name[-1] in LETTERS.end_tokens:
            target[place] = np.exp(sum(model.log_probabilities([name[:i]])[0][t] for i, t in enumerate(name)))
    assert target.sum() == pytest.approx(sum(masses.values()))
    assert {name[:-1] for name, p in zip(names, target, strict=True) if p} == set(masses)
    target /= target.sum()
    # detailed balance, and so stationary
    flow = target[:, None] * matrix
    assert np.allclose(flow, flow.T, atol=1e-12)
    here = np.array([chances[name] for name in names])
    distances = []
    for _ in range(150):
        distances.append(np.abs(here - target).sum() / 2)
        here = here @ matrix
    assert np.all(np.diff(distances) <= 1e-12)
    assert distances[0] > 0.1
    assert distances[-1] < 0.01


@each
def test_proposals_have_the_chances_that_the_ratio_takes(proposal: Proposal, monkeypatch: pytest.MonkeyPatch) -> None:
    """log_proposal against all ways to cut and to go on, with every proposal taken."""
    chain = chain_of(proposal)
    found, _ = states(monkeypatch, 256)
    for here in found.values():

        def run(draw: object, here: object = here) -> tuple[int, ...]:
            for place in (mcmc, prefix_tree):
                monkeypatch.setattr(place, "draw_index", lambda cumulative, generator: draw(cumulative))
            chain.here = here
            chain.step()
            return tuple(chain.here.tokens)

        monkeypatch.setattr(mcmc, "happens", lambda chance, generator: True)
        chances = dict.fromkeys(found, 0.0)
        for probability, reached in explore(run):
            chances[reached] += probability
        monkeypatch.setattr(mcmc, "happens", prefix_tree.happens)
        for name, there in found.items():
            assert np.exp(log_proposal(here, there, proposal)) == pytest.approx(chances[name], abs=1e-12)


def test_without_steps_it_is_local_masking_and_costs_follow_the_cut() -> None:
    model = skewed_model()
    compiled = compile_words(WORDS)
    none = draw_by_mcmc(model, compiled, samples=300, steps=0)
    assert set(none.sequences) <= set(masked_sequences(model, WORDS))
    assert none.model_rows == sum(len(tokens) + 1 for tokens in none.sequences)
    uniform, restart = (draw_by_mcmc(model, compiled, samples=300, steps=5, proposal=p) for p in ("uniform", "restart"))
    assert none.model_rows < uniform.model_rows < restart.model_rows


def test_options_out_of_range() -> None:
    for wrong in ({"steps": -1}, {"steps": 1.5}, {"proposal": "prefix"}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            draw_by_mcmc(skewed_model(), compile_words(WORDS), samples=1, **wrong)

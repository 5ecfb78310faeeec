"""Loops that run together get what they get alone, in fewer batches; one that fails does so alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tokdfa.errors import ModelError
from tokdfa.lab.measure.together import run_together
from tokdfa.models.cache import CachedModel
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary([b"a", b"b", b""], end_tokens=[2])
ROW_MB = 3 * 8 / 1e6


def walk(seed, steps, inside=None):
    """A loop that draws `steps` tokens and keeps all rows; `inside` counts the loops that run at the moment."""

    def work(model):
        generator, tokens, rows = np.random.default_rng(seed), (), []
        for _ in range(steps):
            if inside is not None:
                inside.append(1)
                assert len(inside) == 1, "another loop runs"
                inside.pop()
            row = model.log_probabilities([tokens])[0]
            tokens += (int(generator.choice(3, p=np.exp(row) / np.exp(row).sum())),)
            rows.append(row)
        return tokens, np.array(rows)

    return work


@pytest.mark.parametrize("capacity", [1, 3, 1000])
def test_each_loop_finds_what_it_finds_alone(capacity):
    lengths = [0, 5, 9, 9, 1, 7]
    model = random_table(VOCABULARY, 3)
    found = run_together(CachedModel(model, capacity * ROW_MB), [walk(n % 4, n, []) for n in lengths])
    for n, (tokens, rows) in zip(lengths, found, strict=True):
        alone_tokens, alone_rows = walk(n % 4, n)(random_table(VOCABULARY, 3))
        assert tokens == alone_tokens
        np.testing.assert_array_equal(rows, alone_rows)
    if capacity == 1000:
        prefixes = {tokens[:end] for tokens, _ in found for end in range(len(tokens))}
        assert model.counts.rows == len(prefixes), "each row is made once"
        assert model.counts.batches == max(lengths), "a batch a round"


def test_a_loop_that_fails_does_not_stop_the_others():
    def fails(model):
        model.log_probabilities([(0,)])
        raise ValueError("mine")

    broken = TableModel(VOCABULARY, {(): [0.5, 0.25, 0.25], (0,): [0.5, 0.5, 0.0]})  # no row after (1,)
    works = [fails, lambda model: model.log_probabilities([(1,)]), lambda model: model.log_probabilities([(0,)])]
    mine, fault, row = run_together(CachedModel(broken), works)
    assert isinstance(mine, ValueError)
    assert isinstance(fault, ModelError)
    np.testing.assert_allclose(np.exp(row), [[0.5, 0.5, 0.0]])


def test_an_interrupt_ends_all_threads():
    class Interrupted(CachedModel):
        def _log_probabilities(self, prefixes):
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_together(Interrupted(random_table(VOCABULARY, 3)), [walk(1, 3), walk(2, 3)])
    assert threading.active_count() == before

"""A cached model gives the rows of its model bit for bit, asks for each once, and forgets the least recently used."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import ModelError, OptionError
from tokdfa.models.cache import CachedModel
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary([b"a", b"b", b""], end_tokens=[2])
ROW_MB = 3 * 8 / 1e6
PREFIXES = st.lists(st.integers(0, 1), max_size=2).map(tuple)


@settings(max_examples=150)
@given(st.lists(st.lists(PREFIXES, max_size=6), max_size=6), st.integers(1, 8))
def test_rows_and_what_is_kept(batches: list[list[tuple[int, ...]]], capacity: int) -> None:
    model, plain = random_table(VOCABULARY, 3), random_table(VOCABULARY, 3)
    cached = CachedModel(model, capacity * ROW_MB)
    kept: OrderedDict[tuple[int, ...], None] = OrderedDict()
    computed = 0
    for batch in batches:
        rows = cached.log_probabilities(batch)
        np.testing.assert_array_equal(rows, plain.log_probabilities(batch))
        rows[:] = 0  # the caller's own
        missing = [prefix for prefix in dict.fromkeys(batch) if prefix not in kept]
        computed += len(missing)
        for prefix in [*(prefix for prefix in batch if prefix in kept), *missing]:
            kept[prefix] = None
            kept.move_to_end(prefix)
            if len(kept) > capacity:
                kept.popitem(last=False)
        assert model.counts.rows == cached.misses == computed
        assert cached.kept_bytes == 24 * len(kept)
        assert cached.holds(list(kept))
        assert cached.holds(batch) == (set(batch) <= set(kept))
    assert cached.counts.rows == cached.hits + cached.misses == sum(map(len, batches))
    assert cached.counts.tokens == model.counts.tokens
    assert cached.counts.batches == sum(1 for batch in batches if batch)


def test_it_stands_for_its_model() -> None:
    model = random_table(VOCABULARY, 7)
    model.context_limit, model.start_tokens = 2, (2,)
    cached = CachedModel(model)
    assert (cached.name, cached.fingerprint, cached.vocabulary) == (model.name, model.fingerprint, VOCABULARY)
    assert cached.start_tokens == (2,)
    with pytest.raises(ModelError, match="a prefix of 3 tokens is longer than the 2"):
        cached.log_probabilities([[0, 0, 0]])
    with pytest.raises(ModelError, match="token 3 is outside the vocabulary"):
        cached.log_probabilities([[3]])


def test_a_fault_of_the_model_is_reported_and_not_kept() -> None:
    rows = {(): [0.5, 0.25, 0.25], (0,): [0.5, 0.5, 0.5]}
    cached = CachedModel(TableModel(VOCABULARY, rows))
    cached.log_probabilities([[]])
    for _ in range(2):
        with pytest.raises(ModelError, match=r"sum to 1\.5"):
            cached.log_probabilities([[], [0]])
    np.testing.assert_allclose(np.exp(cached.log_probabilities([[]])), [[0.5, 0.25, 0.25]])
    assert cached.kept_bytes == 24


@pytest.mark.parametrize("capacity", [0, -1, 0.99 * ROW_MB, float("nan")])
def test_a_capacity_below_one_row(capacity: float) -> None:
    with pytest.raises(OptionError, match=r"one row of table.* takes 2\.4e-05 MB"):
        CachedModel(random_table(VOCABULARY, 0), capacity)

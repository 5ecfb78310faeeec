"""What is asked of a model, counted by prefixes and by calls."""

import numpy as np

from tokdfa.lab.measure.counting_model import CountingModel
from tokdfa.models.cache import CachedModel
from tokdfa.models.registry import load_model


def test_prefixes_count_once_and_rows_each_time():
    inside = load_model("table?seed=1", "bytes")
    kept = CachedModel(inside)
    asked = CountingModel(kept)
    for prefixes in ([(1,), (2,), (1,)], [(2,)], [(2,), (3, 4)]):
        rows = asked.log_probabilities(prefixes)
        assert np.array_equal(rows, inside.log_probabilities(prefixes))
    assert (asked.different_rows, asked.calls) == (3, 2)
    assert (asked.counts.rows, asked.counts.batches) == (6, 3)
    assert CountingModel(kept).different_rows == 0
    assert (asked.name, asked.fingerprint, asked.vocabulary) == (inside.name, inside.fingerprint, inside.vocabulary)


def test_tokens_are_read_once_however_often_they_begin_a_prefix():
    asked = CountingModel(load_model("table?seed=1", "bytes"))
    asked.log_probabilities([(1, 2), (1, 2, 3, 4), (1, 2, 3, 5), (1, 2)])
    assert asked.tokens_read(2) == 3  # 3, then 4 and 5
    assert asked.tokens_read(0) == 5
    assert asked.tokens_read(4) == 0

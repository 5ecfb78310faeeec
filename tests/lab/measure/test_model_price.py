"""The price of a model whose seconds are known."""

import time

import pytest

from tokdfa.lab.measure.counting_model import CountingModel
from tokdfa.lab.measure.model_price import CALIBRATION_REPEATS, CALIBRATION_ROWS, calibrate
from tokdfa.models.registry import load_model


class Slow(CountingModel):
    """Takes 20 ms a call and 2 ms a row, of a clock that stands still otherwise."""

    def __init__(self, model, monkeypatch):
        super().__init__(model)
        self.now = 0
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.now)

    def _log_probabilities(self, prefixes):
        self.now += 20_000_000 + 2_000_000 * len(prefixes)
        return super()._log_probabilities(prefixes)


def test_the_price_is_the_line_through_two_batches(monkeypatch):
    model = Slow(load_model("table?seed=3", "bytes"), monkeypatch)
    price = calibrate(model, (1, 2), seed=0)
    assert (price.call, price.row) == (pytest.approx(0.020), pytest.approx(0.002))
    # every row is one token beyond the prompt, and no row comes twice
    rows = (CALIBRATION_REPEATS + 1) * sum(CALIBRATION_ROWS)
    assert model.counts.rows == model.different_rows == rows
    assert calibrate(model, (1, 2), seed=0) == price

from __future__ import annotations

import pandas as pd
import pytest

from tokdfa.errors import StoreError
from tokdfa.lab.run.cost import Cost, costs_of, seconds_for
from tokdfa.lab.run.store import Run


class Stored(Run):
    """A run with these tables."""

    folder = "nowhere"

    def __init__(self, items, results):
        object.__setattr__(self, "_tables", (pd.DataFrame(items), pd.DataFrame(results)))

    def items(self):
        return self._tables[0]

    def results(self):
        return self._tables[1]


ITEMS = {
    "item_id": ["a", "b", "c", "d", "e"],
    "tokenizer": ["one", "one", "one", "two", None],
    "label": ["maskbench"] * 4 + ["skew"],
    "seconds": [4.0, 5.0, 1.0, 8.0, 3.0],
}
RESULTS = {
    "item_id": ["a", "a", "b", "c", "d", "d", "e", "e"],
    "engine": ["x", "x", "x", "y", "x", "x", "x", "y"],
}


def test_by_tokenizer_and_engine():
    found = costs_of(Stored(ITEMS, RESULTS))
    assert found == [
        Cost("one", "x", 2, 3, 9.0),
        Cost("one", "y", 1, 1, 1.0),
        Cost("two", "x", 1, 2, 8.0),
        Cost("", "skew", 1, 2, 3.0),  # its rows are of several engines
    ]
    assert [(one.per_item, one.per_row) for one in found] == [(4.5, 3.0), (1.0, 1.0), (8.0, 4.0), (3.0, 1.5)]
    # x has taken 3.0 and 4.0 s a row
    assert seconds_for(found[:3], rows=10, tokenizers=4) == pytest.approx(10 * 4 * (3.5 + 1.0))


def test_what_has_no_rows_has_no_cost_of_rows():
    alone = Stored({name: values[:1] for name, values in ITEMS.items()}, {"item_id": []})
    (found,) = costs_of(alone)
    assert (found.rows, found.per_row) == (0, None)
    with pytest.raises(StoreError, match="maskbench has no rows"):
        seconds_for([found], 10, 1)
    with pytest.raises(StoreError, match="nothing has been measured yet"):
        costs_of(Stored({}, {}))

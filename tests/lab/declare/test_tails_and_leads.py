"""Distributions of arrays of numbers and their tails; sentences of all groups together; colours that do not meet."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Distribution, Results, Say
from tokdfa.lab.declare.columns import seconds
from tokdfa.lab.declare.look import PALETTE, looks
from tokdfa.lab.measure.constraint_entry import item_settings

COLUMNS = {"ns": seconds("ns"), "count": Column("count")}


def packed(values: np.ndarray) -> bytes:
    return values.astype("<f4").tobytes()


def test_a_distribution_reads_arrays_and_shows_the_tail_by_its_share():
    rows = pd.DataFrame({"engine": ["a", "a"], "ns": [packed(np.arange(1, 501)), packed(np.arange(501, 1001))]})
    results = Results({"": rows}, COLUMNS)
    for tail in (False, True):
        (panel,) = Distribution("d", "D", x="ns", tail=tail).build(results).panels
        points = {round(one["y"], 4): one["x"] * 1e9 for one in panel.spec["data"]["values"]}
        assert points[0.1 if tail else 0.9] == pytest.approx(900, abs=1.01)
        scale = panel.spec["encoding"]["y"]["scale"]
        assert (scale.get("type") == "log") == tail
    # of 1,000 values nothing is known of one in a million
    assert min(points) == pytest.approx(0.001, rel=0.3)


def test_a_lead_makes_one_sentence_of_all_groups():
    rows = pd.DataFrame({"engine": ["a", "a", "b"], "count": [1, 3, 5]})
    results = Results({"": rows}, COLUMNS)
    say = Say("{engine} {n}", per=("engine",), blanks={"n": "count:sum", "all": "count:sum"}, lead="Of {all}:")
    assert say.sentences(results) == ["Of 9: a 4; b 5."]
    assert Say("{engine} {n}", per=("engine",), blanks={"n": "count:sum"}, lead="Of {all}:").sentences(results) == []


def test_item_settings_leave_out_what_belongs_to_the_item():
    from pydantic import BaseModel

    class Settings(BaseModel):
        rounds: int = 3

    assert item_settings(Settings, {"rounds": 4, "tokenizer": "bytes", "regex": "a"}).rounds == 4
    with pytest.raises(OptionError, match=r"settings\.rounds: "):
        item_settings(Settings, {"rounds": "x"})


def test_names_without_a_colour_of_their_own_get_different_ones():
    names = ["python", "import", "tokenizer and trie", "the engine's code", "compile"]
    found = looks([*names, "llguidance", "llguidance slices"])
    assert len({found[name].colour for name in names}) == len(names)
    assert found["llguidance"].colour == found["llguidance slices"].colour == PALETTE[1][0]
    assert found["llguidance"].shape != found["llguidance slices"].shape

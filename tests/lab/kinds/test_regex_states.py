"""Regex states: each way of building counts what it should, and the report ranks laws."""

from pathlib import Path

import pytest
import yaml

from tests.lab.kinds.telling import Told
from tokdfa.lab.kinds.regex_states import KIND, measure
from tokdfa.regex.nodes import LAWS

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def test_the_variants_are_in_order():
    rows = measure({"label": "counts", "regex": "(a{0,3}b|a{2,5}b)*", "max_states": 500}, seed=0)
    states = {row["variant"]: row["states"] for row in rows}
    assert list(states) == [
        "all laws", *(f"without {law}" for law in LAWS), "no laws", "subset construction", "minimal",
    ]  # fmt: skip
    assert states["minimal"] == 6
    assert states["minimal"] <= states["all laws"] <= states["without union_merge_repeats"]
    assert states["all laws"] <= states["subset construction"]


@pytest.mark.parametrize(
    ("label", "law"),
    [
        ("never ab", "complement"),
        ("both in any order", "intersection"),
        ("counts in a row", "concat_merge_repeats"),
    ],
)
def test_patterns_of_the_experiment_on_which_the_rarer_laws_act(label, law):
    entries = yaml.safe_load((EXPERIMENTS / "regex_states.yaml").read_text())["constraints"]
    entry = next(one for one in entries if one.get("label") == label)
    states = {row["variant"]: row["states"] for row in measure({**entry, "max_states": 500}, seed=0)}
    assert states["minimal"] <= states["all laws"] < states[f"without {law}"] < 500


def test_what_cannot_be_counted_has_a_status():
    rows = measure({"regex": "(?=.*a)(?=.*b)[ab]{3}", "max_states": 500}, seed=0)
    status = {row["variant"]: row["status"] for row in rows}
    assert (status["subset construction"], status["minimal"]) == ("unsupported", "ok")
    rows = measure({"regex": "(a|b)*a(a|b){12}", "max_states": 100}, seed=0)
    assert {(row["status"], row["states"]) for row in rows} == {("limit", 100)}


def row(constraint, variant, states, status="ok"):
    return {"constraint": constraint, "variant": variant, "states": states, "seconds": 0.001, "status": status}


#: variant -> states of a date and of an address; 100 is the limit
STATES = {
    "all laws": (10, 30),
    "without complement": (10, 30),
    "without intersection": (15, 31),
    "without union_aci": (10, 100),
    "no laws": (100, 100),
    "minimal": (10, 20),
}
ROWS = [
    row(constraint, variant, states, "limit" if states == 100 else "ok")
    for variant, both in STATES.items()
    for constraint, states in zip(("date", "ip"), both, strict=True)
]


def test_the_report_compares_with_the_minimal_dfa():
    told = Told(KIND, ROWS)
    found = {row[0]: row[1:] for row in told.values("states_by_variant", "variant", "finished", "already minimal")}
    assert found["all laws"] == (2, 1)
    assert found["without union_aci"] == (1, 1)
    assert found["no laws"][0] == 0
    assert ("without intersection", 1.525, 1.55) in told.values("states_by_variant", "variant", "median", "max")
    assert told.texts("dfa_states") == [["date", "10", "limit", "10"], ["ip", "30", "limit", "20"]]
    assert "1 of 2" in told.sentences[0]
    assert "1.25x" in told.sentences[0]

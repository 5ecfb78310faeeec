"""Strategies on small constraints: exact skew, drawn skew, and costs that can be counted by hand."""

import numpy as np
import pytest

from tests.lab.kinds.telling import Told, check_lost
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.cost_vs_skew import KIND, LOCAL, Settings
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.models.registry import load_model
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution

MODEL = {"name": "table?seed=2&concentration=0.2", "tokenizer": "bytes"}
MODEL_LABEL = f"{MODEL['name']} (bytes)"
TEXTS = ["ab", "ac", "bad", "bed"]
#: Strategies that are measured on both entries.
SHOWN = ["token_index", "llguidance", "smc 32, token_index", "asap 40, token_index"]
ENTRIES = [
    {"label": "small", "prompt": "x", "choices": TEXTS, "topic": "letters"},
    {"label": "forced", "prompt": "x", "choices": ["qa", "qb"], "expected": "qa"},
]
SETTINGS = {
    "models": [MODEL],
    "entries": ENTRIES,
    "engines": [
        {"backend": "token_index"},
        {"backend": "llguidance"},
        {"backend": "token_index", "options": {"max_states": 3}, "label": "small"},
    ],
    "ways": [
        {"method": "rejection", "size": 2, "engine": "token_index"},
        {"method": "smc", "size": 32, "engine": "token_index"},
        {"method": "awrs", "size": 2, "engine": "llguidance"},
        {"method": "asap", "size": 40, "engine": "token_index"},
        {"method": "smc", "size": 2, "engine": "small"},
    ],
    "tolerance": 0.0,
    "runs": 40,
    "seconds_each": 60.0,
}


@pytest.fixture(scope="module")
def rows():
    return KIND.measure(SETTINGS, 5)


def points(rows, entry="small"):
    return {row["strategy"]: row for row in rows if row["part"] == "point" and row["entry"] == entry}


def test_local_masking_is_exact(rows):
    model = load_model(MODEL["name"], "bytes")
    context = model.vocabulary.tokenizer.encode("x")
    ideal = ideal_distribution(model, context, TEXTS, eos="ignored", tolerance=0)
    compiled = compile(Choice(TEXTS), model.vocabulary)
    masked = masked_distribution(compiled, model, context, TEXTS, eos="ignored", tolerance=0)
    truth = compare(ideal.distribution, masked.distribution).total_variation.lower
    for engine in ("token_index", "llguidance"):
        row = points(rows)[engine]
        assert (row["status"], row["method"], row["engine"]) == ("ok", LOCAL, engine)
        assert row["tv_low"] == row["tv_high"] == row["tv"] == pytest.approx(truth, abs=1e-12)
        assert "plug_in" not in row
    entry = next(row for row in rows if row["part"] == "entry" and row["entry"] == "small")
    assert entry["log_mass"] == pytest.approx(ideal.log_mass.lower)
    assert (entry["choices"], entry["unresolved"], entry["topic"]) == (4, 0, "letters")
    assert entry["proper_tv"] == pytest.approx(0, abs=1e-12)  # bytes: each text has one spelling


def test_drawn_ways_come_nearer(rows):
    found = points(rows)
    local = found["token_index"]["tv"]
    for name in ("smc 32, token_index", "asap 40, token_index"):
        row = found[name]
        assert (row["status"], row["runs"], row["answered"]) == ("ok", 40, 40)
        assert row["tv"] - 1.96 * row["tv_se"] <= row["plug_in"] + 1.96 * row["tv_se"] < local
        assert row["tv"] <= row["plug_in"] + 1e-12
        assert row["noise_floor"] > 0
        assert row["passes"] <= 9  # so many prefixes there are
        assert row["seconds"] > row["mask_seconds"] > 0


def test_failures_are_rows(rows):
    found = points(rows)
    # two drafts hardly ever give one of four texts of a model over 257 tokens
    assert found["rejection 2, token_index"]["status"] == "nothing_drawn"
    assert f"{LEAST_RUNS} are needed" in found["rejection 2, token_index"]["message"]
    for name in ("small", "smc 2, small"):
        assert found[name]["status"] == "memory"
        assert "max_states" in found[name]["message"]
    settings = SETTINGS | {"runs": 30, "seconds_each": 1e-9, "entries": ENTRIES[:1]}
    late = points(KIND.measure(settings, 0))
    assert {late[name]["status"] for name in ("token_index", "asap 40, token_index")} == {"timeout"}
    ill = SETTINGS | {"entries": [{"label": "small", "prompt": "x", "choices": ["ab", "cd"]}], "max_prefixes": 1}
    (failed,) = KIND.measure(ill, 0)[1:]
    assert failed["status"] == "memory"
    assert "max_prefixes" in failed["message"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ways": [{"method": "smc", "size": 4, "engine": "none"}]}, "no engine 'none'"),
        ({"ways": [{"method": "masks", "engine": "small"}]}, "draws no sequences"),
        ({"ways": [{"method": "rejection", "engine": "small"}] * 2}, "same label"),
        ({"entries": [{"label": "a", "prompt": "x", "choices": ["a", "ab"]}]}, "beginning of"),
    ],
)
def test_faults_of_settings_are_named(changes, words):
    with pytest.raises(OptionError, match=words):
        typed_settings(Settings, SETTINGS | changes)


def test_what_is_told(rows):
    told = Told(KIND, rows)
    one, found = told.tables["cost_vs_skew"].set_index("strategy"), points(rows)
    both = {name: [points(rows, entry)[name]["tv"] for entry in ("small", "forced")] for name in SHOWN}
    assert one["total variation"][SHOWN].to_dict() == pytest.approx({name: np.mean(both[name]) for name in SHOWN})
    assert one["local masking, same entries"]["smc 32, token_index"] == pytest.approx(np.mean(both["token_index"]))
    assert one["against local masking"]["smc 32, token_index"] == "below"
    said = next(sentence for sentence in told.sentences if sentence.startswith(f"{MODEL_LABEL}: smc 32"))
    assert "(2 entries)" in said
    assert "below local masking by token_index on the same entries" in said
    assert "by token: token_index " in told.sentences[0]
    assert ", llguidance " in told.sentences[0]  # both have one distribution
    entries = told.tables["cost_vs_skew_entries"]
    assert entries[["choices", "token_index"]].iloc[0].tolist() == [4, found["token_index"]["tv"]]
    assert one["passes"]["asap 40, token_index"] <= 9
    assert set(told.tables["not_measured"]["strategy"]) == {"rejection 2, token_index", "small", "smc 2, small"}
    assert len(told.panels["cost_vs_skew_token_seconds"][MODEL_LABEL]) == len(one)
    check_lost(KIND)

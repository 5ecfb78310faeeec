"""Strategies on small constraints: exact skew, drawn skew, and costs that can be counted by hand."""

import pytest

from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds.cost_vs_skew import LOCAL, check_settings, run_item
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS
from tokdfa.models.registry import load_model
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution

MODEL = {"name": "table?seed=2&concentration=0.2", "tokenizer": "bytes"}
TEXTS = ["ab", "ac", "bad", "bed"]
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
    "strategies": [
        {"method": "rejection", "engine": "token_index"},
        {"method": "smc", "size": 32, "engine": "token_index"},
        {"method": "adaptive_rejection", "size": 2, "engine": "llguidance"},
        {"method": "asap", "size": 40, "engine": "token_index"},
        {"method": "smc", "size": 2, "engine": "small"},
    ],
    "tolerance": 0.0,
    "runs": 40,
    "max_drafts": 2,
    "seconds_each": 60.0,
}


@pytest.fixture(scope="module")
def rows():
    return run_item(dict(SETTINGS), seed=5)


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


def test_local_masking_needs_no_rows_where_a_step_is_forced(rows):
    row = points(rows, "forced")["token_index"]
    # q is forced, then a or b; a mask before each token and one at the end
    assert (row["rows"], row["calls"]) == pytest.approx((1, 1))
    assert (row["tokens"], row["masks"], row["advances"], row["checks"]) == (2, 3, 2, 0)
    assert row["rows_asked"] == 2


def test_drawn_strategies_come_nearer(rows):
    found = points(rows)
    local = found["token_index"]["tv"]
    for name in ("smc 32, token_index", "asap 40, token_index"):
        row = found[name]
        assert (row["status"], row["runs"], row["answered"]) == ("ok", 40, 40)
        assert row["tv"] - 1.96 * row["tv_se"] <= row["plug_in"] + 1.96 * row["tv_se"] < local
        assert row["tv"] <= row["plug_in"] + 1e-12
        assert row["noise_floor"] > 0
    smc, asap = found["smc 32, token_index"], found["asap 40, token_index"]
    assert (smc["size"], smc["texts"], asap["texts"]) == (32, 32, 40)
    # 9 prefixes there are, and each is asked for once a run at most, however often it comes
    assert smc["rows"] <= 9
    assert asap["rows"] <= 9
    assert asap["rows_asked"] > 9
    assert smc["calls"] <= 3
    assert smc["masks"] > found["token_index"]["masks"] * 16


def test_adaptive_rejection_asks_for_single_tokens(rows):
    row = points(rows)["adaptive rejection 2, llguidance"]
    assert row["checks"] > 0
    assert row["masks"] <= 2  # one for each particle's end
    assert row["check_us"] > 0


def test_costs_add_up(rows):
    model = next(row for row in rows if row["part"] == "model")
    assert model["row_seconds"] >= 0
    for row in points(rows).values():
        if row["status"] == "ok":
            spent = sum(row[name] * row[f"{name[:-1]}_us"] for name in ("masks", "checks", "advances") if row[name])
            assert row["engine_us"] == pytest.approx(spent)
            price = 1e6 * (row["calls"] * model["call_seconds"] + row["rows"] * model["row_seconds"])
            assert row["model_us"] == pytest.approx(price)
            assert row["others_us"] > 0
            assert row["arithmetic_us"] >= 0


def test_failures_are_rows(rows):
    found = points(rows)
    # two drafts hardly ever give one of four texts of a model over 257 tokens
    assert found["rejection, token_index"]["status"] == "nothing_drawn"
    assert f"{LEAST_RUNS} are needed" in found["rejection, token_index"]["message"]
    for name in ("small", "smc 2, small"):
        assert found[name]["status"] == "memory"
        assert "max_states" in found[name]["message"]
    settings = SETTINGS | {"runs": 30, "seconds_each": 1e-9, "entries": ENTRIES[:1]}
    late = points(run_item(settings, seed=0))
    assert {late[name]["status"] for name in ("token_index", "asap 40, token_index")} == {"timeout"}
    ill = SETTINGS | {"entries": [{"label": "small", "prompt": "x", "choices": ["ab", "cd"]}], "max_prefixes": 1}
    (failed,) = (row for row in run_item(ill, seed=0) if row["part"] == "entry")
    assert failed["status"] == "memory"
    assert "max_prefixes" in failed["message"]


def test_what_is_over_time_is_not_asked():
    rows = run_item(SETTINGS | {"seconds": 1e-9}, seed=0)
    assert [(row["part"], row["status"]) for row in rows] == [("model", "ok")] + [("entry", "not_asked")] * 2


def test_runs_are_repeatable():
    settings = SETTINGS | {"entries": ENTRIES[:1], "runs": 20, "limit": 1}
    names = ("tv", "plug_in", "rows", "masks", "checks", "tokens")
    one, other = (
        [[row.get(name) for name in names] for row in run_item(dict(settings), seed=2) if row["part"] == "point"]
        for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"runs": LEAST_RUNS - 1}, OptionError, "runs"),
        ({"models": ["gpt"]}, UnknownNameError, "gpt"),
        ({"engines": [{"backend": "nothing"}]}, UnknownNameError, "nothing"),
        ({"strategies": [{"method": "smc", "size": 4, "engine": "none"}]}, OptionError, "no engine 'none'"),
        ({"strategies": [{"method": "smc", "engine": "small"}]}, OptionError, "smc needs size, its particles"),
        ({"strategies": [{"method": "rejection", "size": 4, "engine": "small"}]}, OptionError, "has no size"),
        ({"strategies": [{"method": "rejection", "engine": "small"}] * 2}, OptionError, "given twice"),
        ({"entries": ENTRIES[:1] * 2}, OptionError, "same label"),
        ({"entries": [{"label": "a", "prompt": "x", "choices": ["a", "ab"]}]}, OptionError, "beginning of"),
        ({"entries": [{"label": "a", "prompt": "x", "choices": ["a"]}]}, OptionError, "choices"),
    ],
)
def test_faults_of_settings_are_named(changes, error, words):
    with pytest.raises(error, match=words):
        check_settings(SETTINGS | changes)


def test_axes_are_refused():
    with pytest.raises(OptionError, match="no tokenizers"):
        run_item(SETTINGS | {"tokenizer": "bytes"}, seed=0)

"""Reports on saved calls in real generation: from made-up rows with known answers, and from a tiny run."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tests.packages import needs_smollm2
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.saved_calls_lm import run_item
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.saved_calls_lm import compared, equalities

FOLDER = Path("made-up")
EXPERIMENTS = Path(__file__).parents[3] / "experiments"
BACKENDS = {"plain": "token_index", "peer": "llguidance", "proper": "cartesian_merge"}
LANGUAGES = {"plain": "all", "peer": "all", "proper": "proper"}
PLACE = {"model": "small", "tokenizer": "tiny", "status": "ok", "message": ""}
MODEL = PLACE | {"part": "model", "rows": 100, "seconds": 1.0}


def row(constraint, sample, engine, steps, forced, masks, **changes):
    """Every call of the model takes 10 ms."""
    calls = steps - forced
    made = PLACE | {"part": "text", "constraint": constraint, "sample": sample, "engine": engine}
    made |= {"backend": BACKENDS[engine], "language": LANGUAGES[engine], "tokens": steps - 1, "finished": True}
    made |= {
        "steps": steps,
        "model_calls": calls,
        "forced": forced,
        "bytes": 3 * steps,
        "text": f"{constraint}{sample}",
    }
    made |= {"sequence": json.dumps([sample] * steps), "model_seconds": 0.01 * calls, "mask_seconds": masks}
    return made | {"sampling_seconds": 0.001, "prompt_tokens": 5, "prompt_seconds": 0.1} | changes


def compiled(constraint, engine, seconds):
    made = PLACE | {"part": "compile", "constraint": constraint, "engine": engine, "backend": BACKENDS[engine]}
    return made | {"compile_seconds": seconds}


def run_data(rows, **frames):
    stored = {"results": pd.DataFrame(rows), **frames}
    return RunData.read(FakeRun(FOLDER, config(kind="saved_calls_lm", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = [MODEL]
    for number in range(8):
        name = f"c{number}"
        rows += [compiled(name, engine, 0.001 * place) for place, engine in enumerate(BACKENDS, 1)]
        for sample in range(2):
            forced = number % 3
            rows.append(row(name, sample, "plain", 10, forced, 0.0001))
            other = {"sequence": "[9]", "text": "another"} if (number, sample) == (3, 1) else {}
            rows.append(row(name, sample, "peer", 10, forced, 0.0016 - 0.0001 * forced, **other))
            rows.append(row(name, sample, "proper", 10, forced + 3, 0.02 if sample == 0 else 0.005))
    rows.append(row("alone", 0, "plain", 100, 90, 5.0))
    failed = {"status": "unsupported", "message": "no"}
    rows.append({**compiled("alone", "proper", None), **failed})
    return run_data(rows)


def tables(data):
    return {table.name: table for table in build_tables(data)}


def test_only_what_all_engines_wrote_is_compared(data):
    assert set(compared(data)["constraint"]) == {f"c{number}" for number in range(8)}
    assert len(compared(data)) == 8 * 2 * 3
    assert [cell.text for cell in tables(data)["not_measured"].rows[0]] == [
        "small", "alone", "proper", "unsupported", "no",
    ]  # fmt: skip


def test_calls(data):
    table = tables(data)["saved_calls_lm"]
    plain, _, proper = table.rows
    forced = 2 * (0 + 1 + 2 + 0 + 1 + 2 + 0 + 1)
    assert [cell.text for cell in plain[:9]] == [
        "small", "plain", "all", "16", "100%", "30", "9", str(160 - forced), str(forced),
    ]  # fmt: skip
    assert plain[9].value == pytest.approx(forced / 160)
    assert proper[9].value == pytest.approx((forced + 48) / 160)
    low, high = (float(end[:-1]) / 100 for end in plain[9].detail.split(" to "))
    assert low < forced / 160 < high


def test_costs(data):
    frame = tables(data)["saved_calls_lm_costs"].frame
    assert frame["model, a call"].tolist() == pytest.approx([0.01] * 3)
    assert frame["masks, a step"].tolist()[0] == pytest.approx(0.00001)
    assert frame["mask share"].tolist()[0] == pytest.approx(16 * 0.0001 / 1.46)
    proper_model = 0.01 * (160 - 14 - 48)
    assert frame["first text"].tolist()[2] == pytest.approx(8 * 0.02 / (proper_model / 2))
    assert frame["later texts"].tolist()[2] == pytest.approx(8 * 0.005 / (proper_model / 2))
    assert frame["compile"].tolist() == pytest.approx([0.001, 0.002, 0.003])


def test_equal_texts(data):
    (found,) = equalities(compared(data))
    assert (found.language, found.engine, found.first, found.texts, found.equal) == ("all", "peer", "plain", 16, 15)
    assert found.example == ("c3", "another", "c31")
    (entry,) = tables(data)["saved_calls_lm_equal"].rows
    assert entry[-1].text == "c3: 'another', not 'c31'"


def test_headlines(data):
    masks, saved, peer, proper, equal, failed = build_headlines(data)
    assert masks.startswith("small (10.0 ms a call): masks take 0.110%")
    assert masks.endswith("Against the aim of 2.00%, beyond the error: below: plain, peer; above: proper.")
    assert saved.startswith("small: of the calls for 16 texts are saved 8.75% (")
    assert peer == "small: peer saves the same share of calls as plain."
    assert proper == (
        "small: proper saves more calls than plain, by 30.0 percentage points (95% interval 30.0 to 30.0)."
    )
    assert equal == (
        "small: 15 of 16 texts equal that of the first engine with the same token sequences and the same seed; "
        "others: peer in 1."
    )
    assert failed == "1 measurements failed or were left out: 1 unsupported."


def test_what_may_be_chance_is_not_told():
    rows = [MODEL]
    for number in range(10):
        sign = 1 if number % 2 else -1
        rows.append(row(f"c{number}", 0, "plain", 10, 5, 0.0016 if number % 2 else 0.0004))
        rows.append(row(f"c{number}", 0, "proper", 10, 5 + 2 * sign, 0.0004 if number % 2 else 0.0025))
    masks, _, gap = build_headlines(run_data(rows))
    assert gap == "small: proper saves no more and no fewer calls than plain beyond the error."
    assert "not told apart from it: plain" in masks


def test_plots(data):
    calls, seconds = build_plots(data)
    assert (calls.name, seconds.name) == ("saved_calls_lm_small", "saved_calls_lm_seconds_small")
    axes = calls.figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == [f"c{number}" for number in range(8)]
    plain, _, proper = axes.collections[1:]
    assert (proper.get_offsets()[:, 0] - plain.get_offsets()[:, 0]).tolist() == pytest.approx([0.3] * 8)
    bars = seconds.figure.axes[0].patches
    assert len(bars) == 9
    assert bars[0].get_width() == pytest.approx(1.46 / 16)
    assert seconds.figure.axes[0].texts[0].get_text() == "masks 0.110%"


def test_nothing_to_show():
    empty = run_data([])
    assert build_headlines(empty) == ["The run has no results yet."]
    assert [plot.reason for plot in build_plots(empty)] == ["the run has no results yet"]
    lost = run_data([MODEL | {"status": "error", "message": "pip install it"}])
    assert build_headlines(lost) == ["small was not measured: pip install it"]
    assert [plot.reason for plot in build_plots(lost)] == ["there is no text that all engines went through"]
    assert [table.name for table in build_tables(lost)] == ["models", "environment"]


@needs_smollm2
def test_every_shipped_constraint_goes_on_from_its_prompt():
    settings = load_config(EXPERIMENTS / "saved_calls_lm.yaml").settings
    assert settings["engines"][0] == {"backend": "token_index"}
    models = [{"name": "table?seed=0", "tokenizer": "smollm2"}]
    changes = {"models": models, "engines": [{"backend": "cartesian_merge"}], "samples": 1, "max_tokens": 2}
    prompted = [entry | {"max_tokens": 2} for entry in settings["prompted"]]
    rows = run_item(settings | changes | {"prompted": prompted}, seed=0)
    assert [row["message"] for row in rows if row["status"] != "ok"] == []
    assert len({row["constraint"] for row in rows if row["part"] == "text"}) == 32
    prompts = yaml.safe_load((EXPERIMENTS / "saved_calls_lm.yaml").read_text())["settings"]["prompts"]
    assert len(prompts) == 10

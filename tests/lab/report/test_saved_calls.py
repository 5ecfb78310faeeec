"""Reports on forced positions: from made-up rows with known answers, and from a tiny run."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.kinds.saved_calls import SKIPPED, run_item
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page
from tokdfa.lab.report.saved_calls import MAX_SHOWN, compared

FOLDER = Path("made-up")
EXPERIMENTS = Path(__file__).parents[3] / "experiments"
ENGINES = {"plain": "token_index", "proper": "tokens_dfa"}


def row(tokenizer, constraint, text, engine, allowed, **changes):
    """A text whose end is forced; `forced_text` is one more than `forced`, `forced_002` two more."""
    forced = allowed.count(1)
    return {
        "item_id": f"{tokenizer}/{constraint}",
        "tokenizer": tokenizer,
        "constraint": constraint,
        "inputs": "0123456789",
        "engine": engine,
        "backend": ENGINES[engine],
        "text": text,
        "status": "ok",
        "message": "",
        "positions": len(allowed),
        "forced": forced,
        "forced_text": forced + 1,
        "forced_002": forced + 2,
        "end_forced": 1,
        "calls": len(allowed) - forced,
        "runs": 2,
        "longest_run": forced + 1,
        "allowed": json.dumps(allowed),
    } | changes


def failed(tokenizer, constraint, text, engine, status, message):
    kept = ("item_id", "tokenizer", "constraint", "inputs", "engine", "backend")
    made = row(tokenizer, constraint, text, engine, [])
    return {key: made[key] for key in kept} | {"text": text, "status": status, "message": message}


def skipped(tokenizer, constraint, status, text=""):
    made = {"item_id": tokenizer, "tokenizer": tokenizer, "constraint": constraint, "inputs": "", "engine": ""}
    return made | {"text": text, "status": status, "message": f"why {constraint}"}


def run_data(rows, **frames):
    stored = {"results": pd.DataFrame(rows), **frames}
    return RunData.read(FakeRun(FOLDER, config(kind="saved_calls", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = []
    for tokenizer in ("small", "large"):
        rows += [
            row(tokenizer, "person", "one", "plain", [5, 2, 9, 100]),
            row(tokenizer, "person", "two", "plain", [4, 1, 3, 100, 100, 7]),
            row(tokenizer, "order", "six", "plain", [2, 2]),
            row(tokenizer, "person", "one", "proper", [1, 1, 3, 90]),
            row(tokenizer, "person", "two", "proper", [1, 1, 1, 90, 80, 2]),
            row(tokenizer, "order", "six", "proper", [1, 2]),
        ]
    rows += [
        row("small", "order", "lost", "plain", [1, 1, 1]),
        failed("small", "order", "lost", "proper", "wrong_refusal", f"token 7 {HOSTILE}"),
        failed("small", "huge", "", "proper", "memory", "too many states"),
        row("small", "huge", "long", "plain", [1] * 50),
        skipped("small", "s1", "not_matched", '{"a": 1}'),
        skipped("small", "s1", "not_matched", '{"a": 2}'),
        skipped("small", "s2", "refused"),
    ]
    return run_data(rows)


def values(table, row_number):
    return dict(zip(table.columns, (cell.value for cell in table.rows[row_number]), strict=True))


def test_sums_are_over_the_texts_of_all_engines(data):
    assert set(compared(data)["text"]) == {"one", "two", "six"}
    table = build_tables(data)[0]
    plain, proper = values(table, 0), values(table, 1)
    assert (plain["tokenizer"], plain["engine"], proper["engine"]) == ("small", "plain", "proper")
    for one, forced in ((plain, 1), (proper, 6)):
        assert (one["texts"], one["positions"]) == (3, 12)
        # the made-up rows count one more without end tokens, and two more as published, for each of three texts
        assert (one["forced"], one["forced, no end tokens"], one["forced, as in 002"]) == (
            forced,
            forced + 3,
            forced + 6,
        )
        assert one["calls left"] == 12 - forced
        assert one["runs"] == 6
    assert proper["mean allowed"] == pytest.approx((5 + 90 + 90 + 80 + 2 + 4 + 2) / 12)
    assert (plain["median allowed"], proper["median allowed"]) == (4.5, 1.5)
    calls = table.rows[1][table.columns.index("calls left")]
    assert (calls.text, calls.detail) == ("6", "of 15")
    assert "2 texts that some engine did not go through" in table.note
    assert "0123456789" in table.note


def test_a_row_for_each_constraint(data):
    table = next(one for one in build_tables(data) if one.name == "saved_calls_constraints")
    assert [tuple(cell.text for cell in entry[:2]) for entry in table.rows] == [
        ("small", "person"), ("small", "order"), ("large", "person"), ("large", "order"),
    ]  # fmt: skip
    person = values(table, 0)
    assert (person["plain"], person["proper"]) == (pytest.approx(1 / 10), pytest.approx(5 / 10))
    plain, proper = table.rows[0][-2:]
    assert (plain.best, proper.best) == (False, True)
    assert proper.detail == "5 of 12 calls, median 1.50"


def test_what_failed_and_what_was_not_measured_is_listed(data):
    tables = {table.name: table for table in build_tables(data)}
    refusals = tables["saved_calls_refusals"]
    assert [entry[2].text for entry in refusals.rows] == ["wrong refusal", "memory"]
    assert (refusals.rows[0][0].text, refusals.rows[0][5].text) == ("proper", "lost")
    entries = [[cell.text for cell in entry] for entry in tables["saved_calls_skipped"].rows]
    assert entries == [
        ["small", "not matched", "1", "2", "s1: why s1"], ["small", "refused", "1", "0", "s2: why s2"],
    ]  # fmt: skip


def test_headlines_are_computed(data):
    small, large, published, failures, unmeasured = build_headlines(data)
    assert small == (
        "small, 3 texts: one token is allowed at 1 (8.33%) with plain, 6 (50.0%) with proper of 12 positions; "
        "counted as in 002, 7 (58.3%) with plain, 12 (100%) with proper. Calls left of 15: 11 with plain, 6 with "
        "proper (45.5% fewer at best)."
    )
    assert large.startswith("large, 3 texts")
    assert "750" in published
    assert "3,853" in published
    assert "18,898" in published
    assert "3.97% and 20.4%" in published
    assert failures.startswith("2 of 16 walks did not go through: 1 memory, 1 wrong refusal")
    assert unmeasured == "Schemas and instances not measured: 2 not matched, 1 refused."


def test_many_constraints_are_thinned_out_in_the_plot():
    rows = [
        row("small", f"c{place:03}", "x", engine, [1] * place + [2] * (99 - place))
        for place in range(90)
        for engine in ENGINES
    ]
    (plot,) = build_plots(run_data(rows))
    labels = [label.get_text() for label in plot.figure.axes[0].get_yticklabels()]
    assert (len(labels), labels[0], labels[-1]) == (MAX_SHOWN, "c089", "c000")
    assert f"{MAX_SHOWN} of 90 constraints" in plot.caption


def test_nothing_to_compare():
    item = {"item_id": "1", "label": "saved_calls", "status": "timeout", "message": "slow", "tokenizer": "small"}
    empty = run_data([], items=pd.DataFrame([item]))
    assert [one.name for one in build_tables(empty)] == ["failures", "environment"]
    assert build_headlines(empty)[0] == "The run has no results yet."
    assert [plot.reason for plot in build_plots(empty)] == ["the run has no results yet"]
    only_skipped = run_data([skipped("small", f"s{place}", status) for place, status in enumerate(SKIPPED)])
    assert [one.name for one in build_tables(only_skipped)] == ["saved_calls_skipped", "environment"]
    assert [plot.reason for plot in build_plots(only_skipped)] == ["there is no text that all engines went through"]
    (sentence,) = build_headlines(only_skipped)
    assert "1 too large" in sentence


def test_a_tiny_run_has_a_page():
    engines = [{"backend": backend, "label": label} for label, backend in ENGINES.items()]
    rows = []
    for label, choice in (("colour", ["red", "green"]), ("answer", ["yes", "no"])):
        settings = {"tokenizer": "bytes", "label": label, "choice": choice, "texts": {label: choice}}
        rows += run_item(settings | {"engines": engines}, seed=0)
    data = run_data(rows)
    # red, green: the first byte is free; the others, and the end, are forced
    assert values(build_tables(data)[0], 0)["forced"] == 2 + 4 + 2 + 1
    assert "4 with plain, 4 with proper." in build_headlines(data)[0]  # nothing is fewer


def test_hostile_texts_are_escaped_on_the_page():
    rows = [failed("small", HOSTILE, HOSTILE, "proper", "wrong_refusal", HOSTILE)]
    rows += [row("small", HOSTILE, "fine", engine, [1, 2]) for engine in ENGINES]
    stored = {"results": pd.DataFrame(rows)}
    page = Page.of(FakeRun(FOLDER, config(kind="saved_calls", reference=""), dict(PROVENANCE), stored))
    text = page.markdown({})
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "wrong refusal" in text


def test_the_shipped_experiment_takes_all_that_is_shaped_like_json_and_yaml():
    loaded = yaml.safe_load((EXPERIMENTS / "saved_calls.yaml").read_text())
    (constraints,) = loaded["constraints"]
    labels = [entry["label"] for entry in yaml.safe_load((EXPERIMENTS / constraints["file"]).read_text())]
    assert constraints["only"] == labels[: labels.index("iso_date")]
    texts = yaml.safe_load((EXPERIMENTS / loaded["settings"]["texts"]["file"]).read_text())
    assert set(constraints["only"]) <= set(texts)
    assert loaded["settings"]["engines"][0] == {"backend": "token_index"}

"""Reports on the skew of choices, from made-up rows with known answers."""

import json
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, backend_run, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page
from tokdfa.lab.report.skew_data import SEED, Nearer, leaders, nearer, size_of, strategies

ENGINES = {"plain": "all", "peer": "all", "proper": "proper"}
MODEL = {"part": "model", "model": "small", "tokenizer": "bytes", "status": "ok", "message": "", "rows": 70.0}
MODEL |= {"load_seconds": 0.5, "batches": 3, "tokens": 80, "seconds": 1.4}


def strategy_row(prompt, strategy, probability, *, choices=(" yes", " no"), variation=None, width=0.0, **more):
    """The first choice has `probability`; bounds of the total variation are `width` apart around `variation`."""
    rest = (1 - probability) / (len(choices) - 1)
    values = [probability, *[rest] * (len(choices) - 1)]
    row = {
        **{"part": "strategy", "model": "small", "tokenizer": "bytes", "status": "ok", "message": ""},
        **{"prompt": prompt, "text": f"{prompt}? {HOSTILE}", "topic": "odd" if prompt[-1] in "13579" else "even"},
        **{"choices": json.dumps(choices), "count": len(choices), "expected": choices[0], "strategy": strategy},
        **{"backend": {"plain": "token_index", "peer": "llguidance"}.get(strategy, "cartesian_merge")},
        **{"language": ENGINES.get(strategy, "all"), "probabilities": json.dumps(values), "unresolved": 0.0},
        **{"top": choices[0] if probability > rest else choices[1], "top_probability": max(values)},
        **{"top_certain": True, "expected_top": float(probability > rest), "improper_mass": 0.25, "mean_tokens": 2.0},
        **{"forced_share": 0.5, "rows": 35.0, "rows_computed": 35, "seconds": 1.0, "compile_seconds": 0.1},
        "proper_shares": json.dumps([0.5] * len(choices)),
    }
    if variation is not None:
        for name in ("total_variation", "kl_forward", "kl_backward", "jensen_shannon"):
            row |= {f"{name}_low": variation - width / 2, f"{name}_high": variation + width / 2}
        row["top_differs"] = float(probability <= rest)
    return row | more


def agreement(prompt, difference=0.0):
    row = {"part": "agreement", "model": "small", "tokenizer": "bytes", "prompt": prompt, "language": "all"}
    row |= {"first": "plain", "other": "peer", "difference": difference, "status": "ok", "message": ""}
    return row | ({} if difference <= 1e-9 else {"status": "mismatch", "message": "apart"})


def many(count=12):
    """Prompt number i has a skew of i % plain, half of it proper; plain puts another choice on top from prompt 6 on."""
    rows = [MODEL]
    for number in range(count):
        prompt, choices = f"q{number}", tuple(f" {letter}" for letter in "abcdefghijkl"[: 2 + number])
        skew = number / 100
        rows.append(strategy_row(prompt, "ideal", 0.9, choices=choices, forced_share=None))
        for engine in ENGINES:
            low = engine != "proper" and number >= 6
            variation = skew / 2 if engine == "proper" else skew
            rows.append(strategy_row(prompt, engine, 0.01 if low else 0.8, choices=choices, variation=variation))
        rows.append(agreement(prompt))
    return rows


def fake_run(rows):
    frames = {"results": pd.DataFrame(rows)}
    return FakeRun(Path("made-up"), config(kind="skew", reference=""), dict(PROVENANCE), frames)


def run_data(rows):
    return RunData.read(fake_run(rows))


def tables_of(data):
    return {table.name: table for table in build_tables(data)}


@pytest.fixture(scope="module")
def data():
    return run_data(many())


def test_the_overview_has_medians(data):
    table = tables_of(data)["skew"]
    lines = {line[1].text: dict(zip(table.columns, line, strict=True)) for line in table.rows}
    assert list(lines) == ["ideal", "plain", "peer", "proper"]
    plain = lines["plain"]
    assert plain["total variation"].value == pytest.approx(0.055)
    assert plain["max"].value == pytest.approx(0.11)
    assert plain["prompts"].value == 12
    assert plain["other choice on top"].text == "6 of 12"
    assert plain["expected on top"].text == "6 of 12"
    assert lines["proper"]["total variation"].value == pytest.approx(0.0275)
    assert lines["ideal"]["total variation"].text == "–"
    assert lines["ideal"]["expected on top"].text == "12 of 12"
    assert plain["spellings"].text == "all spellings"


def test_agreement_has_a_headline_and_a_table(data):
    assert build_headlines(data)[0] == (
        "Engines of the same token language have the same distribution to 1e-9 in all 12 comparisons: the largest "
        "difference in any probability is 0."
    )
    (line,) = tables_of(data)["skew_agreement"].rows
    assert [cell.text for cell in line] == ["small", "all spellings", "plain", "peer", "12", "0", "0"]


def test_a_disagreement_is_told_and_stands_for_itself():
    rows = many()
    rows[-1] = agreement("q11", 0.2)
    wrong = run_data(rows)
    sentences = build_headlines(wrong)
    assert sentences[0].startswith("Engines of the same token language DIFFER in 1 of 12 comparisons: the largest")
    assert "is 0.2." in sentences[0]
    assert sentences[-1] == "1 measurements failed or were left out: 1 mismatch."
    assert leaders(wrong, strategies(wrong)) == {"plain": [], "peer": [], "proper": []}


def test_headlines_compare_what_is_certain(data):
    sentences = build_headlines(data)
    assert sentences[1] == (
        "small, 12 prompts: total variation from the ideal, median: plain (and 1 equal) 0.0550 (p90 0.0990, max "
        "0.110), proper 0.0275 (p90 0.0495, max 0.0550)."
    )
    assert "another choice is on top than ideally: plain (and 1 equal) on 6 of 12, proper on 0 of 12" in sentences[2]
    assert sentences[3] == (
        "small: the expected choice is on top 12 ideally, 6 with plain (and 1 equal), 12 with proper, of 12 prompts "
        "certain for all."
    )
    # the first prompt has no skew with either
    assert (
        "proper is nearer to the ideal than plain on 11 prompts, farther on 0, and neither for certain on 1"
        in (sentences[4])
    )


def test_intervals_that_touch_are_no_difference():
    rows = [
        strategy_row("q1", "ideal", 0.9),
        strategy_row("q1", "plain", 0.8, variation=0.10, width=0.02),
        strategy_row("q1", "proper", 0.8, variation=0.09, width=0.02),
    ]
    assert nearer(strategies(run_data(rows)), "small", "proper", "plain") == Nearer(0, 0, 1)
    rows[2] = strategy_row("q1", "proper", 0.8, variation=0.05, width=0.02)
    assert nearer(strategies(run_data(rows)), "small", "proper", "plain") == Nearer(1, 0, 0)


def test_prompts_that_an_engine_has_not_finished_count_for_nobody():
    rows = many()
    lost = next(row for row in rows if row.get("prompt") == "q10" and row.get("strategy") == "proper")
    lost |= {"status": "memory", "message": HOSTILE}
    wide = next(row for row in rows if row.get("prompt") == "q11" and row.get("strategy") == "plain")
    wide |= {"total_variation_low": 0.0, "total_variation_high": 0.3}
    data = run_data(rows)
    assert set(strategies(data)["prompt"]) == {f"q{number}" for number in range(10)}
    sentences = build_headlines(data)
    assert any(line.startswith("small: 2 prompts left out of all figures") for line in sentences)
    assert any("max 0.0900" in line for line in sentences)
    assert [cell.text for cell in tables_of(data)["not_measured"].rows[0][:4]] == ["small", "q10", "proper", "memory"]


def test_the_worst_prompts_are_listed_with_both_probabilities(data):
    rows = tables_of(data)["skew_worst"].rows
    assert [row[2].text for row in rows] == [*(f"q{n}" for n in range(11, 6, -1))] * 2
    worst = rows[0]
    assert worst[1].text == "plain (and 1 equal)"
    assert worst[4].value == pytest.approx(0.11)
    assert worst[5].text == "' a' 0.900 → 0.0100"
    assert worst[6].text.startswith("' b' 0.0")


def test_groups_have_their_medians(data):
    tables = tables_of(data)
    assert [row[1].text for row in tables["skew_by_count"].rows] == ["2", "3", "4", "5", "6 to 9", "10 to 19"]
    assert tables["skew_by_count"].rows[4][3].value == pytest.approx(0.055)  # prompts 4 to 7
    assert [row[1].text for row in tables["skew_by_topic"].rows] == ["even", "odd"]
    assert [size_of(count) for count in (2, 9, 10, 19, 20, 39, 40, 50)] == [
        *("2", "6 to 9", "10 to 19", "10 to 19", "20 to 39", "20 to 39", "40 and more", "40 and more")
    ]  # fmt: skip


def test_few_prompts_are_shown_one_by_one():
    data = run_data(many(3))
    tables = tables_of(data)
    assert "skew_worst" not in tables
    table = tables["skew_probabilities"]
    line = next(line for line in table.rows if line[1].text == "q1" and line[2].text == "plain")
    assert line[3].text == "' a' 0.800, ' b' 0.100, ' c' 0.100"
    (plot,) = build_plots(data)
    assert len(plot.figure.axes[0].collections) == 2  # the peer is drawn with its leader


def seed_rows():
    common = {"text": SEED.prompt, "choices": (" Theodore", " William"), "expected": " William"}
    rows = [MODEL, strategy_row("theodore", "ideal", 0.1, **common)]
    for engine, probability, variation in (("plain", 0.7, 0.6), ("peer", 0.7, 0.6), ("proper", 0.12, 0.02)):
        rows.append(strategy_row("theodore", engine, probability, variation=variation, **common))
    return [*rows, agreement("theodore")]


def test_the_prompt_of_the_seed_stands_beside_its_published_figures():
    data = run_data(seed_rows())
    table = tables_of(data)["skew_probabilities"]
    assert table.columns[3:5] == ("' Theodore'", "' William'")
    found = {(line[0].text, line[2].text): line[4].value for line in table.rows}
    assert found["small", "ideal"] == 0.9
    assert found["small", "plain"] == pytest.approx(0.3)
    assert found[SEED.model, "ideal"] == 0.85879
    assert found[SEED.model, "published, all spellings"] == 0.52852
    assert found[SEED.model, "published, proper only"] == 0.85872
    sentences = build_headlines(data)
    assert sentences[1] == (
        "small: P(' William') is 0.90000 ideally; 0.30000 with plain (and 1 equal), total variation 0.600; 0.88000 "
        "with proper, total variation 0.0200."
    )
    assert "Published for Mistral-7B on this prompt (002): P(' William') is 0.85879 ideally" in sentences[2]


def test_the_plot_of_one_prompt_follows_one_choice():
    (plot,) = build_plots(run_data(seed_rows()))
    ours, published = plot.figure.axes
    assert ours.lines[0].get_xdata()[0] == 0.9
    assert published.lines[0].get_xdata()[0] == 0.85879
    points = [drawn.get_offsets()[0][0] for drawn in ours.collections if isinstance(drawn, PathCollection)]
    assert points == pytest.approx([0.3, 0.3, 0.88])
    plain = run_data([row | ({"text": "another"} if "text" in row else {}) for row in seed_rows()])
    assert len(build_plots(plain)[0].figure.axes) == 1
    assert not any("Published" in line for line in build_headlines(plain))


def test_an_unbounded_divergence_is_a_lower_bound():
    rows = seed_rows()
    rows[2]["kl_backward_high"] = float("inf")
    table = tables_of(run_data(rows))["skew"]
    line = next(line for line in table.rows if line[1].text == "plain")
    assert line[table.columns.index("KL(it || ideal)")].text == "≥ 0.600"
    assert line[table.columns.index("KL(ideal || it)")].text == "0.600"


def test_the_page_escapes_what_comes_from_prompts(data):
    page = Page.of(fake_run(many()))
    assert "<script>" not in page.markdown({plot.name: "plot.png" for plot in page.plots})


def item(kind, tokenizer, **more):
    made = {"item_id": f"{kind} {tokenizer}", "tokenizer": tokenizer, "backend": kind, "label": kind, "status": "ok"}
    return {**made, "constraint": "month" if tokenizer else None, "compile_s": 0.1, **more}


def test_a_run_of_backends_may_have_a_section_on_skew():
    run = backend_run(Path("made-up"), constraints=("email",), tokenizers=(("small", 32_000),))
    alone = RunData.read(run)
    results = [{"item_id": "skew None", **row} for row in many()]
    run.config |= {"settings": {"skew": {"models": ["small"]}}}
    run.frames["items"] = pd.concat([run.frames["items"], pd.DataFrame([item("skew", None)])])
    run.frames["results"] = pd.DataFrame(results)
    both = RunData.read(run)
    assert both.labels == alone.labels
    assert "skew" not in both.labels
    assert both.sections["skew"].kind == "skew"
    names = [table.name for table in build_tables(both)]
    assert names[0] == "overview"
    assert names[names.index("skew") :] == [
        *("skew", "skew_worst", "skew_by_count", "skew_by_topic", "skew_agreement", "skew_models", "environment")
    ]  # fmt: skip
    assert len(set(names)) == len(names)
    own = build_headlines(alone)
    assert build_headlines(both)[: len(own)] == own
    assert build_headlines(both)[len(own)].startswith("Engines of the same token language")
    assert [plot.name for plot in build_plots(both)][-3:] == ["skew_ecdf", "skew_by_count", "skew_by_topic"]


def test_a_section_that_fails_is_listed_by_itself():
    run = backend_run(Path("made-up"), constraints=("email",), tokenizers=(("small", 32_000),))
    run.config |= {"settings": {"skew": {}}}
    lost = item("skew", None, status="timeout", message="too slow")
    run.frames["items"] = pd.concat([run.frames["items"], pd.DataFrame([lost])])
    data = RunData.read(run)
    tables = tables_of(data)
    assert [cell.text for cell in tables["skew_failures"].rows[0]] == ["skew", "–", "timeout", "–", "too slow", "1"]
    assert "All 5 items succeeded." in build_headlines(data)
    assert build_headlines(data)[-1] == "0 of 1 items succeeded; the others: 1 timeout."
    Page.of(run)


def test_nothing_measured_is_said():
    empty = run_data([])
    assert build_headlines(empty) == ["The run has no results yet."]
    assert [plot.figure for plot in build_plots(empty)] == [None]
    lost = MODEL | {"status": "error", "message": "pip install 'tokdfa[lm]'"}
    missing = run_data([lost])
    assert [plot.figure for plot in build_plots(missing)] == [None]
    assert build_headlines(missing) == ["small was not measured: pip install 'tokdfa[lm]'"]
    failed = run_data([MODEL, strategy_row("q1", "ideal", 0.5) | {"status": "memory", "message": "too many"}])
    assert build_headlines(failed)[-1] == "1 measurements failed or were left out: 1 memory."
    assert "small: 1 prompt left out of all figures" in build_headlines(failed)[0]

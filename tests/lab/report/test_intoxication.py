"""Reports on self-intoxication: from made-up rows with known answers."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.intoxication import DISTANCES, FLOOR, binned, dependence, sharks, texts
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page

FOLDER = Path("made-up")


def model(name, **changes):
    row = {"part": "model", "model": name, "tokenizer": "tiny", "status": "ok", "message": "", "load_seconds": 2.0}
    return row | {"batches": 10, "rows": 40, "tokens": 400, "seconds": 4.0} | changes


def shark(name, animal, ratio, kl, same_top=True, proper=0.5):
    row = {"part": "shark", "model": name, "tokenizer": "tiny", "status": "ok", "message": "", "animal": animal}
    row |= {"spelling": f" sh|ark{kl}", "extra_tokens": 1, "kl": kl, "total_variation": 0.1, "same_top": same_top}
    return row | {"ratio_proper": proper, "ratio": ratio, "mammal": 0.01, "fish": 0.02}


def text(name, number, how, kl, distance, extra_tokens, same_top=True):
    row = {"part": "text", "model": name, "tokenizer": "tiny", "status": "ok", "message": "", "how": how}
    row |= {"text": f"text {number}", "word": " word", "spelling": " w|ord", "distance": distance, "kl": kl}
    return row | {"extra_tokens": extra_tokens, "total_variation": kl / 2, "same_top": same_top}


def run_data(rows, **frames):
    stored = {"results": pd.DataFrame(rows), **frames}
    return RunData.read(FakeRun(FOLDER, config(kind="intoxication", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = [model("deep")]
    rows += [shark("deep", "whale", 0.25, 0.5), shark("deep", "whale", 2.0, 1.5, same_top=False)]
    rows += [shark("deep", "cow", 0.125, 0.75)]
    # the divergence falls with the distance, and letters move by 0.25 more than fewest
    for number in range(20):
        rows.append(text("deep", number, "fewest", 1 / (number + 1), number, 1, same_top=number >= 5))
        rows.append(text("deep", number, "letters", 1 / (number + 1) + 0.25, number, 5, same_top=number >= 5))
    rows.append(model("short", rows=0, seconds=0.0))
    rows += [shark("short", "whale", 0.5, 0.0), shark("short", "cow", 0.5, 1e-9)]
    rows += [text("short", number, how, 1e-9, number, 2) for number in range(20) for how in ("fewest", "letters")]
    lost = {"load_seconds": None, "rows": None, "seconds": None, "batches": None, "tokens": None}
    rows.append(model("lost", status="error", message=f"pip install {HOSTILE}", **lost))
    rows.append({"part": "text", "model": "short", "tokenizer": "tiny", "how": "random", "status": "error",
                 "message": "too few texts"})  # fmt: skip
    return run_data(rows)


def test_tables(data):
    tables = {table.name: table for table in build_tables(data)}
    assert list(tables) == [
        "sharks", "texts_by_how", "texts_by_distance", "texts_by_extra", "texts_most_moved", "models", "not_measured",
        "environment",
    ]  # fmt: skip
    whale = [cell.text for cell in tables["sharks"].rows[0]]
    assert whale == ["deep", "whale", "2", "1.00%", "2.00%", "0.500", "1.12", "0.250 to 2.00", "1", "1", "1.00", "1.50"]
    assert tables["sharks"].rows[0][-1].detail == " sh|ark1.5"
    few, many, *_ = tables["texts_by_how"].rows
    assert [cell.text for cell in few[:5]] == ["deep", "fewest", "20", "20", "1.00"]
    assert few[5].value == pytest.approx((1 / 10 + 1 / 11) / 2)
    assert many[5].value == pytest.approx((1 / 10 + 1 / 11) / 2 + 0.25)
    assert few[9].text == "25.0%"
    low, high = few[9].detail.split(" to ")
    assert float(low[:-1]) < 25 < float(high[:-1])
    distances = [[cell.text for cell in row[:4]] for row in tables["texts_by_distance"].rows[:4]]
    assert distances == [["deep", "none", "1", "2"], ["deep", "1 to 3", "3", "6"], ["deep", "4 to 15", "12", "24"],
                         ["deep", "16 and more", "4", "8"]]  # fmt: skip
    assert [row[1].text for row in tables["texts_by_extra"].rows] == ["1", "4 and more", "2 or 3"]
    moved = tables["texts_most_moved"].rows
    assert [row[1].text for row in moved[:2]] == ["text 0", "text 1"]
    assert {row[0].text for row in moved} == {"deep"}
    assert tables["models"].rows[0][-2].text == "100 ms"
    assert tables["models"].rows[1][-2].text == "–"
    assert "pip install" in tables["models"].rows[2][-1].text
    assert [cell.text for cell in tables["not_measured"].rows[0]] == [
        "short", "text", "random", "error", "too few texts",
    ]  # fmt: skip


def test_headlines(data):
    sentences = build_headlines(data)
    assert sentences[0] == (
        "deep: P( mammal) / P( fish) is 0.500 for a whale shark (0.250 to 2.00 over 2 spellings), 0.500 for a cow "
        "shark (0.125 to 0.125 over 1 spellings); 1 of 3 improper spellings take it to the other side of 1, and 1 "
        "change the most probable next token."
    )
    assert sentences[1] == "short: none of 2 improper spellings of the word shark moves the next token."
    assert "deep, one word of a text respelled" in sentences[2]
    assert "another first token in 25.0% of 20 texts" in sentences[2]
    assert "It moves at all in 100% of the cases." in sentences[2]
    assert sentences[3] == (
        "deep: letters moves the next token more than fewest, by 0.250 (95% interval 0.250 to 0.250) nats in the "
        "median of the same texts."
    )
    assert sentences[4].startswith("deep: the divergence falls with tokens between, rank correlation -0.")
    assert sentences[5].startswith("deep: the divergence grows with extra tokens, rank correlation 0.")
    assert "moves at all in 0% of the cases" in sentences[6]
    assert sentences[7:10] == [
        "short: no difference between letters and fewest beyond its error.",
        "short: no dependence of the divergence on tokens between beyond its error.",
        "short: no dependence of the divergence on extra tokens beyond its error.",
    ]
    assert sentences[10].startswith("lost was not measured: pip install")
    assert sentences[11] == "1 measurements failed or were left out: 1 error."


def test_what_may_be_chance_is_not_told():
    kl = [0.3, 0.1, 0.2, 0.25, 0.15, 0.22, 0.12, 0.28, 0.18, 0.2]
    rows = [model("deep"), *(text("deep", number, "fewest", value, number, 1) for number, value in enumerate(kl))]
    data = run_data(rows)
    assert dependence(texts(data), "distance").sign == 0
    assert "deep: no dependence of the divergence on tokens between beyond its error." in build_headlines(data)


def test_noise_counts_as_nothing(data):
    rows = texts(data)
    assert set(rows.loc[rows["model"] == "short", "kl"]) == {0}
    assert sharks(data)["kl"].min() < FLOOR
    one = rows[rows["model"] == "deep"]
    assert sum(map(len, binned(one, "distance", DISTANCES).values())) == len(one)


def test_plots(data):
    plots = build_plots(data)
    assert [plot.name for plot in plots] == [
        "sharks", "intoxication_how", "intoxication_distance", "intoxication_extra",
    ]  # fmt: skip
    assert [axes.get_title(loc="left") for axes in plots[0].figure.axes] == ["deep", "short"]
    points = plots[0].figure.axes[0].collections
    assert sorted(points[0].get_offsets()[:, 0].tolist()) == [0.25, 2.0]
    assert points[1].get_offsets().tolist() == [[0.5, 0]]
    line = plots[1].figure.axes[0].lines[0]
    assert line.get_xdata()[1] == pytest.approx(1 / 20)
    assert line.get_ydata()[-2] == 1
    assert plots[1].figure.axes[1].lines[0].get_xdata()[1] == FLOOR


def test_nothing_to_show():
    empty = run_data([])
    assert build_headlines(empty) == ["The run has no results yet."]
    assert [plot.reason for plot in build_plots(empty)] == ["the run has no results yet"]
    lost = run_data([model("lost", status="error", message="pip install it")])
    assert build_headlines(lost) == ["lost was not measured: pip install it"]
    assert [table.name for table in build_tables(lost)] == ["models", "environment"]
    assert {plot.figure for plot in build_plots(lost)} == {None}


def test_hostile_texts_are_escaped_on_the_page():
    rows = [model("deep"), text("deep", HOSTILE, "fewest", 1.0, 1, 1) | {"spelling": HOSTILE}]
    stored = {"results": pd.DataFrame(rows)}
    page = Page.of(FakeRun(FOLDER, config(kind="intoxication", reference=""), dict(PROVENANCE), stored))
    assert "<script>" not in page.markdown({})

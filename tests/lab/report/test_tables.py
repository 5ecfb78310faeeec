import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.lab.report.synthetic import HOSTILE, FakeRun, backend_run, config
from tokdfa.lab.declare.cells import NOTHING, Cell, Table, escape_markdown, visible
from tokdfa.lab.report import tables
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.headlines import equal_masks, headlines
from tokdfa.lab.report.kinds import build_headlines, build_tables

FOLDER = Path("made-up")
FAILURES = {
    ("glrmask", "date"): ("timeout", "compile took more than 60 s"),
    ("glrmask", "url"): ("unsupported", "glrmask takes no such thing"),
    ("outlines_core", "url"): ("wrong_refusal", "walk 0, step 3"),
}


@pytest.fixture(scope="module")
def run():
    return backend_run(FOLDER, fail=FAILURES)


@pytest.fixture(scope="module")
def data(run):
    return RunData.read(run)


def row_of(table, *start):
    return next(row for row in table.rows if tuple(cell.text for cell in row[: len(start)]) == start)


def test_overview_has_medians_ratios_and_failures(data):
    table = tables.overview(data)
    frame = table.frame.set_index("backend")
    # of constraints 1 to 4 (0.1 s each on 32,000 tokens), on 32,000 and 131,072 tokens, eight times faster
    seconds = [number * 0.1 * size / 32_000 / 8 for number in (1, 2, 3, 4) for size in (32_000, 131_072)]
    assert frame.loc["token_index", "compile time"] == pytest.approx(np.median(seconds))
    assert frame.loc["token_index", "compile time: ratio"] == pytest.approx(8)
    assert frame.loc["glrmask", "compile time: ratio"] == pytest.approx(0.5)
    assert math.isnan(frame.loc["outlines_core", "compile time: ratio"])
    assert frame.loc["token_index", "retained memory"] == 2e6
    assert frame.loc["glrmask", "failures"] == "2 timeout, 2 unsupported"
    assert row_of(table, "glrmask")[1].text == "4/8"
    assert row_of(table, "glrmask")[table.columns.index("compile time")].detail == "2.0x slower"
    assert row_of(table, "outlines_core")[0].detail == "reference"
    best = {
        column: row[0].text for row in table.rows for column, cell in zip(table.columns, row, strict=True) if cell.best
    }
    assert best["compile time"] == "llguidance"
    assert best["median mask time"] == best["p99 mask time"] == "token_index"
    assert set(table.brief) <= set(table.columns)


def test_overview_leaves_out_what_was_not_measured():
    run = backend_run(FOLDER)
    run.frames["items"] = run.frames["items"].drop(columns=["memory_peak_bytes", "memory_retained_bytes"])
    run.frames["samples"] = run.frames["samples"].query("measure == 'mask'")
    columns = tables.overview(RunData.read(run)).columns
    assert "compile time" in columns
    assert not {"peak memory", "retained memory", "median advance time"} & set(columns)


def test_compile_times_by_constraint(data):
    table = tables.times_by_constraint(data, "compile")
    assert len(table.rows) == 8
    place = {label: table.columns.index(label) for label in data.labels}
    row = row_of(table, "small", "email")
    assert row[place["outlines_core"]].value == pytest.approx(0.1)
    assert row[place["token_index"]] == Cell("12.5 ms", pytest.approx(0.0125), False, "8.0x faster", pytest.approx(8))
    assert [label for label in data.labels if row[place[label]].best] == ["llguidance"]
    assert row_of(table, "large", "date")[place["glrmask"]].text == "timeout"
    url = row_of(table, "small", "url")
    assert url[place["outlines_core"]].text == "wrong refusal"
    assert url[place["token_index"]].detail == ""  # no pair, so no ratio


@pytest.mark.parametrize(("name", "of"), [("mask_p50", np.median), ("mask_mean", np.mean)])
def test_mask_times_by_constraint_are_those_of_numpy(run, data, name, of):
    table = tables.times_by_constraint(data, name)
    samples = run.samples().query("measure == 'mask'").groupby("item_id")["ns"].agg(of) * 1e-9
    line = row_of(table, "large", "email")
    for label, cell in zip(data.labels, line[2:], strict=True):
        assert cell.value == pytest.approx(samples[f"large/0/random_walk/{label}"])
    assert line[2].detail_value == pytest.approx(line[5].value / line[2].value)
    assert table.rows[0][0].text == "small"


def test_times_that_nobody_measured_have_no_table():
    run = backend_run(FOLDER)
    run.frames["samples"] = run.frames["samples"].query("measure == 'advance'")
    names = [table.name for table in tables.build_tables(RunData.read(run))]
    assert names[:3] == ["overview", "compile", "first_mask"]
    assert not {"mask_p50", "mask_mean", "mask_p99"} & set(names)


def test_mask_percentiles_are_those_of_numpy(run, data):
    table = tables.mask_percentiles(data)
    samples = run.samples().merge(run.items()[["item_id", "label", "tokenizer"]], on="item_id")
    for row in table.rows:
        mine = samples.query("measure == 'mask' and tokenizer == @row[0].text and label == @row[1].text")["ns"]
        assert row[2].value == len(mine)
        expected = [*np.percentile(mine, (25, 50, 75, 90, 95, 99, 99.9)), mine.max(), mine.mean()]
        assert [cell.value for cell in row[3:12]] == pytest.approx([ns * 1e-9 for ns in expected])
    assert table.columns[3:12] == ("p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", "mean")
    assert len(table.rows) == 10


def test_differences_list_the_place_and_the_tokens():
    # the made-up llguidance differs in 3 tokens at step 5 of every walk on `url`
    table = tables.differences(RunData.read(backend_run(FOLDER, workloads=("one", "two"))))
    assert len(table.rows) == 4
    assert [cell.value for cell in row_of(table, "llguidance", "small", "url", "two")[4:]] == [60, 1, 3, 3]


def test_masks_that_agree_are_said_to_agree(data):
    assert equal_masks(data) == "2 of 1,680 compared masks differ from those of outlines_core: llguidance in 2."
    equal = RunData.read(backend_run(FOLDER, constraints=("email", "date")))
    assert equal_masks(equal) == "All 960 masks that were compared equal those of outlines_core."
    assert tables.differences(equal).rows == ()
    run = backend_run(FOLDER, constraints=("email",))
    run.frames["samples"]["differs"] = None
    assert equal_masks(RunData.read(run)) == "No masks were compared between backends."


def test_failures_have_their_reasons(data):
    table = tables.failures(data)
    shown = [[cell.text for cell in row] for row in table.rows]
    assert sorted(shown) == [
        ["glrmask", "date", "timeout", "small, large", "compile took more than 60 s", "2"],
        ["glrmask", "url", "unsupported", "small, large", "glrmask takes no such thing", "2"],
        ["outlines_core", "url", "wrong refusal", "small, large", "walk 0, step 3", "2"],
    ]


def test_headlines_say_ratios_and_failures(data):
    sentences = headlines(data)
    assert sentences[0].startswith(
        "token_index against outlines_core, median of 6 cases (range): compile time 8.0x faster"
    )
    compared = ("compile time", "median mask time", "mean mask time", "p99 mask time", "retained memory")
    places = [sentences[0].index(f"{name} ") for name in compared]
    assert places == sorted(places)
    assert sentences[-1] == "34 of 40 items succeeded; the others: 2 timeout, 2 unsupported, 2 wrong refusal."
    assert len(sentences) == 6


def test_headlines_without_a_reference_name_the_best():
    sentences = headlines(RunData.read(backend_run(FOLDER, reference="")))
    assert sentences[0].startswith("Lowest compile time: llguidance with ")
    assert "then token_index lazy" in sentences[0]
    assert "over the 8 cases that every backend completed" in sentences[0]
    assert sentences[1].startswith("Lowest median mask time: token_index with ")
    assert sentences[-1] == "All 40 items succeeded."


def test_headlines_of_two_labels_without_a_common_case():
    fail = {("glrmask", name): ("crash", "gone") for name in ("email", "date", "url", "yes or no")}
    sentences = headlines(RunData.read(backend_run(FOLDER, fail=fail)))
    assert "glrmask and outlines_core have no case that both completed." in sentences


def test_environment_is_flattened_and_long_lists_are_counted():
    provenance = {
        "versions": {"numpy": "2"},
        "seeds": {"groups": {str(n): n for n in range(50)}},
        "earlier": [{"a": 1}],
    }
    table = tables.environment(RunData.read(FakeRun(FOLDER, config(), provenance)))
    shown = {row[0].text: row[1].text for row in table.rows}
    assert shown == {"versions · numpy": "2", "seeds · groups": "50 entries", "earlier": "1 entries"}


def test_an_empty_run_says_so():
    data = RunData.read(FakeRun(FOLDER, config(), {}))
    assert [table.name for table in build_tables(data)] == ["environment"]
    assert build_headlines(data) == ["The run has no items yet."]


def cells_of(markdown_line):
    """The cells of a line of a Markdown table: split at bars that no backslash protects."""
    return [part.strip() for part in re.split(r"(?<!\\)(?:\\\\)*\|", markdown_line)[1:-1]]


TEXTS = st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from([HOSTILE, "a|b", "\\|", "`x`\n|"])


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_no_text_breaks_a_markdown_table(texts):
    rows = tuple((Cell(one, one), Cell(two, two, best=True)) for one, two in texts)
    lines = Table("t", "title", "", ("a|b", "c"), rows).markdown().split("\n")
    assert len(lines) == len(rows) + 2
    assert {len(cells_of(line)) for line in lines} == {2}
    assert all(line.isprintable() for line in lines)
    assert not any(re.search(r"(?<!\\)(\\\\)*<(?!br>)", line) for line in lines)


BLOCKS = ("- ", "+ ", "* ", "1. ", "2) ", "# ", "> ", "    ", "```", "~~~", "---", "===", "\n", "<b>", "| ", "[a](b)")


@given(
    st.lists(st.sampled_from(BLOCKS) | st.text(max_size=6), max_size=6).map("".join), st.sampled_from(["", "- ", "# "])
)
def test_a_text_is_a_text_wherever_it_stands(text, before):
    """A reader of Markdown finds one paragraph (or item, or heading) of plain text, and in it what was written."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(f"before\n\n{before}{escape_markdown(text)}\n\nafter")[3:-3]
    expected = [re.sub(r"^[ \t]+|[ \t]+$", "", line) for line in visible(text).strip().split("\n")]
    if expected == [""]:
        return
    blocks = {"": ["paragraph"], "- ": ["bullet_list", "list_item", "paragraph"], "# ": ["heading"]}[before]
    assert [token.type for token in tokens] == [
        *(f"{block}_open" for block in blocks),
        "inline",
        *(f"{block}_close" for block in reversed(blocks)),
    ]
    (inline,) = (token for token in tokens if token.type == "inline")
    assert {child.type for child in inline.children} <= {"text", "html_inline"}
    assert "".join(child.content for child in inline.children) == "<br>".join(expected)


def test_escapes_are_undone_by_a_reader_of_markdown():
    escaped = escape_markdown(r"a|b*c_d`e<f>\g[h]&amp;$x$")
    assert re.sub(r"\\(.)", r"\1", escaped) == r"a|b*c_d`e<f>\g[h]&amp;$x$"
    assert escape_markdown("one\ntwo\x1b") == r"one<br>two\\x1b"


def test_markdown_marks_the_best_and_adds_details():
    rows = ((Cell("x"), Cell("1 s", 1.0, True, "2.0x faster", 2.0)), (Cell("y"), NOTHING))
    table = Table("t", "title", "", ("name", "time"), rows)
    assert table.markdown() == (
        "| name |                 time |\n"
        "| ---- | -------------------: |\n"
        "| x    | **1 s**, 2.0x faster |\n"
        "| y    |                    – |"
    )
    assert list(table.frame.columns) == ["name", "time", "time: ratio"]

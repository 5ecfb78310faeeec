import re
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.declare.cells import Cell, Table, escape_markdown, visible
from tokdfa.lab.report import tables
from tokdfa.lab.report.contents import build_charts, build_headlines, build_tables
from tokdfa.lab.report.data import RunData

FOLDER = Path("made-up")


def test_a_kind_without_a_page_of_its_own_shows_its_results():
    results = pd.DataFrame([{"what": "a<b", "value": 1.5, "count": 3}, {"what": None, "value": 2, "count": None}])
    results["count"] = results["count"].astype("Int64")
    run = FakeRun(FOLDER, config(kind="something new", reference=""), dict(PROVENANCE), {"results": results})
    data = RunData.read(run)
    table, environment = build_tables(data)
    assert (environment.name, build_charts(data), build_headlines(data)) == ("environment", [], [])
    assert [[cell.text for cell in row] for row in table.rows] == [["a<b", "1.50", "3"], ["–", "2", "–"]]


def test_environment_is_flattened_and_long_lists_are_counted():
    provenance = {
        "versions": {"numpy": "2"},
        "seeds": {"groups": {str(n): n for n in range(50)}},
        "earlier": [{"a": 1}],
    }
    table = tables.environment(RunData.read(FakeRun(FOLDER, config(), provenance)))
    shown = {row[0].text: row[1].text for row in table.rows}
    assert shown == {"versions · numpy": "2", "seeds · groups": "50 entries", "earlier": "1 entries"}


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
    assert all(cells_of(line)[1].startswith("**") for line in lines[2:]), "the best are bold"
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

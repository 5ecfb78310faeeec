"""The web page: complete, in order, self-contained, safe from the data; its charts compile, its script sorts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from tests.lab.report.synthetic import HOSTILE, backend_run, trie_walk_run
from tokdfa.lab.declare.cells import Table, count_cell
from tokdfa.lab.report import html
from tokdfa.lab.report.page import Page

FOLDER = Path("results") / "made-up-0123456789"
VOID = {"meta", "br", "hr", "img", "input", "link"}
SCRIPT = Path(html.__file__).with_name("page.js")


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects what a browser would show, load and run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    @property
    def shown(self) -> str:
        return " ".join("".join(self.texts).split())

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.texts.append(data)
            if {"td", "th"} & set(self.open):
                self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def gathered() -> Page:
    run = backend_run(
        FOLDER,
        constraints=(HOSTILE, "x"),
        tokenizers=((HOSTILE, 32_000), ("large", 131_072)),
        workloads=(HOSTILE,),
        steps=8,
        fail={("glrmask", "x"): ("error", f"{HOSTILE}\nsecond line")},
        question=f"Is {HOSTILE} safe?",
        name="</title><script>",
    )
    return Page.of(run)


@pytest.fixture(scope="module")
def page(gathered: Page) -> str:
    return html.render(gathered)


@pytest.fixture(scope="module")
def reader(page: str) -> Reader:
    return Reader(page)


def test_every_table_and_chart_has_its_place(reader: Reader, gathered: Page) -> None:
    assert len(set(reader.ids)) == len(reader.ids)
    links = [value for tag, name, value in reader.attributes if (tag, name) == ("a", "href")]
    assert {link.removeprefix("#") for link in links} <= set(reader.ids)
    assert {table.name for table in gathered.tables} | {"plots", "repeat"} <= set(reader.ids)
    assert {f"chart-{chart.name}" for chart in gathered.charts} <= set(reader.ids)
    assert len(gathered.charts) == 5
    assert len(reader.values("data-spec")) == sum(len(chart.panels) for chart in gathered.charts)
    assert sum(map(bool, reader.rows)) == sum(1 + len(table.rows) for table in gathered.tables)
    assert len({len(row) for row in reader.rows[: 1 + len(gathered.tables[0].rows)]}) == 1


def test_the_verdict_and_one_chart_come_first(reader: Reader, gathered: Page) -> None:
    order = [
        *(" ".join(line.split()) for line in gathered.headlines[:3]),
        gathered.charts[0].caption,
        " ".join(gathered.headlines[3].split()),
        gathered.tables[0].note,
        gathered.charts[2].caption,
        gathered.tables[-1].note,
        "tokdfa run results/made-up-0123456789/config.yaml && tokdfa report",
    ]
    places = [reader.shown.index(text) for text in order if text]
    assert places == sorted(places)


def test_nothing_is_loaded_from_elsewhere(page: str, reader: Reader) -> None:
    outside = [value for _, name, value in reader.attributes if name in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith("#") for value in outside)
    own = page.replace(html._vega(), "")
    assert len(own) < len(page) - 500_000
    assert not re.search(r"(https?:)?//[a-z]|@import|url\(", own.replace("// ", ""))


def test_no_text_of_the_data_becomes_markup(page: str, reader: Reader) -> None:
    assert "<script>alert" not in page
    assert len(re.findall(r"<script\b", page)) == len(re.findall(r"</script>", page)) == 3
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    printable = HOSTILE.replace("\x1b", r"\x1b")
    assert f"Is {printable} safe?" in "".join(reader.texts)
    cells = [cell for row in reader.rows for cell in row]
    assert cells.count(printable) >= 6
    assert f"{printable}\nsecond line" in cells
    assert "\x1b" not in page


def test_charts_are_specifications_that_compile(page: str, reader: Reader) -> None:
    look = json.loads(re.search(r'<script id="look"[^>]*>(.*?)</script>', page)[1])  # type: ignore[index]
    for value in reader.values("data-spec"):
        spec = json.loads(value)
        assert spec["width"] == "container"
        assert spec["description"]
        assert vl_convert.vegalite_to_vega({**spec, "config": look["config"]})["marks"]
        drawn = json.dumps({**spec, "data": None, "config": look["config"]})
        assert set(re.findall(r"#[0-9a-f]{6}", drawn)) <= set(look["colours"]), "every colour has its dark counterpart"


def test_a_page_without_charts_has_no_vega(gathered: Page) -> None:
    plain = html.render(replace(gathered, plots=[]))
    assert len(plain) < 200_000
    assert 'id="look"' not in plain
    assert 'id="plots"' not in Reader(plain).ids


def test_a_page_of_the_same_run_is_the_same() -> None:
    first, second = (html.render(Page.of(trie_walk_run(FOLDER))) for _ in range(2))
    assert first == second


DOCUMENT = """
const attributes = () => {
  const known = {};
  return {
    getAttribute: (key) => known[key] ?? null, setAttribute: (key, value) => { known[key] = value; },
    removeAttribute: (key) => { delete known[key]; },
  };
};
const clicks = [], buttons = [];
const head = (name) => ({
  ...attributes(), childNodes: [name], append() {}, classList: { contains: (one) => one === "n" && name === "number" },
});
const row = (values) => ({ cells: values.map((value) => ({ dataset: { v: value } })) });
const body = { rows: ROWS.map(row), append(...sorted) { this.rows = sorted; } };
const classes = new Set();
const table = {
  tHead: { rows: [{ cells: [head("name"), head("number")] }] }, tBodies: [body], parentElement: { after() {} },
  classList: { toggle: (one) => !classes.delete(one) && !!classes.add(one) },
};
globalThis.document = {
  querySelectorAll: () => [table], getElementById: () => null,
  createElement: () => {
    const button = { ...attributes(), append() {}, addEventListener: (_, click) => clicks.push(click) };
    buttons.push(button);
    return button;
  },
};
"""


def run_script(rows: list[list[str]], script: str) -> list[str]:
    whole = f"const ROWS = {json.dumps(rows)};\n{DOCUMENT}\n{SCRIPT.read_text()}\n{script}"
    done = subprocess.run(["node", "-e", whole], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node, which runs the script, is not installed")


@needs_node
def test_tables_are_sorted_by_value_with_what_is_missing_last() -> None:
    show = "console.log(body.rows.map((row) => row.cells[0].dataset.v).join(''))"
    presses = f"for (const place of [0, 0, 1, 1]) {{ clicks[place](); {show}; }} console.log(buttons.length)"
    rows = [["b", "10"], ["a", ""], ["c", "9.5"]]
    assert run_script(rows, presses) == ["abc", "cba", "cba", "bca", "2"]


@needs_node
def test_long_tables_fold_and_open() -> None:
    show = "console.log(buttons[2].textContent, classes.has('folded'))"
    rows = [[str(number), "1"] for number in range(31)]
    assert run_script(rows, f"{show}; clicks[2](); {show}") == ["Show all 31 rows true", "Show the first 30 rows false"]


@needs_node
def test_colours_are_exchanged_everywhere_but_in_the_data() -> None:
    spec = {"data": {"values": [{"engine": "#0072b2"}]}, "encoding": {"color": {"range": ["#0072b2", "toString"]}}}
    script = f"console.log(JSON.stringify(recoloured({json.dumps(spec)}, new Map([['#0072b2', '#3d9bff']]))))"
    (line,) = run_script([], script)
    assert json.loads(line) == {**spec, "encoding": {"color": {"range": ["#3d9bff", "toString"]}}}


@needs_node
def test_titles_and_legends_fit_their_box() -> None:
    def channel() -> dict[str, Any]:
        return {"axis": {"title": "a title of many words"}, "legend": {"orient": "bottom", "columns": 2}}

    spec = {"height": 600, "layer": [{"encoding": {"x": channel(), "y": channel()}}]}
    script = f"console.log(JSON.stringify(fitted({json.dumps(spec)}, 140, true).layer[0].encoding))"
    encoding = json.loads(run_script([], script)[0])
    assert encoding["x"]["axis"]["title"] == ["a title of many", "words"]
    assert encoding["y"]["axis"]["title"] == ["a title of many words"]
    assert encoding["x"]["legend"] == {"orient": "bottom", "columns": 1, "labelLimit": 100}


def test_numbers_stand_right_and_the_best_are_marked(gathered: Page) -> None:
    rows = ((count_cell(1.0), count_cell(2000.0)._replace(best=True)),)
    reader = Reader(shown := html.render(replace(gathered, tables=[Table("t", "T", "", ("a", "b"), rows)], plots=[])))
    assert '<td class="n" data-v="2000.0"><b>2,000</b></td>' in shown
    assert reader.rows[-1] == ["1", "2,000"]

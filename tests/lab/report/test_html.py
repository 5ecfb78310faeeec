import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.lab.report.synthetic import HOSTILE, backend_run, regex_states_run, trie_walk_run
from tokdfa.lab.report.html import render, text
from tokdfa.lab.report.page import Page

FOLDER = Path("results") / "made-up-0123456789"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects what a browser would show, load and run."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.texts, self.attributes = [], [], [], [], []
        self.rows, self.svg_count = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        names = dict(attrs)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.svg_count += tag == "svg"
        if "id" in names:
            self.ids.append(names["id"])
        if tag == "a":
            self.links.append(names["href"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        if tag not in VOID:
            self.handle_starttag(tag, attrs)
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.texts.append(data)
            if {"td", "th"} & set(self.open):
                self.rows[-1][-1] += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def hostile():
    return backend_run(
        FOLDER,
        constraints=(HOSTILE, "x"),
        tokenizers=((HOSTILE, 32_000), ("large", 131_072)),
        workloads=(HOSTILE,),
        steps=8,
        fail={("glrmask", "x"): ("error", f"{HOSTILE}\nsecond line")},
        question=f"Is {HOSTILE} safe?",
        name="</title><script>",
        note="`````",
    )


@pytest.fixture(scope="module")
def page(hostile):
    return render(Page.of(hostile))


@pytest.mark.parametrize("make", [trie_walk_run, regex_states_run])
def test_special_kinds_give_a_page(make):
    reader = read(render(Page.of(make(FOLDER))))
    assert reader.svg_count == 2
    assert {"plots", "environment", "repeat"} <= set(reader.ids)


def test_the_page_is_well_formed_and_complete(page):
    reader = read(page)
    assert reader.svg_count == 6
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    for section in ("overview", "plots", "compile", "mask_percentiles", "failures", "environment", "repeat"):
        assert section in reader.ids
    shown = " ".join("".join(reader.texts).split())
    assert "tokdfa run results/made-up-0123456789/config.yaml" in shown
    assert "tokdfa report results/made-up-0123456789/results/made-up-0123456789" in shown
    assert "token_index against outlines_core" in shown


def test_nothing_is_loaded_from_elsewhere(page):
    outside = [entry for entry in read(page).attributes if entry[1] in ("src", "href", "xlink:href", "action")]
    assert all(value.startswith("#") for _, _, value in outside)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_no_text_of_the_data_becomes_markup(page):
    reader = read(page)
    assert "<script>alert" not in page
    assert page.count("<script>") == page.count("</script>") == 1
    assert not [value for _, name, value in reader.attributes if name.startswith("on")]
    printable = HOSTILE.replace("\x1b", r"\x1b")
    assert f"Is {printable} safe?" in "".join(reader.texts)
    cells = [cell for row in reader.rows for cell in row]
    assert cells.count(printable) >= 6
    assert f"{printable}\nsecond line" in cells


def test_every_row_has_a_cell_for_every_column(page):
    for table in re.findall(r"<table>.*?</table>", page, flags=re.DOTALL):
        lengths = {len(re.findall(r"<t[hd] ", row)) for row in re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)}
        assert len(lengths) == 1


def test_attributes_cannot_be_left():
    assert text("a\"b'c<d>&e\x00") == "a&quot;b&#x27;c&lt;d&gt;&amp;e\\x00"


def test_a_page_of_the_same_run_is_the_same():
    first, second = (render(Page.of(regex_states_run(FOLDER))) for _ in range(2))
    assert first == second


SORTING = """
const cells = (values) => values.map((value) => ({ dataset: { v: value } }));
const rows = [["b", "10"], ["a", ""], ["c", "9.5"]].map((values) => ({ cells: cells(values) }));
const clicks = [];
const head = (name) => {
  const attributes = {};
  return {
    childNodes: [name], append() {},
    classList: { contains: (one) => one === "n" && name === "number" },
    getAttribute: (key) => attributes[key] ?? null,
    setAttribute: (key, value) => { attributes[key] = value; },
    removeAttribute: (key) => { delete attributes[key]; },
  };
};
const body = { rows, append(...sorted) { this.rows = sorted; } };
globalThis.document = {
  querySelectorAll: () => [{ tHead: { rows: [{ cells: [head("name"), head("number")] }] }, tBodies: [body] }],
  createElement: () => ({ append() {}, addEventListener: (_, click) => clicks.push(click) }),
};
const show = () => console.log(body.rows.map((row) => row.cells[0].dataset.v).join(""));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="the page's script is run by node, which is not installed")
def test_tables_are_sorted_by_value_with_what_is_missing_last(page):
    script = re.search(r"<script>(.*?)</script>", page, flags=re.DOTALL).group(1)
    presses = "for (const place of [0, 0, 1, 1]) { clicks[place](); show(); }"
    done = subprocess.run(["node", "-e", SORTING + script + presses], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["abc", "cba", "cba", "bca"]

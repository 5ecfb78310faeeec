"""The web page: complete, in order, self-contained, safe from the data; its charts compile, its script sorts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import vl_convert

from tests.lab.report.synthetic import HOSTILE, backend_run
from tokdfa.lab.report import html
from tokdfa.lab.report.page import Page

FOLDER = Path("results") / "made-up-0123456789"
VOID = {"meta", "br", "hr", "img", "input", "link"}


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
    assert len(gathered.charts) == 3
    assert len(reader.values("data-spec")) == sum(len(chart.panels) for chart in gathered.charts)
    assert sum(map(bool, reader.rows)) == sum(1 + len(table.rows) for table in gathered.tables)
    assert len({len(row) for row in reader.rows[: 1 + len(gathered.tables[0].rows)]}) == 1


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

"""The pages in a real browser: nothing on the console, light and dark, wide and narrow, charts that answer.

Skipped where there is no Chromium, or no websocket-client to lead it with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.lab.report.browser import Browser, Tab, why_not
from tests.lab.report.synthetic import HOSTILE, backend_run, trie_walk_run
from tokdfa.lab.declare.cells import Cell, Table
from tokdfa.lab.declare.look import PALETTE
from tokdfa.lab.report.compare import compare_runs
from tokdfa.lab.report.compare_page import page as comparison_page
from tokdfa.lab.report.html import render
from tokdfa.lab.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is a browser")

WIDTHS = (1280, 390)
#: The contrast that text must have with its background (WCAG 2, level AA).
CONTRAST = 4.5
NAMES = ("run", "walks", "comparison")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def tabs(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tab]:
    """A run's page with hostile names and failures, a plain one, and a comparison."""
    folder: Path = tmp_path_factory.mktemp("pages")
    long_name = "a_constraint_with_a_name_that_does_not_end_" * 3
    run = backend_run(
        folder,
        constraints=(long_name, HOSTILE, "date"),
        steps=6,
        fail={("glrmask", "date"): ("timeout", f"{'x' * 300}\n{HOSTILE}")},
        question=f"Does {HOSTILE} fit, and {long_name}?",
    )
    later = backend_run(folder, constraints=(long_name, HOSTILE, "date"), steps=6)
    later.frames["samples"]["ns"] *= 2
    (folder / "run.html").write_text(render(Page.of(run)), encoding="utf-8")
    (folder / "walks.html").write_text(render(Page.of(trie_walk_run(folder))), encoding="utf-8")
    compared = comparison_page(compare_runs(run, later), (folder, folder))
    (folder / "comparison.html").write_text(render(compared), encoding="utf-8")
    return {name: browser.open(folder / f"{name}.html") for name in NAMES}


def show(tab: Tab, width: int, height: int = 900, dark: bool = False) -> None:
    """Set the window up and wait until the charts are drawn anew, if they are."""
    tab.show(width, height, dark)
    tab.evaluate("new Promise((done) => setTimeout(done, 200)).then(() => globalThis.drawn)")


@pytest.mark.parametrize("name", NAMES)
def test_the_console_and_the_network_stay_empty(tabs: dict[str, Tab], name: str) -> None:
    assert tabs[name].messages == []
    assert tabs[name].evaluate("document.querySelectorAll('table').length") >= 2


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_no_page_is_wider_than_its_window(tabs: dict[str, Tab], name: str, width: int) -> None:
    tab = tabs[name]
    show(tab, width)
    assert tab.evaluate("innerWidth") == width
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= width
    outside = "[...document.querySelectorAll('main > *, header > *, .scroll, figure, .chart svg, pre, nav')]"
    assert tab.evaluate(f"{outside}.filter((one) => one.getBoundingClientRect().right > innerWidth + 1).length") == 0


@pytest.mark.parametrize("name", NAMES)
def test_tables_scroll_inside_their_boxes(tabs: dict[str, Tab], name: str) -> None:
    tab = tabs[name]
    show(tab, 390, height=700)
    boxes = "[...document.querySelectorAll('.scroll')]"
    assert tab.evaluate(f"{boxes}.filter((box) => box.scrollWidth > box.clientWidth).length") >= 1
    assert tab.evaluate(f"Math.max(...{boxes}.map((box) => box.clientHeight))") <= 700


LETTERS = """
(() => {
  const number = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = (colour) => {
    const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const part = number(colour).slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if ((number(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  let worst = [99, ""];
  for (const one of document.querySelectorAll("h1, h2, p, li, a, th, td, small, figcaption, pre, summary, svg text")) {
    const style = getComputedStyle(one);
    const [a, b] = [light(one.closest("svg") ? style.fill : style.color), light(ground(one))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, `${one.tagName} ${one.textContent.slice(0, 40)}`];
  }
  return [...worst, light(getComputedStyle(document.body).backgroundColor)];
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_letters_can_be_read_in_light_and_dark(tabs: dict[str, Tab], name: str, dark: bool) -> None:
    tab = tabs[name]
    show(tab, 1280, dark=dark)
    contrast, where, ground = tab.evaluate(LETTERS)
    assert contrast >= CONTRAST, where
    assert (ground < 0.1) if dark else (ground > 0.9)


CROWDED = """
[...document.querySelectorAll("figure .chart")].flatMap((chart) => {
  const name = chart.closest("figure").id, frame = chart.querySelector("svg").getBoundingClientRect();
  const texts = [...chart.querySelectorAll("svg text")].filter((one) =>
    one.textContent.trim() && one.checkVisibility({opacityProperty: true}));
  const boxes = texts.map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([text, box], place) => {
    const cut = box.left < frame.left - 2 || box.right > frame.right + 2 ? [`${name}: ${text} is cut`] : [];
    const over = boxes.slice(place + 1).filter(([, other]) =>
      Math.min(box.right, other.right) - Math.max(box.left, other.left) > 4 &&
      Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 4);
    return [...cut, ...over.map(([other]) => `${name}: ${text} over ${other}`)];
  });
})
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_labels_of_charts_neither_overlap_nor_leave_them(tabs: dict[str, Tab], name: str, width: int) -> None:
    tab = tabs[name]
    show(tab, width)
    charts, drawn = (tab.evaluate(f"document.querySelectorAll('figure .chart{what}').length") for what in ("", " svg"))
    assert charts == drawn >= 1
    assert tab.evaluate(CROWDED) == []


def test_a_legend_switches_contenders_in_every_panel(tabs: dict[str, Tab]) -> None:
    tab = tabs["run"]
    show(tab, 1280)
    figure = "document.getElementById('chart-mask_ecdf')"
    faint = f"[...{figure}.querySelectorAll('.mark-line path')].filter((one) => one.getAttribute('opacity') === '0.08')"
    assert tab.evaluate(f"{figure}.querySelectorAll('.chart').length") == 2
    assert tab.evaluate(f"{faint}.length") == 0
    tab.click("#chart-mask_ecdf .role-legend-symbol path")
    tab.evaluate("new Promise((done) => setTimeout(done, 300))")
    lines = tab.evaluate(f"{figure}.querySelectorAll('.mark-line path').length")
    assert lines == 10
    assert tab.evaluate(f"{faint}.length") == 8, "four of five contenders are faint in both panels"
    tab.click("#chart-mask_ecdf .role-legend-symbol path")
    tab.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert tab.evaluate(f"{faint}.length") == 0


def test_the_pointer_shows_the_case(tabs: dict[str, Tab]) -> None:
    tab = tabs["walks"]
    show(tab, 1280)
    point = "#chart-node_time_density .mark-symbol.role-mark path"
    tab.click(point)
    middle = "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
    x, y = tab.evaluate(f"{middle}(document.querySelector('{point}').getBoundingClientRect())")
    for shift in (1, 0):
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y)
    tab.evaluate("new Promise((done) => setTimeout(done, 300))")
    shown = tab.evaluate("document.getElementById('vg-tooltip-element').textContent")
    assert "label of" in shown
    assert "engine" in shown


def test_dark_pages_have_dark_charts(tabs: dict[str, Tab]) -> None:
    tab = tabs["run"]
    colours = "[...document.querySelectorAll('.mark-line path')].map((one) => one.getAttribute('stroke'))"
    show(tab, 1280)
    light = set(tab.evaluate(colours))
    show(tab, 1280, dark=True)
    assert {dict(PALETTE)[colour] for colour in light} == set(tab.evaluate(colours))
    show(tab, 1280)
    assert set(tab.evaluate(colours)) == light


def column(tab: Tab, place: int) -> list[str]:
    return list(
        tab.evaluate(f"[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[{place}].dataset.v)")
    )


def test_a_click_on_a_head_sorts_and_a_second_one_turns_round(tabs: dict[str, Tab]) -> None:
    tab = tabs["run"]
    show(tab, 1280)
    heads = tab.evaluate("[...document.querySelectorAll('table thead th')].map((head) => head.textContent)")
    place = heads.index("compile time")
    before = column(tab, place)
    tab.click(f"thead th:nth-child({place + 1}) button")
    rising = [float(value) for value in column(tab, place)]
    assert rising == sorted(map(float, before))
    assert column(tab, place) != before
    head = f"document.querySelector('thead th:nth-child({place + 1})')"
    assert tab.evaluate(f"{head}.getAttribute('aria-sort')") == "ascending"
    tab.click(f"thead th:nth-child({place + 1}) button")
    assert [float(value) for value in column(tab, place)] == rising[::-1]
    tab.click("thead th:first-child button")
    assert column(tab, 0) == sorted(column(tab, 0))
    assert tab.evaluate(f"{head}.getAttribute('aria-sort')") is None


def test_long_tables_fold_and_open(browser: Browser, tmp_path: Path) -> None:
    rows = tuple((Cell(str(number), float(number)),) for number in range(31))
    page = replace(Page.of(trie_walk_run(tmp_path)), tables=[Table("t", "T", "", ("n",), rows)], plots=[])
    (tmp_path / "long.html").write_text(render(page), encoding="utf-8")
    tab = browser.open(tmp_path / "long.html")
    shown = "[...document.querySelectorAll('tbody tr')].filter((row) => row.offsetParent !== null).length"
    assert tab.evaluate(shown) == 30
    tab.click("button.fold")
    assert tab.evaluate(shown) == 31

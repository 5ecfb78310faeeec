"""Figures are on the pages that they cite, commits that pages name are in the history, old pages say that they are."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.figures import REPORTS, ROOT, UNREAD, Figure, Place, figures, places, unread

if TYPE_CHECKING:
    from pathlib import Path

#: Pages whose commit has been lost. It has to be empty when these have been made again.
LOST = {"cold-start"}


def known_unread() -> list[str]:
    return [line for line in UNREAD.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def test_figures_are_on_the_pages_that_they_cite() -> None:
    """But for those that are known; whoever mends one takes it out of the list."""
    assert unread() == known_unread()


def test_every_place_is_looked_at() -> None:
    found = list(places())
    assert len([place for place in found if place.name.startswith("claim ")]) == 127
    cited = [place for place in found if place.pages]
    assert len(cited) > 90
    assert sum(len(figures(place.text)) for place in cited) > 350


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("0.66 ms, or 664 µs", []),
        ("0.67 ms", ["0.67"]),
        ("llguidance 1.9.1, p99, Llama 3 and `17.5` are no figures, nor is 2024", []),
        ("274,520 nodes; 274,521 nodes", ["274,521"]),
        ("274,500 nodes", []),
        ("274,600 nodes", ["274,600"]),
        ("43.1 % of them", []),
        ("43.2 % of them", ["43.2"]),
        ("0.663718 ms is more than the page prints", ["0.663718"]),
    ],
)
def test_a_figure_is_found_to_the_digits_printed(
    text: str, missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made-up.md").write_text(
        "It takes 663.7 µs for 274,520 nodes, 43.1% of 2,024,000 tokens in 31 cases.\n"
    )
    monkeypatch.setattr("tests.figures.REPORTS", tmp_path)
    for cached in ("_on_page", "_rounded"):
        getattr(sys.modules["tests.figures"], cached).cache_clear()
    assert Place("a test", text, ("made-up",)).unread() == missing


def test_numbers_are_read_with_their_units() -> None:
    assert figures("12,000 masks in 0.30 ms (2.5 %)") == [
        ("12,000", Figure("12000", "")),
        ("0.30", Figure("0.30", "ms")),
        ("2.5", Figure("2.5", "%")),
    ]
    assert list(Figure("0.0300", "").digits) == [3]
    assert list(Figure("23900", "").digits) == [3, 4, 5]


# The age of pages.


@pytest.fixture(scope="module")
def page_state() -> Any:
    spec = importlib.util.spec_from_file_location("page_state", ROOT / "docs" / "page_state.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module._git("rev-parse", "HEAD") is None:
        pytest.skip("there is no history here, as in an unpacked archive")
    if (module._git("rev-parse", "--is-shallow-repository") or "").strip() == "true":
        pytest.skip("the history here is cut")
    return module


def test_commits_that_pages_name_are_in_the_history(page_state: Any) -> None:
    named = {page.stem: page_state.commit_of(page.read_text(encoding="utf-8")) for page in REPORTS.glob("*.md")}
    assert len([commit for commit in named.values() if commit]) > 30
    lost = {page for page, commit in named.items() if commit and not page_state.in_history(commit)}
    assert lost == LOST


def made_up(commit: str, experiment: str = "maskbench") -> str:
    return f"# A page\n\n*Made by `tokdfa run experiments/{experiment}.yaml`.*\n\n| git · commit | {commit} |\n"


def test_a_page_says_what_it_is_older_than(page_state: Any) -> None:
    head = page_state._git("rev-parse", "HEAD").strip()
    assert page_state.first_line(made_up(head)) == "", "nothing has changed since"
    first = page_state._git("log", "--reverse", "--format=%H", "--", "experiments/maskbench.yaml").split()[0]
    said = page_state.first_line(made_up(first))
    assert said.startswith("*This page is older than its experiment, the kind maskbench, ")
    for engine in ("glrmask", "llguidance", "maskforge", "pushdown_trie"):
        assert engine in said
    assert "token_index" not in said, "no engine of this experiment"
    assert "not in the history" in page_state.first_line(made_up("0" * 40))
    assert page_state.first_line("# A page of no run\n") == ""

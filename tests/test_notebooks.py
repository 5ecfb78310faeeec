"""Every notebook runs from top to bottom on small settings, and is kept without outputs; together they are one book."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LINK = re.compile(r"\]\(([^)]+)\)")


def cells_of(path: Path) -> list[tuple[str, str]]:
    """(kind, text) of each cell."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(path.read_text())["cells"]]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, from the folder of the notebooks."""
    monkeypatch.setenv("TOKDFA_NOTEBOOK_SMALL", "1")
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path: Path) -> None:
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_there_are_notebooks() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(len(NOTEBOOKS))]
    assert {"00_tour", "09_write_a_backend", "10_reading_results"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("place", range(len(NOTEBOOKS)), ids=lambda place: NOTEBOOKS[place].stem)
def test_leads_on(place: int) -> None:
    (_, first), *_, (kind, last) = cells_of(NOTEBOOKS[place])
    assert first.startswith("# ")
    assert kind == "markdown"
    farewell, _, links = last.partition("\n\n---\n\n")
    assert "Where to go from here:" in farewell
    neighbours = [NOTEBOOKS[other].name for other in (place - 1, place + 1) if 0 <= other < len(NOTEBOOKS)]
    neighbours.insert(bool(place), "README.md")
    assert LINK.findall(links) == neighbours


def test_contents_list_all() -> None:
    links = LINK.findall((FOLDER / "README.md").read_text())
    assert [link for link in links if link.endswith(".ipynb")] == [path.name for path in NOTEBOOKS]
    assert all((FOLDER / link).exists() for link in links)


def test_titles_are_those_of_the_contents() -> None:
    contents = dict(re.findall(r"\[(\d\d [^]]+)\]\((\w+\.ipynb)\)", (FOLDER / "README.md").read_text()))
    assert len(contents) == len(NOTEBOOKS)
    for path in NOTEBOOKS:
        (*_, (_, last)) = cells_of(path)
        for title, name in re.findall(r"(\d\d [^]]+?)(?: →)?\]\((\w+\.ipynb)\)", last):
            assert contents[title] == name


class Inputs(HTMLParser):
    """The code of a rendered notebook: what stands in `pre` elements within inputs."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.codes: list[str] = []
        self.text = ""
        self._in_code = False
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._in_code = True
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_code = self._in_code and tag != "pre"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_code:
            self.codes[-1] += data


def test_the_rendered_tour_is_that_of_the_notebook() -> None:
    page = FOLDER / "00_tour.html"
    content = page.read_text()
    assert page.stat().st_size < 600_000
    assert not re.search(r"/(?:root|home|Users|work|tmp|var)/", content), "a path of the machine that rendered it"
    rendered = Inputs(content)
    shown = {code.strip() for code in rendered.codes}
    for kind, text in cells_of(FOLDER / "00_tour.ipynb"):
        if kind == "code":
            assert text.strip() in shown, "render it again, as notebooks/README.md says"
        else:
            assert text.splitlines()[0].lstrip("# ").replace("`", "")[:60] in rendered.text

"""Every notebook runs from top to bottom on small settings, and is kept with its outputs; they are one book."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.notebooks import FOLDER, execute

if TYPE_CHECKING:
    from pathlib import Path

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
    assert any(cell.get("outputs") for cell in execute(path).cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_with_outputs(path: Path) -> None:
    """`python -m tests.notebooks` makes them."""
    content = path.read_text()
    assert len(content) < 400_000
    assert not re.search(r"/(?:root|home|Users|work|var)/", content), "a path of the machine that ran it"
    cells = [cell for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]


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

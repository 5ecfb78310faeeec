"""Every notebook runs from top to bottom on small settings, and is kept without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path) -> None:
    command = ["-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--output-dir", str(tmp_path), str(path)]
    environment = os.environ | {"TOKDFA_NOTEBOOK_SMALL": "1", "MPLBACKEND": "agg", "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    cells = json.loads((tmp_path / path.name).read_text())["cells"]
    assert any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path: Path) -> None:
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_there_are_notebooks() -> None:
    assert {"00_tour", "01_trie_walk"} <= {path.stem for path in NOTEBOOKS}

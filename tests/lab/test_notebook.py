"""What notebooks call: a small experiment is run, opened, plotted and compared through `tokdfa.lab` alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tokdfa import lab
from tokdfa.errors import ArgumentError, ConfigError, UnknownNameError
from tokdfa.lab.run.store import open_run

if TYPE_CHECKING:
    from tokdfa.lab.run.store import Run

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
SMALL = """
name: small
tokenizers: [bytes]
constraints: [{label: date, regex: '[0-9]{4}'}, {label: word, regex: '[a-z]{1,3}'}]
backends: [token_index, {name: token_index, label: lazy, options: {lazy: true}}]
workloads: [{kind: random_walk, walks: 2, steps: 6}]
measures: [compile, mask]
repeats: 2
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("lab") / "small.yaml"
    file.write_text(SMALL)
    return lab.run_experiment(file)


def test_a_run_is_opened_by_its_folder(measured: Run) -> None:
    assert set(measured.items()["label"]) == {"token_index", "lazy"}
    again = lab.open_run(measured.folder)
    assert again.items().equals(measured.items())
    rows = lab.results(measured.folder).rows()
    assert set(rows["label"]) == {"token_index", "lazy"}
    assert (rows["mask_p50"] > 0).all()


def test_charts_by_name(measured: Run) -> None:
    first = lab.plot(measured)
    assert first.panels
    assert lab.plot(str(measured.folder), first.name) == first
    assert first._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"  # type: ignore[index]
    with pytest.raises(UnknownNameError, match=rf"known: .*{first.name}|did you mean"):
        lab.plot(measured, "no such chart at all")


def test_two_runs_are_compared(measured: Run, tmp_path: Path) -> None:
    config = lab.load_config(measured.folder.parent.parent / "small.yaml")
    again = lab.run_experiment(config, tmp_path)
    assert again.folder.parent == tmp_path
    comparison = lab.compare(measured, again.folder)
    assert set(comparison.engines["engine"]) == {"token_index", "lazy"}
    with pytest.raises(ArgumentError, match="open_run gives"):
        lab.compare(measured, 3)  # type: ignore[arg-type]


def test_a_setting_that_an_experiment_lacks_is_answered_by_those_it_has(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    with pytest.raises(ConfigError, match=r"there is no setting .data.*this one has none"):
        lab.load_config(file, {"data": "x"})
    with pytest.raises(ConfigError, match=r"there is no setting 'data'.*maskbench\. with chunk, data,"):
        lab.load_config(NOTEBOOKS.parent / "experiments" / "quickstart.yaml", {"data": "x"})
    with pytest.raises(ConfigError, match=r"settings of skew are .*prompts.*; other keys are changed in the file"):
        lab.load_config(NOTEBOOKS.parent / "experiments" / "skew_choices.yaml", {"nothing": 3})


def test_notebooks_reach_the_lab_by_its_own_names() -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        assert not re.findall(r"^\s*(?:from|import) tokdfa\.lab\..*$", code, re.MULTILINE), path.name


def test_the_names_are_there() -> None:
    assert lab.open_run is open_run
    for name in lab.__all__:
        assert callable(getattr(lab, name))
    with pytest.raises(AttributeError, match="no attribute 'opne_run'"):
        lab.opne_run  # noqa: B018

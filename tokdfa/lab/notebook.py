"""What a notebook calls: run an experiment, open a run, see its results, plot them, compare two runs.

Runs are given as such, or as the folders they are in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa.errors import ArgumentError, UnknownNameError, a_type
from tokdfa.lab.config.experiment import ExperimentConfig
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.declare.stats import paired
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.report.compare import compare_runs
from tokdfa.lab.report.contents import build_charts
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.speed_and_skew import together
from tokdfa.lab.run.execute import run
from tokdfa.lab.run.store import Run, open_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.report.compare import Comparison

__all__ = [
    "compare",
    "find_kind",
    "load_config",
    "open_run",
    "paired",
    "plot",
    "results",
    "run_experiment",
    "speed_and_skew",
]


def run_experiment(experiment: str | Path | ExperimentConfig, folder: str | Path | None = None) -> Run:
    """Run an experiment, or go on with it, and open the run.

    `experiment`: a YAML file, or what `load_config` gives; `folder`: where run folders go, by default ``results``
    beside the file. Raises what `load_config` and running raise.
    """
    config = experiment if isinstance(experiment, ExperimentConfig) else load_config(Path(experiment))
    return open_run(run(config, folder).folder)


def results(measured: Run | str | Path) -> Results:
    """What a run has found, by the columns that its kind declares: ``rows()`` is a table of pandas."""
    return RunData.read(_opened(measured)).declared


def speed_and_skew(measured: Run | str | Path) -> Results:
    """What each strategy costs, and how far it bends a model's distribution: of an experiment on backends that measures
    ``skew`` beside them, such as ``families``. ``rows()`` has a row for each tokenizer and strategy,
    ``rows("grammars")`` the costs on grammars.

    Raises ArgumentError if the run has not measured both.
    """
    found = together(RunData.read(_opened(measured)))
    if found is None:
        raise ArgumentError("this run has not measured both backends and their skew; experiments/families.yaml does")
    return found


def plot(measured: Run | str | Path, chart: str = "") -> Chart:
    """A chart of a run, which a notebook shows; the first that is drawn if none is named.

    Raises UnknownNameError with the names of all charts of the run, ArgumentError for one that cannot be drawn.
    """
    built = {one.name: one for one in build_charts(RunData.read(_opened(measured)))}
    drawn = [one for one in built.values() if one.panels]
    if not chart and drawn:
        return drawn[0]
    if chart not in built:
        raise UnknownNameError("chart of this run", chart, built)
    if not built[chart].panels:
        raise ArgumentError(f"the chart {chart!r} is not drawn: {built[chart].reason}")
    return built[chart]


def compare(before: Run | str | Path, after: Run | str | Path, controls: Iterable[str] | None = None) -> Comparison:
    """Two runs of one experiment, case by case: see `tokdfa.lab.report.compare.compare_runs`."""
    return compare_runs(_opened(before), _opened(after), controls)


def _opened(measured: Run | str | Path) -> Run:
    if isinstance(measured, Run):
        return measured
    if isinstance(measured, str | Path):
        return open_run(measured)
    raise ArgumentError(f"a run is what open_run gives, or a folder, not {a_type(measured)}")

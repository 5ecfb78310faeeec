from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.lab.run.experiments import experiment
from tokdfa.cli import app as cli
from tokdfa.cli import report as cli_report
from tokdfa.errors import OptionError
from tokdfa.lab.run import execute
from tokdfa.lab.run.cluster import LOCAL
from tokdfa.lab.run.execute import RunSummary
from tokdfa.lab.run.executor import measures_here, open_executor
from tokdfa.lab.run.processes import Processes


def test_what_is_a_scheduler():
    assert measures_here(None)
    assert measures_here(LOCAL)
    assert not measures_here("tcp://host:8786")
    for wrong in ("host:8786", "dask", "local"):
        with pytest.raises(OptionError, match=f"not {wrong!r}"):
            measures_here(wrong)


def test_processes_are_the_default(tmp_path):
    config = experiment(tmp_path, "fake")
    for workers, count in ((None, 1), (3, 3)):
        executor = open_executor(config, None, workers, print)
        assert isinstance(executor, Processes)
        assert executor.facts() == {"environment": {"scheduler": "processes", "workers": count}}
        executor.close()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (None, None)),
        (("--workers", "3"), (3, None)),
        (("--scheduler", "tcp://host:8786", "--workers", "60"), (60, "tcp://host:8786")),
    ],
)
def test_the_command(tmp_path, monkeypatch, arguments, expected):
    config, asked = experiment(tmp_path, "fake"), []
    monkeypatch.setattr(
        execute, "run", lambda *given: asked.append(given[-2:]) or RunSummary(tmp_path / "results", total=1)
    )
    monkeypatch.setattr(cli, "_ensure_warm", lambda: None)
    monkeypatch.setattr(cli_report, "report_run", lambda folder, console: None)
    done = CliRunner().invoke(cli.app, ["run", str(config.source), *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    assert asked == [expected]


def test_the_command_refuses_what_is_no_scheduler(tmp_path):
    config = experiment(tmp_path, "fake")
    done = CliRunner().invoke(cli.app, ["run", str(config.source), "--scheduler", "host:8786"])
    assert isinstance(done.exception, OptionError)

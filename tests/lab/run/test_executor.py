from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.lab.run.experiments import experiment
from tokdfa.cli import app as cli
from tokdfa.errors import OptionError
from tokdfa.lab.run import execute
from tokdfa.lab.run.cluster import LOCAL
from tokdfa.lab.run.execute import RunSummary
from tokdfa.lab.run.executor import measures_here


def test_what_is_a_scheduler():
    assert measures_here(None)
    assert measures_here(LOCAL)
    assert not measures_here("tcp://host:8786")
    for wrong in ("host:8786", "dask", "local"):
        with pytest.raises(OptionError, match=f"not {wrong!r}"):
            measures_here(wrong)


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
    monkeypatch.setattr(execute, "run", lambda *given: asked.append(given[-2:]) or RunSummary(tmp_path, total=1))
    done = CliRunner().invoke(cli.app, ["run", str(config.source), *arguments], catch_exceptions=False)
    assert done.exit_code == 0  # and nothing is measured, so there is nothing to report
    assert asked == [expected]

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tokdfa.cli import app as cli
from tokdfa.lab.run import cost
from tokdfa.lab.run.cost import Cost


@pytest.fixture
def run_cost(monkeypatch, tmp_path):
    found = [Cost("llama3", "x", 2, 50, 30.0), Cost("llama3", "[y]", 1, 25, 7200.0)]
    monkeypatch.setattr(cost, "costs_of", lambda run: found)
    (tmp_path / "config.yaml").write_text("name: a\n")
    return lambda *arguments: CliRunner().invoke(cli.app, ["cost", str(tmp_path), *arguments])


def lines(result):
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.output.splitlines()]


def test_a_table_of_engines(run_cost):
    assert lines(run_cost()) == [
        ["tokenizer", "engine", "items", "rows", "seconds", "s/item", "s/row"],
        ["llama3", "x", "2", "50", "30.0", "15.00", "0.600"],
        ["llama3", "[y]", "1", "25", "7,200.0", "7200.00", "288.000"],
    ]


def test_what_more_would_cost(run_cost):
    said = run_cost("--rows", "1000", "--tokenizers", "4", "--workers", "8", "--only", "x").output
    assert said.splitlines()[-1] == "1,000 rows x 1 engines x 4 tokenizers: 40 min on one core, 5 min on 8 workers"
    assert "[y]" not in said
    assert "engines x 1 tokenizers: 80.2 h on one core" in run_cost("--rows", "1000").output

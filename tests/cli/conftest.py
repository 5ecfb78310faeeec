"""The command line, run as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tokdfa.cli import app as cli

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def tokdfa(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the command with arguments; returns (exit status, what it printed, in one line of single spaces)."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["tokdfa", *map(str, arguments)])
        monkeypatch.setattr(cli, "console", cli.Console(width=200))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        code = ended.value.code
        return (code if isinstance(code, int) else 0), " ".join((printed.out + printed.err).split())

    return call

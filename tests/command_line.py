"""Commands of ``tokdfa``, run as a user runs them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tokdfa.cli import app as cli

#: Arguments -> (exit status, lines on stdout, stderr in one line of single spaces).
Command = Callable[..., tuple[int, list[str], str]]


def command(name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """``tokdfa NAME`` on a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(width))

    def call(*arguments: str) -> tuple[int, list[str], str]:
        monkeypatch.setattr("sys.argv", ["tokdfa", name, *arguments])
        monkeypatch.setattr(cli, "console", cli.Console(width=width))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        code = ended.value.code
        return (code if isinstance(code, int) else 0), printed.out.splitlines(), " ".join(printed.err.split())

    return call

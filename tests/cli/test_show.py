"""``tokdfa show --backend cfg_fsm`` and the backend's other commands, run as a user runs them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import pytest

from tokdfa.cli import app as cli
from tokdfa.cli import show as cli_show

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Arguments -> (exit status, stdout and stderr in one line of single spaces).
    Command = Callable[..., tuple[int, str]]

mpl.use("Agg")
import matplotlib.pyplot as plt

GRAMMARS = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
JSON = ("--grammar", str(GRAMMARS / "json.lark"), "--backend", "cfg_fsm", "--tokenizer", "mistral-v1")


@pytest.fixture
def tokdfa(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["tokdfa", *arguments])
        monkeypatch.setattr(cli, "console", cli.Console(width=200))
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        code = ended.value.code
        return (code if isinstance(code, int) else 0), " ".join((printed.out + printed.err).split())

    return call


def test_the_situation_and_its_tree(tokdfa: Command) -> None:
    status, text = tokdfa("show", *JSON, "--prefix", '{"a": ')
    assert status == 0
    assert """prefix 4 tokens: b'{"' b'a' b'":' b' '""" in text
    assert "between lexemes STRING | NUMBER | " in text
    assert "in a lexeme ignored text 4" in text
    assert "BLANKS" in text  # what must not go on if the blank is over
    mask = tokdfa("mask", *JSON, "--prefix", '{"a": ')[1]
    assert "allowed 163 of 32,000 tokens" in mask
    assert "163 tokens ├──" in text
    assert """past "[": 5; 4 end here: [" [- [[ [] │ │ └── past "]": 1; 1 end here: [],""" in text


def test_the_drawing(tokdfa: Command, tmp_path: Path) -> None:
    before = plt.get_fignums()
    for name in ("tree.svg", "tree.png"):
        file = tmp_path / "new" / name
        status, text = tokdfa("show", *JSON, "--prefix", "[", "--tree", str(file))
        assert status == 0
        assert f"drawing {file}" in text
    assert (tmp_path / "new" / "tree.svg").read_text().rstrip().endswith("</svg>")
    picture = plt.imread(tmp_path / "new" / "tree.png")[..., :3].min(axis=2)
    assert picture.shape[1] > 1000
    assert 0.01 < (picture < 0.5).mean() < 0.3
    assert plt.get_fignums() == before


def test_narrow_branches_are_counted(tokdfa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_show, "PRINTED_BRANCHES", 4)
    text = tokdfa("show", *JSON, "--prefix", '{"a": ')[1]
    assert text.count("end here") == 3
    assert "└── and 9 narrower branches" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-b", "cfg_fsm"), "give --tokenizer"),
        (("-b", "cfg_fsm", "-t", "bytes", "--lexer", "any"), "cfg_fsm lexes as Lark does"),
        (("-b", "cfg_fsm", "-t", "bytes", "--tree", "tree.abc"), "ends in .svg, .pdf or .png"),
        (("-b", "cfg_fsm", "-t", "bytes", "--prefix", "[}"), "after b'[', token 125 (b'}') is not allowed"),
        (("-b", "token_index"), "--backend is one of pushdown_trie, cfg_fsm here, not 'token_index'"),
        (("--tree", "tree.svg"), "are for --backend cfg_fsm"),
        (("--prefix", "["), "are for --backend cfg_fsm"),
    ],
)
def test_what_cannot_be_shown(tokdfa: Command, arguments: tuple[str, ...], message: str) -> None:
    status, text = tokdfa("show", "-g", str(GRAMMARS / "json.lark"), *arguments)
    assert status == 1
    assert f"error: {message}" in text or message in text


@pytest.mark.parametrize("command", ["mask", "show"])
def test_a_grammar_with_conflicts_gets_larks_report_and_advice(tokdfa: Command, command: str) -> None:
    status, text = tokdfa(command, "-g", str(GRAMMARS / "sql.lark"), "-b", "cfg_fsm", "-t", "bytes")
    assert status == 1
    assert "Reduce/Reduce collision in Terminal('RPAR') between the following rules" in text
    assert "- <atom : column>" in text
    assert "use the backend earley_trie" in text


def test_conflicts_are_shifted_or_refused(tokdfa: Command, tmp_path: Path) -> None:
    file = tmp_path / "dangling.lark"
    file.write_text('start: "if" start ["else" start] | "x"\n%ignore " "\n')
    given = ("mask", "-g", str(file), "-b", "cfg_fsm", "-t", "bytes", "--prefix", "if x ")
    status, text = tokdfa(*given)
    assert status == 0
    assert "all of them: token bytes token bytes token bytes 32 ' ' 101 'e'" in text
    status, text = tokdfa(*given, "-o", "conflicts=refuse")
    assert status == 1
    assert "Shift/Reduce conflict for terminal ELSE" in text
    assert "use the backend earley_trie" in text

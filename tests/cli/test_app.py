"""The command line, run as a user runs it: arguments in, text and exit status out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.proper.small_tokenizers import merge_list
from tokdfa import __version__
from tokdfa.backends import registry
from tokdfa.backends.registry import backend_names
from tokdfa.lab.run.store import open_run

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = """
name: tiny
question: Does the whole path work?
tokenizers: [bytes]
constraints:
  - {label: date, regex: '[0-9]{4}-[0-9]{2}'}
backends: [token_index, brute_force]
reference: brute_force
workloads:
  - {kind: random_walk, walks: 1, steps: 5}
measures: [compile, first_mask, mask, advance]
repeats: 1
seed: 0
"""


def test_version(tokdfa) -> None:
    assert tokdfa("--version") == (0, f"tokdfa {__version__}")


def test_cache_lists_and_deletes_what_is_kept(tokdfa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "tokdfa" / "dequantized"
    (kept / "model").mkdir(parents=True)
    (kept / "model" / "weights").write_bytes(bytes(2_500_000))
    status, text = tokdfa("cache")
    assert status == 0
    assert f"dequantized 2.5 unpacked models {kept}" in text
    status, text = tokdfa("cache", "--clear", "dequantised")
    assert status == 1
    assert "did you mean 'dequantized'?" in text
    status, text = tokdfa("cache", "--clear", "dequantized")
    assert status == 0
    assert f"dequantized 2.5 deleted {kept}" in text
    assert not kept.exists()
    (tmp_path / "tokdfa" / "kernels").mkdir()
    status, text = tokdfa("cache", "--clear", "all")
    assert status == 0
    assert f"kernels 0.0 deleted {kept.with_name('kernels')}" in text
    assert tokdfa("cache") == (0, f"nothing is kept in {tmp_path / 'tokdfa'}")


def test_mask_prints_count_samples_and_end(tokdfa) -> None:
    status, text = tokdfa("mask", "--regex", "[0-9]{4}-(0[1-9]|1[0-2])?", "--tokenizer", "bytes", "--prefix", "2024-")
    assert status == 0
    assert "5 tokens: b'2' b'0' b'2' b'4' b'-'" in text
    assert "allowed 2 of 257 tokens" in text
    assert "may end yes" in text
    assert "48 '0' 49 '1'" in text


def test_mask_takes_tokens_in_place_of_a_text(tokdfa) -> None:
    """The mask is that of the text that they spell; what is no id, or not allowed, is said."""
    given = ("mask", "--regex", "[0-9]{4}-(0[1-9]|1[0-2])?", "-t", "bytes")
    assert tokdfa(*given, "--tokens", "50 48, 50 52 45") == tokdfa(*given, "--prefix", "2024-")
    for tokens, said in (("50 x", "not 'x'"), ("50 97", "token 97 (b'a') is not allowed"), ("257", "ids 0 to 256")):
        status, text = tokdfa(*given, "--tokens", tokens)
        assert status == 1
        assert said in text
    assert tokdfa(*given, "--tokens", "50", "--prefix", "2")[0] == 1


def test_mask_of_choices_shows_what_is_forced(tokdfa) -> None:
    arguments = ("mask", "-c", "yes", "-c", "yesterday", "-t", "bytes", "-p", "ye", "-b", "brute_force")
    status, text = tokdfa(*arguments)
    assert status == 0
    assert "forced b's' (1 token)" in text
    status, text = tokdfa("mask", "-c", "yes", "-t", "bytes", "-p", "y")
    assert status == 0
    assert "prefix 1 token: b'y'" in " ".join(text.split())
    assert "forced b'es' (2 tokens), then the end" in text


@pytest.mark.parametrize("command", [("mask", "-t", "bytes"), ("show",)])
def test_options_of_other_constraints_are_refused(tokdfa, command: tuple[str, ...]) -> None:
    for option, owner in ((("--search",), "--regex"), (("--schema-option", "order=any"), "--schema")):
        status, text = tokdfa(*command, "-c", "a", *option)
        assert status == 1
        assert f"{option[0]} is for {owner}" in text


def test_a_negative_number_of_samples_is_refused(tokdfa) -> None:
    status, text = tokdfa("mask", "-c", "a", "-t", "bytes", "-n", "-1")
    assert status == 2
    assert "--samples" in text


def test_mask_names_a_prefix_that_no_tokens_spell(tokdfa, tmp_path: Path) -> None:
    """A byte-level BPE whose alphabet lacks some bytes: the reference library drops them in silence."""
    name = merge_list(tmp_path / "tokenizer.json", "abc", [("a", "b")])
    status, text = tokdfa("mask", "--regex", "[abcxyz]*", "--tokenizer", name, "--prefix", "abxc")
    assert status == 1
    assert "0x78" in text
    assert "position 2" in text
    assert tokdfa("mask", "--regex", "[abcxyz]*", "--tokenizer", name, "--prefix", "abc")[0] == 0


GRAMMAR = """start: "[" [NUMBER ("," NUMBER)*] "]"
NUMBER: /[0-9]+/
%ignore " "
"""


def test_mask_of_a_grammar(tokdfa, tmp_path: Path) -> None:
    file = tmp_path / "numbers.lark"
    file.write_text(GRAMMAR)
    status, text = tokdfa("mask", "--grammar", str(file), "--tokenizer", "bytes", "--prefix", "[12 ")
    assert status == 0
    assert "allowed 3 of 257 tokens" in text
    assert "may end no" in text
    assert "32 ' ' 44 ',' 93 ']'" in text
    arguments = ("-g", str(file), "-t", "bytes", "-p", "[12] ", "-b", "earley_trie", "-o", "ignore=between")
    status, text = tokdfa("mask", *arguments)
    assert status == 1
    assert "after b'[12]', token 32 (b' ') is not allowed" in text


def test_a_schema_is_shown_and_followed(tokdfa, tmp_path: Path) -> None:
    schema = '{"type": "object", "properties": {"a": {"enum": [1]}, "b": true}, "additionalProperties": false}'
    (tmp_path / "plain.json").write_text(schema)
    (tmp_path / "case.json").write_text(f'{{"schema": {schema}, "tests": []}}')
    for name in ("plain", "case"):
        status, printed = tokdfa("show", "--schema", str(tmp_path / f"{name}.json"))
        assert status == 0
        assert "call #" in printed
    file = str(tmp_path / "plain.json")
    given = ("mask", "--schema", file, "-t", "bytes", "--prefix", '{"b": 2, "')
    status, printed = tokdfa(*given)
    assert status == 1
    assert "is not allowed" in printed
    status, printed = tokdfa(*given, "--schema-option", "order=any")
    assert status == 0
    assert "'a'" in printed
    status, printed = tokdfa(*given, "--schema-option", "colour=blue")
    assert status == 1
    assert "there is no option of a schema 'colour'; known: asserts," in printed


def test_show_prints_the_program(tokdfa, tmp_path: Path) -> None:
    path = tmp_path / "pairs.lark"
    path.write_text('start: "a" start "b" | "c"\n%ignore " "\n')
    printed = [tokdfa("show", "--grammar", str(path), "--lexer", lexer) for lexer in ("longest", "any")]
    for status, text in printed:
        assert status == 0
        assert "call start" in text
    assert printed[0] != printed[1]
    assert "terminal a+" in tokdfa("show", "--regex", "a+")[1]
    status, text = tokdfa("show", "--regex", "a(")
    assert status == 1
    assert "not closed" in text
    status, text = tokdfa("show", "--regex", "a", "--lexer", "short")
    assert status == 1
    assert "longest or any" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mask", "-r", "a(", "-t", "bytes"), "at position 1 of the pattern"),
        (("mask", "-r", "a", "-t", "byte"), "did you mean 'bytes'"),
        (("mask", "-r", "a", "-t", "bytes", "-o", "lazi=1"), "did you mean 'lazy'"),
        (("mask", "-r", "a", "-t", "bytes", "-o", "lazy"), "NAME=VALUE"),
        (("mask", "-g", "GRAMMAR", "-t", "bytes", "-b", "token_index"), "not grammar"),
        (("mask", "-r", "(?=b)a", "-t", "bytes"), "no text matches"),
        (("mask", "-r", "abc", "-t", "bytes", "-p", "ax"), "after b'a', token 120 (b'x') is not allowed"),
        (("mask", "-r", "a", "-c", "a", "-t", "bytes"), "give one constraint"),
        (("mask", "-g", "no/such.lark", "-t", "bytes"), "no/such.lark: there is no such file"),
        (("run", "quikstart"), "did you mean 'quickstart'"),
        (("report", "no/such/folder"), "no run in this folder"),
    ],
)
def test_errors_are_one_message_and_status_one(
    tokdfa, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "numbers.lark").write_text(GRAMMAR)
    status, text = tokdfa(*(tmp_path / "numbers.lark" if given == "GRAMMAR" else given for given in arguments))
    assert status == 1
    assert "error:" in text
    assert message in text


def test_lists(tokdfa) -> None:
    status, text = tokdfa("backends")
    assert status == 0
    assert all(name in text for name in backend_names())
    status, text = tokdfa("backends", "token_index")
    assert status == 0
    assert "trie | per_token" in text
    status, text = tokdfa("tokenizers")
    assert status == 0
    assert all(name in text for name in ("mistral-v1", "tekken", "llama3", "hf:PATH"))


def test_check_runs_the_laws(tokdfa) -> None:
    status, text = tokdfa("check", "token_index", "-o", "lazy=true")
    assert status == 0
    assert "no_dead_end" in text
    assert "fork_independent" in text


def test_an_experiment_from_yaml_to_report(tokdfa, tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT)
    status, text = tokdfa("run", str(file), "--dry-run")
    assert status == 0
    assert "2 items" in text
    assert not (tmp_path / "results").exists()

    status, text = tokdfa("run", str(file), "--no-report")
    assert status == 0
    assert "2 ok" in text
    (folder,) = (tmp_path / "results").iterdir()
    assert set(open_run(folder).items().status) == {"ok"}

    status, text = tokdfa("run", str(file), "--no-report")
    assert status == 0
    assert "nothing is left to do" in text
    assert "2 were there already" in text

    status, text = tokdfa("run", str(file), "--no-report", "--fresh")
    assert status == 0
    assert "nothing is left to do" not in text
    assert "2 items measured" in text

    status, _ = tokdfa("report", str(tmp_path / "results"))
    assert status == 0
    assert (folder / "report" / "report.html").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("tokdfa.lab.run.plan.describe", "interrupted; nothing has been measured yet"),
        ("tokdfa.cli.report.report_run", "what was measured is kept, write its report by: tokdfa report "),
    ],
)
def test_ctrl_c_says_what_was_done_at_any_time(tokdfa, tmp_path: Path, monkeypatch, place: str, said: str) -> None:  # type: ignore[no-untyped-def]
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    monkeypatch.setattr(place, interrupt)
    status, text = tokdfa("run", str(tmp_path / "e.yaml"))
    assert status == 130
    assert said in text


def test_what_is_not_installed_is_said_before_the_plan(tokdfa, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "e.yaml").write_text(EXPERIMENT.replace("brute_force]", "brute_force, llguidance]"))
    monkeypatch.setattr(registry, "installed_version", lambda package: None)
    status, text = tokdfa("run", str(tmp_path / "e.yaml"), "--dry-run")
    assert status == 0
    assert "work? backend llguidance is not installed: pip install 'tokdfa[peers]' 3 items" in text


BENCH = """
name: bench
kind: maskbench
tokenizers: [bytes]
settings: {chunk: 1, engines: [{backend: pushdown_trie}]}
"""


def test_settings_may_be_given_beside_the_file(tokdfa, tmp_path) -> None:
    (tmp_path / "e.yaml").write_text(BENCH)
    (tmp_path / "data").mkdir()
    for number in range(5):
        (tmp_path / "data" / f"{number}.json").write_text('{"schema": true, "tests": []}')
    command = ("run", str(tmp_path / "e.yaml"), "--dry-run", "--set", f"data={tmp_path}/data")
    assert "5 items in 5 groups" in tokdfa(*command)[1]
    assert "2 items in 2 groups" in tokdfa(*command, "--set", "names=['1', '4']")[1]
    assert "3 items in 3 groups" in tokdfa(*command, "--set", "max_cases=5", "--set", "chunk=2")[1]
    for given, said in (
        (("--set", "data"), "a setting is given as NAME=VALUE"),
        (("--set", "names=[1"), "the value is not YAML"),
        (("--set", "max_cases=some"), "settings.max_cases: input should be a valid integer"),
    ):
        status, text = tokdfa(*command, *given)
        assert status == 1
        assert said in text

"""The README stays true: its examples print what they say, and what it links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.packages import needs_smollm2, needs_torch
from tests.readme_table import COLUMNS, PAGE, readme_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_they_say(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert said
    assert capsys.readouterr().out.splitlines() == said


def test_there_are_examples() -> None:
    assert EXAMPLES


@needs_torch
@needs_smollm2
def test_the_first_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```py\n(.*?)```", README, re.DOTALL)[1]  # type: ignore[index]
    exec(compile(code, "README.md", "exec", dont_inherit=True), {"__name__": "readme"})
    assert capsys.readouterr().out.splitlines() == [
        line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")
    ]


def test_ci_runs_the_command_for_tests() -> None:
    """With what it installs and nothing else: a package more would hide a test that fails without it."""
    install, test = re.search(r"Tests: `([^`]+)`", README)[1].split(" && ")  # type: ignore[index]
    lines = [line.replace("--quiet ", "") for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    # the command itself, in as many processes as it may take
    at = next(number for number, line in enumerate(lines) if re.fullmatch(rf"{test}( -n \d+)?( *#.*)?", line))
    assert [line for line in lines[:at] if "pip install" in line] == [install]


def test_ci_names_tests_that_are_there() -> None:
    """Those of `.ci/run`, and those that the checked build runs."""
    named = [(ROOT / name).read_text() for name in (".ci/run", "tests/checked/tests.txt")]
    paths = re.findall(r"(?<![\w/])tests/[\w/]+\.py", "\n".join(named))
    assert len(set(paths)) == len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_links_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 10
    for link in links:
        assert (ROOT / link).exists(), link


def test_named_experiments_and_reports_exist() -> None:
    for name in set(re.findall(r"experiments/(\w+)\.yaml", README)):
        assert yaml.safe_load((ROOT / "experiments" / f"{name}.yaml").read_text())["name"] == name
    for report in (ROOT / "papers" / "reports").glob("*.md"):
        text = report.read_text()
        assert re.search(r"`(tokdfa run experiments/\w+\.yaml|python -m tests\.[\w.]+)`", text), report
        for figure in re.findall(r"\]\((figures/[^)]+)\)", text):
            assert (report.parent / figure).exists(), figure


def test_the_table_of_families_has_a_line_for_each_strategy() -> None:
    head = f"| tokenizer | family | strategy | {' | '.join(COLUMNS)} |"
    values = " | ".join(["**1.2 ms**"] * len(COLUMNS))
    named = [
        *(("mistral-v1", "walks", "earley\\_trie"), ("smollm2", "walks", "earley\\_trie, plain")),
        *(("smollm2", "tables", "tokens\\_dfa"), ("smollm2", "walks", "llguidance")),
    ]
    rows = [f"| {' | '.join(row)} | {values} |" for row in named]
    page = "\n".join(["# X", "", "## Speed and skew", "", head, "| --- |", *rows, "", "## More", "", "| a | b |"])
    measured = " | ".join(["1.2 ms"] * len(COLUMNS))
    assert readme_table(page).splitlines()[2:] == [
        f"| {family} | {strategy} | {measured} |"
        for family, strategy in (("walks", "`earley_trie`, plain"), ("", "`llguidance`"), ("tables", "`tokens_dfa`"))
    ]


def test_the_first_table_is_that_of_the_page_on_families() -> None:
    """`python -m tests.readme_table` prints it."""
    assert readme_table(PAGE.read_text(encoding="utf-8")) in README

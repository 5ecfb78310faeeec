"""The README's first screen stays true: its example prints what it says, and what it links to is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code
    exec(compile(code[1], "README.md", "exec"), {})
    said = [line.removeprefix("# ") for line in code[1].splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == said


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
        assert re.search(r"`tokdfa run experiments/\w+\.yaml`", text), report
        for figure in re.findall(r"\]\((figures/[^)]+)\)", text):
            assert (report.parent / figure).exists(), figure

"""The files of a report, and its summary on a terminal."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.full_disk import fill_disk
from tests.lab.report.synthetic import HOSTILE, FakeRun, backend_run, trie_walk_run
from tokdfa.errors import StoreError
from tokdfa.lab.declare.cells import Cell, Table, status_cell, text_cell
from tokdfa.lab.report import print_page, write_report
from tokdfa.lab.report.page import Page


def printed(run: FakeRun, width: int = 80) -> str:
    out = io.StringIO()
    print_page(Page.of(run), Console(file=out, width=width), brief=True)
    return out.getvalue()


Written = tuple[Path, Page, str]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The files of a run with tables of 42 rows, its page, and its Markdown."""
    tokenizers = tuple((f"size {number}", 1000 * number) for number in range(1, 15))
    folder = tmp_path_factory.mktemp("run")
    run = backend_run(folder, steps=2, constraints=("a|b `c`", "email", "date"), tokenizers=tokenizers)
    target = write_report(run)
    assert target == folder / "report"
    return target, Page.of(run), (target / "report.md").read_text(encoding="utf-8")


def test_markdown_says_the_verdict_first_and_links_to_what_is_there(written: Written) -> None:
    target, page, markdown = written
    assert (target / "report.html").exists()
    links = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", markdown)
    assert links == [f"plots/{chart.name}.png" for chart in page.charts]
    assert all((target / link).read_bytes().startswith(b"\x89PNG") for link in links)
    assert markdown.startswith("# Which is fastest?\n\n- Lowest compile time: ")
    sentences = [place.start() for place in re.finditer(r"^- ", markdown, flags=re.MULTILINE)]
    assert sentences[2] < markdown.index("![") < sentences[3] < markdown.index("\n## ")
    titles = re.findall(r"^## (.*)$", markdown, flags=re.MULTILINE)
    assert titles == [*(table.title for table in page.told), "Charts", "Environment", "Repeat it"]
    assert r"a\|b \`c\`" in markdown


def test_long_tables_are_files_with_all_rows(written: Written) -> None:
    target, page, markdown = written
    long = {table.name: table for table in page.tables if len(table.rows) > 40}
    assert {path.stem for path in (target / "tables").iterdir()} == set(long) > {"compile"}
    for name, table in long.items():
        link = f"[tables/{name}.csv](tables/{name}.csv)"
        assert f"The first 15 of {len(table.rows)} rows; all are in {link}" in markdown
        rows = list(csv.reader((target / "tables" / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        assert len(rows) == 1 + len(table.rows)
        assert float(rows[-1][rows[0].index(table.columns[3])]) == table.rows[-1][3].value
    shown = [len(block.splitlines()) - 2 for block in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)]
    assert max(shown) <= 40
    assert shown.count(15) == len(long)


def test_a_file_of_rows_has_numbers_and_the_words_of_failures() -> None:
    ratio = Cell("2,000", 2000.0, detail="4.0x more", detail_value=4.0)
    rows = (
        (text_cell('"a", b'), ratio),
        (text_cell("c"), status_cell("wrong_refusal")),
        (text_cell("d"), text_cell("")),
    )
    table = Table("t", "T", "", ("case", "states"), rows)
    assert list(csv.reader(table.csv().splitlines())) == [
        ["case", "states", "states: ratio"],
        ['"a", b', "2000.0", "4.0"],
        ["c", "wrong refusal", ""],
        ["d", "", ""],
    ]


def test_a_fence_is_longer_than_any_backticks_inside(tmp_path: Path) -> None:
    run = trie_walk_run(tmp_path)
    run.config["settings"] = {"odd": "```` ```"}
    markdown = Page.of(run).markdown({}, {})
    assert markdown.count("\n`````yaml\n") == 1
    assert markdown.rstrip().endswith("\n`````")


def test_the_summary_fits_a_terminal(tmp_path: Path) -> None:
    run = backend_run(tmp_path, steps=5)
    lines = printed(run).splitlines()
    assert lines[0] == "Which is fastest?"
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("• ") for line in lines) == 3
    (heads,) = [re.split(r"\s*┃\s*", line.strip()) for line in lines if "┃" in line]
    assert heads == ["backend", "done", "compile time", "median mask time", "retained memory"]
    assert any(re.match(r"token_index lazy +│ 8/8 .* µs", line) for line in lines)
    assert lines[-1].endswith(" more sentences are in the report.")
    narrow = printed(run, width=40).splitlines()
    assert max(map(len, narrow)) <= 40
    assert "and 2 more columns that do not fit here" in narrow


def test_the_summary_prints_hostile_text_as_text(tmp_path: Path) -> None:
    run = backend_run(tmp_path, constraints=(HOSTILE,), steps=2, question=f"[bold]{HOSTILE}")
    shown = printed(run, width=200)
    assert "\x1b" not in shown
    assert shown.startswith("[bold]<script>")


EXPERIMENT = """
name: tiny
question: Does a real run become a report?
tokenizers: [bytes]
constraints:
  - {label: '<i>a|b</i>', regex: '[0-9]{2,4}'}
  - {label: word, regex: '[a-z]{1,3}'}
backends: [brute_force, token_index]
reference: brute_force
workloads: [{kind: random_walk, walks: 1, steps: 4}]
measures: [compile, first_mask, mask, advance]
repeats: 2
"""


def test_a_real_run_becomes_a_report(tmp_path: Path) -> None:
    from tokdfa.lab.config.resolve import load_config
    from tokdfa.lab.run.execute import run
    from tokdfa.lab.run.store import open_run

    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    config = load_config(tmp_path / "tiny.yaml")
    target = write_report(open_run(run(config).folder))
    assert target == tmp_path / "results" / config.folder_name / "report"
    markdown = (target / "report.md").read_text()
    assert "masks that were compared equal those of brute\\_force." in markdown
    assert "- All 4 items succeeded." in markdown
    assert r"\<i\>a\|b\</i\>" in markdown
    assert "| tokdfa" in markdown  # its version, from the provenance
    assert "Not drawn: Retained memory of a compiled constraint: " in markdown
    again = re.search(r"tokdfa run (\S+) && tokdfa report (\S+)", markdown)
    assert again is not None
    assert load_config(again[1]).fingerprint == config.fingerprint, "the command repeats the experiment"
    assert Path(again[2]) == load_config(again[1]).results_folder / config.folder_name


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    run = trie_walk_run(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        fill_disk(patch, "write")
        with pytest.raises(StoreError, match="make room"):
            write_report(run)
    assert not list((run.folder / "report").rglob("*.*"))
    assert (write_report(run) / "report.md").exists()

import csv
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.full_disk import fill_disk
from tests.lab.report.synthetic import HOSTILE, FakeRun, backend_run, config, trie_walk_run
from tokdfa.errors import StoreError, UnknownNameError
from tokdfa.lab.report import print_summary, write_report
from tokdfa.lab.report.page import Page


def printed(run, width=80):
    out = io.StringIO()
    print_summary(run, Console(file=out, width=width))
    return out.getvalue()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    constraints = tuple(f"pattern {number}" for number in range(20))
    run = backend_run(tmp_path_factory.mktemp("run"), steps=10, constraints=("a|b `c`", *constraints))
    return run, write_report(run)


def test_all_files_are_written_below_the_run(written):
    run, files = written
    assert files.folder == run.folder / "report"
    assert files.markdown == files.folder / "report.md"
    assert files.html == files.folder / "report.html"
    assert [path.name for path in files.plots] == [f"{chart.name}.png" for chart in Page.of(run).charts]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in files.plots)
    assert files.left_out == {}


def test_markdown_says_the_verdict_first_and_links_to_what_is_there(written):
    run, files = written
    markdown = files.markdown.read_text(encoding="utf-8")
    links = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", markdown)
    assert [files.folder / link for link in links] == list(files.plots)
    assert markdown.startswith("# Which is fastest?\n\n- token\\_index against outlines\\_core")
    sentences = [place.start() for place in re.finditer(r"^- ", markdown, flags=re.MULTILINE)]
    first_picture = markdown.index("![")
    assert sentences[2] < first_picture < sentences[3] < markdown.index("\n## ")
    titles = re.findall(r"^## (.*)$", markdown, flags=re.MULTILINE)
    page = Page.of(run)
    assert titles == [*(table.title for table in page.told), "Charts", "Environment", "Repeat it"]
    assert r"a\|b \`c\`" in markdown


def test_long_tables_are_files_with_all_rows(written):
    run, files = written
    long = {table.name: table for table in Page.of(run).tables if len(table.rows) > 40}
    assert {path.stem for path in files.tables} == set(long) != set()
    markdown = files.markdown.read_text(encoding="utf-8")
    for path in files.tables:
        table = long[path.stem]
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        assert len(rows) == 1 + len(table.rows)
        at = rows[0].index("token_index")
        assert float(rows[-1][at]) == table.rows[-1][table.columns.index("token_index")].value
        link = f"[tables/{path.name}](tables/{path.name})"
        assert f"The first 15 of {len(table.rows)} rows; all are in {link}" in markdown
    shown = [len(block.splitlines()) - 2 for block in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)]
    assert max(shown) <= 40
    assert shown.count(15) >= len(long)


def test_formats_are_those_asked_for(tmp_path):
    run = trie_walk_run(tmp_path / "run")
    files = write_report(run, tmp_path / "elsewhere" / "deep", formats=["md"])
    assert [path.name for path in (tmp_path / "elsewhere" / "deep").iterdir()] == ["report.md"]
    assert (files.html, files.plots) == (None, ())
    assert "![" not in files.markdown.read_text(encoding="utf-8")
    again = write_report(run, tmp_path / "elsewhere" / "deep", formats=("md", "html"))
    assert again.html.exists()


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UnknownNameError, match="html"):
        write_report(trie_walk_run(tmp_path / "run"), tmp_path / "out", formats=["htm"])
    assert not (tmp_path / "out").exists()


def test_what_is_left_out_is_reported(tmp_path):
    run = backend_run(tmp_path, steps=3)
    run.frames["samples"] = run.frames["samples"].query("measure != 'mask'")
    files = write_report(run, formats=["md"])
    (title, reason), *_ = files.left_out.items()
    assert f"Not drawn: {title}: {reason}." in files.markdown.read_text()


def test_an_empty_run_has_a_report(tmp_path):
    run = FakeRun(tmp_path, config(question=""), {})
    files = write_report(run)
    assert "The run has no items yet." in files.html.read_text()
    assert "# made-up" in files.markdown.read_text()
    assert printed(run).splitlines() == ["made-up", "• The run has no items yet."]


def test_a_fence_is_longer_than_any_backticks_inside(tmp_path):
    run = trie_walk_run(tmp_path)
    run.config["settings"] = {"odd": "```` ```"}
    markdown = write_report(run, formats=["md"]).markdown.read_text()
    assert markdown.count("\n`````yaml\n") == 1
    assert markdown.rstrip().endswith("\n`````")


def test_the_summary_fits_a_terminal(tmp_path):
    lines = printed(backend_run(tmp_path, steps=5)).splitlines()
    assert lines[0] == "Which is fastest?"
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("• ") for line in lines) == 3
    (heads,) = [re.split(r"\s*┃\s*", line.strip()) for line in lines if "┃" in line]
    assert heads == ["backend", "done", "compile time", "median mask time", "retained memory"]
    assert any(re.match(r"token_index lazy +│ 8/8 .* µs", line) for line in lines)
    assert lines[-1] == "3 more sentences are in the report."


def test_columns_that_do_not_fit_are_counted(tmp_path):
    lines = printed(backend_run(tmp_path, steps=5), width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert "and 2 more columns that do not fit here" in lines


def test_the_summary_prints_hostile_text_as_text(tmp_path):
    run = backend_run(tmp_path, constraints=(HOSTILE,), steps=2, question=f"[bold]{HOSTILE}")
    shown = printed(run, width=200)
    assert "\x1b" not in shown
    assert shown.startswith("[bold]<script>")


def test_special_kinds_have_a_summary(tmp_path):
    shown = " ".join(printed(trie_walk_run(tmp_path), width=120).split())
    assert "2.00 ns a node" in shown
    assert "2.0x slower" in shown


def test_modules_are_light_to_import():
    import subprocess
    import sys

    names = "('pandas', 'matplotlib', 'rich', 'yaml')"
    heavy = f"import sys, tokdfa.lab.report; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == "[]"


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


def test_a_real_run_becomes_a_report(tmp_path):
    from tokdfa.lab.config.resolve import load_config
    from tokdfa.lab.run.execute import run
    from tokdfa.lab.run.store import open_run

    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    config = load_config(tmp_path / "tiny.yaml")
    stored = open_run(run(config).folder)
    files = write_report(stored)
    markdown = files.markdown.read_text()
    assert files.folder == tmp_path / "results" / config.folder_name / "report"
    assert "masks that were compared equal those of brute\\_force." in markdown
    assert "- All 4 items succeeded." in markdown
    assert r"\<i\>a\|b\</i\>" in markdown
    assert "| tokdfa" in markdown  # its version, from the provenance
    assert list(files.left_out) == ["Retained memory of a compiled constraint"]
    again = re.search(r"tokdfa run (\S+) && tokdfa report (\S+)", markdown)
    assert load_config(again.group(1)).fingerprint == config.fingerprint, "the command repeats the experiment"
    assert Path(again.group(2)) == load_config(again.group(1)).results_folder / config.folder_name


def test_a_full_disk_is_said(tmp_path):
    run = trie_walk_run(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        fill_disk(patch, "write")
        with pytest.raises(StoreError, match="make room"):
            write_report(run)
    assert not list((run.folder / "report").rglob("*.*"))
    assert write_report(run).markdown.exists()

"""``tokdfa report`` and ``tokdfa compare``, run as a user runs them, on a real run and a doctored copy of it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.run.execute import run

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = """
name: tiny
question: What does the command line make of two runs?
tokenizers: [bytes]
constraints:
  - {label: date, regex: '[0-9]{4}-[0-9]{2}'}
  - {label: numbers, regex: '[0-9]+'}
  - {label: letters, regex: '[a-z]+'}
  - {label: words, regex: '[a-z]+( [a-z]+)*'}
  - {label: signed, regex: '-?[0-9]+'}
  - {label: hexadecimal, regex: '[0-9a-f]+'}
backends: [token_index, brute_force]
reference: brute_force
workloads:
  - {kind: random_walk, walks: 4, steps: 6}
measures: [compile, mask]
repeats: 2
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and the same in which token_index takes three times as long for a mask, with another version of regex."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(EXPERIMENT)
    first = run(load_config(folder / "tiny.yaml")).folder
    second = folder / "later" / first.name
    shutil.copytree(first, second)
    slow = {
        row["item_id"]
        for path in second.glob("items/*.parquet")
        for row in pq.read_table(path).to_pylist()
        if row["label"] == "token_index"
    }
    for path in second.glob("samples/*.parquet"):
        table = pq.read_table(path).replace_schema_metadata()  # without the digest of what it was
        times = [row["ns"] * (3 if row["item_id"] in slow else 1) for row in table.to_pylist()]
        place = table.column_names.index("ns")
        pq.write_table(table.set_column(place, "ns", pa.array(times, pa.int64())), path, write_page_checksum=True)
    provenance = json.loads((second / "provenance.json").read_text())
    del provenance["seal"]
    provenance["packages"]["regex"] = "9.9"
    (second / "provenance.json").write_text(json.dumps(provenance))
    return first, second


def test_compare_says_and_writes_what_is_slower(tokdfa, folders: tuple[Path, Path], tmp_path: Path) -> None:
    web = tmp_path / "deep" / "page.html"
    status, text = tokdfa("compare", *folders, "--control", "brute_force", "--html", web)
    assert status == 0
    assert re.search(r"token_index │ mean mask time │ .* │ slower", text)
    assert "packages · regex" in text
    assert web.read_text().startswith("<!doctype html>")
    assert f"tokdfa compare {folders[0]} {folders[1]} --control brute_force" in web.read_text()


@pytest.mark.parametrize(("order", "limit", "expected"), [(1, "2", 1), (1, "5", 0), (-1, "1.1", 0)])
def test_slower_than_a_limit_is_a_failure(
    tokdfa, folders: tuple[Path, Path], order: int, limit: str, expected: int
) -> None:
    status, text = tokdfa("compare", *folders[::order], "--no-controls", "--fail-on-slower", limit)
    assert status == expected
    assert ("comparisons are slower by 2.0 times" in text) == bool(expected)


def test_wrong_arguments_are_told(tokdfa, folders: tuple[Path, Path], tmp_path: Path) -> None:
    for arguments, message in (
        ((*folders, "--control", "brute_farce"), "did you mean 'brute_force'"),
        ((*folders, "--control", "brute_force", "--no-controls"), "not both"),
        ((*folders, "--fail-on-slower", "0.5"), "a ratio from 1"),
        ((folders[0], tmp_path), "is not a run folder"),
    ):
        status, text = tokdfa("compare", *arguments)
        assert status == 1
        assert message in text


def test_each_folder_gets_its_report(tokdfa, folders: tuple[Path, Path]) -> None:
    status, _ = tokdfa("report", *folders)
    assert status == 0
    assert all((folder / "report" / "report.html").exists() for folder in folders)
    assert (folders[0] / "report" / "report.md").read_text().startswith("# What does the command line")

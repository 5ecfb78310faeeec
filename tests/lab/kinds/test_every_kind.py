"""Every kind on a tiny item: it is planned and measured, its page has its tables, and its runs are compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.kinds.telling import Told
from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tests.proper.small_tokenizers import trained_byte_level
from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.report.compare import compare_runs
from tokdfa.lab.report.html import render
from tokdfa.lab.report.page import Page

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = [{"backend": "token_index"}, {"backend": "tokens_dfa"}]
PROMPTS = [
    {"label": "two", "prompt": "It was a", "choices": [" sentence", " word"], "expected": " word"},
    {"label": "three", "prompt": "The", "choices": [" end", " text", " word"]},
]
DIGITS = {"label": "digits", "regex": "[0-9]{2}"}
TEXT = {"label": "a", "kind": "prose", "text": "A word."}
WAYS = [{"method": "none"}, {"method": "masks"}]
OWN = [{"label": "own", "prompt": "It was a", "choice": [" sentence", " word"]}]
SENTENCES = [f"The {word} machine reads another {word} letter." for word in ("first", "second", "last", "green")]
#: kind -> settings of an item, and tables that its page must have; the file of a tokenizer stands for TOKENIZER.
TOKENIZER = "a trained tokenizer"
MODELS = [{"name": "table?seed=1", "tokenizer": TOKENIZER, "label": "m"}]
KINDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "batch": (
        {"tokenizer": "bytes", "engines": ENGINES, "constraints": [{**DIGITS, "texts": ["12"]}], "sizes": [2]},
        {"batches", "gains", "trials"},
    ),
    "canonicity": ({"tokenizer": TOKENIZER, "repeats": 1, "masks": 3}, {"canonicity_times", "canonicity_sizes"}),
    "cold_start": ({"tokenizer": "bytes", **DIGITS, "engines": ENGINES[:1], "processes": 1}, {"cold_start"}),
    "intoxication": ({"models": MODELS, "sentences": SENTENCES, "count": 2}, {"texts", "sharks", "models"}),
    "laws": ({"engines": [{"backend": "brute_force"}]}, {"engines", "faults", "laws"}),
    "maskbench": ({"engines": [{"backend": "pushdown_trie"}], "tokenizer": "bytes"}, {"maskbench", "splits", "cases"}),
    "overlap": ({"models": MODELS, "tasks": ["dates"], "sizes": [1, 2], "steps": 2}, {"sizes", "models"}),
    "proper_gain": (
        {
            "models": MODELS,
            "tasks": ["topics"],
            "items": 2,
            "texts": [{"label": "a", "kind": "prose", "text": "A word."}],
        },
        {"proper_gain", "improper_mass", "models"},
    ),
    "saved_calls": (
        {"tokenizer": "bytes", **DIGITS, "texts": ["12", "7"], "engines": ENGINES},
        {"saved_calls", "saved_calls_constraints"},
    ),
    "skew": (
        {"models": MODELS, "engines": ENGINES, "prompts": PROMPTS},
        {"skew", "skew_prompts", "skew_probabilities", "models"},
    ),
    "trie_walk": ({"tokenizer": "bytes", **DIGITS, "repeats": 3}, {"trie_walk", "node_times", "accesses", "tries"}),
    "worth": (
        {"models": MODELS, "tasks": ["topics"], "items": 2, "ways": WAYS, "prompted": OWN, "exact": 500},
        {"worth", "worth_tasks", "worth_valid", "cost_vs_skew", "models"},
    ),
}


def test_the_table_has_every_kind() -> None:
    assert set(targets()) == {*KINDS, "backends"}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(trained_byte_level(tmp_path_factory.mktemp("t") / "tokenizer.json"))


def settings_of(kind: str, tokenizer: str, folder: Path) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(json.dumps(KINDS[kind][0]).replace(TOKENIZER, tokenizer))
    if kind == "maskbench":
        for name, allowed in (("a---1", ["x"]), ("b---1", ["y", "z"])):
            tests = [{"valid": True, "data": allowed[0]}, {"valid": False, "data": "w"}]
            (folder / f"{name}.json").write_text(json.dumps({"schema": {"enum": allowed}, "tests": tests}))
        settings["data"] = str(folder)
    return settings


def measured(kind: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all items, in this process."""
    declared = find_kind(kind)
    if declared.complete:
        settings = declared.complete(settings)
    if declared.settings and "tokenizer" not in settings:
        typed_settings(declared.settings, settings)
    parts = declared.split(settings, 0) if declared.split else [("", settings)]
    if declared.measure is not None:
        return [row for _, part in parts for row in declared.measure(part, 0)]
    assert declared.cases is not None
    assert declared.measure_cases is not None
    queue = FakeQueue(declared.cases(parts[0][1]).count)
    return [row for _, row in declared.measure_cases(parts[0][1], 0, queue)]  # type: ignore[arg-type]


class FakeQueue:
    """A queue whose cases are all left, and which nobody watches."""

    def __init__(self, count: int) -> None:
        self.left = tuple(range(count))

    def failure(self, case: int) -> None:
        return None

    def begin(self, case: int, phase: str) -> None:
        """Nobody listens."""

    def ready(self) -> None:
        """Nobody listens."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_item_becomes_a_page_and_is_compared(kind: str, tokenizer: str, tmp_path: Path) -> None:
    rows = pd.DataFrame(measured(kind, settings_of(kind, tokenizer, tmp_path)))
    assert "status" not in rows or set(rows["status"]) == {"ok"}, rows["message"].tolist()
    run = FakeRun(tmp_path, config(kind=kind, reference="", question="?"), dict(PROVENANCE), {"results": rows})
    page = Page.of(run)  # type: ignore[arg-type]
    assert KINDS[kind][1] <= {table.name for table in page.tables}
    assert page.headlines or kind == "canonicity"  # whose tiny tokenizer has no wide list
    assert all(chart.panels or chart.reason for chart in page.plots)
    assert page.markdown({}, {}).startswith("# ?\n\n")
    assert all(f'id="{table.name}"' in render(page) for table in page.tables)
    if kind != "laws":  # which stores no time, size or count with a better end
        found = compare_runs(run, run)  # type: ignore[arg-type]
        assert len(found.engines) > 0
        assert not found.engines["told"].any()
        assert found.outcomes.empty


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_without_results_says_so(kind: str, tmp_path: Path) -> None:
    """Before there are rows, and where every item failed."""
    item = {"item_id": "1", "label": kind, "status": "timeout", "message": "too slow", "tokenizer": "small"}
    for given, tables in (({}, []), ({"items": pd.DataFrame([item])}, ["failures"])):
        run = FakeRun(tmp_path, config(kind=kind, reference=""), dict(PROVENANCE), given)
        page = Page.of(run)  # type: ignore[arg-type]
        assert len(page.headlines) == 1 + len(tables)
        assert [table.name for table in page.tables] == [*tables, "environment"]
        assert all(chart.reason for chart in page.plots)


@pytest.mark.parametrize("kind", [kind for kind, (settings, _) in KINDS.items() if "models" in settings])
def test_a_run_whose_model_cannot_be_loaded_says_why(kind: str) -> None:
    lost = {"part": "model", "model": "small", "status": "error", "message": "pip install it"}
    told = Told(find_kind(kind), [lost])
    assert list(told.tables) == ["models"]
    assert told.sentences == ["small was not measured: pip install it"]

"""Costs and distances joined by label, busy machines on the page, and what is not published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests import publish_reports
from tests.lab.report.synthetic import PROVENANCE, FakeRun, backend_run
from tokdfa.backends.registry import BUILT_IN
from tokdfa.lab.declare import Column, Results, SlowerFirst
from tokdfa.lab.report import contents, speed_and_skew
from tokdfa.lab.report.data import RunData

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


class Section:
    """What the report reads of a section."""

    def __init__(self, rows: pd.DataFrame, models: list[Any]) -> None:
        self.declared, self.config = Results({"": rows}), {"settings": {"models": models}}


class Data:
    kind, config = "backends", {}

    def __init__(self, items: pd.DataFrame, section: Section) -> None:
        self.declared, self.sections = Results({"": items}), {"skew": section}


def item(label: str, kind: str, micros: float, tokenizer: str = "small", status: str = "ok") -> dict[str, Any]:
    times = {"compile": 1e6 * micros, "mask_mean": 1e3 * micros}
    return {
        "label": label,
        "backend": label,
        "constraint_kind": kind,
        "tokenizer": tokenizer,
        "status": status,
        **times,
    }


def test_costs_and_distances_are_joined_by_label_and_tokenizer() -> None:
    items = [item("token_index", "regex", micros) for micros in (1.0, 3.0, 5.0)]
    items += [item("token_index", "choice", 700.0, status="timeout"), item("llguidance", "choice", 7.0)]
    items += [item("llguidance", "grammar", 50.0), item("token_index", "regex", 9.0, "other")]
    skew = [
        {"model": "ngram (small)", "engine": engine, "total_variation": tv, "width": 0.001}
        for engine, tv in (("token_index", 0.2), ("token_index", 0.4), ("llguidance", 0.5))
    ]
    models = [{"name": "ngram", "tokenizer": "small"}]
    found = speed_and_skew.together(Data(pd.DataFrame(items), Section(pd.DataFrame(skew), models)))  # type: ignore[arg-type]
    assert found is not None
    rows = found.rows().set_index(["tokenizer", "label"])
    assert rows.loc[("small", "token_index"), "mask_mean"] == 3e3, "the median of those that succeeded"
    assert rows.loc[("small", "token_index"), "tv"] == pytest.approx(0.3)
    assert rows.loc[("small", "llguidance"), "tv"] == 0.5
    assert rows.loc[("small", "llguidance"), "mask_mean"] == 7e3, "its grammar is apart"
    assert pd.isna(rows.loc[("other", "token_index"), "tv"]), "no model has this tokenizer"
    assert found.rows("grammars")["label"].tolist() == ["llguidance"]
    table, grammars = (table.build(found) for table in speed_and_skew.TABLES)
    assert len(table.rows) == 3
    assert len(grammars.rows) == 1
    (chart,) = speed_and_skew.CHARTS
    assert len(chart.build(found).panels) == 1


def test_runs_without_skew_have_no_such_table(tmp_path: Path) -> None:
    assert speed_and_skew.together(RunData.read(backend_run(tmp_path))) is None  # type: ignore[arg-type]


def test_families_measures_the_same_contenders_both_ways() -> None:
    content = yaml.safe_load((EXPERIMENTS / "families.yaml").read_text())
    costs = {one.get("label", one["name"]): (one["name"], one.get("options", {})) for one in content["backends"]}
    skew = content["settings"]["skew"]
    distances = {one.get("label", one["backend"]): (one["backend"], one.get("options", {})) for one in skew["engines"]}
    assert costs == distances
    assert {name for name, _ in costs.values()} <= set(BUILT_IN) & set(speed_and_skew.FAMILIES)
    constraints = {one["label"]: one["choice"] for one in content["constraints"] if "choice" in one}
    assert constraints == {one["label"]: one["choices"] for one in skew["prompts"]}
    models = [one if isinstance(one, str) else one["tokenizer"] for one in skew["models"]]
    assert sorted(models) == sorted(content["tokenizers"])


def test_a_page_begins_with_where_ours_is_slower() -> None:
    rows = [
        {"label": label, "backend": backend, "case": case, "compile": taken * (1 + case)}
        for label, backend, taken in (("ours", "own", 2.0), ("theirs", "peer", 1.0), ("another", "peer", 8.0))
        for case in range(3)
    ]
    told = SlowerFirst(("compile",), is_peer=lambda name: name == "peer", ours=("own",), over=("case",))
    columns = {"compile": Column("compile", "compile time", "s", "lower")}
    found = told.sentences(Results({"": pd.DataFrame(rows)}, columns, "label", ("case",)))
    assert found == ["ours is slower than other engines: its compile time is 2.0 times that of theirs."]


def beside(share: float) -> dict[str, Any]:
    return {
        "beside": {"others_share": share, "load_average": [[3.0, 2.0, 1.0], [4.0, 2.0, 1.0]], "others": ["cc1 98%"]}
    }


@pytest.mark.parametrize(("share", "is_busy"), [(0.01, False), (0.4, True)])
def test_a_busy_machine_is_on_the_page_and_the_page_is_not_published(
    share: float, is_busy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = backend_run(tmp_path / "busy-0123456789")
    run = FakeRun(plain.folder, plain.config, {**PROVENANCE, **beside(share)}, plain.frames)
    first = contents.build_headlines(RunData.read(run))[0]  # type: ignore[arg-type]
    warning = "The machine was busy: other processes took 40% of its processors while this was measured, cc1 98% at its"
    assert first.startswith(warning) == is_busy
    (run.folder / "report").mkdir(parents=True)
    (run.folder / "report" / "report.md").write_text(f"# Made up\n\n- {first}\n\n## Repeat it\n")
    monkeypatch.setattr(publish_reports, "REPORTS", tmp_path / "reports")
    (tmp_path / "reports" / "figures").mkdir(parents=True)
    if is_busy:
        with pytest.raises(SystemExit, match="The machine was busy"):
            publish_reports.publish(run.folder, [])
        assert not (tmp_path / "reports" / "busy.md").exists()
    else:
        assert publish_reports.publish(run.folder, []).read_text().startswith("# Made up\n\n*Made by `tokdfa run")

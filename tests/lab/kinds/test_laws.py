"""The laws of all engines side by side: what `check_backend` says, told as a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.lab.kinds.telling import Told
from tokdfa.backends.laws.contract import check_backend
from tokdfa.lab.kinds.laws import KIND, measure, split

if TYPE_CHECKING:
    import pytest

SETTINGS = {"engines": [{"backend": "token_index", "label": "mine"}, {"backend": "outlines_core"}]}


def test_each_engine_is_an_item() -> None:
    parts = split(SETTINGS, 0)
    assert [title for title, _ in parts] == ["mine", "outlines_core"]
    (rows, others) = (measure(settings, 0) for _, settings in parts)
    assert {row["engine"] for row in rows} == {"mine"}
    found = [(one.law, one.case, one.outcome, one.message) for one in check_backend("token_index")]
    assert [(row["law"], row["case"], row["outcome"], row["message"]) for row in rows] == found
    told = Told(KIND, [*rows, *others])
    table = told.tables["engines"].set_index("engine")
    assert table.loc["mine"].tolist()[1:3] == [0, 0]
    assert table.loc["outlines_core", "declared"] > 0
    assert {engine for engine, _ in told.values("differences", "engine", "law")} == {"outlines_core"}
    masks = told.tables["laws"].set_index("law")
    assert masks.loc["masks_equal", "mine"] == 1
    assert "broken" not in told.tables


def test_an_engine_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    rows = measure({"engines": [{"backend": "outlines_core"}]}, 0)
    assert [row["status"] for row in rows] == ["unavailable"]
    assert "pip install" in rows[0]["message"]
    assert "failed" in Told(KIND, [*rows, *measure({"engines": SETTINGS["engines"][:1]}, 0)]).tables

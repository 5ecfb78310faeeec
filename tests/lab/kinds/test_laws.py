"""The laws of all engines side by side: what `check_backend` says, told as a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.lab.kinds.telling import Told
from tokdfa.backends.laws.contract import check_backend
from tokdfa.lab.kinds.laws import KIND, Settings, _keywords, measure, split

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
    held = sum(outcome == "held" for _, _, outcome, _ in found)
    assert told.sentences[0] == f"mine: {held:,} laws held, 0 are known not to, 0 broken."
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
    assert [row["status"] for row in rows] == ["error"]
    assert "pip install" in rows[0]["message"]
    assert "failed" in Told(KIND, [*rows, *measure({"engines": SETTINGS["engines"][:1]}, 0)]).tables


def test_keywords_are_kept_refused_or_dropped() -> None:
    """outlines_core leaves out bounds of numbers and refuses unknown schemas; the last label is wrong on purpose."""
    probes = [
        {"keyword": "minimum", "schema": {"type": "integer", "minimum": 5}, "valid": 5, "invalid": 4},
        {"keyword": "maxItems", "schema": {"type": "array", "maxItems": 1}, "valid": [1], "invalid": [1, 2]},
        {"keyword": "$ref", "schema": {"$dynamicRef": "#"}, "valid": 1, "invalid": 2},
    ]
    engines = [{"backend": name} for name in ("outlines_core", "pushdown_trie", "token_index")]
    typed = Settings(engines=engines, keywords=probes, tokenizers=["mistral-v1"])
    rows = [{"engine": one.name, "status": "ok", **row} for one in typed.engines for row in _keywords(one, typed)]
    told = Told(KIND, rows)
    assert told.values("keyword_by_keyword", "outlines_core", "pushdown_trie") == [
        *(("dropped", "kept"), ("kept", "kept"), ("refused", "dropped")),
    ]
    assert told.values("keywords", "engine", "kept", "refused", "dropped") == [
        *(("outlines_core", 1, 1, 1), ("pushdown_trie", 2, 0, 1)),  # token_index needs max_nesting
    ]
    assert told.values("faults", "engine", "dropped keywords") == [("outlines_core", 1), ("pushdown_trie", 1)]

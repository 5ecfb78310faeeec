"""What a token costs along a text: a row for each engine and length, masks compared, and who is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.text_growth import KIND, measure

LIST = {"label": "list", "grammar": 'start: "(" N ("+" N)* ")"\nN: /[0-9]+/', "texts": ["(1", "+23"]}
ENGINES = [{"backend": "pushdown_trie"}, {"backend": "earley_trie"}]


def run(**changes: Any) -> list[dict[str, Any]]:
    return measure({"tokenizer": "bytes", "lengths": [4, 8, 16], "engines": ENGINES, **LIST, **changes}, seed=0)


def test_a_row_for_each_engine_and_length() -> None:
    rows = run()
    assert [(row["engine"], row["length"], row["status"]) for row in rows] == [
        (engine["backend"], length, "ok") for engine in ENGINES for length in (4, 8, 16)
    ]
    for row in rows:
        assert (row["tokenizer"], row["family"], row["message"], row["differs"]) == ("bytes", "list", "", 0)
        assert min(row["mask_s"], row["advance_s"], row["compile_s"]) > 0
        assert row["largest_s"] >= row["token_s"]
    told = Told(KIND, rows)
    assert told.values("engines", "engine", "bits that differ, sum") == [("pushdown_trie", 0), ("earley_trie", 0)]
    assert [len(told.tables[name]) for name in ("growth", "tokens")] == [1, 3]


def test_masks_that_differ_are_counted() -> None:
    """A grammar that can be cut otherwise: with the longest match 12 is one number, by any cut two."""
    ambiguous = {"grammar": "start: N N\nN: /[0-9]+/", "texts": ["", "1"]}
    engines = [
        {"backend": "pushdown_trie", "options": {"lexer": lexer}, "label": lexer} for lexer in ("longest", "any")
    ]
    rows = run(**ambiguous, engines=engines)
    assert [row["differs"] for row in rows if row["engine"] == "longest"] == [0, 0, 0]
    assert all(row["differs"] > 0 for row in rows if row["engine"] == "any")


def test_who_is_left_behind() -> None:
    rows = run(engines=[{"backend": "token_index"}, {"backend": "earley_trie"}])
    assert [row["status"] for row in rows] == ["unsupported", "ok", "ok", "ok"]
    rows = run(seconds=1e-9)
    assert [(row["status"], row["length"]) for row in rows] == [("not_asked", 4)] * 2
    assert "more than 1e-09 s" in rows[0]["message"]
    # the text leaves the language: what was measured before stays
    rows = run(texts=["(1", "+23)"], engines=ENGINES[:1])
    assert [row["status"] for row in rows] == ["ok", "error"]
    assert "TokenRefused" in rows[1]["message"]


def test_two_texts_are_needed() -> None:
    for texts in ([], ["(1"], ["(1", ""]):
        with pytest.raises(OptionError, match="two texts"):
            run(texts=texts)

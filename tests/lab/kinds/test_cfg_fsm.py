"""Masks of LALR(1) grammars: the parts of a grammar, what each way makes and keeps, and what the report says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lab.kinds.telling import Told
from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.strategy import CfgFsm, CompiledCfgFsm
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.cfg_fsm import KIND, measure
from tokdfa.lab.measure.cfg_fsm_masks import (
    KEPT,
    NOTHING,
    PRODUCT,
    TREE,
    WALK,
    WAYS,
    Product,
    measure_ways,
    situations_of,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

PIECES = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"ab", b"b1", b"ab12", b"12", b"1 ", b"a1b", b"aab1", b""],
    end_tokens=[263],
)
SETTINGS: dict[str, Any] = {
    "terminals": {"one of n": [2, 5], "n in a row": [2, 3], "many": [65]},
    "token_bytes": {"tokens": 400, "lengths": [1, 3], "grammars": ["list"]},
    **{"positions": 8, "turns": 3, "seconds": 0.5, "tokenizer": "bytes"},
}
LIST: dict[str, Any] = {
    "label": "list",
    "grammar": 'start: "[" [WORD ("," WORD)*] "]"\nWORD: /[a-z]+/\n%ignore / +/\n',
    "texts": ["[]", "[one, two]", "[a,b,a]"],
}
PAIR = Grammar("start: WORD NUMBER\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="pair")
#: A token may run through three lexemes.
THREE = Grammar("start: (WORD NUMBER)+\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="three")


def run(entry: dict[str, Any]) -> list[dict[str, Any]]:
    return measure({**SETTINGS, **entry}, seed=1)


def test_parts_have_their_rows() -> None:
    rows = run({"label": "two", "grammar": 'start: "A" "B"', "texts": ["AB"]})
    assert [row["way"] for row in rows] == list(WAYS)
    assert {(row["part"], row["differs"], row["situations"]) for row in rows} == {("concatenation", 0, 3)}
    # single bytes cannot be cut, and each is a rest of its own
    assert {(row["tokens"], row["cuts"], row["rests"]) for row in rows} == {(257, 0, 256)}
    rows = run({"label": "n in a row", "grammar": "start: <sequence>"})
    assert [(row["parameter"], row["way"]) for row in rows] == [(n, w) for n in (2, 3) for w in (TREE, NOTHING, WALK)]
    assert rows[0]["lexer_states"] < rows[-1]["lexer_states"]
    rows = run({**LIST, "tokenizer": "mistral-v1"})
    assert [(row["parameter"], row["tokens"]) for row in rows] == [(1, 256)] * 3 + [(3, 400)] * 3


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"regex": "[0-9]"}, "takes grammars, no other"),
        ({**LIST, "texts": []}, "give 'list' texts or a texts_file"),
        ({"label": "x", "grammar": "start: <sequence>"}, "needs numbers of terminals"),
        ({"label": "many", "grammar": "start: <sequence>"}, "2 to 64 terminals"),
        ({**LIST, "turn": 3}, r"settings\.turn: "),
        ({**LIST, "terminals": {"x": [4, 2]}}, r"settings\.terminals\.x: .*rising"),
        ({**LIST, "seconds": float("nan")}, r"settings\.seconds: "),
    ],
)
def test_faults_name_what_is_wrong(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        run(entry)


def test_each_way_makes_the_same_masks_and_keeps_what_it_says() -> None:
    rows = {row["way"]: row for row in measure_ways(PAIR, PIECES, ["ab12"], list(WAYS), 10, 3, 5.0)}
    for row in rows.values():
        assert (row["situations"], row["differs"]) == (3, 0)
        assert 0 < row["mask_ns"] <= row["ns_p99"]
        assert row["allowed"] == rows[WALK]["allowed"] > 1
    # what was made before is not made again, unless it is forgotten
    assert (rows[TREE]["nodes_made"], rows[TREE]["vectors"]) == (0, 0)
    assert rows[NOTHING]["nodes_made"] >= rows[TREE]["nodes"] > 0
    assert rows[WALK]["nodes"] > rows[TREE]["nodes"]
    assert rows[WALK]["nodes_made"] is rows[PRODUCT]["nodes"] is rows[KEPT]["nodes"] is None
    assert rows[KEPT]["kept_bytes"] > rows[TREE]["kept_bytes"] > rows[NOTHING]["kept_bytes"] > rows[WALK]["kept_bytes"]
    assert [row["situations"] for row in measure_ways(PAIR, PIECES, ["ab12"], [TREE], 2, 50, 1e-9)] == [2]


def test_a_product_misses_what_runs_through_three_terminals_and_nothing_else() -> None:
    one = CfgFsm(PIECES).compile(THREE)
    assert isinstance(one, CompiledCfgFsm)
    product, mask, right = Product(one), masks.allocate_mask(PIECES.size), masks.allocate_mask(PIECES.size)
    assert product.cut_count == sum(len(piece) - 1 for piece in (b"ab", b"b1", b"ab12", b"12", b"1 ", b"a1b", b"aab1"))
    missed = set()
    for situation in situations_of(one, ["a1b2"]):
        product.prepare(situation)
        product.fill(situation, mask)
        one.fill(situation, right)
        mine, all_of_them = (masks.mask_to_bool(found, PIECES.size) for found in (mask, right))
        assert not (mine & ~all_of_them).any()
        missed |= {PIECES.token_bytes(int(token)) for token in np.flatnonzero(all_of_them & ~mine)}
    assert missed == {b"a1b"}
    for text, said in (("1", "'1' is not of the grammar 'three'"), ("a", "'a' of the grammar 'three' is not complete")):
        with pytest.raises(OptionError, match=said):
            situations_of(one, [text])


def test_the_report_compares_ways() -> None:
    def way(name: str, rate: float, part: str = "concatenation", **more: Any) -> dict[str, Any]:
        place = {"tokenizer": "t", "part": part, "constraint": "pair", "way": name, "masks_per_s": rate}
        return {**place, "mask_ns": 1e9 / rate, "nodes": 3.0, "differs": 0, "kept_bytes": 9, **more}

    told = Told(
        KIND,
        [
            *(way(TREE, 88_382.0), way(NOTHING, 100.0), way(PRODUCT, 22_000.0), way(WALK, 1_000.0), way(KEPT, 1e6)),
            *(way(name, 1e6 / size, "terminals", parameter=size) for name in (TREE, NOTHING, WALK) for size in (2, 8)),
        ],
    )
    assert told.tables["concatenation"][TREE].tolist() == [88_382]
    assert told.tables["growth"]["size"].tolist() == ["2", "8"]
    assert told.tables["growth"][WALK].tolist() == pytest.approx([2e-6, 8e-6])
    assert told.sentences[0].startswith("Terminals in a row, t: 88,382 masks a second")
    assert {point["x"] for point in told.panels["concatenation"]["t"]} == {88_382, 100, 22_000, 1_000, 44_191}

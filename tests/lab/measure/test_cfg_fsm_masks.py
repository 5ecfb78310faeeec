"""Ways to make a mask: that they make the same ones, that each keeps what it says, and the growing grammars."""

from __future__ import annotations

import lark
import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.strategy import CfgFsm, CompiledCfgFsm
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.measure.cfg_fsm_families import MOST, fill_template, is_template
from tokdfa.lab.measure.cfg_fsm_masks import WAYS, measure_ways, situations_of
from tokdfa.lab.measure.cfg_fsm_names import KEPT, NOTHING, PRODUCT, TREE, WALK
from tokdfa.lab.measure.cfg_fsm_product import Product
from tokdfa.vocabulary.vocabulary import Vocabulary

NUMBERS: dict[str, float] = {"positions": 10, "turns": 3, "seconds": 5.0}
PIECES = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"ab", b"b1", b"ab12", b"12", b"1 ", b"a1b", b"aab1", b""],
    end_tokens=[263],
)
TWO = Grammar("start: WORD NUMBER\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="two")
#: A token may run through three lexemes.
THREE = Grammar("start: (WORD NUMBER)+\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="three")


def compiled(grammar: Grammar, vocab: Vocabulary = PIECES) -> CompiledCfgFsm:
    found = CfgFsm(vocab).compile(grammar)
    assert isinstance(found, CompiledCfgFsm)
    return found


def test_situations_are_those_along_the_texts() -> None:
    one = compiled(TWO)
    found = situations_of(one, ["ab12", "a1"])
    # at the beginning, in the word, in the number; which lexeme ended is the second hypothesis of each
    assert found == [one.machine.start, *found[1:]]
    assert len(found) == len(set(found)) == 3
    with pytest.raises(OptionError, match=r"'1' is not of the grammar 'two'"):
        situations_of(one, ["a1", "1"])
    with pytest.raises(OptionError, match="'ab' of the grammar 'two' is not complete"):
        situations_of(one, ["ab"])


def test_each_way_makes_the_same_masks_and_keeps_what_it_says() -> None:
    rows = {row["way"]: row for row in measure_ways(TWO, PIECES, ["ab12"], list(WAYS), NUMBERS)}
    assert [*rows] == [TREE, NOTHING, PRODUCT, WALK, KEPT]
    for row in rows.values():
        assert (row["situations"], row["turns"], row["differs"]) == (3, 3, 0)
        assert 0 < row["mask_ns"] <= row["ns_p99"]
        assert row["masks_per_s"] > 0
        assert row["allowed"] == rows[WALK]["allowed"] > 1
    # what was made before is not made again, unless it is forgotten
    assert (rows[TREE]["nodes_made"], rows[TREE]["vectors"]) == (0, 0)
    assert rows[NOTHING]["nodes_made"] >= rows[TREE]["nodes"] > 0
    assert rows[NOTHING]["vectors"] > 0
    assert rows[WALK]["nodes"] > rows[TREE]["nodes"]
    assert rows[WALK]["nodes_made"] is rows[WALK]["vectors"] is None
    assert rows[PRODUCT]["nodes"] is rows[KEPT]["nodes"] is None
    assert rows[WALK]["kept_bytes"] == 0
    assert rows[KEPT]["kept_bytes"] > rows[TREE]["kept_bytes"] > rows[NOTHING]["kept_bytes"] > 0


def test_positions_and_seconds_are_limits() -> None:
    rows = measure_ways(TWO, PIECES, ["ab12"], [TREE, WALK], {"positions": 2, "turns": 50, "seconds": 1e-9})
    assert [(row["situations"], row["turns"]) for row in rows] == [(2, 1)] * 2


def test_a_product_misses_what_runs_through_three_terminals_and_nothing_else() -> None:
    rows = {row["way"]: row for row in measure_ways(THREE, PIECES, ["a1"], [PRODUCT, WALK], NUMBERS)}
    assert rows[PRODUCT]["differs"] > 0
    one = compiled(THREE)
    product, mask = Product(one), masks.allocate_mask(PIECES.size)
    for situation in situations_of(one, ["a1b2"]):
        product.prepare(situation)
        product.fill(situation, mask)
        mine, right = masks.mask_to_bool(mask, PIECES.size), masks.allocate_mask(PIECES.size)
        one.fill(situation, right)
        missed = np.flatnonzero(masks.mask_to_bool(right, PIECES.size) & ~mine)
        assert not (mine & ~masks.mask_to_bool(right, PIECES.size)).any()
        assert {PIECES.token_bytes(int(token)) for token in missed} <= {b"a1b"}


def test_cuts_are_counted_in_bytes() -> None:
    product = Product(compiled(TWO))
    assert product.cut_count == sum(len(piece) - 1 for piece in (b"ab", b"b1", b"ab12", b"12", b"1 ", b"a1b", b"aab1"))
    assert product.nbytes == 0


@pytest.mark.parametrize("template", ["start: (<alternatives>)+\n", "start: <sequence>"])
@pytest.mark.parametrize("count", [2, 40, MOST])
def test_lark_reads_the_texts_of_families(template: str, count: int) -> None:
    member = fill_template(template, count)
    tree = lark.Lark(member.grammar, parser="lalr", keep_all_tokens=True).parse(member.text)
    assert [token.type for token in tree.children] == [f"T{number}" for number in range(count)]
    found = situations_of(compiled(Grammar(member.grammar, label="family")), [member.text])
    assert len(found) > count


def test_what_is_no_member_of_a_family_is_refused() -> None:
    assert is_template("start: <sequence>")
    assert not is_template('start: "a"')
    with pytest.raises(OptionError, match="2 to 64 terminals, not 65"):
        fill_template("start: <sequence>", 65)
    with pytest.raises(OptionError, match="no template"):
        fill_template('start: "a"', 2)

"""LALR(1) grammars: parts and settings, what each part measures, engines that fail, and what the report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lark
import numpy as np
import pytest
import yaml

from tests.lab.kinds.telling import Told
from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.strategy import CfgFsm, CompiledCfgFsm
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds.cfg_fsm import KIND, Settings, measure, split
from tokdfa.lab.measure import cfg_fsm_replay
from tokdfa.lab.measure.cfg_fsm_families import MOST, fill_template
from tokdfa.lab.measure.cfg_fsm_masks import KEPT, NOTHING, PRODUCT, TREE, WALK, WAYS, measure_ways, situations_of
from tokdfa.lab.measure.cfg_fsm_product import Product
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES, MASKS_DIFFER, Engine, replay_texts
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

GRAMMARS = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars"
BYTES, MISTRAL = load_tokenizer("bytes"), load_tokenizer("mistral-v1")
PIECES = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"ab", b"b1", b"ab12", b"12", b"1 ", b"a1b", b"aab1", b""],
    end_tokens=[263],
)
SETTINGS: dict[str, Any] = {
    "concatenations": ["two"],
    "terminals": {"one of n": [2, 5], "n in a row": [2, 3]},
    "token_bytes": {"tokens": 400, "lengths": [1, 3], "grammars": ["list"]},
    **{"text_tokens": 40, "positions": 8, "rounds": 2, "turns": 3, "seconds": 0.5},
}
LIST: dict[str, Any] = {
    "tokenizer": "bytes",
    "label": "list",
    "grammar": 'start: "[" [WORD ("," WORD)*] "]"\nWORD: /[a-z]+/\n%ignore / +/\n',
    "texts": ["[]", "[one, two]", "[a,b,a]"],
}
TWO: dict[str, Any] = {"tokenizer": "bytes", "label": "two", "grammar": 'start: "A" "B"', "texts": ["AB"]}
PAIR = Grammar("start: WORD NUMBER\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="pair")
#: A token may run through three lexemes.
THREE = Grammar("start: (WORD NUMBER)+\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n", label="three")
WORDS = Grammar('start: "[" WORD ("," WORD)* "]"\nWORD: /[ab]+/\n', label="words")
#: Lark takes "if" for the keyword wherever that may come; so "if" is no name here, and "ifx" is one.
KEYWORD = Grammar('start: "if" NAME | NAME "="\nNAME: /[a-z]{1,30}/\n%ignore / +/\n', label="keyword")


def rows_of(entry: dict[str, Any], part: str) -> list[dict[str, Any]]:
    return measure(dict(split({**SETTINGS, **entry}, 1))[part], seed=1)


def test_a_grammar_has_the_parts_that_the_settings_say() -> None:
    def parts(entry: dict[str, Any]) -> list[str]:
        return [title for title, _ in split({**SETTINGS, **entry}, 1)]

    assert parts(LIST) == ["masks", "token bytes"]
    assert (parts(TWO), parts({**TWO, "label": "other"})) == (["concatenation"], ["masks"])
    assert parts({"label": "one of n", "grammar": "start: (<alternatives>)+"}) == ["terminals"]
    for entry, said in (
        ({"regex": "[0-9]"}, "takes grammars, no other"),
        ({**LIST, "texts": []}, "give 'list' texts or a texts_file"),
        ({"label": "x", "grammar": "start: <sequence>"}, "needs numbers of terminals"),
    ):
        with pytest.raises(OptionError, match=said):
            parts(entry)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"turn": 3}, r"settings\.turn: "),
        ({"engines": ["cfg_fsm wolk"]}, "did you mean 'cfg_fsm walk'"),
        ({"terminals": {"x": [4, 2]}}, r"settings\.terminals\.x: .*rising"),
        ({"terminals": {"x": [2, 65]}}, r"settings\.terminals\.x\.1: "),
        ({"token_bytes": {"tokens": 10, "lengths": [1], "grammars": []}}, r"settings\.token_bytes\.tokens: "),
        ({"rounds": True}, r"settings\.rounds: "),
        ({"seconds": float("nan")}, r"settings\.seconds: "),
    ],
)
def test_faults_name_their_setting(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TokdfaError, match=said):
        typed_settings(Settings, change)
    with pytest.raises(UnknownNameError):
        typed_settings(Settings, {"engines": ["x"]})


def test_parts_have_their_rows() -> None:
    *ways, table = rows_of(TWO, "concatenation")
    assert [row["way"] for row in ways] == list(WAYS)
    assert {(row["row"], row["differs"], row["situations"]) for row in ways} == {("way", 0, 3)}
    # single bytes cannot be cut, and each is a rest of its own
    assert (table["row"], table["tokens"], table["cuts"], table["rests"]) == ("split", 256, 0, 256)
    rows = rows_of({"tokenizer": "bytes", "label": "n in a row", "grammar": "start: <sequence>"}, "terminals")
    assert [(row["parameter"], row["way"]) for row in rows] == [(n, w) for n in (2, 3) for w in (TREE, NOTHING, WALK)]
    assert rows[0]["lexer_states"] < rows[-1]["lexer_states"]
    rows = rows_of({**LIST, "tokenizer": "mistral-v1"}, "token bytes")
    assert [(row["parameter"], row["tokens"]) for row in rows] == [(1, 256)] * 3 + [(3, 400)] * 3


def test_each_way_makes_the_same_masks_and_keeps_what_it_says() -> None:
    rows = {row["way"]: row for row in measure_ways(PAIR, PIECES, ["ab12"], list(WAYS), 10, 3, 5.0)}
    for row in rows.values():
        assert (row["situations"], row["differs"]) == (3, 0)
        assert 0 < row["mask_ns"] <= row["ns_p99"]
        assert row["allowed"] == rows[WALK]["allowed"] > 1
    # what was made before is not made again, unless it is forgotten
    assert (rows[TREE]["nodes_made"], rows[TREE]["vectors"]) == (0, 0)
    assert rows[NOTHING]["nodes_made"] >= rows[TREE]["nodes"] > 0
    assert rows[NOTHING]["vectors"] > 0
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
    with pytest.raises(OptionError, match="'1' is not of the grammar 'three'"):
        situations_of(one, ["1"])
    with pytest.raises(OptionError, match="'a' of the grammar 'three' is not complete"):
        situations_of(one, ["a"])


@pytest.mark.parametrize("template", ["start: (<alternatives>)+\n", "start: <sequence>"])
@pytest.mark.parametrize("count", [2, MOST])
def test_lark_reads_the_texts_of_families(template: str, count: int) -> None:
    grammar, text = fill_template(template, count)
    tree = lark.Lark(grammar, parser="lalr", keep_all_tokens=True).parse(text)
    assert [token.type for token in tree.children] == [f"T{number}" for number in range(count)]


def test_situations_that_come_back_are_not_new() -> None:
    rows = replay_texts(WORDS, BYTES, ["[a,b]", "[b,a]", "[ab]"], [*ENGINES], 12, 2, 5.0)
    assert [row["engine"] for row in rows] == [*ENGINES]
    for row in rows:
        # "[ab]" and its end token would be 17 tokens together
        assert (row["status"], row["texts"], row["masks"], row["new_masks"], row["compared"]) == ("ok", 2, 12, 6, 6)
        assert 0 < row["cold_ns_p50"] <= row["cold_ns_p99"]
        assert min(row["compile_s"], row["seen_ns_p50"], row["advance_ns_p50"]) > 0
        is_ours = row["engine"] != "llguidance"
        assert (row["again_ns_p50"] is not None) == (row["held_bytes"] is not None) == is_ours


def test_masks_are_the_same_where_the_lexers_agree() -> None:
    texts = yaml.safe_load((GRAMMARS / "csv.yaml").read_text())["accepted"]
    grammar = Grammar((GRAMMARS / "csv.lark").read_text(), label="csv")
    for row in replay_texts(grammar, MISTRAL, texts, [*ENGINES][:4], 60, 1, 5.0):
        assert (row["status"], row["differing_masks"], row["compared"] > 15) == ("ok", 0, True)
    # after "if" the plain grammar has the name "if" as well, which "=" may follow
    vectors, pushdown = replay_texts(
        KEYWORD, BYTES, ["if =", "if x", "ifx ="], ["cfg_fsm vectors", "pushdown_trie"], 40, 1, 5.0
    )
    assert (vectors["texts"], vectors["texts_refused"], vectors["differing_masks"]) == (2, 1, 0)
    assert (pushdown["status"], pushdown["differing_masks"] >= 1, pushdown["differing_tokens"] >= 1) == (
        "ok",
        True,
        True,
    )


def test_what_lark_refuses_is_a_row_with_the_first_line_of_its_report() -> None:
    for name, status, said in (
        ("sql", "unsupported", "Reduce/Reduce collision in Terminal('RPAR') between the following rules:"),
        ("tool_call_lazy", "error", "Lark cannot read the grammar: Unexpected token"),
    ):
        grammar = Grammar((GRAMMARS / f"{name}.lark").read_text(), label=name)
        (row,) = replay_texts(grammar, BYTES, ["x"], [*ENGINES], 40, 1, 5.0)
        assert (row["row"], row["status"]) == ("refused", status)
        assert row["message"].startswith(said)
        assert "\n" not in row["message"]
    (row,) = replay_texts(KEYWORD, BYTES, ["if ="], [*ENGINES], 40, 1, 5.0)
    assert row["message"] == "Lark takes none of the texts"


def test_an_engine_that_fails_has_a_row_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {
        "small": Engine("small", "cfg_fsm", {"max_lexer_states": 16}, "Lark's"),
        "other": Engine("other", "pushdown_trie", {"lexer": "any"}, "Lark's"),
    }
    monkeypatch.setattr(cfg_fsm_replay, "ENGINES", {**ENGINES, **wrong})
    rows = replay_texts(KEYWORD, BYTES, ["if x", "ifx ="], ["small", "cfg_fsm vectors", "other"], 40, 9, 1e-9)
    assert [row["status"] for row in rows] == ["memory", "ok", MASKS_DIFFER]
    assert "more than 16 states" in rows[0]["message"]
    assert "masks are not those of cfg_fsm vectors" in rows[2]["message"]
    assert rows[0]["compile_s"] is rows[0]["differing_masks"] is None


def test_the_report_compares_engines_and_ways() -> None:
    def engine(name: str, factor: float, constraint: str = "json", **more: Any) -> dict[str, Any]:
        times = dict.fromkeys(("cold_ns_p50", "cold_ns_p99", "seen_ns_p50", "advance_ns_p50"), 1000 * factor)
        numbers = {"held_bytes": 5, "new_masks": 7, "compared": 7, "differing_masks": 0, "differing_tokens": 0}
        place = {"row": "engine", "part": "masks", "constraint": constraint, "engine": name, "status": "ok"}
        return {**place, **times, **numbers, "again_ns_p50": 500 * factor, "compile_s": factor, "message": "", **more}

    def way(name: str, rate: float, part: str = "concatenation", **more: Any) -> dict[str, Any]:
        place = {"row": "way", "part": part, "constraint": "pair", "way": name, "masks_per_s": rate}
        return {**place, "mask_ns": 1e9 / rate, "nodes": 3.0, "differs": 0, "kept_bytes": 9, **more}

    made = [
        *(engine("cfg_fsm vectors", 1), engine("pushdown_trie", 2), engine("llguidance", 4, again_ns_p50=None)),
        *(engine("cfg_fsm vectors", 1, "csv", texts_refused=2), engine("pushdown_trie", 3, "csv", differing_masks=4)),
        {**engine("llguidance", 1, "csv"), "status": "error", "message": "no"},
        *(way(TREE, 88_382.0), way(NOTHING, 100.0), way(PRODUCT, 22_000.0), way(WALK, 1_000.0), way(KEPT, 1e6)),
        *(way(name, 1e6 / size, "terminals", parameter=size) for name in (TREE, NOTHING, WALK) for size in (2, 8)),
        {"row": "split", "part": "concatenation", "constraint": "pair", "tokens": 10, "cuts": 4, "seconds": 0.5},
        {"row": "refused", "part": "masks", "constraint": "sql", "status": "unsupported", "message": "Collision"},
    ]
    told = Told(KIND, [{"tokenizer": "t", **row} for row in made])
    tables, said = told.tables, told.sentences
    engines = tables["engines"].set_index("engine")
    assert engines.loc["pushdown_trie", "new mask, cold"] == pytest.approx(2.5e-6)
    assert engines.loc["pushdown_trie", "new mask, cold: ratio"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert len(tables["grammars"]) == 5
    assert tables["concatenation"][TREE].tolist() == [88_382]
    assert tables["growth"]["size"].tolist() == ["2", "8"]
    assert tables["growth"][WALK].tolist() == pytest.approx([2e-6, 8e-6])
    assert tables["refused"]["message"].tolist() == ["Collision", "2 texts are left out"]
    assert tables["broken"]["engine"].tolist() == ["llguidance"]
    assert said[0].startswith("Terminals in a row, t: 88,382 masks a second")
    assert said[1].startswith("json, t: a new mask takes 1.00 µs after a compile and 500 ns once")
    assert "Of 14 masks of cfg_fsm 4 are not those of pushdown_trie; of json, where the lexers agree, 0." in said
    assert said[-1] == "5 of 6 engines of all grammars succeeded; the others: 1 error."
    assert {point["x"] for point in told.panels["concatenation"]["t"]} == {88_382, 100, 22_000, 1_000, 44_191}

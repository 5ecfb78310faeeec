"""The experiment on the parts of grammar engines: their variants, its sorts of rows, and what holds between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tokdfa.backends.registry import backend_class
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import engine_ablation as ablation
from tokdfa.lab.measure.grammar_replay import MASKS_DIFFER, Engine

SHIPPED = Path(__file__).parents[3] / "experiments"
EARLEY, PUSHDOWN = ablation.FAMILIES["earley_trie"], ablation.FAMILIES["pushdown_trie"]
ITEM: dict[str, Any] = {
    "engine": "earley_trie",
    "tokenizer": "mistral-v1",
    "label": "words",
    "grammar": 'start: WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore / +/\n',
    "texts": ["one, two, three", "one,one"],
    "walks": 2,
    "steps": 8,
    "rounds": 2,
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return ablation.run_item({**ITEM, "points": 5}, seed=1)


@pytest.fixture(scope="module")
def pushdown() -> list[dict[str, Any]]:
    # words that read enough different bytes for a partition to be made
    changes = {"grammar": ITEM["grammar"].replace("a-z", "a-zA-Z"), "engine": "pushdown_trie", "points": 5}
    return ablation.run_item({**ITEM, **changes}, seed=1)


@pytest.mark.parametrize("name", ablation.FAMILIES)
def test_variants_are_options_of_their_backends(name: str) -> None:
    family = ablation.FAMILIES[name]
    for label, engine in {**family.variants, "decider": family.decider}.items():
        options = {option.name: option for option in backend_class(engine.backend).options}
        for option, value in engine.options.items():
            assert options[option].check(value) == value
        assert engine.label == label
    assert set(family.drawn) <= set(family.variants)
    assert {engine.backend for engine in family.variants.values()} >= {name}


def test_variants_of_one_lexing_rule_have_one_language() -> None:
    for engine in PUSHDOWN.variants.values():
        rule = engine.options.get("lexer", "longest" if engine.backend in ablation.FAMILIES else engine.backend)
        assert engine.language == rule
    assert PUSHDOWN.variants["earley_trie"].language == PUSHDOWN.variants["all on"].language


@pytest.mark.parametrize(("name", "constraints"), [("earley_ablation", 10), ("pushdown_ablation", 9)])
def test_the_shipped_experiments_can_be_run(name: str, constraints: int) -> None:
    config = load_config(SHIPPED / f"{name}.yaml")
    ablation.check_settings(config.settings)
    assert all(entry.grammar and entry.texts for entry in config.constraints)
    assert len(config.constraints) == constraints


def test_there_is_a_row_for_each_path_and_variant(rows: list[dict[str, Any]]) -> None:
    found = [row for row in rows if row["row"] == "variant"]
    assert [(row["path"], row["variant"]) for row in found] == [
        (path, variant) for path in ("random walks", "texts") for variant in EARLEY.variants
    ]
    for row in found:
        assert (row["status"], row["message"], row["rounds"]) == ("ok", "", 2)
        assert (row["tokenizer"], row["vocab_size"], row["constraint"]) == ("mistral-v1", 32_000, "words")
        assert 0 < row["mask_ns_p50"] <= row["mask_ns_p99"]
        assert row["advance_ns_mean"] > 0 < row["compile_s"]
        assert row["lexeme_ends"] <= row["nodes_visited"]
        assert 0 < row["mask_scans"] <= row["rows_scanned"]


def test_variants_differ_in_their_work_as_they_should(rows: list[dict[str, Any]]) -> None:
    for path in ("random walks", "texts"):
        found = {row["variant"]: row for row in rows if row["row"] == "variant" and row["path"] == path}
        for name in ("no mask memo", "partition", "no first byte", "slices", "walk", "one_byte walk"):
            assert found[name]["masks_made"] == found[name]["masks"]
        for name in ("all on", "cold partitions", "no clipping", "no step memo", "one_byte"):
            assert found[name]["masks_made"] == found[name]["situations"] < found[name]["masks"]
        walk, partition, ready = (found[name]["nodes_visited"] for name in ("walk", "partition", "all on"))
        assert walk > partition >= ready
        assert found["slices"]["nodes_visited"] <= walk
        assert found["walk"]["rows"] == found["all on"]["rows"]


def test_pushdown_variants_stand_beside_other_engines(pushdown: list[dict[str, Any]]) -> None:
    found = [row for row in pushdown if row["row"] == "variant"]
    assert [(row["path"], row["variant"]) for row in found] == [
        (path, variant) for path in ("random walks", "texts") for variant in PUSHDOWN.variants
    ]
    for row in found:
        assert (row["engine"], row["status"], row["message"], row["rounds"]) == ("pushdown_trie", "ok", "", 2)
        assert 0 < row["mask_ns_p50"] <= row["mask_ns_p99"]
        if row["variant"] == "llguidance":
            assert row["masks_made"] is row["nodes_visited"] is row["lexeme_ends"] is None
    drawn = [row for row in pushdown if row["row"] == "mask"]
    assert {row["variant"] for row in drawn} == set(PUSHDOWN.drawn)


def test_pushdown_variants_differ_in_their_work_as_they_should(pushdown: list[dict[str, Any]]) -> None:
    for path in ("random walks", "texts"):
        found = {row["variant"]: row for row in pushdown if row["row"] == "variant" and row["path"] == path}
        for name in ("no mask memo", "subtrees", "partition", "walk", "any, no mask memo", "any walk"):
            assert found[name]["masks_made"] == found[name]["masks"]
        for name in ("all on", "not shared", "no subtrees", "no partition", "any"):
            assert found[name]["masks_made"] == found[name]["situations"] < found[name]["masks"]
        nodes = {name: row["nodes_visited"] for name, row in found.items()}
        assert nodes["all on"] <= nodes["subtrees"] <= nodes["partition"] < nodes["walk"]
        assert nodes["no subtrees"] < nodes["no partition"] < nodes["walk"]
        assert 0 < found["not shared"]["partitions"] <= found["all on"]["partitions"]
        assert found["walk"]["partitions"] == 0
        assert found["all on"]["rows"] <= found["walk"]["rows"]
        assert found["all on"]["stacks"] > 0 < found["all on"]["bytes"]


def test_a_variant_of_another_language_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Engine("all on", "pushdown_trie", {"lexer": "any"}, "longest")
    right = PUSHDOWN.variants["walk"]
    family = ablation.Family({"walk": right, "all on": wrong}, PUSHDOWN.decider, ())
    monkeypatch.setitem(ablation.FAMILIES, "pushdown_trie", family)
    # by longest match "ifx" is a name, which "=" must follow; cut in any way it may be complete
    grammar = 'start: "if" NAME | NAME "="\nNAME: /[a-z]+/\n%ignore / +/\n'
    settings = {
        **ITEM,
        "engine": "pushdown_trie",
        "grammar": grammar,
        "texts": ["ifx ="],
        "variants": ["walk", "all on"],
    }
    status = {row["variant"]: row["status"] for row in ablation.run_item(settings, seed=1) if row["path"] == "texts"}
    assert status == {"walk": "ok", "all on": MASKS_DIFFER}


def test_masks_are_told_one_by_one_for_some_variants(rows: list[dict[str, Any]]) -> None:
    masks = [row for row in rows if row["row"] == "mask"]
    assert {row["variant"] for row in masks} == set(EARLEY.drawn)
    for variant in EARLEY.drawn:
        mine = [row for row in masks if row["variant"] == variant and row["path"] == "texts"]
        assert len(mine) == 5
        assert mine[0]["position"] == 0
        assert all(row["ns"] > 0 and 0 < row["allowed"] <= 32_000 for row in mine)
    first = {row["variant"]: row["allowed"] for row in masks if row["path"] == "texts" and row["position"] == 0}
    assert len(set(first.values())) == 1  # the same positions, the same masks


def test_positions_are_spread_evenly() -> None:
    assert ablation.spread_out(range(10), 4) == [0, 2, 5, 7]
    assert ablation.spread_out(range(3), 9) == [0, 1, 2]


def test_a_variant_that_fails_has_a_row_that_says_so() -> None:
    rows = ablation.run_item({**ITEM, "variants": ["walk"], "seconds": 1e-9}, seed=1)
    assert [(row["status"], row["mask_ns_mean"]) for row in rows] == [("timeout", None)] * 2


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"variants": ["wolk"]}, UnknownNameError, "did you mean 'walk'"),
        ({"points": 0}, OptionError, "settings.points must be a positive int, not 0"),
        ({"point": 3}, UnknownNameError, "setting of engine_ablation 'point'"),
        ({"engine": "pushdown"}, UnknownNameError, "did you mean 'pushdown_trie'"),
        ({"engine": "pushdown_trie", "variants": ["slices"]}, UnknownNameError, "settings.variants 'slices'"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ablation.check_settings({"engine": "earley_trie", **settings})


def test_settings_must_say_whose_parts_are_meant() -> None:
    with pytest.raises(OptionError, match="earley_trie or pushdown_trie"):
        ablation.check_settings({})


@pytest.mark.parametrize("engine", [{}, [], None, 3])
def test_an_engine_that_is_no_name(engine: Any) -> None:
    with pytest.raises(UnknownNameError, match="there is no engine of engine_ablation"):
        ablation.check_settings({"engine": engine})

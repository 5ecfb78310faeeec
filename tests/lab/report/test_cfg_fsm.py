"""Reports on LALR(1) grammars, from made-up runs in which every time and every count is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.kinds.cfg_fsm import run_item, split_settings
from tokdfa.lab.measure.cfg_fsm_masks import WAYS
from tokdfa.lab.measure.cfg_fsm_names import KEPT, NOTHING, PRODUCT, TREE, WALK
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES
from tokdfa.lab.report.cfg_fsm_data import KEEPS, by_engine, growth, rates
from tokdfa.lab.report.data import RunData, factors
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

FOLDER = Path("made-up")
TOKENIZERS = {"mistral-v1": 32_000, "large": 128_000}
#: Engine -> ms of a compile; microseconds of a cold mask, of one made again, of one seen, and of an advance.
TIMES: dict[str, tuple[float, float, float | None, float, float]] = {
    "cfg_fsm vectors": (50, 15, 8, 1, 10),
    "cfg_fsm walk": (40, 60, 40, 1, 10),
    "earley_trie": (10, 45, 32, 2, 5),
    "pushdown_trie": (5, 30, 16, 0.5, 2),
    "llguidance": (1, 150, None, 120, 2),
}
#: Grammar -> how many times as long its masks take, and masks in which the other lexers differ.
GRAMMARS = {"json": (1.0, 0), "c_like": (4.0, 17)}
#: Way -> masks a second of the first concatenation case; the second has half as many.
RATES = {TREE: 80_000.0, NOTHING: 100.0, PRODUCT: 30_000.0, WALK: 500.0, KEPT: 600_000.0}
SIZES = (2, 64)


def engine_row(tokenizer: str, grammar: str, engine: str) -> dict[str, Any]:
    slower, differing = GRAMMARS[grammar]
    compile_ms, cold, again, seen, advance = TIMES[engine]
    chosen = ENGINES[engine]
    differs = differing if chosen.backend != "cfg_fsm" else 0
    times = {"cold": cold, "again": again, "seen": seen, "advance": advance}
    return {
        **{"row": "engine", "tokenizer": tokenizer, "vocab_size": TOKENIZERS[tokenizer], "part": "masks"},
        **{"constraint": grammar, "engine": engine, "backend": chosen.backend, "language": chosen.language},
        **{"status": "ok", "message": "", "rounds": 3, "texts": 9, "texts_refused": 2 * (grammar == "c_like")},
        **{"masks": 300, "new_masks": 100, "conflicts": 0, "certified": True, "compile_s": compile_ms * 1e-3},
        **{
            f"{what}_ns_{which}": None if value is None else 1e3 * value * slower * by
            for what, value in times.items()
            for which, by in (("p50", 1), ("mean", 2), ("p99", 50))
        },
        **{"held_bytes": None if engine == "llguidance" else 2e6, "compared": 100},
        **{"differing_masks": differs, "differing_tokens": 60 * differs},
    }


def way_row(tokenizer: str, part: str, label: str, way: str, rate: float, size: int | None = None) -> dict[str, Any]:
    has_nodes = way not in (PRODUCT, KEPT)
    return {
        **{"row": "way", "tokenizer": tokenizer, "vocab_size": TOKENIZERS[tokenizer], "part": part},
        **{"constraint": label, "way": way, "parameter": size, "situations": 5, "turns": 9},
        **{"mask_ns": 1e9 / rate, "ns_p99": 5e9 / rate, "masks_per_s": rate, "allowed": 40.0},
        **{"differs": 3 if way == PRODUCT else 0, "kept_bytes": 1e6, "lexer_states": 12},
        **{"nodes": 4.0 if has_nodes else None, "nodes_made": 2.0 if way == NOTHING else None},
        **{"vectors": 1.0 if way == NOTHING else None, "tokens": 14_000 if part == "token bytes" else None},
    }


def made_up() -> FakeRun:
    rows = [engine_row(*place) for place in itertools.product(TOKENIZERS, GRAMMARS, TIMES)]
    for tokenizer, size in TOKENIZERS.items():
        place = {"tokenizer": tokenizer, "vocab_size": size, "part": "masks"}
        rows.append(
            {**place, "row": "refused", "constraint": "sql", "status": "unsupported", "message": "Collision in RPAR:"}
        )
        split = {"tokens": 31_997, "cuts": 139_645, "rests": 60_000, "table_bytes": 2_000_000, "seconds": 0.4}
        rows.append({**place, "row": "split", "part": "concatenation", **split})
        for way, rate in RATES.items():
            rows.append(way_row(tokenizer, "concatenation", "A then B", way, rate))
            rows.append(way_row(tokenizer, "concatenation", "two names", way, rate / 2))
        for part, count, (way, slower) in itertools.product(
            ("terminals", "token bytes"), SIZES, {TREE: 0, NOTHING: 1, WALK: 2}.items()
        ):
            rows.append(way_row(tokenizer, part, "family", way, RATES[way] / (1 + slower * (count > 2)), count))
    settings = config(name="lalr", kind="cfg_fsm", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def test_engines_are_compared_case_by_case(data: RunData) -> None:
    table = by_engine(data, "cold_ns_p50")
    assert list(table.columns) == list(TIMES)
    assert table.loc[("mistral-v1", "c_like"), "cfg_fsm walk"] == pytest.approx(240e-6)
    assert factors(table, "earley_trie", "cfg_fsm vectors").tolist() == pytest.approx([3.0] * 4)
    assert factors(table, "no such", "cfg_fsm vectors").empty
    assert by_engine(data, "compile_s").loc[("large", "json"), "earley_trie"] == pytest.approx(0.01)


def test_grammar_table_has_all_times_and_what_differs(tables: dict[str, Table]) -> None:
    table = tables["grammars"]
    assert len(table.rows) == 2 * 2 * len(TIMES)
    line = dict(zip(table.columns, table.rows[8], strict=True))
    assert (line["tokenizer"].text, line["constraint"].text, line["engine"].text) == (
        *("mistral-v1", "c_like", "pushdown_trie"),
    )
    assert [line[name].text for name in ("compile", "new mask, cold", "cold, p99", "made again", "seen before")] == [
        *("5.00 ms", "120 µs", "6.00 ms", "64.0 µs", "2.00 µs"),
    ]
    assert (line["masks that differ"].text, line["masks that differ"].detail) == ("17", "1,020 tokens")
    frame = table.frame.set_index(["tokenizer", "constraint", "engine"])
    assert pd.isna(frame.loc[("large", "json", "llguidance"), "made again"])
    assert pd.isna(frame.loc[("large", "json", "llguidance"), "held"])
    json = [row for row in table.rows if (row[0].text, row[1].text) == ("large", "json")]
    assert [[place for place, row in enumerate(json) if row[column].best] for column in range(3, 9)] == [
        *([4], [0], [0], [0], [3], [3, 4]),
    ]


def test_what_lark_refuses_is_listed_once(tables: dict[str, Table]) -> None:
    assert [[cell.text for cell in row] for row in tables["refused"].rows] == [
        ["sql", "unsupported", "Collision in RPAR:", "mistral-v1, large"],
        ["c_like", "some texts", "2 texts are left out", "mistral-v1, large"],
    ]


def test_concatenation_stands_beside_its_source(data: RunData, tables: dict[str, Table]) -> None:
    assert rates(data).loc[("large", "two names")].to_dict() == {way: rate / 2 for way, rate in RATES.items()}
    table = tables["concatenation"]
    assert table.columns == ("tokenizer", "constraint", *WAYS)
    line = dict(zip(table.columns, table.rows[0], strict=True))
    assert (line[TREE].text, line[TREE].detail) == ("80,000", "1.8x")
    assert line[PRODUCT].detail_value == pytest.approx(30_000 / 44_191)


def test_what_is_kept_is_said_of_every_way(tables: dict[str, Table]) -> None:
    assert set(KEEPS) == set(WAYS)
    frame = tables["kept"].frame.set_index(["tokenizer", "way"])
    assert frame.loc[("large", TREE), "masks per second"] == 60_000
    assert frame.loc[("large", TREE), "kept between masks"].endswith("no mask")
    assert frame.loc[("large", NOTHING), ["nodes", "nodes made", "vectors made"]].tolist() == [4, 2, 1]
    assert frame.loc[("large", PRODUCT), "tokens that differ"] == 6
    assert pd.isna(frame.loc[("large", KEPT), "nodes"])


def test_growth_is_told_by_size(data: RunData, tables: dict[str, Table]) -> None:
    found = growth(data, "terminals").loc[("large", "family")]
    assert found[WALK].tolist() == pytest.approx([2e-3, 6e-3])
    frame = tables["by_terminals"].frame
    assert frame["terminals"].tolist() == [2, 64, 2, 64]
    assert frame["tokens"].tolist() == [32_000, 32_000, 128_000, 128_000]
    assert tables["by_token_bytes"].frame["tokens"].tolist() == [14_000] * 4
    assert tables["by_token_bytes"].rows[0][-1].detail == "4.00 nodes"
    assert tables["split"].frame.loc[0, ["cuts", "distinct rests"]].tolist() == [139_645, 60_000]


def test_headlines_are_computed(data: RunData) -> None:
    sentences = build_headlines(data)
    assert sentences[0] == (
        "Terminals in a row, mistral-v1: 60,000 masks a second (median of 2 cases, 40,000 to 80,000), with vectors and "
        "tree kept and no mask; above the 44,191 of 003 (mistral-v1, its author's machine) in 1 of 2 cases."
    )
    assert sentences[1].startswith(
        "The same masks, mistral-v1: by the product of 003, done here, 22,500 masks a second (median of 2 cases, "
    )
    json = [sentence for sentence in sentences if sentence.startswith("json, ")]
    assert json[0] == (
        "json, mistral-v1: a new mask takes 15.0 µs after a compile (median of 100; below the 20.0 µs aimed at) and "
        "8.00 µs once vectors and tree are there (below the 20.0 µs aimed at), one seen before 1.00 µs (below the "
        "3.00 µs aimed at); 2.00 MB are held."
    )
    assert (
        "The walk over vectors, median of 4 cases: a new mask after a compile 4.0, a mask made again 5.0, a compile "
        "0.80 times as long."
    ) in sentences
    assert any(sentence.startswith("llguidance over vectors, median of 4 cases: a new mask after a compile 10, a comp")
               for sentence in sentences)  # fmt: skip
    assert (
        "Terminals 2 to 64, family, large: tree 12.5 µs to 12.5 µs, nothing 10.0 ms to 20.0 ms, walk 2.00 ms to "
        "6.00 ms."
    ) in sentences
    assert (
        "Of 400 masks of cfg_fsm 34 are not those of pushdown_trie (c_like with mistral-v1 17 of 100, c_like with "
        "large 17 of 100). For json, where the lexers agree, 0 differ."
    ) in sentences
    assert "Lark refuses 1 grammar: sql." in sentences
    assert sentences[-1] == "All 20 engines of all grammars succeeded: both ways of cfg_fsm gave the same masks."


def test_an_aim_that_is_missed_is_said_to_be() -> None:
    run = made_up()
    frame = run.frames["results"]
    frame.loc[frame["engine"] == "cfg_fsm vectors", ["cold_ns_p50", "seen_ns_p50"]] = [25e3, 4e3]
    (sentence, _) = (one for one in build_headlines(RunData.read(run)) if one.startswith("json, "))
    assert "25.0 µs after a compile (median of 100; not below the 20.0 µs aimed at)" in sentence
    assert "one seen before 4.00 µs (not below the 3.00 µs aimed at)" in sentence


def test_what_failed_is_listed_and_enters_nothing_else() -> None:
    run = made_up()
    frame = run.frames["results"]
    failed = (frame["engine"] == "llguidance") & (frame["constraint"] == "json")
    frame.loc[failed, ["status", "message"]] = ["error", "pip install it"]
    data = RunData.read(run)
    tables = {table.name: table for table in build_tables(data)}
    assert [row[2].text for row in tables["broken"].rows] == ["llguidance"] * 2
    assert len(tables["grammars"].rows) == 18
    assert build_headlines(data)[-1] == "Of 20 engines of all grammars these failed: 2 error."


@pytest.mark.parametrize("row", ["engine", "way", "refused"])
def test_a_part_alone_is_reported(row: str) -> None:
    run = made_up()
    run.frames["results"] = run.frames["results"][run.frames["results"]["row"] == row].dropna(axis=1, how="all")
    data = RunData.read(run)
    assert build_headlines(data)
    names = {"engine": "grammars", "way": "concatenation", "refused": "refused"}
    assert names[row] in {table.name for table in build_tables(data)}
    drawn = [plot.name for plot in build_plots(data) if plot.figure is not None]
    assert bool(drawn) == (row != "refused")


def test_a_small_run_becomes_a_report() -> None:
    """What `tokdfa.lab.kinds.cfg_fsm` really measures fits what is read here."""
    numbers = {"text_tokens": 30, "positions": 4, "rounds": 1, "turns": 2, "seconds": 0.5}
    settings = {"tokenizer": "bytes", "concatenations": ["two"], "terminals": {"row": [2, 3]}, **numbers}
    entries: list[dict[str, Any]] = [
        {"label": "json", "grammar": 'start: "[" [start ("," start)*] "]" | /[0-9]+/\n', "texts": ["[1,[]]"]},
        {"label": "two", "grammar": 'start: "A" "B"', "texts": ["AB"]},
        {"label": "row", "grammar": "start: <sequence>"},
        {"label": "clash", "grammar": 'start: a | b\na: "x"\nb: "x"\n', "texts": ["x"]},
    ]
    parts = [part for entry in entries for _, part in split_settings({**settings, **entry}, 0)]
    results = pd.DataFrame([row for part in parts for row in run_item(part, 0)])
    made = FakeRun(FOLDER, config(name="lalr", kind="cfg_fsm", reference=""), dict(PROVENANCE), {"results": results})
    data = RunData.read(made)
    assert [table.name for table in build_tables(data)] == [
        *("grammars", "refused", "concatenation", "kept", "by_terminals", "split", "environment"),
    ]
    assert [plot.name for plot in build_plots(data) if plot.figure is None] == ["by_token-bytes"]
    sentences = build_headlines(data)
    assert any(sentence.endswith("For json, where the lexers agree, 0 differ.") for sentence in sentences)
    assert "Lark refuses 1 grammar: clash." in sentences
    assert sentences[-1] == "All 5 engines of all grammars succeeded: both ways of cfg_fsm gave the same masks."

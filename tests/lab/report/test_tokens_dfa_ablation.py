"""Reports on the parts of the tokens DFA, from made-up runs in which the price of every part is known."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.backends.options import BUDGET_OPTIONS
from tokdfa.backends.tokens_dfa.strategy import TokensDfa
from tokdfa.lab.kinds.tokens_dfa_ablation import entries
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.tokens_dfa_ablation import headlines, mask_times
from tokdfa.lab.report.tokens_dfa_ablation_data import (
    CLASSES,
    CLASSIFIERS,
    MUTING,
    SETTINGS,
    SWITCHES,
    THREADS,
    Switch,
    factors,
    judged,
    pairs,
    speeds,
)

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

FOLDER = Path("made-up")
TOKENIZERS = {"small": 32_000, "large": 131_072}
#: regex -> seconds of making its DFA; the rest of a compile is in proportion.
REGEXES = {"email": 0.001, "date": 0.002, "url": 0.01, "word": 0.003}
PHASES = ("parse", "automaton", "minimize", "classes", "walks", "reduce", "masks")
GRIDS = [
    {"byte_classes": [True, False], "mute_literals": [False, True], "threads": [1, 2]},
    {
        "token_classes": ["strings", "none"],
        **{name: [True, False] for name in ("dead_bytes", "byte_classes", "prefix_graphs")},
        "threads": [1, 2],
    },
    {"token_classes": "strings", "mute_literals": True},
    {"reduce": [True, False], "ready_masks": [True, False]},
]
#: (option, value) -> what the option makes of a phase, of the table's bytes and of the mask time.
PRICES: dict[tuple[str, Any], dict[str, float]] = {
    ("dead_bytes", False): {"classes": 1.5, "walks": 1.5},
    ("byte_classes", False): {"classes": 0.5},
    ("prefix_graphs", False): {"walks": 8.0},
    ("threads", 2): {"walks": 0.5, "classes": 0.8},
    ("token_classes", "none"): {"walks": 4.0, "table_bytes": 3.0},
    ("token_classes", "transformations"): {"walks": 0.0},
    ("mute_literals", True): dict.fromkeys(PHASES, 0.5),
    ("reduce", False): {"table_bytes": 2.0, "reduce": 0.1},
    ("ready_masks", False): {"masks": 0.01, "mask": 10.0},
}


def row(entry: Any, tokenizer: str, regex: str) -> dict[str, Any]:
    """A row as `tokdfa.lab.kinds.tokens_dfa_ablation` writes it; phases of a tokens DFA cost alike before the
    prices.
    """
    unit = REGEXES[regex] * TOKENIZERS[tokenizer] / 32_000
    place = {"tokenizer": tokenizer, "vocab_size": TOKENIZERS[tokenizer], "constraint": regex}
    one = {**place, "variant": entry.label, "backend": entry.backend, "options": json.dumps(entry.options)}
    one |= {"status": "ok", "message": "", "compiles": 7, "advance_ns": 500.0}
    if entry.backend == "outlines_core":
        seconds = unit * {"date": 60, "url": 300}.get(regex, 100) * (1.2 if tokenizer == "large" else 1)
        return {**one, "phase_index": seconds, "compile_s": seconds, "mask_ns": 9_000.0, "advance_ns": 300.0}
    if entry.backend == "token_index":
        # as fast as the default but for one regex
        phases = {"parse": unit, "automaton": unit, "minimize": unit, "index": unit * (2 if regex == "date" else 4)}
        sizes = {"size_bytes": 7_000_000}
        return {**one, **_phases(phases), **sizes, "mask_ns": 1_000.0}
    cost = dict.fromkeys([*PHASES, "table_bytes", "mask"], 1.0)
    for (option, value), changes in PRICES.items():
        if entry.options[option] == value:
            cost |= {name: cost[name] * factor for name, factor in changes.items()}
    phases = {name: unit * cost[name] for name in PHASES if cost[name]}
    sizes = {"size_table_bytes": int(1e6 * cost["table_bytes"]), "size_mask_bytes": 4_000, "size_dfa_states": 17}
    sizes |= {"size_byte_classes": 9, "size_token_classes": 40, "size_rows": 16, "size_transitions": 300}
    if entry.options["token_classes"] != "transformations":
        left = TOKENIZERS[tokenizer] // (2 if entry.options["dead_bytes"] else 1)
        sizes |= {"size_tokens_left": left, "size_class_strings": 900, "size_graph_nodes": 1_200}
    return {**one, **entry.options, **_phases(phases), **sizes, "mask_ns": 800.0 * cost["mask"]}


def _phases(phases: dict[str, float]) -> dict[str, float]:
    return {**{f"phase_{name}": seconds for name, seconds in phases.items()}, "compile_s": sum(phases.values())}


def made_up(grids: list[dict[str, Any]] | None = None) -> FakeRun:
    baselines = [{"backend": "token_index"}, {"backend": "outlines_core"}]
    found = entries({"grids": grids or GRIDS, "baselines": baselines})
    places = itertools.product(TOKENIZERS, REGEXES)
    rows = [row(entry, tokenizer, regex) for tokenizer, regex in places for entry in found]
    settings = config(name="parts", kind="tokens_dfa_ablation", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


def only(run: FakeRun, query: str) -> RunData:
    """The run with the results that a query keeps."""
    run.frames["results"] = run.frames["results"].query(query).reset_index(drop=True)
    return RunData.read(run)


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


@pytest.fixture(scope="module")
def sentences(data: RunData) -> list[str]:
    return build_headlines(data)


def test_pairs_differ_in_the_switch_only(data: RunData) -> None:
    cases = len(TOKENIZERS) * len(REGEXES)
    for setting, switch, found in judged(data):
        assert len(found) >= cases
        for text_without, text_with in zip(found["options_without"], found["options_with"], strict=True):
            without, value = json.loads(text_without), json.loads(text_with)
            assert (without.pop(switch.option), value.pop(switch.option)) == (switch.without, switch.value)
            assert without == value
            assert setting == CLASSES or switch.option == "token_classes" or value["token_classes"] == setting
    # dead bytes with strings: byte classes, prefix graphs and threads on or off
    dead_bytes = next(switch for switch in SWITCHES if switch.option == "dead_bytes")
    assert len(pairs(data, dead_bytes, "strings")) == 8 * cases
    assert pairs(data, dead_bytes, "transformations").empty
    # transformations have strings to compare with where dead bytes and prefix graphs are at their defaults
    assert len(pairs(data, CLASSIFIERS[1])) == 5 * cases


def test_options_of_the_switches_are_those_of_the_backend() -> None:
    options = {option.name: option for option in TokensDfa.options}
    for switch in (*SWITCHES, *CLASSIFIERS):
        assert options[switch.option].check(switch.value) == switch.value
        assert options[switch.option].check(switch.without) == switch.without
    assert set(SETTINGS) <= set(options["token_classes"].choices)
    unjudged = set(options) - {switch.option for switch in (*SWITCHES, *CLASSIFIERS)}
    # limits, and another language: not parts of the strategy
    limits = {"max_states", "max_transitions", "mask_mb", *(option.name for option in BUDGET_OPTIONS)}
    assert unjudged == {*limits, "proper"}


def test_factors_are_without_over_with(data: RunData) -> None:
    found = {(setting, switch.option): (switch, pair) for setting, switch, pair in judged(data)}
    switch, pair = found["strings", "prefix_graphs"]
    assert factors(pair, switch.columns).tolist() == pytest.approx([8.0] * len(pair))
    whole = factors(pair, ("compile_s",))
    assert whole.min() == pytest.approx((5 + 0.8 + 8 * 0.5) / (5 + 0.8 + 0.5))  # two threads
    assert whole.max() == pytest.approx((5 + 0.75 + 8 * 1.5) / (5 + 0.75 + 1.5))  # bytes, dead ones too
    switch, pair = found["transformations", "threads"]
    assert factors(pair, switch.columns).tolist() == pytest.approx([1.25] * len(pair))
    assert factors(pair, ("phase_walks",)).empty  # transformations have no walks


def test_switch_table_has_factors_of_all_gains(tables: dict[str, Table]) -> None:
    table = tables["switches"]
    frame = table.frame.set_index(["setting", "switch"])
    reduced = frame.loc[(SETTINGS["transformations"], "reduce")]
    assert reduced["pairs"] == 2 * 8
    assert reduced["table bytes"] == 2
    assert reduced["compile time"] == pytest.approx((5.1 / 6 + 4.11 / 5.01) / 2)
    assert reduced["mask time"] == 1
    assert frame.loc[(SETTINGS["transformations"], "ready masks"), "mask time"] == 10
    assert frame.loc[(CLASSES, "none → strings"), "table bytes"] == 3
    assert frame.loc[(SETTINGS["strings"], "mute literals"), "compile time"] == pytest.approx(2)
    assert (SETTINGS["transformations"], "prefix graphs") not in frame.index
    cell = table.rows[[row[1].text for row in table.rows].index("prefix graphs")][3]
    assert (cell.text, cell.detail) == ("1.9x", "1.6–2.4")


def test_phase_table_has_a_row_for_each_named_variant(tables: dict[str, Table]) -> None:
    table = tables["phases"]
    assert len(table.rows) == 2 * 4 * 6
    mine = {line[2].text: line for line in table.rows if (line[0].text, line[1].text) == ("large", "url")}
    assert list(mine) == [
        "outlines_core", "token_index", "as in 001", "as in 001, muted", "tokens_dfa", "tokens_dfa, muted",
    ]  # fmt: skip
    unit = 0.01 * 131_072 / 32_000
    values = dict(zip(table.columns, mine["as in 001, muted"], strict=True))
    assert values["compile"].value == pytest.approx(3.5 * unit)
    assert values["compile"].detail == "103x"
    assert values["walks"].value == pytest.approx(0.5 * unit)
    assert values["index"].text == "–"
    assert [name for name, line in mine.items() if line[3].best] == ["tokens_dfa, muted"]
    assert mine["outlines_core"][3].detail == ""


def test_counts_go_from_tokens_to_classes(tables: dict[str, Table]) -> None:
    frame = tables["counts"].frame.set_index(["tokenizer", "constraint"])
    one = frame.loc[("large", "date")]
    assert one["vocabulary size"] == 131_072
    assert one["tokens left"] == 65_536
    assert (one["class strings"], one["graph nodes"], one["token classes"]) == (900, 1_200, 40)
    assert (one["table bytes"], one["mask bytes"], one["token_index bytes"]) == (1e6, 4_000, 7e6)


def test_thread_table_compares_one_with_two(tables: dict[str, Table]) -> None:
    table = tables["threads"]
    assert len(table.rows) == 2 * 4 * 3
    line = next(line for line in table.rows if [cell.text for cell in line[:3]] == ["small", "word", "as in 001"])
    assert [cell.value for cell in line[3:]] == pytest.approx([0.006, 0.0039, 2 / 1.3, 0.021, 0.0189, 7 / 6.3])


def test_mask_table_names_the_slowest_regex() -> None:
    run = made_up()
    results = run.frames["results"]
    slow = (results["variant"] == "tokens_dfa") & (results["constraint"] == "date") & (results["tokenizer"] == "large")
    results.loc[slow, "mask_ns"] = 2_500.0
    data = RunData.read(run)
    table = mask_times(data)
    line = next(line for line in table.rows if [cell.text for cell in line[:2]] == ["large", "tokens_dfa"])
    assert [cell.text for cell in line[2:]] == ["4", "800 ns", "2.50 µs", "500 ns", "500 ns"]
    assert line[4].detail == "date"
    assert (
        "A mask of tokens_dfa takes 800 ns (median of 8 cases), in the slowest 2.50 µs (date on large)."
        in headlines(data)
    )
    assert [line[1].text for line in table.rows][-1] == "tokens_dfa, no ready masks"


def test_headlines_say_what_pays(data: RunData, sentences: list[str]) -> None:
    assert sentences[0] == (
        "tokens_dfa compiles 1.2 times as fast as token_index (0.83–1.2), median of 8 cases; at least as fast "
        "(within 2%) in 6, slower in 2: date on large (0.83), date on small (0.83)."
    )
    assert sentences[1] == (
        "tokens_dfa compiles 18 times as fast as outlines_core, median of 8 cases; 10 at least (date on small), "
        "60 at most (url on large)."
    )
    assert sentences[2] == (
        "With class strings (001), these pay, as factors of the median pair: dead bytes (1.2 in compile time), "
        "prefix graphs (1.9 in compile time), threads (1.3 in compile time); these do not: byte classes (0.94 in "
        "compile time)."
    )
    assert sentences[3].startswith(
        "Muting literals, with class strings (001): compiles 2.0 times as fast; it does most"
    )
    assert sentences[4] == (
        "With transformations, these pay, as factors of the median pair: threads (1.0 in compile time), reduce (2.0 in "
        "table bytes), ready masks (10 in mask time); these do not: byte classes (0.92 in compile time)."
    )
    threads = [sentence for sentence in sentences if sentence.startswith("Two threads")]
    assert threads[1] == (
        "Two threads, as in 001, the slowest regexes on large, times as fast in the phases that run in parallel (in "
        "the whole compile): url 1.5 (1.1), word 1.5 (1.1), date 1.5 (1.1)."
    )
    assert len(threads) == 3
    assert (
        sentences[-1]
        == f"All {len(data.results)} rows succeeded: contenders of one token language gave the same masks."
    )


def test_speeds_are_sorted(data: RunData) -> None:
    found = speeds(data, "tokens_dfa", "token_index")
    assert [(speed.constraint, speed.tokenizer) for speed in found[:2]] == [("date", "large"), ("date", "small")]
    assert [speed.factor for speed in found] == pytest.approx([5 / 6] * 2 + [7 / 6] * 6)


def test_what_failed_is_listed_and_enters_nothing_else() -> None:
    run = made_up()
    results = run.frames["results"]
    lost = (results["variant"] == "tokens_dfa") & (results["constraint"] == "url")
    results.loc[lost, ["status", "message"]] = ["masks differ", "1 of 30 masks"]
    results.loc[lost & (results["tokenizer"] == "small"), "status"] = "memory"
    data = RunData.read(run)
    tables = {table.name: table for table in build_tables(data)}
    assert [[cell.text for cell in line] for line in tables["broken"].rows] == [
        ["small", "url", "tokens_dfa", "memory", "1 of 30 masks"],
        ["large", "url", "tokens_dfa", "masks differ", "1 of 30 masks"],
    ]
    assert build_headlines(data)[-1] == f"Of {len(results)} rows these failed: 1 masks differ, 1 memory."
    assert len(speeds(data, "tokens_dfa", "token_index")) == 6
    assert tables["counts"].frame.set_index(["tokenizer", "constraint"])["token classes"].isna().sum() == 2
    phases, _, narrowing = build_plots(data)
    notes = [text.get_text() for text in phases.figure.axes[3].texts]
    assert notes.count("no result") == 1
    assert len(narrowing.figure.axes[0].lines) == 3


def test_without_baselines_and_settings_the_rest_is_still_shown() -> None:
    data = only(made_up(), "variant == 'tokens_dfa'")
    assert [table.name for table in build_tables(data)] == ["phases", "counts", "masks", "environment"]
    assert [plot.reason for plot in build_plots(data)] == [
        "token_index, which the bars are measured by, has no result",
        "no two variants differ in one switch only",
        "no regex has a result of both 'tokens_dfa' and 'as in 001'",
    ]
    assert len(build_headlines(data)) == 2
    nothing = only(made_up(), "variant == 'token_index' and tokenizer == 'small'")
    assert [plot.reason for plot in build_plots(nothing)][1:] == [plot.reason for plot in build_plots(data)][1:]


def test_a_run_in_which_all_failed_has_its_failures() -> None:
    run = made_up()
    run.frames["results"]["status"] = "memory"
    data = RunData.read(run)
    assert [table.name for table in build_tables(data)] == ["broken", "environment"]
    assert all(plot.reason for plot in build_plots(data))
    assert build_headlines(data) == [f"Of {len(data.results)} rows these failed: {len(data.results)} memory."]


def test_titles_of_switches() -> None:
    assert [MUTING.title, THREADS.title, CLASSIFIERS[0].title] == ["mute literals", "threads", "none → strings"]
    assert Switch("x", False, True).columns[0] == "phase_parse"

"""What a run of kind ``cfg_fsm`` measured, and what its source and its specification say of it.

A *case* is a tokenizer and a grammar. Engines are compared within a case; of the cases the median is told, with the
range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.measure.cfg_fsm_names import CONCATENATION, KEPT, NOTHING, PRODUCT, TERMINALS, TOKEN_BYTES, TREE, WALK
from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

CASE = ["tokenizer", "constraint"]
#: The engine that the others are compared with, and its other way.
OURS, OTHER_WAY, PUSHDOWN = "cfg_fsm vectors", "cfg_fsm walk", "pushdown_trie"
#: 003: concatenated masks a second, of its own way, on one core of its author's machine, with this vocabulary.
SOURCE_RATE, SOURCE_TOKENIZER = 44_191.0, "mistral-v1"
#: What was set out to be reached for JSON: seconds of a median new mask, and of one seen before.
NEW_AIM, SEEN_AIM, AIM_GRAMMAR = 20e-6, 3e-6, "json"
#: Way -> what is kept between masks, beside the machine.
KEEPS = {
    TREE: "split table, vectors of lexer states, tree of terminals with its groups of tokens; no mask",
    NOTHING: "split table; vectors and tree are made for each mask",
    PRODUCT: "split table, vectors of each situation as in 003; their product is made for each mask",
    WALK: "token trie; no mask",
    KEPT: "as tree, and the mask of each situation",
}
#: Part -> what a mask is told against.
GROWTH = {TERMINALS: "terminals", TOKEN_BYTES: "longest token, bytes"}

RATE = Metric(
    "mask_rate", "masks per second", "masks per second on one core", "", "results", "masks_per_s", better="higher"
)
#: Column of engines -> its metric, in seconds once multiplied by the factor.
TIMES: dict[str, Metric] = {
    metric.column: metric
    for metric in (
        Metric("compile", "compile", "compile time, median of the rounds", "s", "results", "compile_s"),
        Metric("cold_p50", "new mask, cold", "new mask after a compile", "s", "results", "cold_ns_p50", factor=1e-9),
        Metric("cold_p99", "cold, p99", "the same, p99", "s", "results", "cold_ns_p99", factor=1e-9),
        Metric("again_p50", "made again", "mask made once more", "s", "results", "again_ns_p50", factor=1e-9),
        Metric("seen_p50", "seen before", "mask of a situation met before", "s", "results", "seen_ns_p50", factor=1e-9),
        Metric("advance", "advance", "advance by one token", "s", "results", "advance_ns_p50", factor=1e-9),
    )
}
HELD = Metric("held", "held", "bytes of arrays held in the end", "B", "results", "held_bytes")
MASK = Metric(
    "way_mask", "mask time", "time of a mask, a mean over the situations", "s", "results", "mask_ns", factor=1e-9
)
SLOW = Metric("way_p99", "p99 mask", "time of a mask, p99", "s", "results", "ns_p99", factor=1e-9)
_TEXTS = ("tokenizer", "constraint", "part", "engine", "backend", "status", "message", "way")
_ENGINE_NUMBERS = (
    *(*TIMES, "held_bytes", "masks", "new_masks", "texts", "texts_refused", "rounds", "conflicts"),
    *("compared", "differing_masks", "differing_tokens"),
)
_WAY_NUMBERS = (
    *("parameter", "tokens", "situations", "turns", "mask_ns", "ns_p99", "masks_per_s", "allowed"),
    *("differs", "kept_bytes", "lexer_states", "nodes", "nodes_made", "vectors", "vocab_size"),
)


def rows_of(data: RunData, row: str, numbers: tuple[str, ...] = ()) -> pd.DataFrame:
    """The rows of one sort with all their texts, and these columns as float, NaN where there is none."""
    return complete_columns(data.results[data.results["row"] == row], _TEXTS, numbers)


def engines(data: RunData) -> pd.DataFrame:
    """The rows of engines that succeeded. Where an engine keeps no masks, one made again is as one seen before."""
    rows = rows_of(data, "engine", _ENGINE_NUMBERS)
    return rows[rows["status"] == "ok"].reset_index(drop=True)


def ways(data: RunData, part: str) -> pd.DataFrame:
    """The rows of ways to make a mask, of one part."""
    rows = rows_of(data, "way", _WAY_NUMBERS)
    return rows[rows["part"] == part].reset_index(drop=True)


def by_engine(data: RunData, column: str) -> pd.DataFrame:
    """A column of `engines` in its unit: one row per case, one column per engine, NaN where there is none."""
    rows = engines(data)
    table = rows.pivot_table(index=CASE, columns="engine", values=column, aggfunc="median", sort=False)
    table = table[[engine for engine in dict.fromkeys(rows["engine"]) if engine in table]]
    return table * (TIMES[column].factor if column in TIMES else 1.0)


def rates(data: RunData) -> pd.DataFrame:
    """Masks per second of the concatenation cases: one row per case, one column per way."""
    rows = ways(data, CONCATENATION)
    table = rows.pivot_table(index=CASE, columns="way", values="masks_per_s", aggfunc="median", sort=False)
    return table[[way for way in dict.fromkeys(rows["way"]) if way in table]]


def growth(data: RunData, part: str) -> pd.DataFrame:
    """Seconds of a mask: one row per tokenizer, grammar and parameter, one column per way."""
    rows = ways(data, part)
    index = [*CASE, "parameter"]
    table = rows.pivot_table(index=index, columns="way", values="mask_ns", aggfunc="median", sort=False) * MASK.factor
    return table[[way for way in dict.fromkeys(rows["way"]) if way in table]]

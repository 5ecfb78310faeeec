"""Reports on runs of kind ``cfg_fsm``: LALR(1) with a contextual lexer, beside other engines and beside its source.

Here are the tables and the sentences; `tokdfa.lab.report.cfg_fsm_data` has the numbers,
`tokdfa.lab.report.cfg_fsm_plots` the plots.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import Cell, Table, count_cell, number_cell, readable, text_cell
from tokdfa.lab.measure.cfg_fsm_names import CONCATENATION, NOTHING, PRODUCT, TREE, WALK
from tokdfa.lab.report.cfg_fsm_data import (
    AIM_GRAMMAR,
    CASE,
    GROWTH,
    HELD,
    KEEPS,
    MASK,
    NEW_AIM,
    OTHER_WAY,
    OURS,
    PUSHDOWN,
    RATE,
    SEEN_AIM,
    SLOW,
    SOURCE_RATE,
    SOURCE_TOKENIZER,
    TIMES,
    by_engine,
    engines,
    growth,
    rates,
    rows_of,
    ways,
)
from tokdfa.lab.report.cfg_fsm_plots import build_plots
from tokdfa.lab.report.data import factors
from tokdfa.lab.report.metrics import format_bytes, format_count, format_seconds, short_factor, significant, spread
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

__all__ = ["build_plots", "build_tables", "headlines"]

#: Sentences on the price of a mask: column -> how it is told.
_TOLD = {"cold_ns_p50": "a new mask after a compile", "again_ns_p50": "a mask made again", "compile_s": "a compile"}

#: Other ways to make the masks of terminals in a row, as they are told.
_OTHER_WAYS = {
    PRODUCT: "by the product of 003, done here,",
    NOTHING: "with vectors and tree made for each mask",
    WALK: "by walking",
}


def build_tables(data: RunData) -> list[Table]:
    """Grammars engine by engine, what is refused, concatenation and what is kept, growth, split tables, failures."""
    return [
        by_grammar(data),
        refused(data),
        concatenation(data),
        what_is_kept(data),
        *(grown(data, part) for part in GROWTH),
        split_tables(data),
        broken(data),
    ]


def by_grammar(data: RunData) -> Table:
    """One row per case and engine: its times, what it holds, and how many masks are not those of cfg_fsm."""
    rows = []
    for _, group in engines(data).groupby(CASE, sort=False):
        best = {column: group[column].min() for column in TIMES}
        for _, one in group.iterrows():
            cells = [
                number_cell(metric, one[column] * metric.factor, bool(one[column] == best[column]))
                for column, metric in TIMES.items()
            ]
            counts = (number_cell(HELD, one["held_bytes"]), count_cell(one["new_masks"]), _differing_cell(one))
            rows.append((*(text_cell(one[name]) for name in (*CASE, "engine")), *cells, *counts))
    heads = [metric.title for metric in TIMES.values()]
    columns = (*CASE, "engine", *heads, "held", "new masks", "masks that differ")
    note = (
        "Medians, but for p99. New mask, cold: of a situation that the texts have not met, after a compile that shares "
        "nothing with others; what is built on the way is in it. Made again: the same masks by an engine that keeps no "
        "masks and has built all else (llguidance cannot be told to; see its masks seen before). Seen before: the "
        "engine as it is. Masks that differ, and in how many tokens together: from those of the first engine; they may "
        "where Lark's lexer cuts a text in its own way. Held: arrays, without what belongs to the vocabulary. Past "
        "the option mask_mb cfg_fsm drops vectors and makes them again where they are needed, which shows in its times."
    )
    return Table("grammars", "Compiles, masks and advances by grammar", note, columns, tuple(rows), columns[:7])


def _differing_cell(one: pd.Series[Any]) -> Cell:
    cell = count_cell(one["differing_masks"])
    tokens = one["differing_tokens"]
    return cell._replace(detail=f"{format_count(tokens)} tokens") if tokens > 0 else cell


def refused(data: RunData) -> Table:
    """One row per grammar that Lark refuses, with its reason, and per grammar of which it refuses some texts."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for _, one in rows_of(data, "refused").iterrows():
        key = (str(one["constraint"]), readable(one["status"]), str(one["message"]))
        found.setdefault(key, []).append(str(one["tokenizer"]))
    for _, one in engines(data).iterrows():
        if one["texts_refused"] > 0 and one["engine"] == OURS:
            key = (str(one["constraint"]), "some texts", f"{one['texts_refused']:.0f} texts are left out")
            found.setdefault(key, []).append(str(one["tokenizer"]))
    rows = [(*map(text_cell, key), text_cell(", ".join(tokenizers))) for key, tokenizers in found.items()]
    note = (
        "Grammars that are not LALR(1), or not in Lark's notation: the first line of Lark's report. Texts are left out "
        "where the rules take them but Lark's contextual lexer settles on another terminal."
    )
    columns = ("grammar", "kind", "what Lark says", "tokenizers")
    return Table("refused", "What Lark refuses", note, columns, tuple(rows))


def concatenation(data: RunData) -> Table:
    """One row per case of terminals in a row, one column per way: masks a second, and how many times those of 003."""
    table, rows = rates(data), []
    for where, line in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        cells = []
        for way in table.columns:
            cell, factor = number_cell(RATE, line[way]), line[way] / SOURCE_RATE
            cells.append(cell._replace(detail=f"{short_factor(factor)}x", detail_value=factor))
        rows.append((*map(text_cell, where), *cells))
    note = (
        "Masks per second on one core, Python's call included; no way but kept keeps masks. The factor is over the "
        f"{SOURCE_RATE:,.0f} a second that 003 reports of its own way ({SOURCE_TOKENIZER}, on its author's machine)."
    )
    return Table("concatenation", "Masks per second of terminals in a row", note, (*CASE, *table.columns), tuple(rows))


def what_is_kept(data: RunData) -> Table:
    """One row per tokenizer and way: what is kept between masks, what a mask takes, and what is held."""
    rows = []
    for (tokenizer, way), group in ways(data, CONCATENATION).groupby(["tokenizer", "way"], sort=False):
        slow = number_cell(SLOW, group["ns_p99"].median() * SLOW.factor)
        rate = group["masks_per_s"]
        speed = number_cell(RATE, rate.median())._replace(
            detail=f"{format_count(round(rate.min()))} to {format_count(round(rate.max()))}"
        )
        work = [count_cell(group[name].mean()) for name in ("nodes", "nodes_made", "vectors")]
        held, differs = number_cell(HELD, group["kept_bytes"].median()), count_cell(group["differs"].sum())
        names = (text_cell(tokenizer), text_cell(way), text_cell(KEEPS[str(way)]))
        rows.append((*names, speed, slow, *work, held, differs))
    columns = (
        *("tokenizer", "way", "kept between masks", "masks per second", SLOW.title),
        *("nodes", "nodes made", "vectors made", "held", "tokens that differ"),
    )
    note = (
        "Over the cases of terminals in a row: median and range of masks per second, median p99, mean work a mask. "
        "All ways keep the machine (tables, lexer states, stacks and situations met). Nodes: of the tree, or of the "
        "token trie. Tokens that differ from the walk's masks: the product finds none that run through three terminals."
    )
    return Table("kept", "What is kept between masks", note, columns, tuple(rows), columns[:5])


def grown(data: RunData, part: str) -> Table:
    """One row per case and size, one column per way: the median mask, and the nodes that it takes."""
    found = ways(data, part)
    present, rows = [str(way) for way in dict.fromkeys(found["way"])], []
    for (tokenizer, constraint, _), group in found.groupby([*CASE, "parameter"], sort=False):
        one, cells = group.iloc[0], []
        for way in present:
            mine = group[group["way"] == way]
            seconds, nodes = (float(mine[column].median()) for column in ("mask_ns", "nodes"))
            cells.append(number_cell(MASK, seconds * MASK.factor)._replace(detail=f"{significant(nodes)} nodes"))
        tokens = one["vocab_size"] if math.isnan(one["tokens"]) else one["tokens"]
        counts = [count_cell(float(value)) for value in (one["parameter"], tokens, one["lexer_states"], one["allowed"])]
        rows.append((text_cell(tokenizer), text_cell(constraint), *counts, *cells))
    columns = (*CASE, GROWTH[part], "tokens", "lexer states", "tokens allowed", *present)
    note = (
        "Time of a new mask, a mean over the situations (of each the median). Nodes are those of the tree, or of the "
        "token trie, a mean over the masks; those that are passed again after one is made count again."
    )
    name = part.replace(" ", "_")
    return Table(f"by_{name}", f"A mask against {GROWTH[part]}", note, columns, tuple(rows))


def split_tables(data: RunData) -> Table:
    """One row per vocabulary: what is made once for it."""
    rows = []
    for _, one in rows_of(data, "split", ("tokens", "cuts", "rests", "seconds", "table_bytes")).iterrows():
        counts = [count_cell(one[name]) for name in ("tokens", "cuts", "rests")]
        sizes = (number_cell(TIMES["compile_s"], one["seconds"]), number_cell(HELD, one["table_bytes"]))
        rows.append((text_cell(one["tokenizer"]), *counts, *sizes))
    columns = ("tokenizer", "tokens that spell", "cuts", "distinct rests", "made in", "held")
    note = "Once for a vocabulary, before any compile. Cuts of bytes; 003 counts 128,956 of characters for mistral-v1."
    return Table("split", "Split tables", note, columns, tuple(rows))


def broken(data: RunData) -> Table:
    """Every engine that failed, with the reason."""
    rows = rows_of(data, "engine")
    failed = rows[rows["status"] != "ok"]
    columns = (*CASE, "engine", "status", "message")
    cells = [
        tuple(text_cell(readable(one[name]) if name == "status" else one[name]) for name in columns)
        for _, one in failed.iterrows()
    ]
    note = "Engines without a result, or with other masks than one of their language; they are in no other table."
    return Table("broken", "Failed engines", note, columns, tuple(cells))


def headlines(data: RunData) -> list[str]:
    """Masks a second beside 003's; JSON beside what was aimed at; vectors, walk and other engines; who agrees."""
    if data.results.empty:
        return ["The run has no results yet."]
    return [*_rates(data), *_json(data), *_against(data), *_growth(data), *_same(data), *_refused(data), *_failed(data)]


def _rates(data: RunData) -> list[str]:
    table, sentences = rates(data), []
    for tokenizer in dict.fromkeys(table.index.get_level_values("tokenizer")):
        mine = table.loc[[tokenizer]]
        if TREE in mine:
            tree = mine[TREE].dropna()
            above = int((tree > SOURCE_RATE).sum())
            sentences.append(
                f"Terminals in a row, {tokenizer}: {_rate(tree)}, with vectors and tree kept and no mask; above the "
                f"{SOURCE_RATE:,.0f} of 003 ({SOURCE_TOKENIZER}, its author's machine) in {above} of {len(tree)} cases."
            )
        told = [f"{words} {_rate(mine[way].dropna())}" for way, words in _OTHER_WAYS.items() if way in mine]
        if told:
            sentences.append(f"The same masks, {tokenizer}: {'; '.join(told)}.")
    return sentences


def _rate(found: pd.Series[Any]) -> str:
    low, high = (format_count(round(value)) for value in (found.min(), found.max()))
    return f"{format_count(round(found.median()))} masks a second (median of {len(found)} cases, {low} to {high})"


def _json(data: RunData) -> list[str]:
    rows, sentences = engines(data), []
    mine = rows[(rows["constraint"] == AIM_GRAMMAR) & (rows["engine"] == OURS)]
    for _, one in mine.iterrows():
        cold, again, seen = (one[f"{name}_ns_p50"] * 1e-9 for name in ("cold", "again", "seen"))
        sentences.append(
            f"{AIM_GRAMMAR}, {one['tokenizer']}: a new mask takes {format_seconds(cold)} after a compile (median of "
            f"{one['new_masks']:.0f}; {_aimed(cold, NEW_AIM)}) and {format_seconds(again)} once vectors and tree are "
            f"there ({_aimed(again, NEW_AIM)}), one seen before {format_seconds(seen)} ({_aimed(seen, SEEN_AIM)}); "
            f"{format_bytes(one['held_bytes'])} are held."
        )
    return sentences


def _aimed(value: float, aim: float) -> str:
    return f"{'below' if value < aim else 'not below'} the {format_seconds(aim)} aimed at"


def _against(data: RunData) -> list[str]:
    """What the walk and other engines take, over what vectors take."""
    sentences = []
    tables = {column: by_engine(data, column) for column in _TOLD}
    for engine in tables["compile_s"].columns:
        told = []
        for column, words in _TOLD.items():
            ratios = factors(tables[column], engine, OURS)
            if engine != OURS and len(ratios):
                told.append(f"{words} {short_factor(ratios.median())}{spread(ratios.min(), ratios.max())}")
        if told:
            cases = len(factors(tables["compile_s"], engine, OURS))
            who = "The walk" if engine == OTHER_WAY else engine
            sentences.append(f"{who} over vectors, median of {cases} cases: {', '.join(told)} times as long.")
    return sentences


def _growth(data: RunData) -> list[str]:
    """By part and grammar: how much longer a mask takes at the largest size than at the smallest."""
    sentences = []
    for part, what in GROWTH.items():
        table = growth(data, part)
        for (tokenizer, constraint), group in table.groupby(level=CASE, sort=False):
            mine = group.droplevel([*CASE])
            if len(mine) > 1:
                told = [
                    f"{way} {format_seconds(mine[way].iloc[0])} to {format_seconds(mine[way].iloc[-1])}"
                    for way in mine.columns
                ]
                first, last = (f"{mine.index[place]:.0f}" for place in (0, -1))
                sentences.append(f"{what} {first} to {last}, {constraint}, {tokenizer}: {', '.join(told)}.")
    return [sentence[:1].upper() + sentence[1:] for sentence in sentences]


def _same(data: RunData) -> list[str]:
    """Whether the pushdown engine has the masks of cfg_fsm."""
    rows = engines(data)
    mine = rows[(rows["engine"] == PUSHDOWN) & (rows["compared"] > 0)]
    if mine.empty:
        return []
    differing = mine[mine["differing_masks"] > 0]
    names = ", ".join(
        f"{one['constraint']} with {one['tokenizer']} {one['differing_masks']:.0f} of {one['compared']:.0f}"
        for _, one in differing.iterrows()
    )
    json = mine[mine["constraint"] == AIM_GRAMMAR]
    said = ""
    if len(json):
        said = f" For {AIM_GRAMMAR}, where the lexers agree, {json['differing_masks'].sum():.0f} differ."
    return [
        f"Of {mine['compared'].sum():,.0f} masks of cfg_fsm {mine['differing_masks'].sum():,.0f} are not those of "
        f"{PUSHDOWN}{f' ({names})' if names else ''}.{said}"
    ]


def _refused(data: RunData) -> list[str]:
    rows = rows_of(data, "refused")
    names = list(dict.fromkeys(rows["constraint"]))
    plural = "s" * (len(names) != 1)
    return [f"Lark refuses {len(names)} grammar{plural}: {', '.join(map(str, names))}."] if names else []


def _failed(data: RunData) -> list[str]:
    rows = rows_of(data, "engine")
    if rows.empty:
        return []
    counted = failure_counts(rows)
    if not counted:
        return [f"All {len(rows):,} engines of all grammars succeeded: both ways of cfg_fsm gave the same masks."]
    return [f"Of {len(rows):,} engines of all grammars these failed: {counted}."]

"""What a run of kind ``engine_ablation`` measured, case by case, and what 000 says of it.

A *case* is a tokenizer, a constraint and a path. Variants are compared within a case; a factor is the mean mask time of
one variant over that of another, and of the cases the median is told, with the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.lab.report.data import complete_columns

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

CASE = ["tokenizer", "constraint", "path"]
#: The variant with everything on, the one with nothing, and that whose shares of nodes are compared with 000's.
DEFAULT, WALK, SHARES = "all on", "walk", "one_byte walk"
#: 000: the parser is needed at fewer than this share of the nodes.
CLAIMED_SHARE = 0.005
#: What a part is judged by: its name, the variant without it, the variant with it, and whether it is about masks,
#: about advances or about compiles. A run has the variants of one engine; parts without theirs are left out.
SWITCHES = (
    ("partitions, against the walk", WALK, "partition", "mask"),
    ("slices, against the walk", WALK, "slices", "mask"),
    ("partitions, against slices", "slices", "partition", "mask"),
    ("exits passed over by first bytes", "no first byte", "partition", "mask"),
    ("partitions of subtrees, too", "partition", "subtrees", "mask"),
    ("exits merged, with any match", "any, no exits", "any, no mask memo", "mask"),
    ("first bytes of a row marked", "no first bytes", DEFAULT, "mask"),
    ("masks remembered", "no mask memo", DEFAULT, "mask"),
    ("steps remembered", "no step memo", DEFAULT, "advance"),
    ("partitions shared between grammars", "cold partitions", DEFAULT, "mask"),
    ("partitions shared by clipped counters", "no clipping", "cold partitions", "mask"),
    ("automata and partitions shared", "not shared", DEFAULT, "mask"),
    ("automata shared", "not shared", DEFAULT, "compile"),
    ("longest match, against one_byte", "one_byte", DEFAULT, "mask"),
    ("longest match, against any", "any", DEFAULT, "mask"),
    ("partitions, masks remembered", "no partition", DEFAULT, "mask"),
    ("partitions of subtrees, masks remembered", "no subtrees", DEFAULT, "mask"),
    ("all of it, against the walk", WALK, DEFAULT, "mask"),
    ("all of it, against earley_trie", "earley_trie", DEFAULT, "mask"),
    ("all of it, against llguidance", "llguidance", DEFAULT, "mask"),
)
#: The numbers of both sorts of rows.
_NUMBERS = (
    *("vocab_size", "rounds", "masks", "compile_s", "masks_made", "nodes_visited", "lexeme_ends", "mask_scans"),
    *("partitions", "situations", "rows", "rows_scanned", "rows_refused", "rows_found", "lexer_states"),
    *("stacks", "bytes"),
    *(f"{what}_ns_{which}" for what in ("mask", "advance") for which in ("p50", "mean", "p99")),
    *("allowed", "ns"),
)


def measured(data: RunData, row: str = "variant") -> pd.DataFrame:
    """The rows of this sort that succeeded, all their numbers as float, NaN where there is none."""
    rows = data.results[data.results["row"] == row]
    if row == "variant":
        rows = rows[rows["status"] == "ok"]
    return complete_columns(rows, (), _NUMBERS)


def times(data: RunData, column: str = "mask_ns_mean") -> pd.DataFrame:
    """A column of `measured` in seconds: one row per case, one column per variant, NaN where there is none."""
    rows = measured(data)
    table = rows.pivot_table(index=CASE, columns="variant", values=column, aggfunc="median", sort=False) * 1e-9
    return table[list(dict.fromkeys(rows["variant"]))]


def ends(ratios: pd.Series[Any]) -> tuple[str, str]:
    """The cases of the highest and of the lowest of some factors, as ``constraint, path``."""
    values, cases = ratios.to_numpy(), ratios.index.tolist()
    highest, lowest = (", ".join(map(str, cases[int(place)][1:])) for place in (values.argmax(), values.argmin()))
    return highest, lowest


def reach(data: RunData) -> pd.DataFrame:
    """The rows of the walks: with the shares of nodes at which a lexeme ends, and at which the parser does new work.

    None of an engine that has no parser of its own beside the lexer, and so does not count where lexemes end.
    """
    rows = measured(data)
    rows = rows[rows["variant"].isin([WALK, SHARES]) & (rows["nodes_visited"] > 0) & rows["lexeme_ends"].notna()]
    nodes = rows["nodes_visited"]
    return rows.assign(
        end_share=rows["lexeme_ends"] / nodes,
        scan_share=rows["mask_scans"] / nodes,
        node_ns=rows["mask_ns_mean"] * rows["masks"] / nodes,
    )


def reuse(data: RunData) -> pd.DataFrame:
    """The rows of the default, with three rates (NaN if unknown). All are about what is found again within a path.

    ``mask_hits``: of the masks, those of a situation met before. ``row_hits``: of the lexemes that ended in the walk
    over the whole trie, those after which the row was looked up. ``equal_rows``: of the pairs of row and lexemes that
    were new and led to a row, those whose row was there already.
    """
    rows = measured(data)
    walked = rows[rows["variant"] == WALK].set_index(CASE)
    rows = rows[(rows["variant"] == DEFAULT) & (rows["masks"] > 0)]
    ended = walked["lexeme_ends"].reindex(_cases(rows)).to_numpy()
    scanned = walked["mask_scans"].reindex(_cases(rows)).to_numpy()
    led = rows["rows_found"] + rows["rows"] - 1
    return rows.assign(
        mask_hits=1 - rows["masks_made"] / rows["masks"],
        row_hits=1 - scanned / ended,
        equal_rows=rows["rows_found"] / led.where(led > 0),
    )


def _cases(rows: pd.DataFrame) -> Any:
    return rows.set_index(CASE).index

"""Reports on runs of kind ``saved_calls``: at how many positions one token only is allowed, plain against proper.

The first engine of the experiment is the one that the others are compared with. Engines are compared on the same
positions: a text that one of them has not gone through counts for none of them, and is listed among the failures.
Shares are of positions, so long texts weigh more than short ones, as they do in a decoding loop. What 002 published is
on other texts (see `PUBLISHED`), so it stands beside our figures and is not compared with them.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import Cell, Table, count_cell, number_cell, readable, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_count, format_share
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: What 002 (the notebook to it) counts for Mistral-7B's tokenizer along 1,000 JSON strings, as ``forced_002``.
PUBLISHED_PLAIN, PUBLISHED_PROPER, PUBLISHED_POSITIONS = 750, 3_853, 18_898

#: At most so many constraints in one plot.
MAX_SHOWN = 30

FORCED = Metric(
    *("forced", "share of positions with one allowed token", "forced positions over positions", "share", "results"),
    *("forced", None, "higher", "linear"),
)
_SUMMED = ("positions", "forced", "forced_text", "forced_002", "end_forced", "calls", "runs")
_TEXT = ["tokenizer", "constraint", "text"]


class Totals(NamedTuple):
    """Sums over texts that all engines went through. `counts`: by column; `allowed`: at each position."""

    texts: int
    counts: dict[str, int]
    longest_run: int
    allowed: np.ndarray[Any, np.dtype[np.int64]]

    def share(self, column: str) -> float:
        """What share of the positions `column` counts."""
        return self.counts[column] / self.counts["positions"]

    @property
    def places(self) -> int:
        """The positions, the ends of the texts included: the calls of a loop that skips nothing."""
        return self.counts["positions"] + self.texts


def compared(data: RunData) -> pd.DataFrame:
    """The rows of the texts that every engine of the run went through."""
    rows = data.results[data.results["engine"] != ""]
    done = rows[rows["status"] == "ok"]
    enough = done.groupby(_TEXT, sort=False)["engine"].transform("nunique") == len(_engines(data))
    return done[enough]


def _engines(data: RunData) -> list[str]:
    return [str(engine) for engine in dict.fromkeys(data.results["engine"]) if engine]


def totals(rows: pd.DataFrame) -> Totals:
    """The sums over rows of one engine, at least one."""
    return Totals(
        len(rows),
        {column: int(rows[column].sum()) for column in _SUMMED},
        int(rows["longest_run"].max()),
        np.array(list(chain.from_iterable(map(json.loads, rows["allowed"]))), dtype=np.int64),
    )


def build_tables(data: RunData) -> list[Table]:
    """All texts of a tokenizer together, every constraint, what was not gone through, and what was not measured."""
    rows = compared(data)
    return [overview(data, rows), by_constraint(data, rows), refusals(data), skipped(data)]


def overview(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per tokenizer and engine."""
    entries = []
    for (tokenizer, engine), group in rows.groupby(["tokenizer", "engine"], sort=False):
        one = totals(group)
        forced = [_forced_cell(one, column) for column in ("forced", "forced_text", "forced_002")]
        calls = Cell(f"{one.counts['calls']:,}", float(one.counts["calls"]), detail=f"of {one.places:,}")
        runs = count_cell(one.counts["runs"])._replace(detail=f"longest {one.longest_run:,}")
        allowed = (count_cell(float(one.allowed.mean())), count_cell(float(np.median(one.allowed))))
        counts = (count_cell(one.texts), count_cell(one.counts["positions"]))
        entries.append((text_cell(tokenizer), text_cell(engine), *counts, *forced, calls, runs, *allowed))
    columns = (
        *("tokenizer", "engine", "texts", "positions", "forced", "forced, no end tokens", "forced, as in 002"),
        *("calls left", "runs", "mean allowed", "median allowed"),
    )
    left = data.results.loc[data.results["engine"] != "", _TEXT].drop_duplicates()
    left_count = len(left[left["text"] != ""]) - len(rows[_TEXT].drop_duplicates())
    note = (
        "Along the tokens that the tokenizer makes of each text. Forced: the mask allows one token, end tokens counted "
        "like any others; no end tokens: one token beside them; as in 002: the same with the tokens of the byte "
        "fallback left out of the mask too. Calls left: positions, the ends of the texts included, where there is a "
        "choice; a run of forced tokens needs no call of its own. Mean and median are of the tokens that a mask allows."
    )
    note += f" Left out of all counts: {left_count:,} texts that some engine did not go through." if left_count else ""
    digests = sorted({str(digest) for digest in rows["inputs"] if digest})
    note += f" Hash of the file of texts: {digests[0]}." if len(digests) == 1 else ""
    brief = ("tokenizer", "engine", "positions", "forced", "forced, as in 002", "calls left")
    return Table("saved_calls", "Positions with one allowed token", note, columns, tuple(entries), brief)


def _forced_cell(one: Totals, column: str) -> Cell:
    return Cell(f"{one.counts[column]:,}", float(one.counts[column]), detail=format_share(one.share(column)))


def by_constraint(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per tokenizer and constraint, one column per engine: share of forced positions, calls left."""
    entries = []
    for (tokenizer, constraint), group in rows.groupby(["tokenizer", "constraint"], sort=False):
        found = {str(engine): totals(mine) for engine, mine in group.groupby("engine", sort=False)}
        best = max(one.counts["forced"] for one in found.values())
        cells = [_share_cell(found[engine], best) for engine in _engines(data)]
        one = next(iter(found.values()))
        counts = (count_cell(one.texts), count_cell(one.counts["positions"]))
        entries.append((text_cell(tokenizer), text_cell(constraint), *counts, *cells))
    columns = ("tokenizer", "constraint", "texts", "positions", *_engines(data))
    note = (
        "Share of the positions at which the mask allows one token, end tokens counted like any others; then the calls "
        "left of the positions and ends, and the median of the allowed tokens. The highest share is bold."
    )
    return Table("saved_calls_constraints", "Forced positions by constraint", note, columns, tuple(entries))


def _share_cell(one: Totals, best: int) -> Cell:
    detail = f"{one.counts['calls']:,} of {one.places:,} calls, median {format_count(float(np.median(one.allowed)))}"
    cell = number_cell(FORCED, one.share("forced"), best=0 < best == one.counts["forced"])
    return cell._replace(detail=detail)


def refusals(data: RunData) -> Table:
    """One row per engine and text that it did not go through, with the reason; tokenizers share a row."""
    rows = data.results
    failed = rows[(rows["engine"] != "") & (rows["status"] != "ok")]
    entries = []
    for where, group in failed.groupby(["engine", "constraint", "status", "message", "text"], sort=False):
        engine, constraint, status, message, text = map(str, where)
        tokenizers = ", ".join(dict.fromkeys(group["tokenizer"].astype(str)))
        entries.append(tuple(map(text_cell, (engine, constraint, readable(status), tokenizers, message, text))))
    columns = ("engine", "constraint", "kind", "tokenizers", "reason", "text")
    note = "A refusal is a defect of the engine: the sequence is proper and its text in the language."
    return Table("saved_calls_refusals", "Texts that an engine did not go through", note, columns, tuple(entries))


def skipped(data: RunData) -> Table:
    """One row per reason why schemas or instances are not measured, with how many, and the first of them."""
    rows = data.results[data.results["engine"] == ""]
    entries = []
    for (tokenizer, status), group in rows.groupby(["tokenizer", "status"], sort=False):
        first = group.iloc[0]
        schemas = group["constraint"].nunique()
        counts = (count_cell(schemas), count_cell(int((group["text"] != "").sum())))
        example = f"{first['constraint']}: {first['message']}"
        entries.append((text_cell(tokenizer), text_cell(readable(status)), *counts, text_cell(example)))
    note = "Instances are counted where their schema has become a regex; the first of each kind stands for the others."
    columns = ("tokenizer", "reason", "schemas", "instances", "first")
    return Table("saved_calls_skipped", "Schemas and instances that are not measured", note, columns, tuple(entries))


def build_plots(data: RunData) -> list[Plot]:
    """For each tokenizer: the share of forced positions, a line per constraint, a point per engine."""
    title = "Share of positions with one allowed token"
    if data.results.empty:
        return [left_out("saved_calls", title, "the run has no results yet")]
    rows = compared(data)
    if rows.empty:
        return [left_out("saved_calls", title, "there is no text that all engines went through")]
    named = data.results[data.results["engine"] != ""]
    look = style.looks(dict(zip(named["engine"].astype(str), named["backend"].astype(str), strict=True)))
    with style.drawing():
        return [_dumbbells(mine, str(name), look) for name, mine in rows.groupby("tokenizer", sort=False)]


def _dumbbells(rows: pd.DataFrame, tokenizer: str, look: dict[str, style.Look]) -> Plot:
    sums = rows.groupby(["constraint", "engine"], sort=False)[["forced", "positions"]].sum()
    shares = (sums["forced"] / sums["positions"]).unstack("engine")[list(look)]
    shares = shares.sort_values(list(look)[::-1], ascending=False, kind="stable")
    shown = shares
    if len(shares) > MAX_SHOWN:
        shown = shares.iloc[np.linspace(0, len(shares) - 1, MAX_SHOWN).round().astype(int)]
    figure, (axes,) = style.new_figure(1, 0.22 * len(shown) + 0.3)
    places = np.arange(len(shown))
    axes.hlines(places, shown.min(axis=1), shown.max(axis=1), color=style.MUTED, linewidth=1.2)
    for engine, one in look.items():
        axes.scatter(shown[engine], places, clip_on=False, zorder=3, **style.points(one))
    axes.set_yticks(places, [style.drawable(str(name), 24) for name in shown.index])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(left=0, right=max(0.01, 1.03 * float(shown.to_numpy().max())))
    axes.tick_params(axis="y", length=0)
    style.set_axis(axes, "x", FORCED, "forced positions (higher is better)")
    style.legend(figure, list(look), look, "points")
    caption = "Forced positions over all positions of the constraint's texts; end tokens count like any other tokens."
    if len(shown) < len(shares):
        caption += f" {len(shown)} of {len(shares)} constraints, evenly spread in this order; all are in the table."
    return Plot(f"saved_calls_{slug(tokenizer)}", f"Positions with one allowed token: {tokenizer}", caption, figure)


def headlines(data: RunData) -> list[str]:
    """For each tokenizer the forced positions and the calls left of each engine; 002's figures; what went wrong."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows, sentences = compared(data), []
    for tokenizer, group in rows.groupby("tokenizer", sort=False):
        found = {str(engine): totals(mine) for engine, mine in group.groupby("engine", sort=False)}
        sentences.append(_sentence(str(tokenizer), [(engine, found[engine]) for engine in _engines(data)]))
    if len(rows):
        share = f"{format_share(PUBLISHED_PLAIN / PUBLISHED_POSITIONS)} and "
        share += format_share(PUBLISHED_PROPER / PUBLISHED_POSITIONS)
        sentences.append(
            f"Published (002, other texts, Mistral-7B's tokenizer, counted as in 002): {PUBLISHED_PLAIN:,} with the "
            f"plain token DFA and {PUBLISHED_PROPER:,} with proper sequences only, of {PUBLISHED_POSITIONS:,} "
            f"positions ({share})."
        )
    named = data.results[data.results["engine"] != ""]
    failed = named[named["status"] != "ok"]
    if len(failed):
        sentences.append(
            f"{len(failed):,} of {len(named):,} walks did not go through: {failure_counts(failed)}; their texts count "
            "for no engine."
        )
    unmeasured = data.results[data.results["engine"] == ""]
    if len(unmeasured):
        sentences.append(f"Schemas and instances not measured: {failure_counts(unmeasured)}.")
    return sentences


def _sentence(tokenizer: str, found: list[tuple[str, Totals]]) -> str:
    """``mistral-v1, 250 texts: one allowed token at 12 of 3,400 positions (0.353%) with token_index ...``."""
    parts, calls, published = [], [], []
    first = found[0][1]
    for engine, one in found:
        parts.append(f"{one.counts['forced']:,} ({format_share(one.share('forced'))}) with {engine}")
        calls.append(f"{one.counts['calls']:,} with {engine}")
        published.append(f"{one.counts['forced_002']:,} ({format_share(one.share('forced_002'))}) with {engine}")
    least = min(one.counts["calls"] for _, one in found[1:])
    most = first.counts["calls"]
    fewer = f" ({format_share(1 - least / most)} fewer at best)" if least < most else ""
    return (
        f"{tokenizer}, {first.texts:,} texts: one token is allowed at {', '.join(parts)} of "
        f"{first.counts['positions']:,} positions; counted as in 002, {', '.join(published)}. Calls left of "
        f"{first.places:,}: {', '.join(calls)}{fewer}."
    )

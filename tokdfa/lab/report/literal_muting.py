"""Reports on runs of kind ``literal_muting``: what muting literals costs and saves, and which token sequences it loses.

Muting takes the letters of literals out of the byte language, so that fewer bytes, and with them fewer tokens, need to
be told apart. The claim under test (001): the "HTTPS" regex compiles 20 times as fast. What muting acts on is the
number of class strings and the walks over them; the whole compile is what a user waits for, so both are reported. A
muted literal has one spelling and no token runs across its edges: the tables of tokenizations say how often that
forbids what the tokenizer would have produced. Here are the tables; `tokdfa.lab.report.literal_muting_plots` and
`tokdfa.lab.report.literal_muting_headlines` have the rest.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, share_cell, status_cell, text_cell
from tokdfa.lab.report.literal_muting_data import (
    MUTED,
    PHASES,
    https_cases,
    muting_pairs,
    rows_of,
    tokenization_counts,
    with_literals,
)
from tokdfa.lab.report.literal_muting_headlines import headlines
from tokdfa.lab.report.literal_muting_plots import build_plots
from tokdfa.lab.report.metrics import METRICS, Metric, Ratio

if TYPE_CHECKING:
    from tokdfa.lab.report.data import RunData

__all__ = ["build_plots", "build_tables", "headlines"]

#: Tokens of an example are put together with this.
BETWEEN = " · "

_COUNT = METRICS["states"]
_TIME = METRICS["compile"]


def build_tables(data: RunData) -> list[Table]:
    """Costs, what muting acts on, phases of the HTTPS case, growth, tokenizations, examples, variants that failed."""
    return [costs(data), effects(data), phases(data), growth(data), tokenizations(data), examples(data), failed(data)]


def costs(data: RunData) -> Table:
    """One row per tokenizer and constraint: compile time of each token_classes, plain and muted, with the ratio."""
    frame = rows_of(data, "cost")
    frame = frame[frame["token_classes"] != ""]
    classes = list(dict.fromkeys(frame["token_classes"]))
    rows = []
    for where, group in frame.groupby(["tokenizer", "constraint"], sort=False):
        found = {(entry["token_classes"], bool(entry["muted"])): entry for _, entry in group.iterrows()}
        counts = (group["literals"].max(), group["ghosts"].max())
        row = [*map(text_cell, where), *map(count_cell, counts)]
        for one in classes:
            row += _pair_of_cells(found.get((one, False)), found.get((one, True)), _TIME, "seconds")
        rows.append(tuple(row))
    heads = [head for one in classes for head in (one, one + MUTED)]
    note = (
        "Compile time of tokens_dfa by its option token_classes, literals plain and muted: medians of the rounds. "
        "Without literals muting changes nothing, and the ratio is noise."
    )
    columns = ("tokenizer", "constraint", "literals", "ghosts", *heads)
    brief = ("tokenizer", "constraint", *heads)
    return Table("muting_cost", "Compile time, plain and muted", note, columns, tuple(rows), brief)


def _pair_of_cells(plain: Any, muted: Any, metric: Metric, column: str) -> list[Cell]:
    """The cell of a plain variant and that of a muted one, with its ratio; what failed says so."""
    values, cells = [], []
    for entry in (plain, muted):
        value = math.nan if entry is None or entry["status"] != "ok" else float(entry[column])
        values.append(value)
        failure = entry is not None and entry["status"] != "ok"
        cells.append(status_cell(entry["status"]) if failure else number_cell(metric, value))
    if all(value > 0 for value in values):
        cells[1] = number_cell(metric, values[1], ratio=_ratio(values[0] / values[1]))
    return cells


def _ratio(value: float) -> Ratio:
    return Ratio(value, value, value, 1)


def effects(data: RunData) -> Table:
    """One row per tokenizer and constraint with literals: what there is less of when they are muted."""
    pairs = with_literals(muting_pairs(rows_of(data, "cost")))
    pairs = pairs[pairs["token_classes"] == "strings"]
    counts = ("states", "byte_classes", "class_strings", "graph_nodes", "token_classes_made")
    rows = []
    for _, entry in pairs.iterrows():
        row = [text_cell(entry["tokenizer"]), text_cell(entry["constraint"])]
        for column in counts:
            row += _two_cells(_COUNT, entry[f"{column}_plain"], entry[f"{column}_muted"])
        row += _two_cells(_TIME, entry["walks_s_plain"], entry["walks_s_muted"])
        rows.append(tuple(row))
    names = ["states", "byte classes", "class strings", "nodes", "token classes", "walks"]
    heads = [head for name in names for head in (name, name + MUTED)]
    note = (
        "With token_classes=strings, as in 001: what is walked and how long the walks alone take. Nodes are those of "
        "the prefix graphs. Constraints without literals are left out."
    )
    brief = ("tokenizer", "constraint", "class strings", "class strings" + MUTED, "walks", "walks" + MUTED)
    title = "What muting acts on"
    return Table("muting_effects", title, note, ("tokenizer", "constraint", *heads), tuple(rows), brief)


def _two_cells(metric: Metric, plain: float, muted: float) -> list[Cell]:
    ratio = _ratio(plain / muted) if plain > 0 and muted > 0 else None
    return [number_cell(metric, plain), number_cell(metric, muted, ratio=ratio)]


def phases(data: RunData) -> Table:
    """One row per variant of the HTTPS cases: the compile time and its phases."""
    frame = rows_of(data, "cost")
    frame = frame[frame["constraint"].isin(https_cases(data))]
    rows = []
    for _, entry in frame.iterrows():
        names = (entry["tokenizer"], entry["constraint"], entry["variant"])
        if entry["status"] != "ok":
            cells = [status_cell(entry["status"]), *[NOTHING] * (len(PHASES) + 2)]
        else:
            times = (entry["seconds"], entry["seconds_min"], *(entry[f"{phase}_s"] for phase in PHASES))
            cells = [*(number_cell(_TIME, float(time)) for time in times), count_cell(float(entry["samples"]))]
        rows.append((*map(text_cell, names), *cells))
    columns = ("tokenizer", "constraint", "variant", "compile", "shortest", *PHASES, "samples")
    note = (
        "Medians of the whole and of each phase. 001 has 27.68 s for its index with class strings, 1.41 s for the same "
        "with muted literals, and 22.31 s for the plain index of outlines-core, in debug builds."
    )
    brief = ("tokenizer", "constraint", "variant", "compile", "walks")
    return Table("muting_phases", "The HTTPS case by phase", note, columns, tuple(rows), brief)


def growth(data: RunData) -> Table:
    """One row per grown pattern: sizes and compile times, plain and muted."""
    frame = rows_of(data, "growth")
    classes = list(dict.fromkeys(frame["token_classes"]))
    rows = []
    place = ["constraint", "tokenizer", "axis", "words", "length"]
    for where, group in frame.groupby(place, sort=False):
        found = {(entry["token_classes"], bool(entry["muted"])): entry for _, entry in group.iterrows()}
        counts = (group["words"].max(), group["length"].max(), group["ghosts"].max())
        row = [*map(text_cell, where[:2]), *map(count_cell, counts)]
        row += _pair_of_cells(found.get((classes[0], False)), found.get((classes[0], True)), _COUNT, "states")
        if "strings" in classes:
            row += _pair_of_cells(found.get(("strings", False)), found.get(("strings", True)), _COUNT, "class_strings")
        for one in classes:
            row += _pair_of_cells(found.get((one, False)), found.get((one, True)), _TIME, "seconds")
        rows.append(tuple(row))
    names = ["states", *(["class strings"] if "strings" in classes else []), *classes]
    heads = [head for name in names for head in (name, name + MUTED)]
    note = "Random lower-case words in a fixed frame: first their number grows, then their length."
    columns = ("constraint", "tokenizer", "words", "letters", "ghosts", *heads)
    brief = ("constraint", "tokenizer", "words", "letters", *(head for one in classes for head in (one, one + MUTED)))
    return Table("muting_growth", "Growth with the number and length of literals", note, columns, tuple(rows), brief)


def tokenizations(data: RunData) -> Table:
    """One row per tokenizer, constraint and source of texts: what muting forbids of the proper tokenizations."""
    rows = []
    for _, entry in tokenization_counts(data).iterrows():
        names = (entry["tokenizer"], entry["constraint"], entry["source"])
        rows.append(
            (
                *map(text_cell, names),
                *(count_cell(float(entry[column])) for column in ("literals", "texts", "changed")),
                _share(entry["forbidden"], entry["followed"]),
                count_cell(float(entry["positions"])),
                _share(entry["forbidden"], entry["positions"]),
                *(count_cell(float(entry[f"{which}_count"])) for which in ("proper", "fewest", "muted")),
            )
        )
    note = (
        "Proper is what the tokenizer makes of a text, with an end token. Positions: those reached before or at the "
        "first token that the muted constraint forbids; a tokenization has at most one such. Tokens: means over texts, "
        "of the proper, of the shortest, and of the shortest allowed sequence. Changed texts, which the tokenizer does "
        "not give back, are not followed. Source: given, or drawn at random from the pattern."
    )
    columns = (
        *("tokenizer", "constraint", "source", "literals", "texts", "changed", "tokenizations forbidden"),
        *("positions", "positions forbidden", "proper tokens", "fewest tokens", "muted tokens"),
    )
    brief = ("tokenizer", "constraint", "source", "tokenizations forbidden", "positions forbidden", "muted tokens")
    return Table("muting_tokenizations", "Proper tokenizations", note, columns, tuple(rows), brief)


def _share(part: float, whole: float) -> Cell:
    return share_cell(float(part) / float(whole))._replace(detail=f"{part:,.0f}") if whole else NOTHING


def examples(data: RunData) -> Table:
    """For each constraint one proper tokenization that is forbidden: of a given text if one is, else a short one."""
    frame = rows_of(data, "text")
    frame = frame[(frame["status"] == "ok") & (frame["stops_at"] >= 0)]
    rows = []
    for constraint, group in frame.groupby("constraint", sort=False):
        chosen = group[group["source"] == "given"]
        chosen = group if chosen.empty else chosen
        entry = chosen.iloc[int(chosen["text"].str.len().argmin())]
        proper, stop = json.loads(entry["proper_tokens"]), int(entry["stops_at"])
        refused = proper[stop] if stop < len(proper) else "the end"
        texts = (entry["tokenizer"], constraint, entry["text"], _joined(proper), refused)
        rows.append((*map(text_cell, texts), count_cell(stop), text_cell(_joined(json.loads(entry["muted_tokens"])))))
    columns = ("tokenizer", "constraint", "text", "proper tokens", "forbidden", "after tokens", "shortest allowed")
    note = "One text for each constraint: where the muted constraint leaves the proper tokenization."
    return Table("muting_examples", "Examples of forbidden tokenizations", note, columns, tuple(rows))


def _joined(tokens: list[str]) -> str:
    return BETWEEN.join(token.replace("\n", "\\n") for token in tokens)


def failed(data: RunData) -> Table:
    """Everything without a number, with the reason."""
    results = data.results
    lost = results[results["status"] != "ok"] if len(results) else results
    rows = []
    if len(lost):
        lost = lost.assign(variant=lost["variant"].fillna("")) if "variant" in lost else lost.assign(variant="")
        place = ["part", "constraint", "variant", "status", "message"]
        for where, group in lost.groupby(place, sort=False, dropna=False):
            tokenizers = ", ".join(dict.fromkeys(group["tokenizer"].astype(str)))
            rows.append((*map(text_cell, where), text_cell(tokenizers), count_cell(len(group))))
    columns = ("part", "constraint", "variant", "kind", "reason", "tokenizers", "rows")
    return Table("muting_failed", "Variants and texts without a result", "", columns, tuple(rows))

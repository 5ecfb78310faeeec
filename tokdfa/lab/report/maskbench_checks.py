"""Reports on ``maskbench`` as a check of correctness: a test suite by draft, and what random walks came to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import Cell, Table, count_cell, text_cell
from tokdfa.lab.report.maskbench_data import REFUSED, measured

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Faults of walks that are listed; the stored results have all that were kept.
MAX_FAULTS = 200
MAX_TEXT = 160


def refused_tests(rows: pd.DataFrame) -> int:
    """Tests that were not judged since their schema was refused; one that is refused as empty judges its tests."""
    refused = rows[rows["outcome"] == REFUSED]
    return int((refused["tests"] - refused["right_tests"] - refused["over_tests"]).sum())


def draft_table(data: RunData) -> Table:
    """One row per draft, part of the suite and engine: what became of the tests."""
    rows = measured(data)
    split = rows["split"].astype(str)
    part = split.map(lambda name: "formats" if "/optional/format" in name else "optional" if "/opt" in name else "")
    groups = rows.assign(draft=split.str.partition("/")[0], part=part.replace("", "required"))
    order = {"required": 0, "optional": 1, "formats": 2}
    lines = []
    for (draft, name, engine), mine in groups.groupby(["draft", "part", "engine"], sort=False):
        artefacts, refused = mine["order_artefacts"].sum(), refused_tests(mine)
        judged = mine["right_tests"].sum() + mine["over_tests"].sum() + mine["under_tests"].sum()
        counts = (
            *(mine["tests"].sum(), mine["right_tests"].sum(), artefacts, mine["over_tests"].sum() - artefacts),
            *(mine["under_tests"].sum(), refused, mine["tests"].sum() - judged - refused),
        )
        cells = (count_cell(float(count)) for count in counts)
        lines.append(
            (
                (len(str(draft)), str(draft), order[str(name)]),
                (text_cell(draft), text_cell(name), text_cell(engine), *cells),
            )
        )
    lines.sort(key=lambda line: line[0])
    note = (
        "Required: what every implementation of a draft has to do; optional: what it may, such as very large numbers; "
        "formats: optional, too. Order only: a valid instance that is rejected, and accepted with its members in "
        "another order. Refused: tests whose schema was refused. A schema that is refused since no value is valid "
        "judges its tests."
    )
    columns = (
        *("draft", "part", "engine", "tests", "right", "order only", "wrongly rejected", "wrongly accepted"),
        *("refused", "not judged"),
    )
    return Table("drafts", "The test suite by draft", note, columns, tuple(cells for _, cells in lines))


def walks_table(data: RunData) -> Table:
    """One row per engine: what its random walks came to. Empty without walks."""
    rows = _walked(data)
    lines = []
    for engine, mine in rows.groupby("engine", sort=False):
        faulty = (mine["dead_ends"] + mine["invalid_texts"]) > 0
        counts = (
            *((mine["walks"] > 0).sum(), mine["walks"].sum(), mine["walk_tokens"].sum(), mine["walks_finished"].sum()),
            *(mine["walks_unfinished"].sum(), mine["unjudged_texts"].sum(), mine["dead_ends"].sum()),
            *(mine["invalid_texts"].sum(), faulty.sum(), (mine["walks_finished"] == 0)[mine["walks"] > 0].sum()),
            (mine["walks_asked"] - mine["walks"]).sum(),
        )
        lines.append((text_cell(engine), *(count_cell(float(count)) for count in counts)))
    note = (
        "A walk takes a random token of each mask and makes for an end. Finished: it ended with a text that jsonschema "
        "finds valid, by the declared draft, formats asserted. Unfinished: no end after so many tokens, which is no "
        "fault. Unjudged: jsonschema broke down. Dead end: no token was left, and no end. Not taken: the schema was "
        "refused, or the case ended before."
    )
    columns = (
        *("engine", "cases", "walks", "tokens", "finished", "unfinished", "unjudged", "dead ends", "invalid"),
        *("cases with a fault", "cases without an end", "not taken"),
    )
    return Table("walks", "Random walks", note, columns, tuple(lines))


def faults_table(data: RunData) -> Table:
    """One row per walk that came to a dead end or to an invalid text, as far as they were kept."""
    lines: list[tuple[Cell, ...]] = []
    for _, row in _walked(data).iterrows():
        for outcome, text, message in json.loads(row["walk_faults"]):
            shown = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
            lines.append(tuple(map(text_cell, (row["engine"], row["case"], outcome, shown, message))))
    note = f"The first {MAX_FAULTS} of {len(lines):,}." if len(lines) > MAX_FAULTS else ""
    columns = ("engine", "case", "outcome", "text", "message")
    return Table("walk_faults", "Walks that went wrong", note, columns, tuple(lines[:MAX_FAULTS]))


def walk_headlines(data: RunData) -> list[str]:
    """What the walks of each engine came to, in a sentence."""
    said = []
    for engine, mine in _walked(data).groupby("engine", sort=False):
        taken, ended = int(mine["walks"].sum()), int(mine["walks_finished"].sum())
        said.append(
            f"Of {taken:,} random walks on {int((mine['walks'] > 0).sum()):,} schemas, {engine} finishes {ended:,}; "
            f"dead ends {int(mine['dead_ends'].sum()):,}, invalid texts {int(mine['invalid_texts'].sum()):,}."
        )
    return said


def _walked(data: RunData) -> pd.DataFrame:
    """The results of cases that were to be walked; none if the run has no walks."""
    rows = measured(data)
    return rows[rows["walks_asked"] > 0]

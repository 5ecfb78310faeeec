"""A kind of experiment: what one item measures, the columns of its rows, and how they are told.

A kind is one file, ``tokdfa/lab/kinds/NAME.py``, whose ``KIND`` is a `Kind`; other packages add theirs by an entry
point of the group ``tokdfa.kinds``, ``NAME = "module:KIND"``. An experiment names it (``kind: NAME``) and gives it
``settings``; the lab calls `Kind.measure` for each item in a process of its own and stores the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    from pydantic import BaseModel

    from tokdfa.lab.declare.charts import Declaration
    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.declare.sentences import Sentence
    from tokdfa.lab.declare.tables import Declared
    from tokdfa.lab.measure.cases import CaseQueue, Cases

    Settings = dict[str, Any]
    Rows = list[dict[str, Any]]

#: The group of entry points by which other packages add kinds.
GROUP = "tokdfa.kinds"


@dataclass(frozen=True)
class Kind:
    """See the module. All but `measure` has a default.

    `measure(settings, seed)`: the rows of one item. `settings`: their model, a pydantic class; what it refuses is
    refused when the file is read, with its place. `complete(settings)`: what the settings stand for, such as whole
    paths, when a file is loaded; raises TokdfaError for what is wrong. `all_constraints`: an item has all of the
    experiment, as the setting `constraints`, in place of one. `split(settings, seed)`: title and settings of each item,
    where one set of settings makes several. `prepare(settings)`: makes, in the worker, what the processes of its items
    inherit. `threads`: how many threads an item uses unless its settings say so.

    `cases(settings)`, in place of one measure an item: its cases, which may each break a limit or end their process
    without harm to the others; `measure_cases(settings, seed, queue)` yields their rows (`tokdfa.lab.measure.cases`).

    `columns`: those of the rows, and of `frames`. `engine`: the column with the contenders; `reference`: the contender
    that ratios refer to; `case`: the columns that tell what a contender was measured on. `frames(rows)`: further frames
    made of the rows, by name, and the main one as "".
    """

    measure: Callable[[Settings, int], Rows] | None = None
    settings: type[BaseModel] | None = None
    complete: Callable[[Settings], Settings] | None = None
    all_constraints: bool = False
    split: Callable[[Settings, int], list[tuple[str, Settings]]] | None = None
    prepare: Callable[[Settings], None] | None = None
    cases: Callable[[Settings], Cases] | None = None
    measure_cases: Callable[[Settings, int, CaseQueue], Iterator[tuple[int, dict[str, Any]]]] | None = None
    threads: int | Sequence[int] = 1
    columns: Sequence[Column] = ()
    engine: str = "engine"
    reference: str = ""
    case: Sequence[str] = ()
    frames: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame]] | None = None
    tables: Sequence[Declared] = ()
    charts: Sequence[Declaration] = ()
    sentences: Sequence[Sentence] = ()

    def results(
        self, rows: pd.DataFrame, config: Mapping[str, Any], reference: str = "", items: pd.DataFrame | None = None
    ) -> Results:
        """The rows of a run, ready for the declarations. `items`: how each item ended, as the frame ``items``."""
        frames = {"": rows} if self.frames is None or not len(rows) else dict(self.frames(rows))
        if items is not None:
            frames["items"] = items
        columns = {column.name: column for column in self.columns}
        return Results(frames, columns, self.engine, self.case, reference or self.reference, config)

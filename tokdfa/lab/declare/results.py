"""The rows of a run as declarations read them: frames by name, columns by name, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.columns import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd


@dataclass(frozen=True)
class Results:
    """What a run of one kind has measured.

    `frames`: the rows, by name; "" is the main one. `columns`: name -> column. `engine`: the column with the contenders
    (engine, variant, ...). `reference`: the contender that ratios refer to, if any. `case`: the columns that tell what
    a contender was measured on. `config`: the resolved experiment.
    """

    frames: Mapping[str, pd.DataFrame]
    columns: Mapping[str, Column] = field(default_factory=dict)
    engine: str = "engine"
    case: Sequence[str] = ()
    reference: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, frame: str = "", where: str = "") -> pd.DataFrame:
        """The rows of a frame for which the pandas query `where` holds; none if the run has no such frame."""
        import pandas as pd

        found = self.frames.get(frame)
        if found is None or not len(found):
            return pd.DataFrame(columns=[*self.columns])
        try:
            return found.query(where) if where else found
        except pd.errors.UndefinedVariableError:
            return found.iloc[:0]  # of a column that this run does not have no condition holds

    def column(self, name: str) -> Column:
        """What a column is; one that is not declared is a count."""
        return self.columns.get(name, Column(name))

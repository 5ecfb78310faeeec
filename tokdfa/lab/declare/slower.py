"""The sentence that a page begins with: where an engine of ours is slower than other engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.lab.declare.columns import short_factor
from tokdfa.lab.declare.stats import per_case, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.declare.stats import Value


@dataclass(frozen=True)
class SlowerFirst:
    """For each of `values` the peers that our contenders are slower than, by the median of paired ratios.

    `is_peer(backend)`: whether the column ``backend`` names an engine of others; `ours`: the backends that are told
    about. One sentence for each contender that is slower anywhere.
    """

    values: Sequence[Value]
    is_peer: Callable[[str], bool]
    ours: Sequence[str]
    over: Sequence[str] = ()

    def sentences(self, results: Results) -> list[str]:
        """The sentences of a run's results."""
        rows = results.rows()
        if not {results.engine, "backend"} <= set(rows):
            return []
        backend_of = dict(zip(rows[results.engine].astype(str), rows["backend"].astype(str), strict=True))
        peers = [label for label, backend in backend_of.items() if self.is_peer(backend)]
        said = []
        for label in (label for label, backend in backend_of.items() if backend in self.ours):
            slower = [line for stat in self.values for line in self._slower(stat, label, peers, rows, results)]
            if slower:
                said.append(f"{label} is slower than other engines: {'; '.join(slower)}.")
        return said

    def _slower(
        self, value: Value, label: str, peers: Sequence[str], rows: pd.DataFrame, results: Results
    ) -> list[str]:
        import pandas as pd

        stat = value_of(value)
        column, over = stat.described(results.columns), self.over or results.case
        found = {
            name: per_case(stat, rows[rows[results.engine] == name], over, results.columns) for name in (label, *peers)
        }
        listed = []
        for peer in peers:
            cases = pd.DataFrame({"ours": found[label], "theirs": found[peer]}).dropna()
            ratio = float((cases["ours"] / cases["theirs"]).median()) if len(cases) else 0.0
            if ratio > 1.005:
                listed.append(f"{short_factor(ratio)} times that of {peer}")
        return [f"its {column.head} is {', '.join(listed)}"] if listed else []

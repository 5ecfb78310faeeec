"""What a run has cost in wall time, by tokenizer and contender, and what a larger one would cost at that rate.

The seconds of an item are stored with it: all that was done to measure it, from handing it to a worker to its rows,
what the worker has loaded for it included, and no waiting for a core. In an experiment on backends the items of a group
are measured together, so its time is shared among them equally. Special kinds may make many *rows* in one item, as
`maskbench` does with one for each case; the seconds of a row tell what more of them would cost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.run.store import Run


@dataclass(frozen=True)
class Cost:
    """What one contender has cost with one tokenizer. `seconds`: of all items; `rows`: of results, 0 if it has none."""

    tokenizer: str
    contender: str
    items: int
    rows: int
    seconds: float

    @property
    def per_item(self) -> float:
        """Mean seconds of an item."""
        return self.seconds / self.items

    @property
    def per_row(self) -> float | None:
        """Mean seconds of a row of results."""
        return self.seconds / self.rows if self.rows else None


def costs_of(run: Run) -> list[Cost]:
    """The costs of a run, in the order of its items. Raises StoreError if it has none yet.

    A contender is an item's label; in a special kind, its ``engine`` if all rows of the item have the same.
    """
    items, results = run.items(), run.results()
    if items.empty:
        raise StoreError(f"nothing has been measured yet in {run.folder}")
    rows = Counter(results["item_id"])
    engines: dict[str, set[str]] = {}
    for item_id, engine in zip(results["item_id"], results["engine"], strict=True) if "engine" in results else ():
        engines.setdefault(item_id, set()).add(engine)
    found: dict[tuple[str, str], Cost] = {}
    for item_id, tokenizer, label, seconds in items[["item_id", "tokenizer", "label", "seconds"]].itertuples(False):
        own = engines.get(item_id, set())
        key = (tokenizer if isinstance(tokenizer, str) else "", own.pop() if len(own) == 1 else label)
        before = found.get(key, Cost(*key, 0, 0, 0.0))
        found[key] = Cost(*key, before.items + 1, before.rows + rows[item_id], before.seconds + seconds)
    return list(found.values())


def seconds_for(costs: Sequence[Cost], rows: int, tokenizers: int) -> float:
    """The seconds on one core that so many rows of every contender would take with so many tokenizers.

    A contender's rate is the mean over the tokenizers it was measured with. Raises StoreError if one has no rows.
    """
    total = 0.0
    for name in dict.fromkeys(cost.contender for cost in costs):
        rates = [cost.per_row for cost in costs if cost.contender == name]
        known = [rate for rate in rates if rate is not None]
        if not known:
            raise StoreError(f"{name} has no rows of results in this run, so what more of them cost is not known")
        total += rows * tokenizers * sum(known) / len(known)
    return total

"""The lab: from a question in one YAML file to measured rows, and from rows to a page.

`config` reads an experiment and spells out its items; `run` measures them in processes of their own into a store that
can be resumed; `kinds` holds what can be asked, one file a kind: measured by the instruments of `measure`, told by
tables, charts and sentences in the words of `declare`; `report` makes pages of them.

For notebooks, the whole way in a few calls (`tokdfa.lab.notebook`):

    from tokdfa import lab

    measured = lab.run_experiment("small.yaml")     # or lab.open_run(folder)
    measured.items()                                # a table of pandas; also samples() and results()
    lab.plot(measured, "mask_ecdf")                 # shows itself
    lab.compare(before, measured).engines
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokdfa.lab.notebook import (
        compare,
        find_kind,
        load_config,
        open_run,
        paired,
        plot,
        results,
        run_experiment,
        speed_and_skew,
    )

__all__ = [
    "compare",
    "find_kind",
    "load_config",
    "open_run",
    "paired",
    "plot",
    "results",
    "run_experiment",
    "speed_and_skew",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # imported at first use
        return getattr(importlib.import_module("tokdfa.lab.notebook"), name)
    raise AttributeError(f"module 'tokdfa.lab' has no attribute {name!r}")

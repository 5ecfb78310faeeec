"""How sure a statistic is: 95 % bootstrap intervals in which rows that belong together stay together.

Rows of one text, say, are not independent of each other, so texts are drawn again and not rows (a cluster bootstrap,
percentile form; Efron 1979). Draws are seeded: a report of the same rows is the same. Below `MIN_CLUSTERS` there is no
interval, as that of few clusters is too narrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

MIN_CLUSTERS = 6
RESAMPLES = 999


def cluster_interval(
    statistic: Callable[[npt.NDArray[np.int64]], float], clusters: Sequence[object]
) -> tuple[float, float] | None:
    """The 95 % interval of ``statistic(rows)``, a function of row numbers, some of them several times.

    `clusters`: the cluster of each row, hashable. O(RESAMPLES) times the statistic.
    """
    from scipy.stats import bootstrap

    members: dict[object, list[int]] = {}
    for row, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(row)
    if len(members) < MIN_CLUSTERS:
        return None
    rows = [np.array(found, dtype=np.int64) for found in members.values()]
    drawn = bootstrap(
        (np.arange(len(rows)),),
        lambda chosen: statistic(np.concatenate([rows[one] for one in chosen])),
        vectorized=False,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)

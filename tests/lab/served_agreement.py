"""Whether a MaskBench page agrees with an outside measurement.

    python -m tests.lab.served_agreement RUN ENGINE FILE ...

RUN: the folder of a run of `experiments/maskbench.yaml`; ENGINE: a label in it; FILE: what the outside check has
written for the same engine, a JSON list of ``{"id": file name, "ok": bool, "ttfm": µs, "tbm": [µs, ...]}`` with
``"err"`` for cases that were refused. On the cases that both pass it prints every median, tail and sum of both, and
exits with 1 if a median, a sum or a p99 is more than `WITHIN` apart.

Runs of the outside check that are minutes apart differ by up to a fifth where other machines share the processor. So
give several, from before and after the page: a statistic of the page must be at most `WITHIN` below the least of them
and above the largest.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tokdfa.lab.measure.maskbench_numbers import beside, frames
from tokdfa.lab.run.store import open_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.lab.measure.maskbench_numbers import Beside

WITHIN = 0.10
#: What has to agree; p99.9 and the longest are printed, but depend on single samples.
HELD = ("p50", "p99", "sum")


def outside_rows(listed: Sequence[Mapping[str, object]], engine: str) -> pd.DataFrame:
    """The cases of an outside check in the form of a run's rows: TTFM in the place of the compile, TBM of the mask."""
    rows = []
    for case in listed:
        passed = bool(case.get("ok")) and "err" not in case
        tbm = 1e3 * np.array(case["tbm"], dtype="<f4")
        rows.append(
            {
                **{"engine": engine, "case": Path(str(case["id"])).stem, "outcome": "passed" if passed else "refused"},
                **{"compile_ns": 1e3 * float(str(case.get("ttfm", "nan"))), "first_ns": 0.0, "tests": 0, "message": ""},
                **{"mask_ns": tbm.astype("<f4").tobytes(), "advance_ns": np.zeros(len(tbm), "<f4").tobytes()},
                **{"suite": False, "split": "", "setup_ns": np.nan},
            }
        )
    return pd.DataFrame(rows)


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[Beside]:
    """Every statistic of two measurements of one engine, on the cases that both pass; `base` is the page's."""
    columns = [name for name in theirs if name in ours]
    together = pd.concat([ours[columns].assign(engine="page"), theirs[columns].assign(engine="outside")])
    pair = frames(together.reset_index(drop=True))["pairs"]
    if pair.empty:
        raise SystemExit("there is no case that both pass")
    return beside(pair)


def disagreements(runs: Sequence[Sequence[Beside]]) -> list[str]:
    """The statistics that are more than `WITHIN` outside the range of all outside runs."""
    apart = []
    for same in zip(*runs, strict=True):
        ratios = [one.ratio for one in same]
        if same[0].what.endswith(HELD) and (min(ratios) > 1 + WITHIN or max(ratios) < 1 / (1 + WITHIN)):
            apart.append(same[0].what)
    return apart


def _microseconds(one: Beside) -> str:
    return f"{one.peer / 1e3:12.2f}"


def _ratio(one: Beside) -> str:
    return f"{one.ratio:14.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("engine")
    parser.add_argument("outside", type=Path, nargs="+")
    given = parser.parse_args()
    rows = open_run(given.run).results()
    mine = rows[rows["engine"] == given.engine]
    if mine.empty:
        raise SystemExit(f"the run has no engine {given.engine!r}: {', '.join(rows['engine'].unique())}")
    runs = [agreement(mine, outside_rows(json.loads(file.read_text()), given.engine)) for file in given.outside]
    print(f"{'µs':22} {'page':>12} {'outside':>12} {'outside/page':>14}")
    for same in zip(*runs, strict=True):
        outside, ratios = (" ".join(map(form, same)) for form in (_microseconds, _ratio))
        print(f"{same[0].what:22} {same[0].base / 1e3:12.2f} {outside} {ratios}")
    apart = disagreements(runs)
    print(f"more than {WITHIN:.0%} apart: {', '.join(apart) or 'nothing'}")
    return int(bool(apart))


if __name__ == "__main__":
    sys.exit(main())

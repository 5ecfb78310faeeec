"""The numbers of a run in one shape, whatever its kind: series of an engine, a case and a measure.

*Engine* is what is compared: the label of a backend, or in special kinds what the columns of `ENGINE` say (engine,
variant, strategy, number of threads ...). *Case* is what it worked on: tokenizer, constraint, workload, or what the
columns of `CASE` say. A *place* tells the samples of a series apart: the repeat and the step of a walk, the position in
a text. Two runs of one experiment have the same engines, cases and places, whatever their items' ids are, so series are
found again in another run by these three.

What a number is follows from where it is stored. Of an experiment on backends: times of samples, or of items where no
samples were kept, and memory of items, by the metrics of `tokdfa.lab.report.metrics`. Of special kinds: every column of
the results whose name has a unit of time as a word (``compile_s``, ``mask_ns_p50``, ``seconds``), or the column
``value`` where ``unit`` says seconds; a cell that holds an array (float32, little end first) is as many samples. Least
and greatest values, and times of the clock itself, are left out: they say nothing that the others do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.lab.report.metrics import METRICS, Metric

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Columns of results that say what was measured ...
ENGINE = ("engine", "backend", "strategy", "method", "variant", "walk", "mask", "way", "phase", "call")
ENGINE_NUMBERS = ("step", "threads")
#: ... on what ...
CASE = (
    *("part", "row", "model", "tokenizer", "family", "axis", "constraint", "case", "pattern", "group", "name"),
    *("label", "inputs", "prompt", "topic", "text", "path", "animal", "word", "spelling", "how", "source"),
)
CASE_NUMBERS = ("parameter", "size", "words", "length", "entry", "at")
#: ... and where in it.
PLACE = ("position", "sample")
#: Of the columns with these words no series is made.
_NOT_COMPARED = frozenset({"min", "max", "clock"})
_UNITS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
#: measure of the samples of backends -> the metric that is the median of an item's samples.
_MEDIANS = {"compile": "compile", "first_mask": "first_mask", "mask": "mask_p50", "advance": "advance_p50"}
#: What the items themselves hold; of times their samples come first.
_ITEMS = ("compile", "first_mask", "memory_peak", "memory_retained")
#: measure -> what else is compared of its samples, item by item.
_FURTHER = {"mask": ("mask_mean", "mask_p99")}


class Key(NamedTuple):
    """What a series is of."""

    engine: str
    case: tuple[str, ...]
    measure: str


class Series(NamedTuple):
    """The values of one key in base units, and the place of each; `metric` is that of their median."""

    metric: Metric
    places: tuple[Hashable, ...]
    values: npt.NDArray[np.float64]

    def summaries(self) -> Iterator[tuple[Metric, float]]:
        """The numbers of the series as a whole: the median, and for masks the mean and p99, too."""
        yield self.metric, float(np.median(self.values))
        for name in _FURTHER.get(self.metric.column, ()) if self.metric.source == "samples" else ():
            metric = METRICS[name]
            value = np.mean(self.values) if metric.quantile is None else np.quantile(self.values, metric.quantile)
            yield metric, float(value)


def read_series(data: RunData) -> dict[Key, Series]:
    """All series of a run, those of its sections included. Values that are not above zero are left out."""
    found: dict[Key, Series] = {}
    if data.kind == "backends":
        found |= _of_samples(data)
        found |= {key: series for key, series in _of_items(data).items() if key not in found}
    else:
        found |= _of_results(data)
    for section in data.sections.values():
        found |= read_series(section)
    return found


def _of_samples(data: RunData) -> dict[Key, Series]:
    found = {}
    for measure, name in _MEDIANS.items():
        metric = METRICS[name]
        samples = data.samples_of(measure)
        samples = samples[samples["ns"] > 0].fillna({"repeat": 0, "step": 0})
        for key, group in _grouped(samples, ["tokenizer", "constraint", "workload"]):
            places = tuple(zip(group["repeat"], group["step"], strict=True))
            values = group["ns"].to_numpy(dtype=np.float64) * 1e-9
            found[Key(*key, name)] = Series(metric, places, values)
    return found


def _of_items(data: RunData) -> dict[Key, Series]:
    found = {}
    for name in _ITEMS:
        metric = METRICS[name]
        items = data.done[data.done[metric.column] >= 0]
        for key, group in _grouped(items, ["tokenizer", "constraint", "workload"]):
            values = np.maximum(group[metric.column].to_numpy(dtype=np.float64), metric.resolution)
            values = values[values > 0]
            if not len(values):
                continue
            found[Key(*key, name)] = Series(metric, tuple(range(len(values))), values)
    return found


def _grouped(rows: pd.DataFrame, case: list[str]) -> Iterator[tuple[tuple[str, tuple[str, ...]], pd.DataFrame]]:
    for (label, *where), group in rows.groupby(["label", *case], sort=False, dropna=False):
        yield (str(label), tuple(str(part) for part in where if _is_present(part))), group


def row_keys(results: pd.DataFrame) -> list[tuple[str, tuple[str, ...], tuple[Hashable, ...]]]:
    """For each row of special results its engine, case and place; equal rows are told apart by their order."""
    engine = _texts(results, (*ENGINE, *ENGINE_NUMBERS))
    case = _texts(results, (*CASE, *CASE_NUMBERS))
    place = _texts(results, PLACE)
    seen: dict[Hashable, int] = {}
    keys = []
    for parts in zip(engine, case, place, strict=True):
        seen[parts] = number = seen.get(parts, -1) + 1
        keys.append((_engine(parts[0]), parts[1], (*parts[2], number)))
    return keys


def _engine(parts: Sequence[str]) -> str:
    """One name of an engine, without the parts that others of its parts contain."""
    kept = [part for part in dict.fromkeys(parts) if not any(part != other and part in other for other in parts)]
    return " · ".join(kept) or "all"


def _texts(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Of each row what some columns say; a number with the name of its column."""
    given = [name for name in columns if name in rows]
    if not given:
        return [()] * len(rows)
    numbers = {*ENGINE_NUMBERS, *CASE_NUMBERS, *PLACE}
    return [
        tuple(
            f"{name} {value}" if name in numbers else str(value)
            for name, value in zip(given, row, strict=True)
            if _is_present(value)
        )
        for row in rows[given].itertuples(index=False)
    ]


def _is_present(value: Any) -> bool:
    import pandas as pd

    return bool(pd.notna(value)) and value != ""


def _of_results(data: RunData) -> dict[Key, Series]:
    import pandas as pd

    rows = data.results
    if not len(rows):
        return {}
    found: dict[Key, tuple[Metric, list[Hashable], list[float]]] = {}
    for column in rows.columns:
        metric = time_of_column(str(column))
        if metric is None:
            continue
        for (engine, case, place), value in zip(row_keys(rows), rows[column], strict=True):
            key = Key(engine, case, metric.name)
            if isinstance(value, bytes):
                times = np.frombuffer(value, dtype="<f4").astype(np.float64) * metric.factor
                _add(found, key, metric, [(*place, number) for number in range(len(times))], times.tolist())
            elif pd.notna(value):
                _add(found, key, metric, [place], [float(value) * metric.factor])
    if {"value", "unit", "name"} <= set(rows.columns):
        # such a row is named by what it measures
        chosen = rows[rows["unit"] == "s"].rename(columns={"group": "engine", "name": "variant"})
        for (engine, case, place), value in zip(row_keys(chosen), chosen["value"], strict=True):
            metric = _time_metric("value", "time", 1.0)
            _add(found, Key(engine, case, metric.name), metric, [place], [float(value)])
    return {key: Series(metric, tuple(places), np.array(values)) for key, (metric, places, values) in found.items()}


def _add(
    found: dict[Key, tuple[Metric, list[Hashable], list[float]]],
    key: Key,
    metric: Metric,
    places: Sequence[Hashable],
    values: Sequence[float],
) -> None:
    _, known_places, known_values = found.setdefault(key, (metric, [], []))
    for place, value in zip(places, values, strict=True):
        if value > 0:
            known_places.append(place)
            known_values.append(value)
    if not known_values:
        del found[key]


def time_of_column(name: str) -> Metric | None:
    """The metric of a column of special results that holds times; None for any other column."""
    words = name.split("_")
    unit = next((word for word in words if word in _UNITS), None)
    if unit is None or _NOT_COMPARED & set(words):
        return None
    title = " ".join(word for word in words if word != unit and word != "median")
    return _time_metric(name, f"{title} time" if title else "time", _UNITS[unit])


def _time_metric(column: str, title: str, factor: float) -> Metric:
    return Metric(column, title, f"the column {column} of the results", "s", "results", column, factor=factor)

"""What a run that compares backends found, in sentences computed from its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.report.data import paired_ratio
from tokdfa.lab.report.metrics import METRICS
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    from tokdfa.lab.report.data import RunData

_COMPARED = ("compile", "mask_p50", "mask_mean", "mask_p99", "memory_retained")


def headlines(data: RunData) -> list[str]:
    """One sentence per label against the reference, one on equal masks, one on failures."""
    if not len(data.items):
        return ["The run has no items yet."]
    sentences = against_reference(data) if data.reference is not None else fastest(data)
    return [*sentences, equal_masks(data), success(data)]


def against_reference(data: RunData) -> list[str]:
    """For each label its compile time, mask time and memory against the reference's."""
    values = {name: data.case_values(METRICS[name]) for name in _COMPARED}
    sentences = []
    for label in data.labels:
        if label == data.reference or data.reference is None:
            continue
        ratios = {name: paired_ratio(frame, METRICS[name], label, data.reference) for name, frame in values.items()}
        parts = [f"{METRICS[name].title} {ratio.describe(METRICS[name])}" for name, ratio in ratios.items() if ratio]
        cases = max((ratio.cases for ratio in ratios.values() if ratio), default=0)
        if parts:
            over = f"median of {cases} cases (range)" if cases > 1 else "one case"
            sentences.append(f"{label} against {data.reference}, {over}: {', '.join(parts)}.")
        else:
            sentences.append(f"{label} and {data.reference} have no case that both completed.")
    return sentences


def fastest(data: RunData) -> list[str]:
    """Without a reference: the best label of each metric, over the cases that every label completed."""
    sentences = []
    for name in _COMPARED:
        metric = METRICS[name]
        values = data.case_values(metric).dropna()
        if values.empty or len(values.columns) < 2:
            continue
        best, second = values.median().nsmallest(2).items()
        sentences.append(
            f"Lowest {metric.title}: {best[0]} with {metric.format(best[1])}, then {second[0]} with "
            f"{metric.format(second[1])} (medians over the {len(values)} cases that every backend completed)."
        )
    return sentences


def equal_masks(data: RunData) -> str:
    """How many masks were compared with the reference's, and how many differ."""
    masks = data.samples_of("mask")
    compared = masks[masks["differs"].notna() & (masks["label"] != data.reference)]
    if compared.empty:
        return "No masks were compared between backends."
    differ = compared[compared["differs"] > 0]
    if differ.empty:
        return f"All {len(compared):,} masks that were compared equal those of {data.reference}."
    who = ", ".join(f"{label} in {count:,}" for label, count in differ["label"].value_counts().items())
    return f"{len(differ):,} of {len(compared):,} compared masks differ from those of {data.reference}: {who}."


def success(data: RunData) -> str:
    """How many items succeeded, and how the others failed."""
    counts = failure_counts(data.items)
    if not counts:
        return f"All {len(data.items):,} items succeeded."
    return f"{len(data.done):,} of {len(data.items):,} items succeeded; the others: {counts}."

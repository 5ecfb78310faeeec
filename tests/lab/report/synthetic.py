"""Runs of made-up numbers in the shape of stored ones: known answers, hostile texts, every kind of failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pathlib import Path

LABELS = {
    "token_index": "token_index",
    "token_index lazy": "token_index",
    "llguidance": "llguidance",
    "outlines_core": "outlines_core",
    "glrmask": "glrmask",
}
REFERENCE = "outlines_core"
#: label -> (how many times faster than the reference it compiles, how long one mask takes in ns, retained bytes)
SPEED = {
    "token_index": (8.0, 900, 2e6),
    "token_index lazy": (400.0, 4_000, 3e5),
    "llguidance": (900.0, 60_000, 2e5),
    "outlines_core": (1.0, 30_000, 4e7),
    "glrmask": (0.5, 5_000, 6e6),
}
SAMPLE_COLUMNS = ["item_id", "measure", "repeat", "step", "ns", "allowed", "differs"]
HOSTILE = "<script>alert('x')</script> & $x_1^2$ | `b` \x1b[31m 漢"


@dataclass
class FakeRun:
    """What `tokdfa.lab.run.store.open_run` returns, from frames in memory."""

    folder: Path
    config: dict[str, Any]
    provenance: dict[str, Any]
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)

    def items(self) -> pd.DataFrame:
        return self.frames.get("items", pd.DataFrame())

    def samples(self) -> pd.DataFrame:
        return self.frames.get("samples", pd.DataFrame())

    def results(self) -> pd.DataFrame:
        return self.frames.get("results", pd.DataFrame())


def config(**changes: Any) -> dict[str, Any]:
    plain = {"name": "made-up", "question": "Which is fastest?", "kind": "backends", "reference": REFERENCE}
    return plain | changes


PROVENANCE = {"started": "2026-01-02T03:04:05Z", "versions": {"tokdfa": "0.1", "python": "3.11"}, "commit": "abc123"}


def backend_run(
    folder: Path,
    constraints: tuple[str, ...] = ("email", "date", "url", "yes or no"),
    tokenizers: tuple[tuple[str, int], ...] = (("small", 32_000), ("large", 131_072)),
    workloads: tuple[str, ...] = ("random_walk",),
    steps: int = 60,
    fail: dict[tuple[str, str], tuple[str, str]] | None = None,
    **changes: Any,
) -> FakeRun:
    """All labels on all combinations. The reference compiles constraint number i (from 0) in (i + 1) * 0.1 s times
    vocab_size / 32,000; the others in that over their factor. `fail`: (label, constraint) -> (status, message).
    """
    rng = np.random.default_rng(7)
    items, samples = [], []
    for tokenizer, size in tokenizers:
        for number, constraint in enumerate(constraints):
            for workload in workloads:
                for label, backend in LABELS.items():
                    factor, mask_ns, retained = SPEED[label]
                    status, message = (fail or {}).get((label, constraint), ("ok", ""))
                    item_id = f"{tokenizer}/{number}/{workload}/{label}"
                    seconds = (number + 1) * 0.1 * size / 32_000 / factor if status == "ok" else None
                    items.append(
                        {
                            "item_id": item_id,
                            "tokenizer": tokenizer,
                            "vocab_size": size,
                            "backend": backend,
                            "label": label,
                            "constraint": constraint,
                            "workload": workload,
                            "seed": 10 * number,
                            "status": status,
                            "message": message,
                            "compile_s": seconds,
                            "first_mask_s": seconds and seconds + mask_ns * 1e-9,
                            "states": 10 * (number + 1) if backend != "llguidance" and status == "ok" else None,
                            "memory_peak_bytes": 3 * retained if status == "ok" else None,
                            "memory_retained_bytes": retained if status == "ok" else None,
                        }
                    )
                    if status == "ok":
                        times = mask_ns * rng.lognormal(0, 0.6, steps)
                        for step, ns in enumerate(times):
                            differs = 3 if (label, constraint, step) == ("llguidance", "url", 5) else 0
                            mask = {"measure": "mask", "ns": int(ns), "allowed": 100 + step, "differs": differs}
                            advance = {"measure": "advance", "ns": int(ns / 10)}
                            samples += [
                                {"item_id": item_id, "repeat": 0, "step": step, **one} for one in (mask, advance)
                            ]
    integers = {"vocab_size": "Int64", "states": "Int64", "seed": "Int64"}
    frames = {
        "items": pd.DataFrame(items).astype(integers),
        "samples": pd.DataFrame(samples, columns=SAMPLE_COLUMNS).astype({"allowed": "Int32", "differs": "Int32"}),
    }
    return FakeRun(folder, config(**changes), dict(PROVENANCE), frames)


def trie_walk_run(folder: Path) -> FakeRun:
    """Three vocabularies and four patterns; llguidance takes twice as long for every mask."""
    rows = []
    for tokenizer, size in (("small", 32_000), ("llama", 128_256), ("large", 131_072)):
        for pattern, share in (("[0-9]+", 0.001), ("[a-z]+", 0.2), ("[a-zA-Z ]*", 0.6), ('[^"]*', 0.95)):
            nodes = int(2 * size * share) + 10
            for engine, factor in (("tokdfa", 1.0), ("tokdfa, walk alone", 0.9), ("llguidance slices off", 2.0)):
                rows.append(
                    {
                        "item_id": f"{tokenizer}/{pattern}",
                        "tokenizer": tokenizer,
                        "vocab_size": size,
                        "trie_nodes": 2 * size,
                        "pattern": pattern,
                        "label": f"label of {pattern}",
                        "engine": engine,
                        "allowed": int(size * share),
                        "density": share,
                        "differs": 0,
                        "nodes_visited": nodes,
                        "ns_median": 2.0 * factor * nodes,
                        "ns_min": 1.9 * factor * nodes,
                        "ns_per_node": 2.0 * factor,
                        "build_ms": size / 1e4,
                    }
                )
    frames = {"results": pd.DataFrame(rows)}
    return FakeRun(folder, config(name="walks", kind="trie_walk", reference=""), dict(PROVENANCE), frames)

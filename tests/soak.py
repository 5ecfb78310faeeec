"""Many different constraints over two vocabularies in one process: compiled, walked, dropped.

    python -m tests.soak --constraints 10000 --out soak.csv --plot soak.png

Every 100 constraints a line says how much memory the process has and how long compiles and masks take, and one of them
is compared with a new process's masks. The memory must level off, the times must not drift, and masks must be equal.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

import tokdfa
from tests.backends.mixed_constraints import grammars, json_schemas, patterns
from tokdfa.errors import TokdfaError

TOKENIZERS = ("mistral-v1", "llama3")
STEPS = 12


def describe(constraint: tokdfa.Constraint) -> list[Any]:
    """What a new process makes the constraint of."""
    if isinstance(constraint, tokdfa.JsonSchema):
        options = {name: getattr(constraint, name) for name in ("escapes", "whitespace", "order")}
        return ["json_schema", constraint.text, options]
    return [constraint.kind, constraint.source, {}]


def rebuild(described: list[Any]) -> tokdfa.Constraint:
    kind, source, options = described
    return {"regex": tokdfa.Regex, "grammar": tokdfa.Grammar, "json_schema": tokdfa.JsonSchema}[kind](source, **options)


def walk(constraint: tokdfa.Constraint, tokenizer: str, seed: int) -> tuple[str, float, list[float]]:
    """(a digest of all masks of a random walk or the kind of error, seconds of the compile, seconds of each mask)."""
    vocab, rng = tokdfa.load_tokenizer(tokenizer).vocabulary, random.Random(seed)
    mask, digest, times = tokdfa.allocate_mask(vocab.size), hashlib.sha256(), []
    started = time.perf_counter()
    try:
        matcher = tokdfa.compile(constraint, vocab, backend="pushdown_trie").start()
        compiled = time.perf_counter() - started
        for _ in range(STEPS):
            started = time.perf_counter()
            matcher.fill_mask(mask)
            times.append(time.perf_counter() - started)
            digest.update(mask.tobytes())
            allowed = tokdfa.mask_to_ids(mask)
            if not len(allowed):
                break
            matcher.advance(int(allowed[rng.randrange(len(allowed))]))
    except TokdfaError as error:
        return type(error).__name__, time.perf_counter() - started, times
    return digest.hexdigest(), compiled, times


def draw(count: int, seed: int) -> list[tokdfa.Constraint]:
    """So many different constraints; Hypothesis draws them."""
    import warnings

    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as with_seed
    from hypothesis import strategies as st

    found: dict[tokdfa.Constraint, None] = {}
    anything = st.one_of(json_schemas(), json_schemas(), grammars(), patterns().map(tokdfa.Regex))

    @with_seed(seed)
    @settings(
        max_examples=2_000,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(anything)
    def collect(constraint: tokdfa.Constraint) -> None:
        found[constraint] = None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return list(found)[:count]


def plot(lines: list[str], path: Path) -> None:
    """Memory and times over the constraints, below each other."""
    import matplotlib.pyplot as plt

    titles, *rows = (line.split(",") for line in lines)
    columns = {title: [float(row[k]) for row in rows] for k, title in enumerate(titles)}
    figure, axes = plt.subplots(3, 1, figsize=(7, 6), sharex=True, layout="constrained")
    labels = {"mb": "memory, MB", "compile_ms": "median compile, ms", "mask_us": "median mask, µs"}
    for axis, (name, label) in zip(axes, labels.items(), strict=True):
        axis.plot(columns["constraints"], columns[name], linewidth=1)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("constraints compiled, walked and dropped")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraints", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="a CSV file of the lines")
    parser.add_argument("--plot", type=Path, help="a picture of them")
    parser.add_argument("--walk", help="as a new process: the digest of one walk, given as JSON")
    given = parser.parse_args()
    if given.walk:
        described, tokenizer, seed = json.loads(given.walk)
        print(walk(rebuild(described), tokenizer, seed)[0])
        return
    seen: set[tokdfa.Constraint] = set()
    lines, compiles, masks, made, batch, differing = ["constraints,mb,compile_ms,mask_us,same"], [], [], 0, 0, 0
    while made < given.constraints:
        batch += 1
        for constraint in draw(1_000, batch):
            if constraint in seen:
                continue
            seen.add(constraint)
            tokenizer = TOKENIZERS[made % 2]
            answer, compiled, times = walk(constraint, tokenizer, made)
            compiles.append(compiled)
            masks.extend(times)
            made += 1
            if made % 100 == 0:
                gc.collect()
                question = json.dumps([describe(constraint), tokenizer, made - 1])
                command = [sys.executable, "-m", "tests.soak", "--walk", question]
                fresh = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
                differing += fresh != answer
                megabytes = psutil.Process().memory_info().rss >> 20
                lines.append(
                    f"{made},{megabytes},{1e3 * statistics.median(compiles):.2f},{1e6 * statistics.median(masks):.1f},"
                    f"{int(fresh == answer)}"
                )
                print(lines[-1], flush=True)
                compiles, masks = [], []
            if made == given.constraints:
                break
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
    if given.plot:
        plot(lines, given.plot)
    if differing:
        sys.exit(f"{differing} of the compared constraints had other masks in a new process")


if __name__ == "__main__":
    main()

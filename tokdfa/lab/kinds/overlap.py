"""The experiment ``kind: overlap``: what masks cost a batch beside a model's forward pass, and what overlapping hides.

Masks of step k + 1 need the tokens of step k and nothing of its pass, so they may be filled while the model works
(`tokdfa.serving.batch_matcher`). A *batch* is so many references of tasks (`tokdfa.tasks`), right answers behind their
prompts, that are followed token by token. A *step* is a forward pass for all of them, their masks, and an advance.
Steps take turns: in one the masks are filled after the pass, in the next during it, so that both meet new places of the
same texts. The first pass, which reads the prompts, is not a step.

A row is a batch size and an arrangement, medians over its steps: ``step_s``, pass and masks; ``pass_s``; ``wait_s``,
what masks add to the pass: all of their time after it, or what is left of it once the pass is done. ``hidden``: the
share of the time of masks that a pass hides, 1 less the quotient of both waits. Whether the pass is slower for it is
seen in ``pass_s``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.backends.registry import create_backend
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Curves, Say, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.model_bench import ModelSettings, model_kind
from tokdfa.lab.measure.prompted_task import Tasks, entry_of
from tokdfa.lab.measure.settings import Rising  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.serving.batch_matcher import BatchMatcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.backends.base import Backend
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.tasks.base import Item

#: Arrangements, by the number of a step modulo two.
AFTER, DURING = "after the pass", "during the pass"


class Settings(ModelSettings):
    """The settings of the experiment. `sizes`: of batches; `steps`: of each, two of them for a pair of arrangements;
    `backend`: makes the masks.
    """

    tasks: Tasks
    sizes: Rising
    steps: Annotated[int, Field(ge=2, le=1000)] = 8
    backend: str = "pushdown_trie"


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each size. Raises OptionError if the tasks have fewer references with so many tokens."""
    backend = create_backend(settings.backend, loaded.model.vocabulary)
    tasks = [entry_of(one).load().items for one in settings.tasks]
    longest = max(map(len, tasks))
    items = [task[k] for k in range(longest) for task in tasks if k < len(task)]
    texts = [(item, loaded.tokenizer.encode(item.reference)) for item in items]
    texts = [(item, tokens) for item, tokens in texts if len(tokens) > settings.steps]
    if len(texts) < settings.sizes[-1]:
        raise OptionError(
            f"overlap: the tasks have {len(texts)} references of more than {settings.steps} tokens, and a batch is to"
            f" have {settings.sizes[-1]}; name more tasks, or take fewer steps"
        )
    for size in settings.sizes:
        yield {"size": size}, _rows(loaded, backend, texts[:size], settings)


def _rows(
    loaded: Loaded, backend: Backend, texts: list[tuple[Item, list[int]]], settings: Settings
) -> Iterator[dict[str, Any]]:
    """The rows of a batch, measured when the first is read."""
    model = loaded.model
    batch = BatchMatcher(model.vocabulary, len(texts))
    prefixes = []
    for row, (item, _) in enumerate(texts):
        batch.put(row, backend.compile(item.constraint).start())
        prefixes.append((*model.start_tokens, *loaded.tokenizer.encode(item.prompt)))
    model.log_probabilities(prefixes)  # reads the prompts
    times: dict[str, list[tuple[float, float]]] = {AFTER: [], DURING: []}
    with collector_off():
        for step in range(settings.steps):
            taken = [tokens[step] for _, tokens in texts]
            batch.advance(taken)
            prefixes = [(*prefix, token) for prefix, token in zip(prefixes, taken, strict=True)]
            arrangement = (AFTER, DURING)[step % 2]
            started = time.perf_counter_ns()
            filled = batch.fill_async() if arrangement == DURING else None
            model.log_probabilities(prefixes)
            passed = time.perf_counter_ns()
            if filled is None:
                batch.fill()
            else:
                filled.result()
            times[arrangement].append((1e-9 * (passed - started), 1e-9 * (time.perf_counter_ns() - passed)))
    for arrangement, found in times.items():
        of_pass, wait = np.array(found).T
        yield {
            "arrangement": arrangement,
            "step_s": float(np.median(of_pass + wait)),
            "pass_s": float(np.median(of_pass)),
            "wait_s": float(np.median(wait)),
        }


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The rows, and for each size both arrangements side by side."""
    rows = found[""]
    place = ["model", "size"]
    after, during = (
        rows[rows["arrangement"] == one].set_index(place)[["step_s", "pass_s", "wait_s"]] for one in (AFTER, DURING)
    )
    both = after.rename(columns={"wait_s": "mask_s"})[["pass_s", "mask_s"]].join(
        during.rename(columns={"pass_s": "beside_s"})[["beside_s", "wait_s"]]
    )
    both = both.reset_index().astype({"size": int})
    both["added"] = both["mask_s"] / both["pass_s"]
    both["hidden"] = (1 - both["wait_s"] / both["mask_s"]).clip(0, 1)
    return {"": rows, "sizes": both}


KIND = model_kind(
    Settings,
    turns,
    "batch",
    columns=(
        Column("size", "batch", meaning="sequences"),
        text("arrangement", "masks"),
        seconds("step_s", "step", "pass and masks"),
        seconds("pass_s", "pass"),
        seconds("wait_s", "wait", "what masks add to the pass"),
        seconds("beside_s", "pass beside masks", "while masks are filled"),
        seconds("mask_s", "masks", "of the whole batch"),
        Column("added", "masks to pass", "share", "lower", "what masks add if they are filled after the pass"),
        Column("hidden", "hidden", "share", "higher", "of the time of masks, by filling them during the pass"),
    ),
    places=("size",),
    engine="arrangement",
    case=("model", "size"),
    frames=frames,
    tables=(
        Summary(
            "sizes",
            "Masks after the pass, and during it",
            "Medians over steps. Masks: filled after the pass. Wait: what is left of them once a pass is over that "
            "they were filled beside. Hidden: 1 less the quotient of both.",
            by=("model", "size"),
            values=(
                "pass_s:median",
                "mask_s:median",
                "added:median",
                "beside_s:median",
                "wait_s:median",
                "hidden:median",
            ),
            frame="sizes",
        ),
    ),
    charts=(
        Curves("step", "Time of a step by batch", "Pass and masks.", x="size", y="step_s", panels="model", log=True),
    ),
    sentences=(
        Say(
            "{model}, a batch of {size}: masks take {masks} beside a pass of {pass}, which hides {hidden} of that.",
            per=("model", "size"),
            blanks={"masks": "mask_s:median", "pass": "pass_s:median", "hidden": "hidden:median"},
            frame="sizes",
        ),
    ),
)

"""The experiment ``kind: proper_gain``: how much likelihood proper masks give back to right answers.

Theory. A mask over all spellings leaves probability with improper tokens. Of the reference's token t, masks make
p(t) / A, where A is the mass of all allowed tokens; proper masks make p(t) / P, where P is the mass of those that a
proper sequence can go on with. So at each position proper masks give back log2(A / P) bits, never less than 0, and over
a text the sum of them. Vieira et al. 2025 ask this for plain text. Under a constraint A is only what the constraint has
left of the vocabulary, so what is improper may be most of it even where the model is sure of its spelling.

An item is a reference of a task (`tokdfa.tasks`), a right answer, behind its prompt; its tokens are those that the
tokenizer makes. Constraints are regexes, choices, grammars and schemas, by the task.

A row is an item of a task: ``tokens``, the end token included; ``gain``, bits; ``gain_first``, those of the first
token; ``masked`` and ``proper``, the bits of the answer, -log2 of its probability, under masks and under proper masks;
``places``, positions where more than `LARGE` of A is improper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.registry import create_backend
from tokdfa.decoding.sampling import log_total
from tokdfa.lab.declare import Bars, Column, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.columns import text
from tokdfa.lab.kinds.worth import Tasks, entry_of
from tokdfa.lab.measure.model_bench import Count, ModelSettings, model_kind
from tokdfa.mask import allocate_mask, mask_to_bool

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.tasks.base import Item

#: The share of the allowed mass that is called large where it is improper.
LARGE = 0.01


class Settings(ModelSettings):
    """The settings of the experiment: the references of the first `items` of each task.

    `backend`: makes the masks, with ``proper=True`` and without; `batch`: rows of one call.
    """

    tasks: Tasks
    items: Count = 50
    backend: str = "pushdown_trie"
    batch: Count = 16


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each item."""
    vocabulary = loaded.model.vocabulary
    plain, proper = (create_backend(settings.backend, vocabulary, **more) for more in ({}, {"proper": True}))
    for task in (entry_of(one).load() for one in settings.tasks):
        for item in task.items[: settings.items]:
            place = {"task": task.name, "kind": item.constraint.kind, "item": item.label}
            yield place, _gains(loaded, (plain, proper), item, settings.batch)


def _gains(loaded: Loaded, backends: tuple[Backend, Backend], item: Item, batch: int) -> Iterator[dict[str, Any]]:
    """The row of an item, made when it is read."""
    model, tokenizer = loaded.model, loaded.tokenizer
    context = (*model.start_tokens, *tokenizer.encode(item.prompt))
    tokens = (*tokenizer.encode(item.reference), model.vocabulary.end_tokens[0])
    masks = [_masks(backend.compile(item.constraint), context, tokens) for backend in backends]
    chosen, allowed, proper = [], [], []
    for begin in range(0, len(tokens), batch):
        places = range(begin, min(begin + batch, len(tokens)))
        rows = model.log_probabilities([(*context, *tokens[:place]) for place in places])
        for place, row in zip(places, rows, strict=True):
            chosen.append(float(row[tokens[place]]))
            allowed.append(log_total(row[next(masks[0])]))
            proper.append(log_total(row[next(masks[1])]))
    gains = (np.array(allowed) - np.array(proper)) / math.log(2)
    own = -sum(chosen) / math.log(2)
    yield {
        "tokens": len(tokens),
        "gain": float(gains.sum()),
        "gain_first": float(gains[0]),
        "masked": own + sum(allowed) / math.log(2),
        "proper": own + sum(proper) / math.log(2),
        "places": int((gains > -math.log2(1 - LARGE)).sum()),
    }


def _masks(compiled: CompiledConstraint, context: tuple[int, ...], tokens: tuple[int, ...]) -> Iterator[Any]:
    """The mask before each token, as bools; TokenRefused if the tokens are not those of the constraint."""
    matcher, mask = compiled.start(context), allocate_mask(compiled.vocab.size)
    for token in tokens:
        matcher.fill_mask(mask)
        matcher.advance(token)  # first, so that the end token is asked about, too
        yield mask_to_bool(mask, compiled.vocab.size)


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The items, with the constraint's kind and the task as one name."""
    rows = found[""]
    return {"": rows.assign(what=rows["kind"] + ", " + rows["task"], is_gain=rows["places"] > 0)}


_OVER = ("task", "item")
_GAIN = Stat("gain", "mean", "bits given back", resample=_OVER)

KIND = model_kind(
    Settings,
    turns,
    "answer",
    columns=(
        *(text("task"), text("item"), text("kind", "constraint"), text("what", "constraint and task")),
        Column("tokens", meaning="of the reference, the end token included"),
        Column("gain", "bits given back", "", "neither", "of a reference's likelihood, by proper masks"),
        Column("gain_first", "at the first token", "", "neither"),
        Column("masked", "bits under masks", "", "lower", "-log2 of the reference's probability"),
        Column("proper", "bits under proper masks", "", "lower", "-log2 of the reference's probability"),
        Column("places", f"positions above {LARGE:.0%}", meaning="where more of the allowed mass is improper"),
        Column("is_gain", "answers with such a position", "share", "neither"),
    ),
    places=("task", "item"),
    engine="model",
    case=_OVER,
    frames=frames,
    tables=(
        Summary(
            "proper_gain",
            "What proper masks give back to right answers",
            "Bits of a reference's likelihood, in the mean over references with its 95% interval by bootstrap: under "
            "masks over all spellings, under proper masks, and their difference; in the median, and of the reference "
            "with the most.",
            by=("model", "tokenizer", "what"),
            values=(
                *(Stat("gain", "count", "references"), Stat("tokens", "mean", "tokens"), "masked:mean", "proper:mean"),
                *(_GAIN, Stat("gain", "median", "median"), Stat("gain", "max", "most")),
                *(
                    Quotient("gain:sum", "tokens:sum", "bits a token"),
                    Quotient("gain_first:sum", "gain:sum", "at the first token", "share"),
                ),
                Stat("is_gain", "share", "answers with a position above 1%"),
            ),
            brief=("model", "tokenizer", "constraint and task", "bits given back"),
        ),
    ),
    charts=(Bars("proper_gain", "Bits given back by proper masks", x=_GAIN, rows="what", log=False),),
    sentences=(
        Say(
            "{model}: proper masks give {gain} bits back to a reference of {what}, of {masked} bits.",
            per=("model", "what"),
            blanks={"gain": Stat("gain", "mean"), "masked": "masked:mean"},
        ),
    ),
)

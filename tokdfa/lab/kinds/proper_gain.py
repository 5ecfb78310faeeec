"""The experiment ``kind: proper_gain``: how much likelihood proper masks give back to right answers.

Theory. A mask over all spellings leaves probability with improper tokens. Of the reference's token t, masks make
p(t) / A, where A is the mass of all allowed tokens; proper masks make p(t) / P, where P is the mass of those that a
proper sequence can go on with. So at each position proper masks give back log2(A / P) bits, never less than 0, and over
a text the sum of them. Vieira et al. 2025 ask this for plain text. Under a constraint A is only what the constraint has
left of the vocabulary, so what is improper may be most of it even where the model is sure of its spelling.

An item is a reference of a task (`tokdfa.tasks`), a right answer, behind its prompt; its tokens are those that the
tokenizer makes. Constraints are regexes, choices, grammars and schemas, by the task. Or it is one of the `texts`, under
no constraint (`tokdfa.skew.improper_mass`): there A is 1, and A - P what the model itself puts on improper tokens. If
that is hardly anything, a constraint to proper sequences takes nothing from the model (Tran-Thien 2024, end).

A row is an item: ``tokens``, of tasks the end token included; ``gain``, bits; ``gain_first``, those of the first
token; ``masked`` and ``proper``, the bits of the answer, -log2 of its probability, under masks and under proper masks;
``mass``: float32, little-endian, the improper share of A at each position, ``improper`` their sum, ``places`` how many
are above `LARGE`. Shares span many orders of magnitude, so they are told by quantiles. Intervals are bootstraps over
items, as positions of one text are not independent of each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from tokdfa.backends.registry import create_backend
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Distribution, Quotient, Say, Stat, Summary, percentiles
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.model_bench import DISTINCT_LABELS, Count, ModelSettings, model_kind
from tokdfa.lab.measure.prompted_task import Tasks, entry_of
from tokdfa.lab.measure.settings import Strict
from tokdfa.mask import allocate_mask, mask_to_bool
from tokdfa.skew.improper_mass import improper_mass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pandas as pd

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.tasks.base import Item

#: The share of the allowed mass that is called large where it is improper.
LARGE = 0.01
#: The task of texts without a constraint.
TEXTS = "texts"


class TextEntry(Strict):
    """A text by its name. `kind`: what sort of text it is."""

    label: str
    kind: str
    text: Annotated[str, Field(min_length=1)]


class Settings(ModelSettings):
    """The settings of the experiment: the references of the first `items` of each task, and texts.

    `backend`: makes the masks, with ``proper=True`` and without; `batch`: rows of one call.
    """

    tasks: Tasks = Field(default_factory=list)
    texts: Annotated[list[TextEntry], DISTINCT_LABELS] = Field(default_factory=list)
    items: Count = 50
    backend: str = "pushdown_trie"
    batch: Count = 16

    @model_validator(mode="after")
    def _has_items(self) -> Settings:
        if not self.tasks and not self.texts:
            raise OptionError("proper_gain needs tasks, or texts")
        return self


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each item."""
    for entry in settings.texts:
        place = {"task": TEXTS, "kind": entry.kind, "item": entry.label}
        yield place, _along(loaded, entry.text, settings.batch)
    if not settings.tasks:
        return
    vocabulary = loaded.model.vocabulary
    plain, proper = (create_backend(settings.backend, vocabulary, **more) for more in ({}, {"proper": True}))
    for task in (entry_of(one).load() for one in settings.tasks):
        for item in task.items[: settings.items]:
            place = {"task": task.name, "kind": item.constraint.kind, "item": item.label}
            yield place, _gains(loaded, (plain, proper), item, settings.batch)


def _along(loaded: Loaded, text: str, batch: int) -> Iterator[dict[str, Any]]:
    """The row of a text, made when it is read."""
    found = improper_mass(loaded.model, loaded.tokenizer, text, before=loaded.begin, batch=batch)
    yield _row(np.exp(found.log_mass), -float(found.log_chosen.sum()) / math.log(2))


def _row(mass: npt.NDArray[np.float64], masked: float) -> dict[str, Any]:
    """The columns of an item. `mass`: the improper share of the allowed mass, position by position."""
    gains = -np.log2(1 - np.minimum(mass, 1 - 1e-16))
    return {
        "tokens": len(mass),
        "gain": float(gains.sum()),
        "gain_first": float(gains[0]),
        "masked": masked,
        "proper": masked - float(gains.sum()),
        "mass": mass.astype("<f4").tobytes(),
        "improper": float(mass.sum()),
        "places": int((mass > LARGE).sum()),
    }


def _gains(loaded: Loaded, backends: tuple[Backend, Backend], item: Item, batch: int) -> Iterator[dict[str, Any]]:
    """The row of an item, made when it is read."""
    model, tokenizer = loaded.model, loaded.tokenizer
    context = (*model.start_tokens, *tokenizer.encode(item.prompt))
    tokens = (*tokenizer.encode(item.reference), model.vocabulary.end_tokens[0])
    masks = [_masks(backend.compile(item.constraint), context, tokens) for backend in backends]
    chosen, allowed, improper = [], [], []
    for begin in range(0, len(tokens), batch):
        places = range(begin, min(begin + batch, len(tokens)))
        rows = model.log_probabilities([(*context, *tokens[:place]) for place in places])
        for place, row in zip(places, rows, strict=True):
            chosen.append(float(row[tokens[place]]))
            every = next(masks[0])
            allowed.append(log_total(row[every]))
            # added up from the improper tokens themselves: a difference would drown in rounding
            improper.append(log_total(row[every & ~next(masks[1])]))
    mass = np.exp(np.array(improper) - np.array(allowed))
    yield _row(mass, (sum(allowed) - sum(chosen)) / math.log(2))


def _masks(compiled: CompiledConstraint, context: tuple[int, ...], tokens: tuple[int, ...]) -> Iterator[Any]:
    """The mask before each token, as bools; TokenRefused if the tokens are not those of the constraint."""
    matcher, mask = compiled.start(context), allocate_mask(compiled.vocab.size)
    for token in tokens:
        matcher.fill_mask(mask)
        matcher.advance(token)  # first, so that the end token is asked about, too
        yield mask_to_bool(mask, compiled.vocab.size)


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The items, with the constraint's kind and the task as one name; those that are texts."""
    rows = found[""]
    rows = rows.assign(what=rows["kind"] + ", " + rows["task"], is_gain=rows["places"] > 0)
    return {"": rows, "texts": rows[rows["task"] == TEXTS]}


_OVER = ("task", "item")
_GAIN = Stat("gain", "mean", "bits given back", resample=_OVER)
_MEAN = Quotient("improper:sum", "tokens:sum", "mean", "share", "lower", _OVER)

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
        Column("mass", "improper mass", "", "lower", "of the allowed mass, at a position"),
        Column("improper", "improper mass, all positions"),
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
            where=f"task != '{TEXTS}'",
            brief=("model", "tokenizer", "constraint and task", "bits given back"),
        ),
        Summary(
            "improper_mass",
            "Improper mass",
            "Of the allowed mass, what improper tokens have: so many positions do not exceed so much; the mean with "
            "its 95% interval, by bootstrap over items. Of texts nothing is forbidden, so it is the model's own.",
            by=("model", "tokenizer", "what"),
            values=(
                *(Stat("item", "distinct", "items"), Stat("tokens", "sum", "positions")),
                *percentiles("mass", of=(5, 25, 50, 75, 95), mean=False),
                *(_MEAN, Quotient("places:sum", "tokens:sum", "above 1%", "share")),
            ),
            brief=("model", "constraint and task", "p50", "p95", "mean"),
        ),
    ),
    charts=(
        Bars(
            "proper_gain",
            "Bits given back by proper masks",
            x=_GAIN,
            rows="what",
            log=False,
            where=f"task != '{TEXTS}'",
            optional=True,
        ),
        Distribution(
            "improper_mass", "Improper mass of the next token", "Share of positions with at most so much.", x="mass"
        ),
    ),
    sentences=(
        Say(
            "{model}: proper masks give {gain} bits back to a reference of {what}, of {masked} bits.",
            per=("model", "what"),
            blanks={"gain": Stat("gain", "mean"), "masked": "masked:mean"},
            where=f"task != '{TEXTS}'",
        ),
        Say(
            "{model}: along {item:distinct} texts half of the positions have an improper mass of at most {mass}; the "
            "mean is {mean}, and {large} have one above 1%.",
            per=("model",),
            blanks={"mean": _MEAN, "large": Quotient("places:sum", "tokens:sum", unit="share")},
            frame="texts",
        ),
    ),
)

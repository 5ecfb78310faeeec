"""The experiment ``kind: improper_mass``: how likely a model is to write an improper token when nothing stops it.

Theory (002, end): if a model hardly ever writes improper tokens by itself, then a constraint to proper sequences takes
nothing from it. The texts are properly tokenized, and at every position the mass of all improper next tokens is added
up; `tokdfa.skew.improper_mass` has the definition. There is one item; its rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``text``: one for each text, by ``label`` and ``kind``: ``positions`` (its tokens), ``mean`` (of the mass),
  ``any_improper`` (the probability of at least one improper token if one is drawn at every position), ``perplexity``
  (of the text, a sign of whether the model knows such texts);
- ``position``: one for each token of a text: ``position``, ``before`` (the characters before it), ``token`` (its text),
  ``log_mass`` (of the improper tokens) and ``log_chosen`` (of the token itself), natural, -inf for none. At the
  `largest` positions of a text ``preferred`` is a JSON list of the `preferred` most probable improper tokens,
  ``[text, probability]``; elsewhere it is empty.

The mass spans many orders of magnitude, so it is told by quantiles; its mean is made by few positions. Intervals are
bootstraps over texts, as positions of one text are not independent of each other.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Distribution, Kind, Listing, Points, Say, Stat, Summary, percentiles
from tokdfa.lab.declare.columns import text
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.model_entries import Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.mask import allocate_mask, mask_to_bool
from tokdfa.skew.improper_mass import improper_mass, proper_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.skew.improper_mass import ImproperMass
    from tokdfa.vocabulary.vocabulary import Vocabulary

TEXT, POSITION = "text", "position"
#: How many characters of a text are kept before a position.
BEFORE = 40
#: A mass above this is called large.
LARGE = 0.01

Count = Annotated[int, Field(ge=1, le=1_000)]


class TextEntry(BaseModel):
    """A text by its name. `kind`: what sort of text it is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str
    kind: str
    text: Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """The settings of the experiment.

    `models`: see `tokdfa.lab.measure.model_entries`; `texts`: distinct labels; `largest`: positions of each text at
    which `preferred` improper tokens are named. `batch`: rows of one call; `threads`: of torch.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    texts: list[TextEntry] = Field(min_length=1)
    largest: Count = 3
    preferred: Count = 3
    batch: Count = 64
    threads: Annotated[int, Field(ge=1, le=64)] = 2


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    labels = [text.label for text in typed.texts]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise OptionError(f"settings.texts: two texts have the label {twice!r}")
    check_models(typed.models)
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all texts with all models. `settings`: those of `Settings`; `seed` is not used: nothing is random."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        for entry in typed.texts:
            place = {**loaded.place, "part": TEXT, "label": entry.label, "kind": entry.kind}
            rows += guarded(place, _text_rows(loaded, entry.text, typed))
        finish_row(loaded)
    return rows


def _text_rows(loaded: Loaded, text: str, settings: Settings) -> Iterator[dict[str, Any]]:
    """The row of a text, and those of its positions."""
    found = improper_mass(loaded.model, loaded.tokenizer, text, before=loaded.begin, batch=settings.batch)
    yield {
        "positions": len(found.tokens),
        "mean": found.mean,
        "any_improper": found.any_improper,
        "perplexity": math.exp(-float(found.log_chosen.mean())),
    }
    vocabulary = loaded.tokenizer.vocabulary
    largest = np.argsort(-found.log_mass, kind="stable")[: settings.largest]
    chosen = sorted(int(place) for place in largest if found.top_tokens[place] >= 0)
    preferred = dict(zip(chosen, _preferred(loaded, found, chosen, settings.preferred), strict=True))
    data = b""
    for place, token in enumerate(found.tokens.tolist()):
        yield {
            "part": POSITION,
            "position": place,
            "before": data.decode(errors="backslashreplace")[-BEFORE:],
            "token": _spelled(vocabulary, token),
            "log_mass": float(found.log_mass[place]),
            "log_chosen": float(found.log_chosen[place]),
            "preferred": json.dumps(preferred[place], ensure_ascii=False) if place in preferred else "",
        }
        data += vocabulary.token_bytes(token)


def _preferred(
    loaded: Loaded, found: ImproperMass, places: Sequence[int], count: int
) -> Iterator[list[tuple[str, float]]]:
    """The `count` most probable improper tokens with their probabilities, at some ascending places. A row for each."""
    vocabulary = loaded.tokenizer.vocabulary
    tokens = found.tokens.tolist()
    rows = loaded.model.log_probabilities([(*loaded.begin, *tokens[:place]) for place in places])
    matcher, mask = proper_texts(loaded.tokenizer).start(), allocate_mask(vocabulary.size)
    reached = 0
    for place, row in zip(places, rows, strict=True):
        for token in tokens[reached:place]:
            matcher.advance(token)
        reached = place
        matcher.fill_mask(mask)
        improper = np.flatnonzero((vocabulary.lengths > 0) & ~mask_to_bool(mask, vocabulary.size))
        best = improper[np.argsort(-row[improper], kind="stable")[:count]].tolist()
        yield [(_spelled(vocabulary, token), math.exp(row[token])) for token in best]


def _spelled(vocabulary: Vocabulary, token: int) -> str:
    return vocabulary.token_bytes(token).decode(errors="backslashreplace")


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The positions with their mass; those of each kind of text and of all; each model's text of the largest mean."""
    import pandas as pd

    found = parts(rows, POSITION)
    positions = found[""]
    if positions.empty:
        return found
    mass = np.exp(positions["log_mass"].astype("float64"))
    shown = {"before": positions["before"].str[-20:].map(_quoted), "token": positions["token"].map(_quoted)}
    named = positions["preferred"].map(lambda value: json.loads(value) if isinstance(value, str) and value else [])
    positions = positions.assign(
        mass=mass,
        large=mass > LARGE,
        chosen=np.exp(positions["log_chosen"].astype("float64")),
        improper=named.map(lambda most: ", ".join(f"{_quoted(one)} {value:.3g}" for one, value in most)),
        **shown,
    )
    top = positions.sort_values("mass", ascending=False, kind="stable")
    means = positions.groupby(["model", "label"], sort=False)["mass"].transform("mean")
    return {
        **found,
        "": positions,
        "kinds": pd.concat([positions.assign(kind="all"), positions]),
        "named": top[top["improper"] != ""],
        "top": top.groupby("model", sort=False).head(1).sort_index(),
        "along": positions[means == means.groupby(positions["model"]).transform("max")],
    }


def _quoted(text: str) -> str:
    """In quotes, so that spaces and line ends are seen."""
    return json.dumps(text, ensure_ascii=False)


_MEAN = Stat("mass", "mean", "mean", resample=("label",))

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        text("label", "text"),
        text("kind"),
        Column("positions", meaning="tokens of the text"),
        Column("position", "position in the text"),
        Column("mass", "improper mass", "", "lower", "probability of all improper next tokens"),
        Column("large", f"above {LARGE:g}", "share", "lower"),
        Column("mean", "mean mass", "", "lower"),
        Column("any_improper", "at least one", "share", "lower", "if a token is drawn at each position of the text"),
        Column("perplexity", meaning="of the text itself: how well the model knows such texts"),
        text("before"),
        text("token", "token of the text"),
        Column("chosen", "its probability", "share"),
        text("improper", "improper tokens"),
    ),
    engine="model",
    case=("label",),
    place=("position",),
    frames=frames,
    tables=(
        Summary(
            "improper_mass",
            "Improper mass by kind of text",
            "The probability of all improper next tokens, at the positions of properly tokenized texts: the mass that "
            "so many positions do not exceed; the mean with its 95% interval, by bootstrap over texts.",
            by=("model", "kind"),
            values=(
                *(Stat("label", "distinct", "texts"), Stat("mass", "count", "positions")),
                *percentiles("mass", of=(5, 25, 50, 75, 95), mean=False),
                *(_MEAN, Stat("large", "share")),
            ),
            frame="kinds",
            brief=("model", "kind", "positions", "p50", "p95", "mean"),
        ),
        Summary(
            "improper_mass_texts",
            "Improper mass of each text",
            "At least one: the probability of an improper token somewhere if one is drawn at each position.",
            by=("model", "label", "kind"),
            values=("positions", "mean", "any_improper", "perplexity"),
            frame=TEXT,
        ),
        Listing(
            "improper_mass_largest",
            "Positions with the largest improper mass",
            "What stands before the position, the token that follows in the text, and the improper tokens that the "
            "model prefers, with their probabilities.",
            shown=("model", "label", "mass", "before", "token", "chosen", "improper"),
            most=30,
            frame="named",
        ),
        MODELS,
        not_measured("label"),
    ),
    charts=(
        Distribution(
            "improper_mass", "Improper mass of the next token", "The share of positions with at most so much.", x="mass"
        ),
        Points(
            "improper_mass_along",
            "Improper mass along a text",
            "For each model the text with the largest mean mass.",
            x="position",
            y="mass",
            panels="model",
            hover=("label", "before", "token"),
            frame="along",
            where="mass > 0",  # what is 0 has no place on a logarithmic axis
        ),
    ),
    sentences=(
        Say(
            "{model}: of {positions} positions in {texts} texts half have an improper mass of at most {median}, and "
            f"{{large}} one above {LARGE:g}; the mean is {{mean}}.",
            per=("model",),
            blanks={
                **{"positions": "mass:count", "texts": "label:distinct", "median": "mass", "large": "large:share"},
                "mean": _MEAN,
            },
        ),
        Say(
            "{model}: drawn freely at every position of a text, at least one improper token comes with a probability "
            "of {middle} (median of {texts} texts, {low} to {high}).",
            per=("model",),
            blanks={
                **{"middle": "any_improper", "low": "any_improper:min", "high": "any_improper:max"},
                "texts": "label:distinct",
            },
            frame=TEXT,
        ),
        Say(
            "{model}: the largest mass, {mass}, is in {label} after {before}. The text goes on with {token}; the "
            "improper tokens that the model prefers: {improper}.",
            per=("model",),
            blanks={name: name for name in ("mass", "label", "before", "token", "improper")},
            frame="top",
        ),
        *FAILURES,
    ),
)

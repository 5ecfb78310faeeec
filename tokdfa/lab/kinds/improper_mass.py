"""The experiment ``kind: improper_mass``: how likely a model is to write an improper token when nothing stops it.

Theory (Tran-Thien 2024, end): if a model hardly ever writes improper tokens by itself, then a constraint to proper
sequences takes nothing from it. The texts are properly tokenized, and at every position the mass of all improper next
tokens is added up (`tokdfa.skew.improper_mass`).

A row is a position of a text, by ``label`` and ``kind`` of the text: ``position``, ``before`` (the characters before
it), ``token`` (its text), ``log_mass`` (of the improper tokens) and ``log_chosen`` (of the token itself), natural, -inf
for none; ``preferred``: a JSON list of the most probable improper tokens, ``[text, probability]``.

The mass spans many orders of magnitude, so it is told by quantiles; its mean is made by few positions. Intervals are
bootstraps over texts, as positions of one text are not independent of each other.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from tokdfa.lab.declare import Column, Distribution, Listing, Points, Say, Stat, Summary, percentiles
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.model_bench import Count, ModelSettings, distinct_labels, model_kind
from tokdfa.lab.measure.settings import Strict
from tokdfa.skew.improper_mass import improper_mass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded

#: How many characters of a text are kept before a position, and shown.
BEFORE, SHOWN = 40, 20
#: How many improper tokens are named at a position, and how many positions of a text in the table of the largest.
PREFERRED = LARGEST = 3
#: A mass above this is called large.
LARGE = 0.01


class TextEntry(Strict):
    """A text by its name. `kind`: what sort of text it is."""

    label: str
    kind: str
    text: Annotated[str, Field(min_length=1)]


class Settings(ModelSettings):
    """The settings of the experiment. `batch`: rows of one call."""

    texts: Annotated[list[TextEntry], Field(min_length=1), AfterValidator(distinct_labels)]
    batch: Count = 64


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each text."""
    for entry in settings.texts:
        yield {"label": entry.label, "kind": entry.kind}, _positions(loaded, entry.text, settings.batch)


def _positions(loaded: Loaded, text: str, batch: int) -> Iterator[dict[str, Any]]:
    found = improper_mass(loaded.model, loaded.tokenizer, text, before=loaded.begin, batch=batch, preferred=PREFERRED)
    vocabulary = loaded.tokenizer.vocabulary
    data = b""

    def spelled(token: int) -> str:
        return vocabulary.token_bytes(token).decode(errors="backslashreplace")

    for place, token in enumerate(found.tokens.tolist()):
        best = zip(found.top_tokens[place].tolist(), found.log_top[place].tolist(), strict=True)
        yield {
            "position": place,
            "before": data.decode(errors="backslashreplace")[-BEFORE:],
            "token": spelled(token),
            "log_mass": float(found.log_mass[place]),
            "log_chosen": float(found.log_chosen[place]),
            "preferred": json.dumps([(spelled(one), math.exp(log)) for one, log in best if one >= 0]),
        }
        data += vocabulary.token_bytes(token)


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The positions with their mass; those of each kind of text and of all; the texts; the largest positions."""
    import pandas as pd

    rows = found[""]
    named = rows["preferred"].map(json.loads)
    rows = rows.assign(
        mass=np.exp(rows["log_mass"].astype("float64")),
        chosen=np.exp(rows["log_chosen"].astype("float64")),
        improper=named.map(lambda most: ", ".join(f"{_quoted(one)} {value:.3g}" for one, value in most)),
        before=rows["before"].str[-SHOWN:].map(_quoted),
        token=rows["token"].map(_quoted),
    )
    rows["large"] = rows["mass"] > LARGE
    texts = rows.groupby(["model", "label", "kind"], sort=False)
    any_improper = texts["mass"].agg(lambda masses: -np.expm1(np.log1p(-masses.clip(upper=1 - 1e-16)).sum()))
    perplexity = np.exp(-texts["log_chosen"].mean())
    top = rows.sort_values("mass", ascending=False, kind="stable")
    means = texts["mass"].transform("mean")
    return {
        "": rows,
        "kinds": pd.concat([rows.assign(kind="all"), rows]),
        "texts": pd.DataFrame(
            {"positions": texts.size(), "mean": texts["mass"].mean(), "any": any_improper, "perplexity": perplexity}
        ).reset_index(),
        "named": top[top["improper"] != ""].groupby(["model", "label"], sort=False).head(LARGEST),
        "top": top.groupby("model", sort=False).head(1).sort_index(),
        "along": rows[means == means.groupby(rows["model"]).transform("max")],
    }


def _quoted(text: str) -> str:
    """In quotes, so that spaces and line ends are seen."""
    return json.dumps(text, ensure_ascii=False)


_MEAN = Stat("mass", "mean", "mean", resample=("label",))

KIND = model_kind(
    Settings,
    turns,
    "position",
    columns=(
        *(text("label", "text"), text("kind"), text("before"), text("token", "token of the text")),
        text("improper", "improper tokens"),
        Column("positions", meaning="tokens of the text"),
        Column("position", "position in the text"),
        Column("mass", "improper mass", "", "lower", "probability of all improper next tokens"),
        Column("large", f"above {LARGE:g}", "share", "lower"),
        Column("mean", "mean mass", "", "lower"),
        Column("any", "at least one", "share", "lower", "if a token is drawn at each position of the text"),
        Column("perplexity", meaning="of the text itself: how well the model knows such texts"),
        Column("chosen", "its probability", "share"),
    ),
    places=("label",),
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
            values=("positions", "mean", "any", "perplexity"),
            frame="texts",
        ),
        Listing(
            "improper_mass_largest",
            "Positions with the largest improper mass",
            f"At most {LARGEST} of a text: what stands before the position, the token that follows in the text, and "
            "the improper tokens that the model prefers, with their probabilities.",
            shown=("model", "label", "mass", "before", "token", "chosen", "improper"),
            most=30,
            frame="named",
        ),
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
            "{model}: of {mass:count} positions in {label:distinct} texts half have an improper mass of at most "
            f"{{mass}}, and {{large:share}} one above {LARGE:g}; the mean is {{mean}}.",
            per=("model",),
            blanks={"mean": _MEAN},
        ),
        Say(
            "{model}: drawn freely at every position of a text, at least one improper token comes with a probability "
            "of {any} (median of {label:distinct} texts, {any:min} to {any:max}).",
            per=("model",),
            frame="texts",
        ),
        Say(
            "{model}: the largest mass, {mass}, is in {label} after {before}. The text goes on with {token}; the "
            "improper tokens that the model prefers: {improper}.",
            per=("model",),
            frame="top",
        ),
    ),
)

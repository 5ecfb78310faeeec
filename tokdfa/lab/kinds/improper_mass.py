"""The experiment ``kind: improper_mass``: how likely a model is to write an improper token when nothing stops it.

Theory (002, end): if a model hardly ever writes improper tokens by itself, then a constraint to proper sequences takes
nothing from it. The texts are properly tokenized, and at every position the mass of all improper next tokens is added
up; `tokdfa.skew.improper_mass` has the definition. There is one item; its rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``text``: one for each text, by ``label`` and ``kind``: ``positions`` (its tokens), ``mean`` (of the mass),
  ``any_improper`` (the probability of at least one improper token if one is drawn at every position), ``perplexity``
  (of the text, a sign of whether the model knows such texts);
- ``position``: one for each token of a text: ``position``, ``before`` (the characters before it), ``token`` (its text),
  ``log_mass`` (of the improper tokens), ``log_special`` (of what spells nothing), ``log_chosen`` (of the token itself),
  natural, -inf for none, and ``improper_count``. At the `largest` positions of a text ``preferred`` is a JSON list of
  the `preferred` most probable improper tokens, ``[text, probability]``; elsewhere it is empty.

The model sees `Loaded.begin` before a text. What cannot be measured is a row of the part ``text`` with its reason.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.errors import OptionError
from tokdfa.lab.measure.model_entries import Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.mask import allocate_mask, mask_to_bool
from tokdfa.skew.improper_mass import improper_mass, proper_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.skew.improper_mass import ImproperMass
    from tokdfa.vocabulary.vocabulary import Vocabulary

TEXT, POSITION = "text", "position"
#: How many characters of a text are kept before a position.
BEFORE = 40

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


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    labels = [text.label for text in typed.texts]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise OptionError(f"settings.texts: two texts have the label {twice!r}")
    check_models(typed.models)
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all texts with all models. `settings`: those of `Settings`; `seed` is not used: nothing is random."""
    typed = check_settings(settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        for text in typed.texts:
            place = {**loaded.place, "part": TEXT, "label": text.label, "kind": text.kind}
            rows += guarded(place, _text_rows(loaded, text.text, typed))
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
            "log_special": float(found.log_special[place]),
            "log_chosen": float(found.log_chosen[place]),
            "improper_count": int(found.improper_counts[place]),
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

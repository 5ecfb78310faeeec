"""What kinds on language models share: their settings, the walk over models and entries, and what all of them declare.

Such a kind asks one question of each *model*, and often of several *engines*, about some *entries*: prompts, texts,
constraints. It gives `model_kind` its settings, its *turns*, and the declarations that are its own. A turn is what one
entry (with one engine) contributes: the columns that tell its place, and an iterable that measures when it is read.

Every row has ``part``, ``model``, ``tokenizer``, ``status`` and ``message``; rows of the part ``model`` are those of
`tokdfa.lab.measure.model_entries`. A turn that fails ends with a row that says so; one that comes after the time of its
model is over is a row `NOT_ASKED`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from tokdfa.lab.declare import Kind
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.limits import NOT_ASKED, extend_rows
from tokdfa.lab.measure.model_entries import Models, finish_row, load_models
from tokdfa.lab.measure.settings import Strict, distinct, typed_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from tokdfa.lab.declare import Column
    from tokdfa.lab.declare.sentences import Sentence
    from tokdfa.lab.declare.tables import Declared
    from tokdfa.lab.measure.model_entries import Loaded

    Row = dict[str, Any]
    #: The columns that tell what is measured, and its rows, measured as they are read.
    Turn = tuple[Mapping[str, Any], Iterable[Mapping[str, Any]]]

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0)]


class ModelSettings(Strict):
    """The settings of all kinds on models.

    `models`: see `tokdfa.lab.measure.model_entries`; `threads`: of torch; `cache_mb`: for rows that are kept;
    `seconds`: of each model, the experiment's limit on an item should be above their sum.
    """

    models: Models
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    cache_mb: Annotated[float, Field(gt=0)] = 1500.0
    seconds: Seconds = 600.0


class Prompt(Strict):
    """A prompt with the choices for what comes next. `expected`: the right choice, where there is one."""

    label: str
    prompt: str
    choices: list[str] = Field(min_length=2)
    topic: str = ""
    expected: str | None = None


S = TypeVar("S", bound=ModelSettings)

#: For a list of settings that have labels.
DISTINCT_LABELS = distinct("entries", lambda one: str(one.label))


def measure_models(
    settings: S, turns: Callable[[Loaded, S, int], Iterable[Turn]], seed: int, part: str
) -> list[dict[str, Any]]:
    """The rows of all models. `turns`: those of a loaded model; rows are of `part` unless they say otherwise."""
    rows: list[Row] = []
    for loaded in load_models(settings.models, settings.threads, rows):
        started = time.monotonic()
        for place, found in turns(loaded, settings, seed):
            named: Row = {"part": part, **loaded.place, **place}
            if time.monotonic() - started > settings.seconds:
                late = f"the {settings.seconds:g} s for this model are over"
                rows.append({**named, "status": NOT_ASKED, "message": late})
            else:
                extend_rows(rows, named, found)
        finish_row(loaded)
    return rows


def model_kind(
    settings: type[S],
    turns: Callable[[Loaded, S, int], Iterable[Turn]],
    part: str,
    *,
    columns: Sequence[Column],
    places: Sequence[str],
    frames: Callable[[dict[str, pd.DataFrame]], Mapping[str, pd.DataFrame]],
    tables: Sequence[Declared],
    sentences: Sequence[Sentence],
    **others: Any,
) -> Kind:
    """A kind on models; see the module. `places`: the columns that tell what could not be measured.

    `frames(found)`: changes to the frames of `tokdfa.lab.declare.models.parts`, made only if the main one has rows;
    `others`: further fields of the kind.
    """

    def measure(given: dict[str, Any], seed: int) -> list[dict[str, Any]]:
        return measure_models(typed_settings(settings, given), turns, seed, part)

    def all_frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
        found = parts(rows, part)
        return found if found[""].empty else {**found, **frames(found)}

    return Kind(
        **{"measure": measure, "settings": settings, "threads": 2, "frames": all_frames, **others},
        columns=(*COLUMNS, *columns),
        tables=(*tables, MODELS, not_measured(*places)),
        sentences=(*sentences, *FAILURES),
    )

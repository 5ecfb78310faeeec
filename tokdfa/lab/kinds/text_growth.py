"""The experiment ``kind: text_growth``: what a token costs the further the text goes, engine by engine.

Theory (Alpay and Senturk 2026, arXiv 2603.05540). Grammars of one language give the same mask after every text, but not
at the same price: what an engine keeps of the text so far, its Earley rows or situations of a stack, may stay constant
along a text, or grow with it, or with its square, if the grammar is ambiguous enough. Only what the language itself
needs, such as the depth of open brackets, should grow.

An item is a tokenizer and a constraint with two texts: a beginning, and what is repeated after it as often as needed.
All engines are taken along the same tokens, each by itself: a mask and an advance at each token. A row for each engine
and each of `settings.lengths`: ``mask_s`` and ``advance_s``, medians over the tokens from half of that length to it,
``token_s``, the mean of both together there, which a user waits for, and ``largest_s``, the longest; ``differs``, the
bits of the mask at that length that are not the first engine's. ``compile_s`` is that of the constraint.

An engine that has used `settings.seconds` for its tokens is not taken further: the next length is ``not_asked``, and
there are no rows of larger ones, nor behind a failure.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa import mask as masks
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Curves, Kind, Pivot, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.stats import exponent
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.engines import Engines, EngineSet
from tokdfa.lab.measure.limits import NOT_ASKED, Failure, extend_rows
from tokdfa.lab.measure.settings import Rising, Strict
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.backends.base import Backend
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

PLACE = ("tokenizer", "family")


class Settings(Strict):
    """The settings of the experiment. `lengths`: in tokens; `seconds`: of all tokens of one engine."""

    engines: Engines
    lengths: Rising
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5.0


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A row for each engine and length, of one tokenizer and one constraint. Raises OptionError without two texts."""
    typed = item_settings(Settings, settings)
    entry = item_constraint(settings)
    if len(entry.texts) != 2 or not entry.texts[1]:
        raise OptionError(
            f"text_growth: {entry.label or 'a constraint'} needs two texts: a beginning, and what repeats"
        )
    tokenizer = load_tokenizer(settings["tokenizer"])
    tokens = _tokens(tokenizer, entry.texts[0], entry.texts[1], typed.lengths[-1])
    constraint, engines = entry.build(), EngineSet(typed.engines, tokenizer.vocabulary)
    first: dict[int, masks.Mask] = {}
    rows: list[dict[str, Any]] = []
    for engine in typed.engines:
        place = {"tokenizer": settings["tokenizer"], "family": entry.label, "engine": engine.name}
        backend = engines.backend(engine.name)
        if isinstance(backend, Failure):
            rows.append({**place, **backend.columns})
        else:
            warm_up(backend, constraint.kind)
            extend_rows(rows, place, _along(backend, constraint, tokens, typed, first))
    return rows


def _tokens(tokenizer: Tokenizer, begin: str, repeated: str, count: int) -> list[int]:
    """The first `count` tokens of the text."""
    times = count
    while len(tokens := tokenizer.encode(begin + repeated * times)) < count:
        times *= 2
    return list(tokens[:count])


def _along(
    backend: Backend, constraint: Constraint, tokens: Sequence[int], typed: Settings, first: dict[int, masks.Mask]
) -> Iterator[dict[str, Any]]:
    """A row for each length that one engine gets to; `first`: the masks of whoever came there first."""
    mask = masks.allocate_mask(backend.vocab.size)
    with collector_off():
        compiled, compile_ns = time_call(partial(backend.compile, constraint))
        matcher = compiled.start()
        spent = np.zeros((len(tokens), 2))
        begun, done = time.perf_counter(), 0
        for length in typed.lengths:
            for place in range(done, length):
                start = time.perf_counter_ns()
                matcher.fill_mask(mask)
                filled = time.perf_counter_ns()
                matcher.advance(tokens[place])
                spent[place] = filled - start, time.perf_counter_ns() - filled
                if time.perf_counter() - begun > typed.seconds:
                    said = f"its tokens took more than {typed.seconds:g} s"
                    yield {"length": length, "status": NOT_ASKED, "message": said}
                    return
            done = length
            matcher.fill_mask(mask)
            known = first.setdefault(length, mask.copy())
            mine = 1e-9 * spent[length // 2 : length]
            yield {
                "length": length,
                "compile_s": 1e-9 * compile_ns,
                "mask_s": float(np.median(mine[:, 0])),
                "advance_s": float(np.median(mine[:, 1])),
                "token_s": float(mine.sum(axis=1).mean()),
                "largest_s": float(1e-9 * spent[:length].sum(axis=1).max()),
                "differs": masks.count(mask ^ known),
            }


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and the exponent of each engine's growth in each family."""
    import pandas as pd

    by, done = [*PLACE, "engine"], rows.reindex(columns=[*dict.fromkeys([*rows, "token_s"])])
    groups = done.groupby(by, sort=False)
    found = [(*key, exponent(mine["length"].tolist(), mine["token_s"].tolist())) for key, mine in groups]
    return {"": rows, "powers": pd.DataFrame(found, columns=[*by, "power"])}


KIND = Kind(
    measure=measure,
    settings=Settings,
    frames=frames,
    columns=(
        *map(text, ("engine", "tokenizer", "family")),
        text("status", "ended"),
        Column("power", "exponent", "", "lower"),
        Column("length", "tokens", meaning="how far the text has gone"),
        seconds("compile_s", "compile time"),
        seconds("mask_s", "mask", "median over the second half of the text"),
        seconds("advance_s", "advance", "median over the second half of the text"),
        seconds("token_s", "time of a token", "mask and advance, mean over the second half of the text"),
        seconds("largest_s", "longest token", "mask and advance"),
        Column("differs", "bits that differ", "", "lower", "from the first engine's mask"),
    ),
    case=(*PLACE, "length"),
    tables=(
        Pivot(
            "growth",
            "Growth of a token's time with the text: exponents",
            "The exponent p of time = c * tokens^p: median slope of all pairs of lengths in logarithms; 0 is constant. "
            "Of the larger half of them; missing where an engine got to fewer than three lengths.",
            rows=PLACE,
            value="power",
            ratio=False,
            frame="powers",
        ),
        Pivot(
            "tokens",
            "Time of a token",
            "Mask and advance, the mean over the second half of a text of so many tokens.",
            rows=(*PLACE, "length"),
            value="token_s",
            where="status == 'ok'",
        ),
        Summary(
            "engines",
            "Engine by engine",
            "Over all families and lengths; the longest single token, first visits included.",
            by=("engine",),
            values=("compile_s", "mask_s", "advance_s", Stat("largest_s", "max", "longest token"), "differs:sum"),
            where="status == 'ok'",
        ),
    ),
    charts=(
        Curves(
            "token",
            "Time of a token along a text",
            "Mask and advance. Curves that end early: the engine does not take the grammar, or its time was over.",
            x="length",
            y="token_s",
            panels="family",
            log=True,
        ),
    ),
    sentences=(
        Say(
            "{engine}: {count} lengths of texts of all grammars, the longest token {largest}.",
            per=("engine",),
            blanks={"count": "length:count", "largest": "largest_s:max"},
            where="status == 'ok'",
        ),
        Tally("lengths"),
    ),
)

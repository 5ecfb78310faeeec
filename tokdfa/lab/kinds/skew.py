"""The experiment ``kind: skew``: how far each engine bends a model's distribution over the texts of a constraint.

The claim under test (Tran-Thien 2024, challenge 1): masks that admit every spelling of a text give much of the
probability to texts that begin with a common word; masks that admit the proper spelling only stay near the ideal, as
models write properly by themselves. `tokdfa.lab.measure.skew_rows` has the columns of the rows.

- *Choices* (`prompts`): distributions and distances are exact, up to bounds; the *ideal* is the model's own
  distribution over the choices. Only prompts with bounds at most `OPEN` apart are counted.
- *Large languages* (`languages`): estimated from samples, with errors; see `tokdfa.skew.estimate`. Q is what sampling
  through an engine's masks gives, its target P the model restricted to the sequences that the engine admits. P is the
  engine's own target, which may itself be far from that of all spellings: of that one's mass it keeps the *kept share*
  s, and is then 1 - s in total variation from it. Distances are over sequences; over texts they are at most as large.
  An estimate with fewer than `FEW_EFFECTIVE` effective samples is *weak*: its interval says little about what was never
  drawn.

Only prompts that every engine went through are counted, so that nobody gains by having failed on a hard one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare import Column, Distribution, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.engines import EngineSet
from tokdfa.lab.measure.model_bench import Prompt, model_kind
from tokdfa.lab.measure.skew_rows import (
    DISTANCES,
    EXACT,
    FARTHER,
    IDEAL,
    NEARER,
    SAME,
    UNDECIDED,
    estimated_rows,
    exact_rows,
)
from tokdfa.lab.measure.skew_settings import Settings
from tokdfa.models.cache import CachedModel
from tokdfa.skew.measured import FEW_EFFECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded

#: token language -> how people call it.
LANGUAGES = {"all": "all spellings", "proper": "proper only", "muted": "muted literals"}
#: A total variation whose exact bounds are further apart says too little to be counted.
OPEN = 0.05
#: At most so many prompts are shown choice by choice, and so many choices of each; so many prompts one by one.
FEW, MOST_PROMPTS = 8, 40


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each prompt or language; its rows of the model are kept between the engines."""
    engine_set = EngineSet(settings.engines, loaded.model.vocabulary)
    limits = settings.model_dump(include={"eos", "tolerance", "max_prefixes", "follow_spellings"})
    sampling = {"samples": settings.samples, "batch": settings.batch, "seed": seed}
    for one in settings.chosen():
        model = CachedModel(loaded.model, settings.cache_mb)
        if isinstance(one, Prompt):
            found = exact_rows(one, model, loaded.tokenizer, settings.engines, engine_set, **limits)
        else:
            found = estimated_rows(one, model, loaded.tokenizer, settings.engines, engine_set, **sampling)
        yield {"prompt": one.label}, found


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """All engines on the prompts that count; on several; choices one by one."""
    import pandas as pd

    tried = pd.concat([found[""], found["failed"]]).groupby("model", sort=False)["prompt"].nunique()
    rows = _counted(found[""])
    lost = tried - rows.groupby("model")["prompt"].nunique().reindex(tried.index, fill_value=0)
    engines, count = rows[rows["engine"] != IDEAL], rows["prompt"].nunique()
    made = {
        "": rows,
        "lost": pd.DataFrame({"model": lost.index, "lost": lost.to_numpy()}).query("lost > 0"),
        "several": engines if count > 1 else engines.iloc[:0],
        "prompts": engines if 1 < count <= MOST_PROMPTS else engines.iloc[:0],
    }
    if (rows["method"] == EXACT).any():
        made |= _of_choices(rows[rows["method"] == EXACT])
    return made


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of prompts that all engines of a model went through, with close bounds where these are exact."""
    exact = rows["method"] == EXACT
    width = (rows["total_variation_high"] - rows["total_variation_low"]).where(exact)
    rows = rows.assign(width=width, language=rows["language"].map(LANGUAGES.get).where(rows["engine"] != IDEAL, ""))
    if "effective" in rows:
        rows["weak"] = (rows["effective"] < FEW_EFFECTIVE).where(~exact)
    place = [rows["model"], rows["prompt"]]
    wanted = rows.groupby(["model", "method"])["engine"].transform("nunique")
    complete = rows.groupby(place)["engine"].transform("nunique") == wanted
    return rows[complete & ~(width > OPEN).groupby(place).transform("any")].reset_index(drop=True)


def _of_choices(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Choices one by one where there are few prompts; the followed choice of a single one."""
    import pandas as pd

    count = rows["prompt"].nunique()
    made = {}
    if count <= FEW:
        made["listed"] = pd.concat(_choices(row) for row in rows.to_dict("records"))
    if count == 1:
        made["one"] = made["listed"].query("followed")
    return made


def _probabilities(row: Mapping[Any, Any]) -> dict[str, float]:
    return dict(zip(dict.fromkeys(json.loads(row["choices"])), json.loads(row["probabilities"]), strict=True))


def _choices(row: Mapping[Any, Any]) -> pd.DataFrame:
    """A row for each of the first choices of a prompt; the expected one, or the first, is followed."""
    import pandas as pd

    values = _probabilities(row)
    shares = json.loads(row["proper_shares"]) if row["engine"] == IDEAL else []
    followed = row["expected"] if isinstance(row["expected"], str) else next(iter(values))
    listed = pd.DataFrame({"choice": map(repr, values), "probability": values.values()})
    listed["proper_share"] = pd.Series(shares, dtype="float64")
    about = {name: row[name] for name in ("model", "prompt", "engine", "total_variation")}
    return listed.assign(followed=[one == followed for one in values], **about).head(FEW)


def _with_ends(name: str) -> Stat:
    return Stat(name, ends=(f"{name}_low", f"{name}_high"))


def _verdicts(verdict: str) -> Stat:
    return Stat("verdict", "count", verdict, f"verdict == '{verdict}'")


_BY = ("model", "engine")

KIND = model_kind(
    Settings,
    turns,
    "engine",
    columns=(
        *(text(name) for name in ("engine", "prompt", "choice", "verdict", "against")),
        *(text("method", "distances"), text("language", "spellings")),
        Column("total_variation", "total variation", "", "lower", "from the model's own distribution, or from P"),
        Column("kl_forward", "KL(target || it)", "", "lower", "nats"),
        Column("kl_backward", "KL(it || target)", "", "lower", "nats"),
        Column("jensen_shannon", "Jensen-Shannon", "", "lower", "nats"),
        Column("width", "open", "", "lower", "between the bounds of the total variation"),
        Column("improper", "improper mass", "share", "neither", "of sequences that the tokenizer would not make"),
        Column("improper_target", "improper mass of P", "share"),
        Column("mean_tokens", "tokens", meaning="of a text"),
        Column("forced_share", "forced", "share", "neither", "steps with one allowed token"),
        Column("top_differs", "other choice on top", "share", "lower"),
        Column("expected_top", "expected on top", "share", "higher"),
        Column("probability"),
        Column("proper_share", "proper share", "share", "higher", "of the ideal's mass, what the proper spelling has"),
        Column("difference", "largest difference", "", "lower"),
        Column("kept", "kept share", "", "higher", "the mass relative to that of the first engine"),
        Column("effective", "effective samples", "", "higher"),
        Column("cut_share", "cut", "share", "lower", "samples longer than the limit"),
        seconds("compile_seconds", "compile"),
    ),
    places=("prompt", "engine"),
    case=("model", "prompt"),
    frames=frames,
    tables=(
        Summary(
            "skew",
            "Distribution skew",
            "Medians over the prompts that every engine went through. Exact: distances from the model's own "
            "distribution over the choices, middles of their bounds. Estimated: of what sampling through the masks "
            "gives (Q) from the model restricted to the engine's own sequences (P); weak: estimates with fewer than "
            f"{FEW_EFFECTIVE} effective samples. The columns from nearer on count prompts by their total variation "
            "beside the first engine's, beyond the bounds or by the test of paired samples at 95%.",
            by=("model", "method", "engine"),
            values=(
                *("language", Stat("prompt", "distinct", "prompts"), Stat("weak", "sum", "weak"), "total_variation"),
                *(Stat("total_variation", how, how) for how in ("p90", "max")),
                *(*DISTANCES[1:], "improper", "improper_target", "mean_tokens", "forced_share"),
                *(Stat("cut_share", "mean", "cut"), "top_differs:share", "expected_top:share"),
                *map(_verdicts, (NEARER, FARTHER, SAME, UNDECIDED)),
                *(Stat("rows", "sum", "model rows"), "compile_seconds", "seconds"),
            ),
            brief=(*_BY, "total variation", "improper mass", "expected on top"),
        ),
        Pivot(
            "skew_prompts",
            "Total variation by prompt",
            "With bounds, or with 95% intervals where it is estimated.",
            rows=("model", "prompt"),
            value=_with_ends("total_variation"),
            beside=(Stat("effective", "min", "least effective samples"),),
            ratio=False,
            frame="prompts",
        ),
        Pivot(
            "skew_kept",
            "Share of the first engine's mass that is kept",
            "With 95% intervals, where neither estimate is weak: an engine may be near to a target that is far away.",
            rows=("model", "prompt"),
            value=_with_ends("kept"),
            ratio=False,
        ),
        Pivot(
            "skew_probabilities",
            "Probabilities of the choices",
            "Probability of each choice, given that it is one of them. Proper share: of the ideal's mass for a choice, "
            "what its proper spelling has.",
            rows=("model", "prompt", "choice"),
            value="probability",
            beside=(Stat("proper_share", "max", "proper share"),),
            frame="listed",
        ),
    ),
    charts=(
        Distribution(
            "skew_ecdf",
            "Skew: share of prompts with at most so much",
            "Curves of engines that agree lie on each other.",
            x="total_variation",
            panels="model",
            frame="several",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{model}: P({choice}) is {probability} by the model itself.",
            per=("model",),
            frame="one",
            where=f"engine == '{IDEAL}'",
        ),
        Say(
            "{model}, {engine}: P({choice}) is {probability}, total variation from the ideal {total_variation}.",
            per=_BY,
            frame="one",
        ),
        Say(
            "{model}, {engine}: total variation from its target {total_variation} in the median of {prompt:distinct} "
            "prompts (p90 {total_variation:p90}, max {total_variation:max}).",
            per=_BY,
            frame="several",
        ),
        Say(
            "Engines of the same token language have the same distribution, or drew the same samples, in {same:sum} of "
            "{same:count} comparisons.",
            where="same.notna()",
        ),
        Say(
            "Exact up to what was left unresolved: no total variation is open by more than {width:max}.",
        ),
        Say(
            "{model}: {weak:sum} of {weak:count} estimates rest on fewer than "
            f"{FEW_EFFECTIVE} effective samples, and {{cut}} on samples of which more than 5% were cut.",
            per=("model",),
            blanks={"cut": Stat("weak", "count", where="cut_share > 0.05")},
            where="effective > 0",
        ),
        Say(
            "{model}: {lost} prompts are left out of all numbers, as an engine failed there or its bounds are more "
            f"than {OPEN:g} apart.",
            per=("model",),
            frame="lost",
        ),
    ),
)

"""The experiment ``kind: intoxication``: what one improperly spelled word does to the next token of a language model.

The claim under test (002, challenge 2): a model seldom or never sees improper tokens in training, so those that a
constraint makes it write, and that are fed back to it, may mislead it. `tokdfa.skew.intoxication` has the words and the
measures. There is one item; its rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``shark``: "A [animal] shark is a kind of", with every improper spelling of `` shark`` in turn (the shortest first, at
  most `max_spellings`): ``animal``, ``ratio_proper`` and ``ratio``, which are P(" mammal") / P(" fish") after the
  proper and after the improper tokens, ``mammal`` and ``fish``, both probabilities after the proper tokens, and the
  measures;
- ``text``: `count` random texts, one random word of each respelled, in each of the ways `how`; texts and words are the
  same for every way and for all models with one tokenizer: ``how``, ``text``, ``word`` (the span that was respelled,
  which may begin with a space), ``distance`` (tokens between the word and the next token), and the measures.

The measures: ``spelling`` (the improper tokens of the span, ``|`` between them), ``extra_tokens`` (how many more they
are than the proper ones), ``kl`` (KL(proper || improper) of the next token, in nats), ``total_variation``, and
``same_top`` (the most probable token is the same). A divergence below `FLOOR` is the noise of float32 and told as none.
Intervals are bootstraps over texts: the spellings of one text stay together.

What cannot be measured is a row with its ``status`` and ``message``. The row of the model counts the rows that it
computed: one for the proper tokens of a text, whatever the number of respellings, as rows are kept (`CachedModel`).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Computed, Distribution, Kind, Listing, Results, Say, Stat, Summary
from tokdfa.lab.declare.columns import text
from tokdfa.lab.declare.intervals import cluster_interval
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.model_entries import Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.models.cache import CachedModel
from tokdfa.skew.intoxication import SHARK_CONTINUATIONS, SHARKS, How, compare_rows, intoxicate_texts, respellings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.skew.intoxication import Intoxication
    from tokdfa.vocabulary.tokenizers import Tokenizer

SHARK, TEXT = "shark", "text"
#: What stands between the tokens of a spelling.
BORDER = "|"
_WORD = " shark"
#: A divergence below this counts as none, in nats.
FLOOR = 1e-6
#: Texts with a number of tokens that belong together: column -> (what it is, upper ends, labels).
BINS = {
    "distance": ("tokens between", (0, 3, 15, np.inf), ("none", "1 to 3", "4 to 15", "16 and more")),
    "extra_tokens": ("extra tokens", (0, 1, 3, np.inf), ("none or fewer", "1", "2 or 3", "4 and more")),
}

Count = Annotated[int, Field(ge=1, le=100_000)]


class Settings(BaseModel):
    """The settings of the experiment.

    `models`: see `tokdfa.lab.measure.model_entries`; `count`: texts for each way and model; `sentences`: where they are
    drawn from, by default sentences of Python's reference pages. `threads`: of torch; `cache_mb`: for the rows that are
    kept.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    max_spellings: Count = 64
    count: Count = 300
    how: list[How] = Field(default=["fewest", "random", "letters"], min_length=1)
    sentences: list[str] = Field(default_factory=list)
    threads: Annotated[int, Field(ge=1, le=64)] = 2
    cache_mb: Annotated[int, Field(ge=1, le=64_000)] = 512


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    if len(set(typed.how)) < len(typed.how):
        raise OptionError(f"settings.how: a way is given twice: {', '.join(typed.how)}")
    check_models(typed.models)
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all models, one after the other. `settings`: those of `Settings`; `seed`: of texts and spellings."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        model = CachedModel(loaded.model, typed.cache_mb)
        rows += guarded({**loaded.place, "part": SHARK}, _shark_rows(model, loaded.tokenizer, typed.max_spellings))
        for how in typed.how:
            place = {**loaded.place, "part": TEXT, "how": how}
            rows += guarded(place, _text_rows(model, loaded.tokenizer, typed, how, seed))
        finish_row(loaded)
    return rows


def _measures(found: Intoxication, tokenizer: Tokenizer) -> dict[str, Any]:
    """The columns that a shark and a text have in common; see the module."""
    respelled = found.respelled
    begin, end = respelled.span
    row = found.as_row()
    del row["text"], row["span_tokens"], row["jensen_shannon"]
    vocabulary = tokenizer.vocabulary
    spelled = respelled.improper[begin : end + respelled.extra_tokens]
    parts = [vocabulary.token_bytes(token).decode(errors="backslashreplace") for token in spelled]
    word = vocabulary.spell(respelled.proper[begin:end]).decode(errors="backslashreplace")
    return {"word": word, "spelling": BORDER.join(parts), **row}


def _shark_rows(model: CachedModel, tokenizer: Tokenizer, most: int) -> Iterator[dict[str, Any]]:
    mammal, fish = SHARK_CONTINUATIONS
    for animal in SHARKS:
        before = f"A {animal}"
        text = f"{before}{_WORD} is a kind of"
        span = (len(before), len(before) + len(_WORD))
        spellings = list(itertools.islice(respellings(tokenizer, text, span), most))
        # all rows in one call, which computes their common beginnings once; `compare_rows` then finds them kept
        ways = [one.improper for one in spellings] + [one.proper for one in spellings[:1]]
        model.log_probabilities([(*model.start_tokens, *way) for way in ways])
        for spelling in spellings:
            found = compare_rows(model, spelling, tokenizer, SHARK_CONTINUATIONS)
            ratio_proper, ratio = found.ratio(mammal, fish)
            yield {
                "animal": animal,
                "text": text,
                **_measures(found, tokenizer),
                "ratio_proper": ratio_proper,
                "ratio": ratio,
                "mammal": math.exp(found.continuations[mammal][0]),
                "fish": math.exp(found.continuations[fish][0]),
            }


def _text_rows(
    model: CachedModel, tokenizer: Tokenizer, settings: Settings, how: How, seed: int
) -> Iterator[dict[str, Any]]:
    sentences = settings.sentences or None
    for found in intoxicate_texts(model, tokenizer, sentences, count=settings.count, seed=seed, how=how):
        yield {"text": found.respelled.text, **_measures(found, tokenizer)}


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The texts; the same by each thing that they may be split by; pairs of ways of spelling; the sharks."""
    import pandas as pd

    found = parts(rows, TEXT)
    if SHARK in found:
        sharks = found[SHARK]
        sharks = sharks.assign(
            turned=(sharks["ratio"] > 1) != (sharks["ratio_proper"] > 1), changed=sharks["same_top"] == 0
        )
        of_proper = sharks.groupby(["model", "animal"], sort=False).head(1)
        found[SHARK] = sharks
        found["ratios"] = pd.concat(
            [
                sharks.assign(spelled="improper, median"),
                of_proper.assign(ratio=of_proper["ratio_proper"], spelled="proper"),
                *(_extreme(sharks, most) for most in (False, True)),
            ]
        )
    texts = found[""]
    if texts.empty:
        return found
    texts = texts.assign(kl=texts["kl"].where(texts["kl"] >= FLOOR, 0.0), new_top=texts["same_top"] == 0)
    texts["moved"] = texts["kl"].clip(lower=FLOOR)
    splits = [texts.assign(split="way of spelling", group=texts["how"])]
    for column, (name, ends, labels) in BINS.items():
        group = pd.cut(texts[column].astype("float64"), [-np.inf, *ends], labels=list(labels)).astype(str)
        splits.append(texts.assign(split=name, group=group).sort_values(column, kind="stable"))
    pairs = []
    for model, mine in texts.groupby("model", sort=False):
        by_way = mine.pivot_table(index="text", columns="how", values="kl", aggfunc="first", sort=False)
        ways = list(dict.fromkeys(mine["how"]))
        for one, other in itertools.pairwise(ways):
            gap = (by_way[other] - by_way[one]).dropna()
            pairs.append(pd.DataFrame({"model": model, "pair": f"{other} less {one}", "text": gap.index, "gap": gap}))
    return {
        **found,
        "": texts,
        "splits": pd.concat(splits),
        "pairs": pd.concat(pairs) if pairs else pd.DataFrame(),
        "most": texts.sort_values("kl", ascending=False, kind="stable").drop_duplicates(["model", "text"]),
    }


def _extreme(sharks: pd.DataFrame, most: bool) -> pd.DataFrame:
    """Of each model and animal the spelling with the largest, or the smallest, ratio."""
    found = sharks.sort_values("ratio", ascending=not most, kind="stable").groupby(["model", "animal"]).head(1)
    return found.assign(spelled=f"improper, {'most' if most else 'least'}")


def correlations(results: Results) -> list[str]:
    """Whether the divergence grows with distance and extra tokens: rank correlations with their intervals."""
    from scipy.stats import spearmanr

    said = []
    texts = results.rows()
    for model, mine in texts.groupby("model", sort=False) if len(texts) else ():
        for column, (name, _, _) in BINS.items():
            values = mine[[column, "kl"]].to_numpy(dtype=np.float64)

            def rank_correlation(chosen: Any, values: Any = values) -> float:
                one, other = values[chosen].T
                return float(spearmanr(one, other).statistic) if np.ptp(one) and np.ptp(other) else 0.0

            ends = cluster_interval(rank_correlation, mine["text"].tolist())
            if ends is None or ends[0] <= 0 <= ends[1]:
                said.append(f"{model}: no dependence of the divergence on {name} beyond its error.")
            else:
                said.append(
                    f"{model}: the divergence {'grows' if ends[0] > 0 else 'falls'} with {name}, rank correlation "
                    f"{rank_correlation(slice(None)):.3f} (95% interval {ends[0]:.3f} to {ends[1]:.3f})."
                )
    return said


_NEW_TOP = Stat("new_top", "share", resample=("text",))

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        text("how", "spelled with"),
        text("split", "split by"),
        text("group"),
        text("animal"),
        text("text"),
        text("word"),
        text("spelling", "spelled"),
        text("pair"),
        Column("distance", "tokens between", meaning="tokens between the word and the next token"),
        Column("extra_tokens", "extra tokens", meaning="how many more the improper tokens are than the proper ones"),
        Column("kl", "divergence", "", "lower", "KL(proper || improper) of the next token, in nats"),
        Column("moved", "divergence in nats", "", "lower", f"what is below {FLOOR:.6f} counts as that"),
        Column("gap", "difference"),
        Column("total_variation", "total variation", "share", "lower"),
        Column("new_top", "new first token", "share", "lower", "another token is the most probable one"),
        Column("changed", meaning="another token is the most probable one"),
        Column("turned", meaning="the ratio is on the other side of 1 than that of the proper tokens"),
        Column("ratio", "P( mammal) / P( fish)"),
        Column("ratio_proper", "ratio, proper"),
        Column("mammal", "P( mammal)", "share"),
        Column("fish", "P( fish)", "share"),
    ),
    engine="how",
    case=("model", "text"),
    frames=frames,
    tables=(
        Summary(
            "texts",
            "How far one respelled word moves the next token",
            "Texts with one word respelled; divergences in nats. With 95% intervals, by bootstrap over texts.",
            by=("model", "split", "group"),
            values=(
                *(Stat("text", "distinct", "texts"), Stat("kl", "count", "spellings")),
                Stat("extra_tokens", "mean", "mean extra tokens"),
                Stat("kl", "median", "divergence, median", resample=("text",)),
                *("kl:p90", "kl:max", "total_variation", _NEW_TOP),
            ),
            frame="splits",
            brief=("model", "split by", "group", "texts", "divergence, median", "new first token"),
        ),
        Summary(
            "sharks",
            "What kind of animal a shark is",
            '"A [animal] shark is a kind of", with every improper spelling of the word shark and of the space before '
            "it. Turned: spellings whose ratio is on the other side of 1.",
            by=("model", "animal"),
            values=(
                *(Stat("ratio", "count", "spellings"), "mammal:first", "fish:first", "ratio_proper:first"),
                *(Stat("ratio", how, f"improper, {how}") for how in ("median", "min", "max")),
                *(Stat("turned", "sum", "turned"), Stat("changed", "sum", "new first token")),
                *(Stat("kl", title="divergence, median"), "kl:max"),
            ),
            frame=SHARK,
        ),
        Listing(
            "most_moved",
            "Texts that move the next token most",
            "The word's improper tokens, and how many tokens stand between it and the next one. Each text once.",
            shown=("model", "text", "spelling", "distance", "kl"),
            sort="kl",
            most=20,
            frame="most",
        ),
        MODELS,
        not_measured("part", "how"),
    ),
    charts=(
        Distribution(
            "intoxication_how",
            "Divergence of the next token by way of spelling",
            "The share of texts whose next token moves at most so far.",
            x="moved",
            panels="model",
        ),
        Bars(
            "sharks",
            "P( mammal) / P( fish) of four sharks",
            "With the proper tokens, and over all improper spellings of the word shark.",
            x="ratio",
            rows="animal",
            by="spelled",
            panels="model",
            hover=("spelling",),
            frame="ratios",
        ),
        Distribution(
            "intoxication_distance",
            "Divergence of the next token by tokens between word and next token",
            "All ways of spelling together.",
            x="moved",
            by="group",
            panels="model",
            frame="splits",
            where="split == 'tokens between'",
        ),
    ),
    sentences=(
        Say(
            "{model}: one word of a text respelled ({how}) moves the next token by {kl} nats in the median of "
            "{texts} texts; another token becomes the most probable one in {new_top}.",
            per=("model", "how"),
            blanks={
                "kl": Stat("kl", resample=("text",)),
                "texts": "text:distinct",
                "new_top": Stat("new_top", "share"),
            },
        ),
        Say(
            "{model}: {turned} of {spellings} improper spellings of the word shark take P( mammal) / P( fish) to the "
            "other side of 1, and {changed} change the most probable next token.",
            per=("model",),
            blanks={"turned": "turned:sum", "spellings": "ratio:count", "changed": "changed:sum"},
            frame=SHARK,
        ),
        Say(
            "{model}, {pair}: the divergence differs by {gap} nats in the median of the same texts.",
            per=("model", "pair"),
            blanks={"gap": Stat("gap", resample=("text",))},
            frame="pairs",
        ),
        Computed(correlations),
        *FAILURES,
    ),
)

"""The experiment ``kind: intoxication``: what one improperly spelled word does to the next token of a language model.

The claim under test (Tran-Thien 2024, challenge 2): a model seldom or never sees improper tokens in training, so those
that a constraint makes it write, and that are fed back to it, may mislead it. `tokdfa.skew.intoxication` has the words
and the measures. Rows, by ``part``:

- ``shark``: "A [animal] shark is a kind of", with every improper spelling of `` shark`` in turn (the shortest first, at
  most `max_spellings`): ``ratio_proper`` and ``ratio``, which are P(" mammal") / P(" fish") after the proper and after
  the improper tokens, ``mammal`` and ``fish``, both probabilities after the proper tokens, and the measures;
- ``text``: `count` random texts, one random word of each respelled, in each of the ways `how`; texts and words are the
  same for every way and for all models with one tokenizer.

The measures: ``word`` (the span that was respelled, which may begin with a space), ``spelling`` (its improper tokens),
``extra_tokens``, ``distance``, ``kl`` (KL(proper || improper) of the next token, in nats), ``total_variation``,
``same_top`` (the most probable token is the same). A divergence below `FLOOR` is the noise of float32 and told as none.
Intervals are bootstraps over texts: the spellings of one text stay together.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any, get_args

import numpy as np
from pydantic import Field

from tokdfa.lab.declare import Column, Distribution, Say, Stat, Summary
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.model_bench import Count, ModelSettings, model_kind
from tokdfa.lab.measure.settings import distinct
from tokdfa.models.cache import CachedModel
from tokdfa.skew.intoxication import SHARK_CONTINUATIONS, SHARKS, How, compare_rows, intoxicate_texts, respellings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
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


class Settings(ModelSettings):
    """The settings of the experiment.

    `count`: texts for each way and model; `sentences`: where they are drawn from, by default sentences of Python's
    reference pages.
    """

    max_spellings: Count = 64
    count: Count = 300
    how: Annotated[list[How], Field(min_length=1), distinct("ways", str)] = Field(default=[*get_args(How)])
    sentences: list[str] = Field(default_factory=list)


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """The sharks, then the texts in each way. A text's proper row is computed once, as rows are kept."""
    model = CachedModel(loaded.model, settings.cache_mb)
    yield {"part": SHARK}, _sharks(model, loaded.tokenizer, settings.max_spellings)
    for how in settings.how:
        yield {"how": how}, _texts(model, loaded.tokenizer, settings, how, seed)


def _measures(found: Intoxication, tokenizer: Tokenizer) -> dict[str, Any]:
    """The columns that a shark and a text have in common; see the module."""
    respelled, vocabulary = found.respelled, tokenizer.vocabulary
    begin, end = respelled.span
    spelled = respelled.improper[begin : end + respelled.extra_tokens]
    parts = [vocabulary.token_bytes(token).decode(errors="backslashreplace") for token in spelled]
    return {
        "text": respelled.text,
        "word": vocabulary.spell(respelled.proper[begin:end]).decode(errors="backslashreplace"),
        "spelling": BORDER.join(parts),
        "distance": respelled.distance,
        "extra_tokens": respelled.extra_tokens,
        "kl": found.kl,
        "total_variation": found.total_variation,
        "same_top": found.same_top,
    }


def _sharks(model: CachedModel, tokenizer: Tokenizer, most: int) -> Iterator[dict[str, Any]]:
    mammal, fish = SHARK_CONTINUATIONS
    for animal in SHARKS:
        before = f"A {animal}"
        span = (len(before), len(before) + len(_WORD))
        spellings = list(itertools.islice(respellings(tokenizer, f"{before}{_WORD} is a kind of", span), most))
        # all rows in one call, which computes their common beginnings once; `compare_rows` then finds them kept
        ways = [one.improper for one in spellings] + [one.proper for one in spellings[:1]]
        model.log_probabilities([(*model.start_tokens, *way) for way in ways])
        for spelling in spellings:
            found = compare_rows(model, spelling, tokenizer, SHARK_CONTINUATIONS)
            ratio_proper, ratio = found.ratio(mammal, fish)
            own = {name: math.exp(found.continuations[f" {name}"][0]) for name in ("mammal", "fish")}
            yield {"animal": animal, "ratio_proper": ratio_proper, "ratio": ratio, **own, **_measures(found, tokenizer)}


def _texts(
    model: CachedModel, tokenizer: Tokenizer, settings: Settings, how: How, seed: int
) -> Iterator[dict[str, Any]]:
    sentences = settings.sentences or None
    for found in intoxicate_texts(model, tokenizer, sentences, count=settings.count, seed=seed, how=how):
        yield _measures(found, tokenizer)


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The texts; the same by each thing that they may be split by; the sharks."""
    import pandas as pd

    texts = found[""]
    texts = texts.assign(kl=texts["kl"].where(texts["kl"] >= FLOOR, 0.0), new_top=texts["same_top"] == 0)
    texts["moved"] = texts["kl"].clip(lower=FLOOR)
    splits = [texts.assign(split="way of spelling", group=texts["how"])]
    for column, (name, ends, labels) in BINS.items():
        group = pd.cut(texts[column].astype("float64"), [-np.inf, *ends], labels=list(labels)).astype(str)
        splits.append(texts.assign(split=name, group=group).sort_values(column, kind="stable"))
    made = {"": texts, "splits": pd.concat(splits)}
    if SHARK in found:
        sharks = found[SHARK]
        turned = (sharks["ratio"] > 1) != (sharks["ratio_proper"] > 1)
        made[SHARK] = sharks.assign(turned=turned, changed=sharks["same_top"] == 0)
    return made


_NEW_TOP = Stat("new_top", "share", resample=("text",))

KIND = model_kind(
    Settings,
    turns,
    TEXT,
    columns=(
        text("how", "spelled with"),
        *(text(name) for name in ("group", "animal", "text")),
        text("split", "split by"),
        Column("extra_tokens", "extra tokens", meaning="how many more the improper tokens are than the proper ones"),
        Column("kl", "divergence", "", "lower", "KL(proper || improper) of the next token, in nats"),
        Column("moved", "divergence in nats", "", "lower", f"what is below {FLOOR:.6f} counts as that"),
        Column("total_variation", "total variation", "share", "lower"),
        Column("new_top", "new first token", "share", "lower", "another token is the most probable one"),
        Column("changed", meaning="another token is the most probable one"),
        Column("turned", meaning="the ratio is on the other side of 1 than that of the proper tokens"),
        Column("ratio", "P( mammal) / P( fish)"),
        Column("ratio_proper", "ratio, proper"),
        Column("mammal", "P( mammal)", "share"),
        Column("fish", "P( fish)", "share"),
    ),
    places=("part", "how"),
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
    ),
    charts=(
        Distribution(
            "intoxication_how",
            "Divergence of the next token by way of spelling",
            "The share of texts whose next token moves at most so far.",
            x="moved",
            panels="model",
        ),
    ),
    sentences=(
        Say(
            "{model}: one word of a text respelled ({how}) moves the next token by {kl} nats in the median of "
            "{text:distinct} texts; another token becomes the most probable one in {new_top:share}.",
            per=("model", "how"),
            blanks={"kl": Stat("kl", resample=("text",))},
        ),
        Say(
            "{model}: {turned:sum} of {ratio:count} improper spellings of the word shark take P( mammal) / P( fish) to "
            "the other side of 1, and {changed:sum} change the most probable next token.",
            per=("model",),
            frame=SHARK,
        ),
    ),
)

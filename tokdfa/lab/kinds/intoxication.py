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
are than the proper ones), ``kl`` (KL(proper || improper)), ``jensen_shannon`` and ``total_variation`` of the next
token, in nats, and ``same_top`` (the most probable token is the same).

What cannot be measured is a row with its ``status`` and ``message``. The row of the model counts the rows that it
computed: one for the proper tokens of a text, whatever the number of respellings, as rows are kept (`CachedModel`).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.errors import OptionError
from tokdfa.lab.measure.model_entries import Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.models.cache import CachedModel
from tokdfa.skew.intoxication import (
    SHARK_CONTINUATIONS,
    SHARKS,
    How,
    compare_rows,
    intoxicate_texts,
    respellings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.skew.intoxication import Intoxication
    from tokdfa.vocabulary.tokenizers import Tokenizer

SHARK, TEXT = "shark", "text"
#: What stands between the tokens of a spelling.
BORDER = "|"
_WORD = " shark"

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


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    if len(set(typed.how)) < len(typed.how):
        raise OptionError(f"settings.how: a way is given twice: {', '.join(typed.how)}")
    check_models(typed.models)
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure all models, one after the other. `settings`: those of `Settings`; `seed`: of texts and spellings."""
    typed = check_settings(settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        model = CachedModel(loaded.model, typed.cache_mb)
        rows += guarded({**loaded.place, "part": SHARK}, _shark_rows(model, loaded.tokenizer, typed.max_spellings))
        for how in typed.how:
            place = {**loaded.place, "part": TEXT, "how": how}
            rows += guarded(place, _text_rows(model, loaded.tokenizer, typed, how, seed))
        finish_row(loaded)
    return rows


def measures(found: Intoxication, tokenizer: Tokenizer) -> dict[str, Any]:
    """The columns that a shark and a text have in common; see the module."""
    respelled = found.respelled
    begin, end = respelled.span
    row = found.as_row()
    del row["text"], row["span_tokens"]
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
                **measures(found, tokenizer),
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
        yield {"text": found.respelled.text, **measures(found, tokenizer)}

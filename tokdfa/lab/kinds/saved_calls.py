"""The experiment ``kind: saved_calls``: what engines leave to choose along texts as the tokenizer cuts them.

A *step* appends one token, or ends the text. It is *forced* if only one token is allowed, or only end tokens, and then
no *call* of the model is needed: calls = steps - forced steps. The claim under test: proper tokenization makes forced
steps frequent (Tran-Thien 2024, challenge 3, and the notebook to it). What a model writes is asked by ``kind: worth``,
in ``saved_calls_lm.yaml``.

An engine may also refuse the tokenizer's own tokens of a text that is in the language, as one that mutes literals does
(outlines-core's pull request 194, which says nothing of it): which of these *proper* tokenizations it forbids is asked
in ``literal_muting.yaml``.

An item is a tokenizer and a constraint with its texts; a row is a text with an engine, along the tokenizer's own
tokens. The published figures (1,000 JSON strings with 18,898 tokens of Mistral-7B's tokenizer) count no end, neither as
a step nor as an alternative, and leave the tokens of the byte fallback out: that is ``forced_002``.

Only texts that all engines went through are counted. Shares are of steps, so long texts weigh more than short ones, as
they do in a decoding loop; differences between engines are paired, text by text. Intervals are bootstraps over
constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Pivot, Quotient, Say, Stat, Summary, Tally
from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.constraint_entry import item_constraint
from tokdfa.lab.measure.engines import Engines, EngineSet
from tokdfa.lab.measure.forced_steps import WRONG_REFUSAL, follow_text
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd


class Settings(Strict):
    """The settings of the experiment. `engines`: the first is what the others are compared with; `texts`: those of the
    item's constraint, of which those in the language of a regex are followed, or label of a constraint -> its texts.
    """

    engines: Engines
    texts: list[str] | dict[str, list[str]] = Field(default_factory=list)


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Follow the texts of one constraint. `settings`: those of `Settings`, ``tokenizer`` (name) and those of a
    constraint. Raises OptionError if a constraint has no texts, ConfigError if there is none. `seed` is not used.
    """
    typed = typed_settings(Settings, {key: value for key, value in settings.items() if key in Settings.model_fields})
    constraint = item_constraint({key: value for key, value in settings.items() if key != "texts"}).build()
    texts = typed.texts if isinstance(typed.texts, list) else typed.texts.get(settings.get("label", ""), [])
    if isinstance(typed.texts, list) and isinstance(constraint, Regex):
        language = attempt(compile_dfa, constraint)
        if isinstance(language, Failure):
            return [{"tokenizer": settings["tokenizer"], "constraint": constraint.name, **language.columns}]
        texts = [one for one in texts if language.accepts(one.encode())]
    if not texts:
        raise OptionError(f"the constraint {constraint.name!r} has no texts, nor has settings.texts any for it")
    tokenizer = load_tokenizer(settings["tokenizer"])
    engine_set = EngineSet(typed.engines, tokenizer.vocabulary)
    rows: list[dict[str, Any]] = []
    for engine in typed.engines:
        place: dict[str, Any] = {"tokenizer": tokenizer.name, "constraint": constraint.name, "engine": engine.name}
        compiled = engine_set.compile(engine.name, constraint)
        if isinstance(compiled, Failure):
            rows.append({**place, **compiled.columns})
            continue
        place["literals"] = compiled.sizes.get("literals")
        for sample, one in enumerate(texts):
            told = {"sample": sample, "text": one, "status": OK, "message": ""}
            rows.append({**place, **told, **follow_text(compiled, one, tokenizer)})
    return rows


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The texts that all engines went through; each beside the first engine's; what was not followed; and where proper
    tokenizations are refused, the share of each case (of engines that count literals, those with some).
    """
    place = ["tokenizer", "constraint", "sample"]
    told = ("engine", "literals", "positions", "sample", "text", "steps", "calls")
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *told])])
    followed = rows[rows["status"].isin([OK, WRONG_REFUSAL]) & ~(rows["literals"] == 0)]
    followed = followed.assign(refused=followed["status"] == WRONG_REFUSAL)
    cases = followed.groupby(["engine", "constraint", "tokenizer"], sort=False)
    sums = cases[["refused", "positions"]].sum()
    sums["texts"], sums["literals"] = cases.size(), cases["literals"].max()
    sums["forbidden"], sums["stopped"] = sums["refused"] / sums["texts"], sums["refused"] / sums["positions"]
    sums = sums.reset_index()
    refusing = sums[sums["engine"].isin(sums.loc[sums["refused"] > 0, "engine"])]
    lost, texts = rows[rows["status"] != OK], rows[rows["status"] == OK]
    lost = lost.assign(status=lost["status"].map(readable))
    if texts.empty:
        return {"": texts, "lost": lost, "refusing": refusing}
    wanted = texts.groupby("tokenizer")["engine"].transform("nunique")
    texts = texts[texts.groupby(place)["engine"].transform("nunique") == wanted]
    texts = texts.assign(saved=texts["steps"] - texts["calls"])
    texts["share"] = texts["saved"] / texts["steps"]
    first = texts.groupby(place, sort=False)[["engine", "share"]].first().add_suffix("_first").reset_index()
    beside = texts.merge(first, on=place)
    beside = beside[beside["engine"] != beside["engine_first"]]
    return {
        "": texts,
        "gaps": beside.assign(gap=beside["share"] - beside["share_first"]),
        "lost": lost,
        "refusing": refusing,
    }


_BY = ("tokenizer", "engine")
_OVER = ("constraint",)
_SAVED = Quotient("saved:sum", "steps:sum", "calls saved", "share", "higher", _OVER)
_AS_002 = Quotient("forced_002:sum", "tokens:sum", "share as published", "share")

KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        *map(text, ("tokenizer", "engine", "constraint", "text")),
        Column("forbidden", "proper tokenizations forbidden", "share", "lower"),
        Column("stopped", "positions forbidden", "share", "lower"),
        *(text("engine_first", "against"), text("status", "kind"), text("message", "reason")),
        Column("steps", meaning="a step appends a token or ends the text"),
        Column("calls", "calls left", "", "lower", "steps at which there is a choice"),
        Column("saved", "forced", "", "higher", "steps with one allowed token, or only end tokens"),
        Column("share", "calls saved", "share", "higher"),
        Column("gap", "more calls saved", "share", "higher", "than by the first engine, of the same text"),
        Column("forced_text", "forced but for the end", "", "higher", "one allowed token beside end tokens"),
        Column("forced_002", "as published", "", "higher", "the same without the tokens of the byte fallback"),
    ),
    case=("tokenizer", "constraint"),
    frames=frames,
    tables=(
        Summary(
            "saved_calls",
            "Steps that need no call",
            "Over the texts that all engines went through; calls saved: forced steps over all steps, with the 95% "
            "interval by bootstrap over constraints. As published: tokens that are forced if neither end tokens nor "
            "those of the byte fallback count.",
            by=_BY,
            values=(
                *(Stat("text", "count", "texts"), Stat("tokens", "sum", "tokens"), Stat("steps", "sum", "steps")),
                *(Stat("saved", "sum", "forced"), _SAVED, Stat("calls", "sum", "calls left")),
                *(Stat("forced_text", "sum", "forced but for the end"), Stat("forced_002", "sum", "as published")),
                _AS_002,
            ),
            brief=(*_BY, "steps", "calls left", "calls saved", "share as published"),
        ),
        Pivot(
            "saved_calls_constraints",
            "Calls saved by constraint",
            "Share of steps that need no call, then the calls.",
            rows=("tokenizer", "constraint"),
            value=_SAVED,
            detail="calls:sum",
            beside=(Stat("sample", "distinct", "texts"),),
        ),
        Summary(
            "refused",
            "Proper tokenizations that are refused",
            "Of texts of the language, what the tokenizer makes of them, with an end token. Medians over tokenizers of "
            "the share that the engine forbids, and of the positions that they reach: those before or at the first "
            "forbidden token. Of engines that mute literals, constraints with some.",
            by=("engine", "constraint"),
            values=(
                *(Stat("literals", "max", "literals"), Stat("texts", "sum", "texts"), "forbidden"),
                *(Stat("forbidden", "max", "forbidden, most"), "stopped"),
            ),
            frame="refusing",
        ),
        Listing(
            "not_measured",
            "Not followed",
            "These take part in no number above.",
            shown=("tokenizer", "constraint", "engine", "text", "status", "message"),
            frame="lost",
        ),
    ),
    charts=(
        Bars(
            "refused",
            "Proper tokenizations that are refused",
            "Of the constraint's texts.",
            x="forbidden",
            rows="constraint",
            by="tokenizer",
            frame="refusing",
            optional=True,
        ),
        Bars(
            "saved_calls",
            "Share of steps that need no call",
            "Forced steps over all steps of the constraint's texts, the end of a text being a step.",
            x=_SAVED,
            rows="constraint",
            panels="tokenizer",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{engine}: {median} of the proper tokenizations are forbidden, {stopped} of the positions "
            "they reach (medians of {cases} cases; at most {most}).",
            per=("engine",),
            blanks={
                **{"median": "forbidden", "stopped": "stopped", "cases": "forbidden:count", "most": "forbidden:max"},
            },
            frame="refusing",
        ),
        Say(
            "{tokenizer}, {engine}: {saved} of the calls are saved, {calls:sum} of {steps:sum} are left; counted as "
            "published, one token is allowed at {forced_002:sum} of {tokens:sum} places ({share}).",
            per=_BY,
            blanks={"saved": _SAVED, "share": _AS_002},
        ),
        Say(
            "{tokenizer}: beyond what {engine_first} saves, {engine} saves {gap} of the calls, in the mean of texts.",
            per=_BY,
            blanks={"gap": Stat("gap", "mean", resample=_OVER)},
            frame="gaps",
        ),
        Say(
            "Published (Tran-Thien 2024, other texts, Mistral-7B's tokenizer): 750 with the plain token DFA and 3,853 "
            "with proper sequences only, of 18,898 positions (3.97% and 20.4%).",
            where="forced_002 >= 0",
        ),
        Tally("texts"),
    ),
)

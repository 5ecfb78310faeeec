r"""The experiment ``kind: literal_muting``: what muting literals costs and saves, and what it does to token sequences.

The claim under test (001, part 5): muting makes the index of ``(https?:\/\/)?...``, the "HTTPS" regex, 20 times faster
to build (27.68 s -> 1.41 s; the plain index 22.31 s; debug builds, as its author says later). The ratio is the claim.
Nothing is said there about the token sequences that a muted constraint no longer takes.

One item is a tokenizer and a constraint. Its rows have a `part`:

- ``cost``: one row a variant: ``tokens_dfa`` with each of the `token_classes`, plain and muted, and for the
  constraints in `baselines_for` the `BASELINES`. Seconds to compile, and of each phase: medians; sizes of what is made.
- ``text``: one row a text of the language, from the `texts` given and those drawn from the pattern
  (`tokdfa.lab.measure.drawn_texts`): see `tokdfa.lab.measure.muting_tokenizations`.
- ``growth``: rows as in ``cost`` for constraints named in `growth.shapes`, in whose pattern ``WORDS`` stands for n
  random lower-case words of l letters: n = each of `counts` with l = `length`, l = each of `lengths` with n = `count`.
  Such a constraint has rows of this part only.

Variants take turns compiling (`tokdfa.lab.measure.compile_race`); the first round is not counted. A variant whose
compiles have taken `seconds` in all takes no further turn, but has one at least. A variant that cannot compile has a
row with its failure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Curves, Kind, Listing, Pivot, Quotient, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.engines import Engine
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.muting_costs import (
    PHASES,
    SIZES,
    Classes,
    Count,
    Growth,
    measure_cost,
    measure_growth,
    muting_variants,
)
from tokdfa.lab.measure.muting_tokenizations import follow_texts
from tokdfa.lab.measure.settings import item_constraint, item_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

#: What a constraint in `baselines_for` is also compiled with.
BASELINES = ("token_index", "outlines_core")
#: Plain over muted compile time of the HTTPS regex in 001: 27.68 s before muting, 1.41 s after.
CLAIM = 27.68 / 1.41
#: Muting pays where the plain compile takes so many times as long.
PAYS = 1.1


class Settings(BaseModel):
    """The settings of the experiment; see the module's page.

    `texts`: texts that are followed on every constraint whose language they are in; `drawn`: how many more are drawn
    for each constraint, of at most `max_bytes` each; `repeats`: timed compiles of each variant; `seconds`: see there.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    token_classes: list[Classes] = Field(default=["strings", "none", "transformations"], min_length=1)
    repeats: Count = 5
    seconds: Annotated[float, Field(gt=0)] = 2.0
    baselines_for: list[str] = Field(default_factory=list)
    texts: list[str] = Field(default_factory=list)
    drawn: Annotated[int, Field(ge=0, le=100_000)] = 200
    max_bytes: Annotated[int, Field(ge=1, le=10_000)] = 300
    growth: Growth = Field(default_factory=Growth)


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint. `settings`: those of `Settings`; tokenizer (name), label, regex (and
    search, ascii_classes, flags). The words and the drawn texts follow from `seed`.
    """
    if "tokenizer" not in settings or "regex" not in settings:
        raise OptionError("literal_muting needs a tokenizer and a regex: literals are looked for in patterns")
    typed, tokenizer = item_settings(Settings, settings), load_tokenizer(settings["tokenizer"])
    constraint = item_constraint({**settings, "texts": []}).build()
    assert isinstance(constraint, Regex)
    place = {"tokenizer": tokenizer.name, "vocab_size": tokenizer.vocabulary.size, "constraint": constraint.name}
    if constraint.label in typed.growth.shapes:
        rows = measure_growth(constraint, tokenizer.vocabulary, typed.growth, typed.seconds, seed)
    else:
        variants = muting_variants(typed.token_classes)
        if constraint.label in typed.baselines_for:
            variants += [Engine(backend=name) for name in BASELINES]
        cost = measure_cost(constraint, tokenizer.vocabulary, variants, typed.repeats, typed.seconds)
        texts = follow_texts(constraint, tokenizer, typed.texts, typed.drawn, typed.max_bytes, seed)
        rows = [{"part": "cost", **row} for row in cost] + [{"part": "text", **row} for row in texts]
    return [place | row for row in rows]


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By part; ``pairs``: plain and muted side by side where something was muted, ``grown`` the same of growth;
    ``claimed``: the constraints with baselines, ``baselines`` their variants beside outlines_core; ``texts``: counts of
    each tokenizer, constraint and source; ``examples``: a forbidden tokenization of each constraint.
    """
    found = ("variant", "backend", "token_classes", "muted", "seconds", "axis", "words", "length", "literals", "source")
    told = ("stops_at", "plain_stops_at", "positions", "proper_count", "fewest_count", "muted_count", "text")
    columns = dict.fromkeys([*rows, *found, *told, *SIZES, *(f"{phase}_s" for phase in PHASES)])
    rows = rows.reindex(columns=[*columns])
    whole = {"words": "Int64", "length": "Int64"}
    cost, growth = rows[rows["part"] == "cost"], rows[rows["part"] == "growth"]
    pairs = _pairs(cost, ["tokenizer", "constraint"])
    peer = cost[cost["backend"] == "outlines_core"].set_index(["tokenizer", "constraint"])["seconds"].rename("peer_s")
    baselines = cost.join(peer, on=["tokenizer", "constraint"])
    baselines = baselines[baselines["constraint"].isin(baselines.loc[baselines["token_classes"] == "", "constraint"])]
    followed = rows[(rows["part"] == "text") & (rows["status"] == OK)]
    texts = rows[(rows["part"] == "text") & (rows["literals"] > 0)].assign(
        is_followed=lambda part: part["status"] == OK,
        is_forbidden=lambda part: (part["status"] == OK) & (part["stops_at"] >= 0),
    )
    counted = texts.groupby(["tokenizer", "constraint", "source"], sort=False)
    counts = counted[["is_followed", "is_forbidden", "positions", "muted_count", "proper_count", "fewest_count"]].sum()
    counts["texts"], counts["literals"] = counted.size(), counted["literals"].max()
    counts["forbidden"] = counts["is_forbidden"] / counts["is_followed"].where(counts["is_followed"] > 0)
    counts["stopped"] = counts["is_forbidden"] / counts["positions"].where(counts["positions"] > 0)
    examples = followed[followed["stops_at"] >= 0].assign(size=lambda part: part["text"].str.len())
    examples = examples.sort_values(["source", "size"], ascending=[False, True], kind="stable")
    examples = examples.drop_duplicates("constraint").sort_index()
    return {
        "": rows,
        "pairs": pairs[pairs["literals"] > 0],
        "claimed": pairs[pairs["constraint"].isin(baselines["constraint"])],
        "baselines": baselines[baselines["status"] == OK],
        "growth": growth[growth["status"] == OK],
        "grown": _pairs(growth.astype(whole), ["tokenizer", "constraint", "axis", *whole]),
        "texts": counts.reset_index(),
        "followed": followed,
        "examples": _spelled_out(examples),
        "lost": rows[rows["status"] != OK],
    }


def _pairs(rows: pd.DataFrame, place: list[str]) -> pd.DataFrame:
    """The muted rows, with how many times as much their plain ones have."""
    done = rows[(rows["status"] == OK) & rows["token_classes"].fillna("").ne("")]
    muted = done["muted"].astype(bool)
    key = [*place, "token_classes"]
    counts = ("seconds", "walks_s", "states", "byte_classes", "class_strings", "graph_nodes")
    plain = done[~muted].set_index(key)[[*counts]].add_suffix("_plain")
    pairs = done[muted].join(plain, on=key)
    for name in counts:
        pairs[f"{name}_gain"] = (pairs[f"{name}_plain"] / pairs[name]).astype("float64")
    return pairs.assign(pays=pairs["seconds_gain"] >= PAYS, walks_share=pairs["walks_s_plain"] / pairs["seconds_plain"])


def _spelled_out(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of texts with their tokens one after the other, and the token that is refused."""
    if rows.empty:
        return rows
    proper, muted = (rows[name].map(json.loads) for name in ("proper_tokens", "muted_tokens"))
    stops = zip(proper, rows["stops_at"].astype(int), strict=True)
    return rows.assign(
        proper_tokens=proper.map(" · ".join),
        muted_tokens=muted.map(" · ".join),
        refused=[tokens[stop] if stop < len(tokens) else "the end" for tokens, stop in stops],
    )


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("constraint"),
        text("variant"),
        text("token_classes"),
        text("part"),
        text("source", "texts"),
        text("text"),
        text("proper_tokens"),
        text("muted_tokens", "shortest allowed"),
        text("refused", "forbidden"),
        text("axis", "what grows"),
        text("status", "ended"),
        text("message", "reason"),
        seconds("seconds", "compile time", "median of the rounds"),
        seconds("seconds_plain", "plain compile time"),
        Column("seconds_gain", "plain over muted compile time", "ratio", "higher", "above 1 muting pays"),
        Column("pays", "muting pays", "", "higher", f"plain compiles take at least {PAYS:g} times as long"),
        Column("walks_share", "share of the walks in a plain compile", "share"),
        *(seconds(f"{phase}_s", phase) for phase in PHASES),
        *(
            Column(f"{name}_gain", f"{title}, divided by", "ratio", "higher")
            for name, title in (
                ("states", "states"),
                ("byte_classes", "byte classes"),
                ("class_strings", "class strings"),
                ("graph_nodes", "graph nodes"),
                ("walks_s", "walks"),
            )
        ),
        Column("words", "words"),
        Column("length", "letters"),
        Column("literals", "literals"),
        Column("ghosts", "ghosts", meaning="literals by where they stand"),
        Column("forbidden", "proper tokenizations forbidden", "share", "lower"),
        Column("stopped", "positions forbidden", "share", "lower"),
        Column("plain_stops_at", "the first token that the plain constraint forbids"),
    ),
    engine="variant",
    case=("tokenizer", "constraint", "axis", "words", "length"),
    frames=frames,
    tables=(
        Pivot(
            "muting_cost",
            "Plain over muted compile time",
            "Compile time of tokens_dfa by its option token_classes: above 1 muting pays. Beside it the plain compile. "
            "Constraints without literals, in which muting changes nothing, are left out.",
            rows=("constraint", "tokenizer"),
            across="token_classes",
            value="seconds_gain",
            beside=("literals:max", "ghosts:max"),
            detail="seconds_plain",
            frame="pairs",
        ),
        Summary(
            "muting_effects",
            "What muting acts on",
            "With token_classes=strings, as in 001: by how much muting divides what is walked, and how long the walks "
            "alone take; medians over the tokenizers. Nodes are those of the prefix graphs.",
            by=("constraint",),
            values=(
                *(f"{name}_gain" for name in ("states", "byte_classes", "class_strings", "graph_nodes", "walks_s")),
                "walks_share",
                "seconds_gain",
            ),
            frame="pairs",
            where="token_classes == 'strings'",
        ),
        Summary(
            "muting_phases",
            "The HTTPS case by phase",
            "Medians over the tokenizers. 001 has 27.68 s for its index with class strings, 1.41 s for the same with "
            "muted literals, and 22.31 s for the plain index of outlines-core, in debug builds. The ratio is of "
            "outlines-core's compile time to the variant's.",
            by=("constraint", "variant"),
            values=(
                "seconds",
                *(f"{phase}_s" for phase in PHASES),
                Quotient("peer_s", "seconds", "outlines_core over it"),
            ),
            frame="baselines",
        ),
        Pivot(
            "muting_growth",
            "Growth with the number and length of literals",
            "Plain over muted compile time, median over the tokenizers. Random lower-case words in a fixed frame: "
            "first their number grows, then their length.",
            rows=("constraint", "axis", "words", "length"),
            across="token_classes",
            value="seconds_gain",
            detail="seconds_plain",
            frame="grown",
        ),
        Summary(
            "muting_tokenizations",
            "Proper tokenizations",
            "Proper is what the tokenizer makes of a text, with an end token. Medians over the tokenizers of the "
            "share of proper tokenizations that muting forbids, and of the positions that they reach: those before or "
            "at the first forbidden token. Texts that the tokenizer does not give back are not followed.",
            by=("source", "constraint"),
            values=(
                Stat("literals", "max", "literals"),
                Stat("texts", "sum", "texts"),
                Stat("is_followed", "sum", "followed"),
                "forbidden",
                Stat("forbidden", "max", "forbidden, most"),
                "stopped",
                Quotient("fewest_count:sum", "proper_count:sum", "fewest tokens over proper"),
                Quotient("muted_count:sum", "proper_count:sum", "fewest allowed over proper"),
            ),
            frame="texts",
        ),
        Listing(
            "muting_examples",
            "Examples of forbidden tokenizations",
            "One text for each constraint: where the muted constraint leaves the proper tokenization.",
            shown=("constraint", "tokenizer", "text", "proper_tokens", "refused", "muted_tokens"),
            frame="examples",
        ),
        Summary(
            "muting_lost",
            "Variants and texts without a result",
            by=("part", "constraint", "status", "message"),
            values=(Stat("status", "count", "rows"), Stat("tokenizer", "distinct", "tokenizers")),
            frame="lost",
        ),
    ),
    charts=(
        Bars(
            "muting_ratio",
            "Plain over muted compile time",
            f"Above 1 muting pays; 001 reports {CLAIM:.1f} for the HTTPS regex. Medians over the tokenizers.",
            x="seconds_gain",
            rows="constraint",
            by="token_classes",
            frame="pairs",
            log=True,
        ),
        *(
            Curves(
                f"muting_growth_{axis}",
                f"Compile time against the {what} of literals",
                "Medians over the tokenizers.",
                x=axis,
                y="seconds",
                panels="constraint",
                frame="growth",
                where=f"axis == '{axis}'",
                log=True,
            )
            for axis, what in (("words", "number"), ("length", "length"))
        ),
        Bars(
            "muting_forbidden",
            "Proper tokenizations that muting forbids",
            "Of texts drawn from the pattern.",
            x="forbidden",
            rows="constraint",
            by="tokenizer",
            frame="texts",
            where="source == 'drawn'",
        ),
    ),
    sentences=(
        Say(
            f"{{constraint}}, class strings as in 001: plain over muted compile time {{gain}} ({{low}} to {{high}} "
            f"over {{tokenizers}} tokenizers), where 001 reports {CLAIM:.1f}x; muting divides the class strings by "
            f"{{strings}} "
            "and the walks over them by {walks}, which are {share} of a plain compile.",
            per=("constraint",),
            blanks={
                "gain": "seconds_gain",
                "low": "seconds_gain:min",
                "high": "seconds_gain:max",
                "tokenizers": "tokenizer:distinct",
                "strings": "class_strings_gain",
                "walks": "walks_s_gain",
                "share": "walks_share",
            },
            frame="claimed",
            where="token_classes == 'strings'",
        ),
        Say(
            "{source} texts: muting forbids {median} of the proper tokenizations and {stopped} of the positions they "
            "reach (medians of {cases} cases with literals; at most {most}); the shortest allowed sequences have "
            "{tokens} times as many tokens as the proper ones.",
            per=("source",),
            blanks={
                "median": "forbidden",
                "stopped": "stopped",
                "cases": "forbidden:count",
                "most": "forbidden:max",
                "tokens": Quotient("muted_count:sum", "proper_count:sum"),
            },
            frame="texts",
        ),
        Say(
            f"{{token_classes}}: muting compiles at least {PAYS:g} times as fast in {{paying}} of {{cases}} cases with "
            "literals; plain over muted compile time {gain} ({low} to {high}).",
            per=("token_classes",),
            blanks={
                "paying": "pays:sum",
                "cases": "pays:count",
                "gain": "seconds_gain",
                "low": "seconds_gain:min",
                "high": "seconds_gain:max",
            },
            frame="pairs",
        ),
        Say(
            "Without muting {refused} of the {followed} proper tokenizations are forbidden.",
            blanks={
                "refused": Stat("plain_stops_at", "count", where="plain_stops_at >= 0"),
                "followed": "plain_stops_at:count",
            },
            frame="followed",
        ),
        Tally("rows"),
    ),
)

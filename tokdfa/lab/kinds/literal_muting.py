r"""The experiment ``kind: literal_muting``: what muting literals does to token sequences.

Outlines-core's pull request 194 (001) mutes literals to build an index faster (``muting_cost.yaml`` and
``muting_growth.yaml`` measure that), and says nothing of the token sequences that a muted constraint no longer takes.

One item is a tokenizer and a constraint; a row is a text of the language, from the `texts` given and those drawn from
the pattern (`tokdfa.lab.measure.drawn_texts`), followed as `tokdfa.lab.measure.muting_tokenizations` says.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Quotient, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.muting_tokenizations import follow_texts
from tokdfa.lab.measure.settings import Strict
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd


class Settings(Strict):
    """`texts`: followed on every constraint whose language they are in; `drawn`: how many more are drawn for each
    constraint, of at most `max_bytes` each.
    """

    texts: list[str] = Field(default_factory=list)
    drawn: Annotated[int, Field(ge=0, le=100_000)] = 200
    max_bytes: Annotated[int, Field(ge=1, le=10_000)] = 300


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Follow the texts of one tokenizer and one constraint. `settings`: those of `Settings`; tokenizer (name), label,
    regex (and search, ascii_classes, flags). The drawn texts follow from `seed`.
    """
    if "tokenizer" not in settings or "regex" not in settings:
        raise OptionError("literal_muting needs a tokenizer and a regex: literals are looked for in patterns")
    typed, tokenizer = item_settings(Settings, settings), load_tokenizer(settings["tokenizer"])
    constraint = item_constraint({**settings, "texts": []}).build()
    assert isinstance(constraint, Regex)
    place = {"tokenizer": tokenizer.name, "constraint": constraint.name}
    found = follow_texts(constraint, tokenizer, typed.texts, typed.drawn, typed.max_bytes, seed)
    return [place | row for row in found]


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows; ``texts``: counts of each tokenizer, constraint with literals and source; ``examples``: a forbidden
    tokenization of each constraint, the shortest.
    """
    told = ("source", "literals", "stops_at", "plain_stops_at", "positions", "proper_count", "fewest_count")
    rows = rows.reindex(
        columns=[*dict.fromkeys([*rows, *told, "muted_count", "text", "proper_tokens", "muted_tokens"])]
    )
    followed = rows[rows["status"] == OK]
    texts = rows[rows["literals"] > 0].assign(
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
    return {
        "": rows,
        "followed": followed,
        "texts": counts.reset_index(),
        "examples": _spelled_out(examples.drop_duplicates("constraint").sort_index()),
    }


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
        text("source", "texts"),
        text("text"),
        text("proper_tokens"),
        text("muted_tokens", "shortest allowed"),
        text("refused", "forbidden"),
        text("status", "ended"),
        text("message", "reason"),
        Column("literals", "literals"),
        Column("forbidden", "proper tokenizations forbidden", "share", "lower"),
        Column("stopped", "positions forbidden", "share", "lower"),
        Column("plain_stops_at", "the first token that the plain constraint forbids"),
    ),
    engine="tokenizer",
    case=("constraint", "source"),
    frames=frames,
    tables=(
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
            "Texts that were not followed",
            by=("constraint", "status", "message"),
            values=(Stat("status", "count", "texts"), Stat("tokenizer", "distinct", "tokenizers")),
            where="status != 'ok'",
        ),
    ),
    charts=(
        Bars(
            "muting_forbidden",
            "Proper tokenizations that muting forbids",
            "Of texts drawn from the pattern.",
            x="forbidden",
            rows="constraint",
            frame="texts",
            where="source == 'drawn'",
        ),
    ),
    sentences=(
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
            "Without muting {refused} of the {followed} proper tokenizations are forbidden.",
            blanks={
                "refused": Stat("plain_stops_at", "count", where="plain_stops_at >= 0"),
                "followed": "plain_stops_at:count",
            },
            frame="followed",
        ),
        Tally("texts"),
    ),
)

"""The experiment ``kind: cfg_fsm``: LALR(1) tables with a contextual lexer (003), beside engines for all grammars.

One item is a tokenizer, a grammar and one of four parts. Which parts a grammar has follows from the settings:

- ``masks``: its texts, replayed by `cfg_fsm` with both ways to make masks and by other engines
  (`tokdfa.lab.measure.cfg_fsm_replay`). Rows ``engine``; a row ``refused`` if Lark does not take the grammar.
- ``concatenation``, for the grammars that the setting names: two terminals in a row and cases like it. How many masks a
  second, by what is kept between them (`tokdfa.lab.measure.cfg_fsm_masks`)? 003 says 44,191 for its own way, on its
  author's machine, with the vocabulary of mistral-v1.
- ``terminals``, for templates (`tokdfa.lab.measure.cfg_fsm_families`): a mask against the number of terminals.
- ``token bytes``, for the grammars that the setting names: a mask against the bytes of the longest token, over samples
  of the vocabulary that have as many tokens where there are enough.

Rows of the last three are ``way``; one more, ``split``, tells the size of a vocabulary's split table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from tokdfa.backends.cfg_fsm.splits import SplitTable
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare import (
    Against,
    Bars,
    Column,
    Curves,
    Kind,
    Listing,
    Pivot,
    Say,
    Stat,
    Summary,
    Tally,
)
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cfg_fsm_families import MOST, fill_template, is_template
from tokdfa.lab.measure.cfg_fsm_masks import KEPT, NOTHING, PRODUCT, TREE, WALK, WAYS, measure_ways
from tokdfa.lab.measure.cfg_fsm_replay import ENGINES, replay_texts
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.growing import sample_by_length
from tokdfa.lab.measure.settings import item_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.vocabulary.vocabulary import Vocabulary

MASKS, CONCATENATION, TERMINALS, TOKEN_BYTES = "masks", "concatenation", "terminals", "token bytes"
#: The ways whose growth is measured.
GROWING = (TREE, NOTHING, WALK)
#: Concatenated masks a second that 003 tells of its own way.
SOURCE_RATE = 44_191.0
OURS, PUSHDOWN = "cfg_fsm vectors", "pushdown_trie"


def _rising(values: list[int]) -> list[int]:
    if not values or sorted(set(values)) != values:
        raise ValueError(f"rising numbers are expected, not {values}")
    return values


class TokenBytes(BaseModel):
    """Of which `grammars` masks are made over `tokens` tokens of at most so many bytes, for each of `lengths`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: Annotated[int, Field(ge=256)]
    lengths: Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(_rising)]
    grammars: list[str]


class Settings(BaseModel):
    """`engines`: labels of `ENGINES`; `concatenations`: labels of grammars; `terminals`: label of a template -> rising
    numbers of terminals; `part`: filled in by `split`. The others: see `replay_texts` and `measure_ways`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    engines: Annotated[list[str], Field(min_length=1)] = list(ENGINES)
    concatenations: list[str] = []
    terminals: dict[str, Annotated[list[Annotated[int, Field(ge=2, le=MOST)]], AfterValidator(_rising)]] = {}
    token_bytes: TokenBytes | None = None
    part: str = MASKS
    text_tokens: Annotated[int, Field(gt=0)] = 600
    positions: Annotated[int, Field(gt=0)] = 20
    rounds: Annotated[int, Field(gt=0)] = 3
    turns: Annotated[int, Field(gt=0)] = 100
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0

    @field_validator("engines")
    @classmethod
    def _are_known(cls, engines: list[str]) -> list[str]:
        for engine in engines:
            if engine not in ENGINES:
                raise UnknownNameError("entry of settings.engines", engine, ENGINES)
        return engines


def split(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The parts of one tokenizer and one grammar, by title. Raises OptionError for no grammar or no text."""
    wanted, label = item_settings(Settings, settings), settings.get("label", "")
    if "grammar" not in settings:
        raise OptionError("cfg_fsm takes grammars, no other constraints")
    if is_template(settings["grammar"]):
        if label not in wanted.terminals:
            raise OptionError(f"the template {label!r} needs numbers of terminals: give settings.terminals an entry")
        parts = [TERMINALS]
    elif not settings.get("texts"):
        raise OptionError(f"cfg_fsm drives grammars along texts: give {label!r} texts or a texts_file")
    else:
        parts = [CONCATENATION if label in wanted.concatenations else MASKS]
        parts += [TOKEN_BYTES] if wanted.token_bytes and label in wanted.token_bytes.grammars else []
    return [(part, {**settings, "part": part}) for part in parts]


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one part of one tokenizer and one grammar; rows as the module's page says.

    `settings`: tokenizer (name), label, grammar (and start), texts and the part, as `split` gives them, and those of
    `Settings`. `seed` chooses the samples of the vocabulary.
    """
    wanted, label = item_settings(Settings, settings), settings.get("label", "")
    part = wanted.part
    tokenizer = load_tokenizer(settings["tokenizer"])
    vocab, start, texts = tokenizer.vocabulary, settings.get("start", "start"), settings.get("texts", [])
    grammar = Grammar(settings["grammar"], start, label=label)
    limits: Any = {"positions": wanted.positions, "turns": wanted.turns, "seconds": wanted.seconds}
    rows: list[dict[str, Any]] = []
    if part == MASKS:
        rows += replay_texts(
            grammar, tokenizer, texts, wanted.engines, wanted.text_tokens, wanted.rounds, wanted.seconds
        )
    elif part == CONCATENATION:
        rows += measure_ways(grammar, vocab, texts, list(WAYS), **limits)
        if label == wanted.concatenations[0]:  # once is enough
            rows.append(_split_table(vocab))
    elif part == TERMINALS:
        for count in wanted.terminals[label]:
            filled, written = fill_template(settings["grammar"], count)
            member = Grammar(filled, start, label=f"{label}, {count}")
            rows += ({"parameter": count, **row} for row in measure_ways(member, vocab, [written], GROWING, **limits))
    elif wanted.token_bytes is not None:
        for longest in wanted.token_bytes.lengths:
            sample = sample_by_length(vocab, longest, wanted.token_bytes.tokens, seed)
            size = {"parameter": longest, "tokens": int(np.count_nonzero(sample.lengths))}
            rows += ({**size, **row} for row in measure_ways(grammar, sample, texts, GROWING, **limits))
    place = {"tokenizer": settings["tokenizer"], "part": part, "constraint": label or settings["grammar"]}
    return [{**place, "row": "way", "tokens": vocab.size, **row} for row in rows]


def _split_table(vocab: Vocabulary) -> dict[str, Any]:
    table, nanoseconds = time_call(lambda: SplitTable(vocab))
    return {
        "row": "split",
        "tokens": len(table.tokens),
        "cuts": len(table.rest_at) - len(table.tokens),
        "rests": len(table.lengths),
        "table_bytes": table.nbytes,
        "seconds": nanoseconds * 1e-9,
    }


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows with ways among the engines; those of engines; of terminals in a row, with what 003 tells; of growth;
    and what Lark refuses.
    """
    import pandas as pd

    names = ("engine", "way", "parameter", "texts_refused", "masks_per_s", "status")
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *names])))
    rows = rows.assign(engine=rows["engine"].fillna(rows["way"]), times_003=rows["masks_per_s"] / SOURCE_RATE)
    ways = rows[rows["row"] == "way"]
    inside = ways[ways["part"] == CONCATENATION]
    told = inside.drop_duplicates(["tokenizer", "constraint"])[["tokenizer", "constraint"]]
    told = told.assign(engine="003 on its machine", masks_per_s=SOURCE_RATE)
    grown = ways[ways["part"].isin([TERMINALS, TOKEN_BYTES])]
    size = grown["part"].map({TERMINALS: "terminals", TOKEN_BYTES: "longest token, bytes"})
    grown = grown.assign(parameter=grown["parameter"].astype("int64"), size=size)
    grown = grown.assign(place=grown["size"] + ": " + grown["constraint"] + ", " + grown["tokenizer"])
    partly = rows[(rows["engine"] == OURS) & (rows["texts_refused"].fillna(0) > 0)]
    partly = partly.assign(message=partly["texts_refused"].map("{:.0f} texts are left out".format))
    return {
        "": rows,
        "engines": rows[(rows["row"] == "engine") & (rows["status"] == "ok")],
        "all": rows[rows["row"] == "engine"],
        "concatenation": inside,
        "rates": pd.concat([inside[inside["way"] != KEPT], told]),
        "growth": grown,
        "split": rows[rows["row"] == "split"],
        "refused": pd.concat([rows[rows["row"] == "refused"], partly]),
    }


def _of(way: str, how: str = "", column: str = "mask_ns") -> Stat:
    return Stat(column, how, where=f"engine == '{way}'")


_CASE = ("tokenizer", "constraint")
_TIMES = ("compile_s", "cold_ns_p50", "cold_ns_p99", "again_ns_p50", "seen_ns_p50", "advance_ns_p50")

KIND = Kind(
    measure=measure,
    settings=Settings,
    split=split,
    columns=(
        *(text(name) for name in ("tokenizer", "constraint", "part", "engine", "status", "message")),
        text("size", "against"),
        Column("parameter", "size"),
        seconds("compile_s", "compile", "median of the rounds"),
        seconds("cold_ns_p50", "new mask, cold", "of a situation that the texts have not met, after a compile"),
        seconds("cold_ns_p99", "cold, p99"),
        seconds("again_ns_p50", "made again", "by an engine that keeps no masks and has built all else"),
        seconds("seen_ns_p50", "seen before", "by the engine as it is"),
        seconds("advance_ns_p50", "advance"),
        Column("held_bytes", "held", "B", "lower", "arrays, without what belongs to the vocabulary"),
        Column("new_masks", "new masks"),
        Column("differing_masks", "masks that differ", "", "lower", "from those of the first engine"),
        Column("differing_tokens", "in tokens"),
        Column("masks_per_s", "masks per second", "", "higher"),
        Column("times_003", "times 003's", "ratio", "higher"),
        seconds("mask_ns", "mask", "mean over the situations, of each the median"),
        seconds("ns_p99", "p99 mask"),
        Column("kept_bytes", "held", "B", "lower", "vectors, trees and masks"),
        Column("table_bytes", "held", "B"),
        seconds("seconds", "made in"),
    ),
    reference=OURS,
    case=(*_CASE, "part"),
    place=("parameter",),
    frames=frames,
    tables=(
        Summary(
            "engines",
            "Engines over all grammars",
            f"Medians of the grammars' medians; how they compare with {OURS}, grammar by grammar, with the range.",
            values=(*_TIMES, "held_bytes"),
            over=_CASE,
            ratios="all",
            frame="engines",
        ),
        Pivot(
            "concatenation",
            "Masks per second of terminals in a row",
            "On one core, Python's call included; no way but kept keeps masks. The factor is over the "
            f"{SOURCE_RATE:,.0f} a second that 003 reports of its own way (mistral-v1, on its author's machine).",
            rows=_CASE,
            value="masks_per_s",
            detail="times_003",
            frame="concatenation",
        ),
        Summary(
            "kept",
            "What is kept between masks",
            "Over the cases of terminals in a row. All ways keep the machine (tables, lexer states, stacks and "
            "situations met). Tree: split table, vectors and the tree of terminals with its groups of tokens. Nothing: "
            "vectors and tree are made for each mask. Product: 003's vectors, multiplied for each mask. "
            "Walk: the token trie. Kept: as tree, and each mask. Nodes: of the tree, or of the trie, mean of a mask. "
            "Tokens that differ from the walk's: the product finds none that run through three terminals.",
            by=("tokenizer", "engine"),
            values=(
                *("masks_per_s", "masks_per_s:min", "masks_per_s:max", "ns_p99", "nodes:mean", "nodes_made:mean"),
                *("vectors:mean", "kept_bytes", Stat("differs", "sum", "tokens that differ")),
            ),
            frame="concatenation",
        ),
        Pivot(
            "growth",
            "A mask against terminals, and against the longest token",
            "Time of a new mask, and its nodes (of the tree, or of the trie).",
            rows=("size", *_CASE, "parameter"),
            beside=("tokens", "lexer_states", Stat("allowed", "", "allowed")),
            value="mask_ns",
            detail="nodes",
            frame="growth",
        ),
        Summary(
            "grammars",
            "Compiles, masks and advances by grammar",
            "Medians, but for p99. What is built while new masks are made is in them. Made again: llguidance cannot be "
            "told to keep no masks. Masks may differ where Lark's lexer cuts a text in its own way. Past the option "
            "mask_mb cfg_fsm drops vectors and makes them again, which shows in its times.",
            by=(*_CASE, "engine"),
            values=(*_TIMES, "held_bytes", "new_masks", "differing_masks", "differing_tokens"),
            frame="engines",
            brief=(*_CASE, "engine", "compile", "new mask, cold", "cold, p99", "made again"),
        ),
        Summary(
            "split",
            "Split tables",
            "Once for a vocabulary. Cuts of bytes; 003 counts 128,956 of characters for mistral-v1.",
            by=("tokenizer",),
            values=("tokens", "cuts", Stat("rests", "", "distinct rests"), "seconds", "table_bytes"),
            frame="split",
        ),
        Listing(
            "refused",
            "What Lark refuses",
            "Grammars that are not LALR(1), or not in Lark's notation: the first line of Lark's report. Texts are left "
            "out where the rules take them but Lark's contextual lexer settles on another terminal.",
            shown=(*_CASE, "message"),
            frame="refused",
        ),
        Listing("broken", "Failed engines", shown=(*_CASE, "engine", "message"), frame="all", where="status != 'ok'"),
    ),
    charts=(
        Bars(
            "concatenation",
            "Masks per second of terminals in a row",
            "By what is kept between masks, which is no mask.",
            x="masks_per_s",
            rows="constraint",
            panels="tokenizer",
            frame="rates",
        ),
        Bars(
            "cold",
            "New masks after a compile",
            "Medians. What an engine builds while it makes them is included.",
            x="cold_ns_p50",
            rows="constraint",
            panels="tokenizer",
            frame="engines",
        ),
        Curves(
            "growth",
            "A mask against terminals, and against the longest token",
            "A new mask, a mean over the situations, by what is kept between masks.",
            x="parameter",
            y="mask_ns",
            panels="place",
            frame="growth",
        ),
    ),
    sentences=(
        Say(
            "Terminals in a row, {tokenizer}: {tree} masks a second with vectors and tree kept and no mask (median of "
            f"{{cases}} cases, {{low}} to {{high}}), where 003 has {SOURCE_RATE:,.0f} (mistral-v1, its machine); by "
            "its product, done here, {product}, with nothing kept {nothing}, by walking {walk}.",
            per=("tokenizer",),
            blanks={
                **{way: _of(way, "", "masks_per_s") for way in (TREE, PRODUCT, NOTHING, WALK)},
                **{"low": _of(TREE, "min", "masks_per_s"), "high": _of(TREE, "max", "masks_per_s")},
                "cases": _of(TREE, "count", "masks_per_s"),
            },
            frame="concatenation",
        ),
        Say(
            "json, {tokenizer}: a new mask takes {cold} after a compile and {again} once vectors and tree are there "
            "(20 µs were aimed at), one seen before {seen} (3 µs were aimed at); {held} are held.",
            per=("tokenizer",),
            blanks={"cold": "cold_ns_p50", "again": "again_ns_p50", "seen": "seen_ns_p50", "held": "held_bytes"},
            frame="engines",
            where=f"constraint == 'json' and engine == '{OURS}'",
        ),
        Against(("cold_ns_p50", "again_ns_p50", "compile_s"), over=_CASE, frame="engines"),
        Say(
            "{size} {first} to {last}, {constraint}, {tokenizer}: tree {tree} to {tree_last}, nothing {nothing} to "
            "{nothing_last}, walk {walk} to {walk_last}.",
            per=("size", *_CASE),
            blanks={
                **{"first": "parameter:first", "last": "parameter:last"},
                **{way: _of(way, "first") for way in GROWING},
                **{f"{way}_last": _of(way, "last") for way in GROWING},
            },
            frame="growth",
        ),
        Say(
            f"Of {{compared}} masks of cfg_fsm {{differ}} are not those of {PUSHDOWN}; of json, where the lexers "
            "agree, {json}.",
            blanks={
                **{"compared": "compared:sum", "differ": "differing_masks:sum"},
                "json": Stat("differing_masks", "sum", where="constraint == 'json'"),
            },
            frame="engines",
            where=f"engine == '{PUSHDOWN}'",
        ),
        Say("{constraint} ({message})", per=("constraint", "message"), frame="refused", lead="Lark refuses:"),
        Tally("engines of all grammars", frame="all"),
    ),
)

"""The experiment ``kind: cfg_fsm``: masks of LALR(1) grammars by prefix and suffix vectors, by what is kept of them.

One item is a tokenizer and a grammar; a row is one *way* to make masks (`tokdfa.lab.measure.cfg_fsm_masks`). Which
*part* a grammar belongs to follows from the settings:

- ``terminals``, for templates (`tokdfa.lab.measure.growing.fill_grammar`): a mask against the number of terminals;
- ``token bytes``, for the grammars that the setting names: a mask against the bytes of the longest token, over samples
  of the vocabulary that have as many tokens where there are enough;
- ``concatenation``, for all others: two terminals in a row and cases like it. How many masks a second? Outlines issue
  669 (003) says 44,191 for its own way, on its author's machine, with the vocabulary of mistral-v1. These rows also
  have the size of the vocabulary's split table.

How `cfg_fsm` compares with other backends along texts is asked by an experiment of backends, ``lalr_speed.yaml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.backends.cfg_fsm.splits import SplitTable
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Curves, Kind, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cfg_fsm_masks import KEPT, NOTHING, PRODUCT, TREE, WALK, WAYS, measure_ways
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.constraint_entry import item_settings
from tokdfa.lab.measure.growing import MOST, fill_grammar, is_grammar_template, sample_by_length
from tokdfa.lab.measure.settings import Rising, Strict
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: The ways whose growth is measured.
GROWING = (TREE, NOTHING, WALK)
#: Concatenated masks a second that 003 tells of its own way.
SOURCE_RATE = 44_191.0
CONCATENATION, TERMINALS, TOKEN_BYTES = "concatenation", "terminals", "token bytes"


class TokenBytes(Strict):
    """Of which `grammars` masks are made over `tokens` tokens of at most so many bytes, for each of `lengths`."""

    tokens: Annotated[int, Field(ge=256)]
    lengths: Rising
    grammars: list[str]


class Settings(Strict):
    """`terminals`: label of a template -> rising numbers of terminals, 2 to 64. The others: see `measure_ways`."""

    terminals: dict[str, Rising] = Field(default_factory=dict)
    token_bytes: TokenBytes | None = None
    positions: Annotated[int, Field(gt=0)] = 20
    turns: Annotated[int, Field(gt=0)] = 100
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A row for each way, and size, of one tokenizer and one grammar.

    `settings`: tokenizer (name), label, grammar (and start), texts, and those of `Settings`. `seed` chooses the samples
    of the vocabulary. Raises OptionError for what is no grammar, has no texts, or is a template without numbers.
    """
    if "grammar" not in settings:
        raise OptionError("cfg_fsm takes grammars, no other constraints")
    typed, label, start = item_settings(Settings, settings), settings.get("label", ""), settings.get("start", "start")
    vocab, texts = load_tokenizer(settings["tokenizer"]).vocabulary, settings.get("texts", [])
    limits: Any = {"positions": typed.positions, "turns": typed.turns, "seconds": typed.seconds}
    grammar = settings["grammar"]
    place = {"tokenizer": settings["tokenizer"], "constraint": label or grammar, "tokens": vocab.size}
    if is_grammar_template(grammar):
        rows = []
        for count in typed.terminals.get(label, ()):
            if not 2 <= count <= MOST:
                raise OptionError(f"settings.terminals.{label}: 2 to {MOST} terminals can be made, not {count}")
            filled, written = fill_grammar(grammar, count)
            member = Grammar(filled, start, label=f"{label}, {count}")
            rows += [{"parameter": count, **row} for row in measure_ways(member, vocab, [written], GROWING, **limits)]
        if not rows:
            raise OptionError(f"the template {label!r} needs numbers of terminals: give settings.terminals an entry")
        return [{**place, "part": TERMINALS, **row} for row in rows]
    if not texts:
        raise OptionError(f"cfg_fsm takes the situations of texts: give {label!r} texts or a texts_file")
    constraint = Grammar(grammar, start, label=label)
    if typed.token_bytes is None or label not in typed.token_bytes.grammars:
        split = _split_table(vocab)
        rows = measure_ways(constraint, vocab, texts, list(WAYS), **limits)
        return [{**place, "part": CONCATENATION, **split, **row} for row in rows]
    rows = []
    for longest in typed.token_bytes.lengths:
        sample = sample_by_length(vocab, longest, typed.token_bytes.tokens, seed)
        size = {"parameter": longest, "tokens": int(np.count_nonzero(sample.lengths))}
        rows += [{**size, **row} for row in measure_ways(constraint, sample, texts, GROWING, **limits)]
    return [{**place, "part": TOKEN_BYTES, **row} for row in rows]


def _split_table(vocab: Vocabulary) -> dict[str, Any]:
    table, nanoseconds = time_call(lambda: SplitTable(vocab))
    return {
        "cuts": len(table.rest_at) - len(table.tokens),
        "rests": len(table.lengths),
        "table_bytes": table.nbytes,
        "table_s": nanoseconds * 1e-9,
    }


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows; those of terminals in a row, with what 003 tells for the chart; and those of growth."""
    import pandas as pd

    rows = rows.reindex(columns=[*dict.fromkeys([*rows, "parameter", "cuts"])])
    rows = rows.assign(times_003=rows["masks_per_s"] / SOURCE_RATE)
    inside, grown = rows[rows["part"] == CONCATENATION], rows[rows["part"] != CONCATENATION]
    told = inside.drop_duplicates(["tokenizer", "constraint"])[["tokenizer", "constraint"]]
    told = told.assign(way="003 on its machine", masks_per_s=SOURCE_RATE)
    size = grown["part"].map({TERMINALS: "terminals", TOKEN_BYTES: "longest token, bytes"})
    grown = grown.assign(parameter=grown["parameter"].astype("int64"), size=size)
    return {
        "": rows,
        "concatenation": inside,
        "rates": pd.concat([inside[inside["way"] != KEPT], told]),
        "growth": grown.assign(place=grown["size"] + ": " + grown["constraint"] + ", " + grown["tokenizer"]),
    }


def _of(way: str, how: str = "", column: str = "mask_ns") -> Stat:
    return Stat(column, how, where=f"way == '{way}'")


_CASE = ("tokenizer", "constraint")

KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        *map(text, ("tokenizer", "constraint", "part", "way")),
        text("size", "against"),
        Column("parameter", "size"),
        Column("masks_per_s", "masks per second", "", "higher"),
        Column("times_003", "times 003's", "ratio", "higher"),
        seconds("mask_ns", "mask", "mean over the situations, of each the median"),
        seconds("ns_p99", "p99 mask"),
        Column("kept_bytes", "held", "B", "lower", "vectors, trees and masks"),
        Column("table_bytes", "split table", "B"),
        seconds("table_s", "made in"),
    ),
    engine="way",
    reference=TREE,
    case=(*_CASE, "part"),
    place=("parameter",),
    frames=frames,
    tables=(
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
            "vectors and tree are made for each mask. Product: 003's vectors, packed, multiplied for each mask. "
            "Walk: the token trie. Kept: as tree, and each mask. Nodes: of the tree, or of the trie, mean of a mask. "
            "Tokens that differ from the walk's: the product finds none that run through three terminals.",
            by=("tokenizer", "way"),
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
            "split",
            "Split tables",
            "Once for a vocabulary. Cuts of bytes; 003 counts 128,956 of characters for mistral-v1.",
            by=("tokenizer",),
            values=("tokens", "cuts", Stat("rests", "", "distinct rests"), "table_s", "table_bytes"),
            frame="concatenation",
        ),
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
    ),
)

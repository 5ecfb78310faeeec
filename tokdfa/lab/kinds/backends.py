"""The experiment ``kind: backends``: what each backend takes on the same constraints, walks and tokenizers.

This is the kind of an experiment that names none. Its items are not measured by a function here but by
`tokdfa.lab.run`: each contender has a process of its own, which is warm and lives as long as the run is at a tokenizer
(``way: served``), or is new for each item (``way: fresh``). Contenders take turns, in an order that is drawn by the
seed: each compiles, again for each repeat, then each goes along the same walks. An option that is given as a list makes
a contender of each value, so an ablation is a grid and needs no code; ``parts`` in the file names the contenders with
and without a part, and `Pairs` says what the part buys.

Constraints of a family (``n: [8, 16]``), subsets of a vocabulary (``mistral-v1?first=2000``) and texts that go on
(``{kind: texts, repeat: 1000}``) are sizes that grow: then costs are told against the size, with the exponent of each
contender's growth. Grammars of one language give the same masks, but what an engine keeps of the text so far may grow
with it (Alpay and Senturk 2026, arXiv 2603.05540).

The rows are the samples, each with its item beside it; an item without samples has one row. A *case* is a tokenizer, a
constraint, a workload and a seed. Only items that succeeded enter a comparison; all others are listed as failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.backends.registry import backend_class
from tokdfa.backends.registry import backend_targets as targets_of_backends
from tokdfa.lab.declare import (
    Bars,
    Column,
    Computed,
    Curves,
    Custom,
    Distribution,
    Kind,
    Options,
    Pairs,
    Pivot,
    Quotient,
    Ranking,
    Results,
    Say,
    SlowerFirst,
    Stat,
    Summary,
    percentiles,
)
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.backend_frames import AGAINST, CASE, COSTS, COUNTED, STEPS, frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.declare.cells import Cell

#: Resident memory is measured in pages of a whole process: a peak below this many bytes is noise.
PEAK_RESOLUTION = 100e3
#: Little retained memory is a mean over copies (see `tokdfa.lab.measure.memory`).
RETAINED_RESOLUTION = 5e3
_TIMES = (
    *(
        "compile",
        "own",
        "first_mask",
        "mask_p50",
        "mask_mean",
        "mask_p90",
        "mask_p99",
        "mask_max",
        "wide_mean",
        "seen_p50",
    ),
    "advance_p50",
)
#: What an option or a part may change.
_PARTS_OF_COST = (
    *("mask_mean", "mask_p50", "mask_p99", "wide_mean", "seen_p50", "advance_p50", "compile", "nodes"),
    *("transitions", "dfa_steps", "memory_retained_bytes"),
)
_PARTS = Pairs(
    "parts",
    "What each part buys",
    "Without the part over with it, case by case, so above 1 it pays: median, lowest to highest.",
    values=_PARTS_OF_COST,
    over=CASE,
)
_OPTIONS = Options(
    "options",
    "What each option changes",
    "Contenders that differ in one option alone, case by case: median (lowest–highest).",
    values=_PARTS_OF_COST,
    over=CASE,
)


def _is_peer(name: str) -> bool:
    """Whether a backend is another's engine."""
    return name in targets_of_backends() and bool(backend_class(name).packages)


#: Where engines of ours are slower than others' is the first thing that a page says.
_SLOWER = SlowerFirst(
    ("compile", "first_mask", "mask_p50", "mask_mean", "mask_p99", "mask_max", "advance_p50"),
    is_peer=_is_peer,
    ours=("pushdown_trie", "earley_trie", "tokens_dfa"),
    over=CASE,
)


def _work(results: Results) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    """What matchers have counted, one column a counter."""
    names = [str(name) for name in results.rows() if str(name).startswith(COUNTED)]
    table = Summary("work", "", by=("label",), values=names, over=CASE).build(results)
    return [head.removeprefix("count ") for head in table.columns], table.rows


def _equal_masks(results: Results) -> list[str]:
    """How many masks were compared with the reference's, and how many differ."""
    if results.rows("mask").empty:
        return []
    masks = results.rows("compared")
    compared = masks[masks["label"] != results.reference] if len(masks) else masks
    if compared.empty:
        return ["No masks were compared between backends."]
    differ = compared[compared["differs"] > 0]
    if differ.empty:
        return [f"All {len(compared):,} masks that were compared equal those of {results.reference}."]
    who = ", ".join(f"{label} in {count:,}" for label, count in differ["label"].value_counts().items())
    return [f"{len(differ):,} of {len(compared):,} compared masks differ from those of {results.reference}: {who}."]


def _parts(results: Results) -> list[str]:
    """What each part of an ablation buys, by the first value that is known."""
    table, said = _PARTS.build(results), []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        head = next((head for head in table.columns if head in _TIME_HEADS and cells[head].value is not None), None)
        if head is not None:
            ends = f"most for {cells['most for'].text}, least for {cells['least for'].text}"
            said.append(f"{row[0].text}: {head} {cells[head].text} as good ({cells[head].detail}); {ends}.")
    return said


def _by_constraint(value: str, title: str) -> Pivot:
    note = "The median of the repeats, and of the workloads where there are several; the fastest of a row is bold."
    return Pivot(value, f"{title} by constraint and tokenizer", note, rows=("tokenizer", "constraint"), value=value)


_COLUMNS = (
    text("label", "backend"),
    *map(text, ("tokenizer", "constraint", "workload", "done", "what", "against", "family")),
    text("whole", "tokenizer"),
    Column("size", "size"),
    *(Column(f"{cost}_exponent", f"exponent of {cost}", "", "lower") for cost in COSTS),
    seconds("set_up_s", "set-up", "from the loaded tokenizer to the masks of a throw-away constraint, by itself"),
    seconds("compile_ns"),
    *(
        Column(name, title, "s", "lower", meaning, 1e-9)
        for name, title, meaning in (
            ("compile", "compile time", "from the constraint to a compiled one; median of the repeats"),
            ("own", "own compile time", "without the automaton over bytes and the tokenizer's tables; of peers all"),
            ("text", "time of a first walk", "own compile time, and all masks of the first walk"),
            ("pooled_ns", "time", "of each compile, first walk and mask"),
            ("first_mask", "time to first mask", "compile, start a matcher, fill its first mask; median"),
            ("mask_ns", "mask time", "filling the mask once"),
            ("mask_p50", "median mask time", "filling the mask once; of the item's samples"),
            ("mask_mean", "mean mask time", "filling the mask once; of the item's samples"),
            ("mask_p90", "p90 mask time", "filling the mask once; of the item's samples"),
            ("mask_p99", "p99 mask time", "filling the mask once; of the item's samples"),
            ("mask_max", "maximal mask time", "filling the mask once; of the item's samples"),
            ("wide_mean", "mean time of wide masks", "masks that allow half of the vocabulary or more"),
            ("seen_p50", "median time of a mask seen before", "filling the mask of a state again"),
            ("token_mean", "time of a token", "its mask and its advance, mean over the second half of a walk"),
            ("seen_ns", "seen mask time", "filling the mask of a state that has been seen before"),
            ("advance_ns", "advance time", "advancing by one token"),
            ("advance_p50", "median advance time", "advancing by one token; of the item's samples"),
        )
    ),
    Column(
        "memory_peak_bytes",
        "peak memory",
        "B",
        "lower",
        "growth of the process while compiling, at its highest",
        resolution=PEAK_RESOLUTION,
    ),
    Column(
        "memory_retained_bytes",
        "retained memory",
        "B",
        "lower",
        "growth of the process that stays",
        resolution=RETAINED_RESOLUTION,
    ),
    Column("nodes", "nodes visited", "", "lower", "nodes of the token trie that the walks of all masks visit"),
    Column(STEPS, "steps of the DFA", "", "lower", "look-ups in the DFA's table by the walks of a compile"),
    Column("states", "states", "", "lower", "states of the compiled constraint"),
    Column("transitions", "transitions", "", "lower", "token transitions of the compiled constraint"),
    Column("bytes", "size", "B", "lower", "of the compiled constraint, as the engine says"),
    Column("vocab_size", "vocabulary size", "", "neither", "logit width of the model"),
    Column("allowed", "tokens allowed", "", "neither", "tokens of a mask"),
    Column("share", "share allowed", "share", "neither", "allowed tokens over the vocabulary size"),
    Column("differs", "tokens that differ", "", "neither", "bits of a mask that are not the reference's"),
)
_TIME_HEADS = {column.head for column in _COLUMNS if column.name in _PARTS_OF_COST and column.unit == "s"}

KIND = Kind(
    engine="label",
    case=CASE,
    frames=frames,
    columns=_COLUMNS,
    tables=(
        Summary(
            "overview",
            "Backends side by side",
            "Medians over cases: tokenizer, constraint, workload and seed; so a p99 is the median over cases of each "
            "case's p99, and a maximum that of each case's longest. Ratios are to the reference, paired case by "
            "case: median (lowest–highest). The best are in bold.",
            by=("label",),
            values=("done", "set_up_s", *_TIMES, "memory_peak_bytes", "memory_retained_bytes"),
            over=CASE,
            ratios="all",
            brief=("backend", "done", "compile time", "median mask time", "retained memory"),
        ),
        Summary(
            "means",
            "Means, medians and maxima",
            "Of own compile times (without the automaton over bytes and the tokenizer's tables) and of first walks "
            "(own compile time and all masks of the first walk) over constraints, of masks over all of them, first "
            "masks included: who settles states when a mask needs them does then what others do when compiling.",
            by=("what", "tokenizer", "label"),
            values=(*percentiles("pooled_ns", of=(50, 90, 99)), Stat("pooled_ns", "count", "of")),
            frame="pooled",
        ),
        Summary(
            "sizes",
            "Compiled constraints",
            "Medians over the cases, and the largest.",
            by=("tokenizer", "label"),
            values=("states", "transitions", "bytes", Stat("states", "max", "states, max"), "bytes:max"),
        ),
        _PARTS,
        _OPTIONS,
        _by_constraint("compile", "Compile time"),
        Pivot(
            "steps",
            "Steps of the DFA by constraint and tokenizer",
            "Look-ups in the table of the DFA over bytes, or over byte classes, by the walks that find out what token "
            "classes do to its states.",
            rows=("tokenizer", "constraint"),
            value=STEPS,
            frame="steps",
        ),
        _by_constraint("mask_mean", "Mean mask time"),
        _by_constraint("mask_p99", "P99 mask time"),
        _by_constraint("seen_p50", "Time of a mask seen before"),
        Pivot(
            "memory",
            "Retained memory by constraint and tokenizer",
            "With all that the masks of the walks have made; what a vocabulary shares is not in it. The least is bold.",
            rows=("tokenizer", "constraint"),
            value="memory_retained_bytes",
        ),
        *(
            Pivot(
                f"growth_{cost}",
                f"Growth of {cost}: exponents",
                "The exponent p of cost = c * size^p: median slope of all pairs of points in logarithms, of the larger "
                "half of the sizes; missing where fewer than three are known.",
                rows=("against", "whole", "family"),
                value=f"{cost}_exponent",
                ratio=False,
                frame="exponents",
            )
            for cost in COSTS
        ),
        Pivot(
            "tokens",
            "Time of a token",
            "Mask and advance, the mean over the second half of a text of so many tokens.",
            rows=("tokenizer", "constraint", "workload"),
            value="token_mean",
            frame="grown",
            where=f"against == '{AGAINST[-1]}'",
        ),
        Custom("work", "What was counted", "Medians over cases of what the matchers of all walks count.", _work),
        Summary(
            "differences",
            "Where masks differ",
            "Each mask was compared with the reference's after the same tokens; tokens are the bits that differ.",
            by=("label", "tokenizer", "constraint", "workload"),
            values=(
                Stat("differs", "count", "masks compared"),
                Stat("differs", "count", "masks that differ", "differs > 0"),
                Stat("differs", "median", "tokens, median", "differs > 0"),
                Stat("differs", "max", "tokens, max"),
            ),
            frame="differing",
        ),
    ),
    charts=(
        Distribution(
            "mask_ecdf",
            "Mask time: share of masks that took at most so long",
            "All mask samples of the items that succeeded, pooled over constraints and workloads; left is better.",
            x="mask_ns",
            panels="tokenizer",
            frame="mask",
        ),
        Distribution(
            "seen_ecdf",
            "Mask seen before: share of masks that took at most so long",
            "Masks of states that have been seen before, each backend by itself; left is better.",
            x="seen_ns",
            panels="tokenizer",
            frame="seen",
            optional=True,
        ),
        Bars("compile", "Compile time by constraint", x="compile", rows="constraint", panels="tokenizer"),
        Bars(
            "memory",
            "Retained memory of a compiled constraint",
            "Median over constraints and workloads.",
            x="memory_retained_bytes",
            rows="label",
            panels="tokenizer",
        ),
        *(
            Curves(
                f"growth_{cost}_{place}",
                f"Growth of {cost} with {against}",
                "A curve that ends early: the engine failed on larger sizes.",
                x="size",
                y=COSTS[cost],
                panels="series",
                frame="grown",
                where=f"against == '{against}'",
                log=True,
                optional=True,
            )
            for place, against in enumerate(AGAINST)
            for cost in (("token",) if against == AGAINST[-1] else ("time", "mask", "memory"))
        ),
    ),
    sentences=(
        Computed(_SLOWER.sentences),
        Computed(_parts),
        Ranking(("compile", "mask_mean", "mask_p99", "seen_p50"), over=CASE),
        *(
            Say(
                f"{{label}}: {words} grows with {{against}} to the power of {{power}} (median of {{series}} series, "
                "{low} to {high}).",
                per=("against", "label"),
                blanks={
                    **{"power": f"{cost}_exponent", "series": f"{cost}_exponent:count"},
                    **{"low": f"{cost}_exponent:min", "high": f"{cost}_exponent:max"},
                },
                frame="exponents",
            )
            for cost, words in (("time", "time"), ("mask", "mask"), ("token", "the time of a token"))
        ),
        Say(
            "{label}: a lexeme ends at {share} of the nodes of its walks.",
            per=("label",),
            blanks={"share": Quotient("count_lexeme_ends:sum", "count_nodes_visited:sum", unit="share")},
            where="count_lexeme_ends > 0",
        ),
        Say(
            "{label}: {share} of the lexemes that end in its walks find their row where one was pushed last.",
            per=("label",),
            blanks={"share": Quotient("count_rows_reused:sum", "count_lexeme_ends:sum", unit="share")},
            where="count_rows_reused > 0",
        ),
        Computed(_equal_masks),
    ),
)

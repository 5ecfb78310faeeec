"""The experiment ``kind: backends``: what each backend takes on the same constraints, walks and tokenizers.

This is the kind of an experiment that names none. Its items are not measured by a function here but side by side, by
`tokdfa.lab.run.jobs`: compiles in turns, then all contenders along the same walks, mask by mask. An option that is
given as a list makes a contender of each value, so an ablation is a grid and needs no code; ``parts`` in the file names
the contenders with and without a part, and `Pairs` says what the part buys.

Constraints of a family (``n: [8, 16]``) and parts of a vocabulary (``mistral-v1?first=2000``) are sizes that grow: then
costs are told against the size, with the exponent of each contender's growth.

The rows are the samples, each with its item beside it; an item without samples has one row. A *case* is a tokenizer, a
constraint, a workload and a seed. Only items that succeeded enter a comparison; all others are listed as failures.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, cast

from tokdfa.lab.declare import (
    Against,
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
    Points,
    Quotient,
    Ranking,
    Results,
    Say,
    Stat,
    Summary,
    percentiles,
)
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.stats import exponent
from tokdfa.lab.measure.growing import PART
from tokdfa.lab.measure.measure import SHARED_PHASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.declare.cells import Cell

CASE = ("tokenizer", "constraint", "workload", "seed")
#: Resident memory is measured in pages of a whole process: a peak below this many bytes is noise.
PEAK_RESOLUTION = 100e3
#: Little retained memory is a mean over copies (see `tokdfa.lab.measure.memory`).
RETAINED_RESOLUTION = 5e3
#: The prefix of columns with what matchers have counted.
COUNTED = "count_"

#: What `tokens_dfa` calls the steps of its walks, among its sizes.
STEPS = "dfa_steps"

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
#: A mask is wide from this share of the vocabulary on.
WIDE = 0.5


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The frames of a run.

    "": the items, those that succeeded with the numbers of their samples and of their matchers' counters, the others
    with their status alone, so that their cells say how they failed; ``mask``, ``seen``, ``advance``: the samples of
    masks, of masks seen before, and of single tokens; ``pooled``: compiles and first walks, one an item, and all masks;
    ``compared``: the masks that were compared with another contender's; ``differing``: of these the ones of contenders
    and places where some mask differs; ``grown``, ``exponents``: the items of sizes, and how costs grow with them.
    """
    import pandas as pd

    items = rows.drop_duplicates("item_id").drop(columns=["measure", "repeat", "step", "ns", "allowed", "differs"])
    done = items[items["status"] == "ok"].set_index("item_id")
    times = rows[rows["status"].eq("ok") & rows["ns"].notna()]
    groups = {measure: group.groupby("item_id")["ns"] for measure, group in times.groupby("measure")}
    numbers: dict[str, Any] = {"compile": done["compile_s"] * 1e9, "first_mask": done["first_mask_s"] * 1e9}
    if "phases" in done:
        shared = [sum(json.loads(text or "{}").get(phase, 0.0) for phase in SHARED_PHASES) for text in done["phases"]]
        numbers["own"] = numbers["compile"] - 1e9 * pd.Series(shared, done.index)
    if "mask" in groups:
        first = times[(times["measure"] == "mask") & (times["repeat"] == 0)].groupby("item_id")["ns"].sum()
        numbers["text"] = numbers.get("own", numbers["compile"]) + first
        numbers |= {f"mask_p{percent}": groups["mask"].quantile(percent / 100) for percent in (50, 90, 99)}
        numbers |= {"mask_mean": groups["mask"].mean(), "mask_max": groups["mask"].max()}
    if "advance" in groups:
        numbers["advance_p50"] = groups["advance"].quantile(0.5)
    if "seen" in groups:
        numbers["seen_p50"] = groups["seen"].quantile(0.5)
    wide = times[(times["measure"] == "mask") & (times["allowed"] >= WIDE * times["vocab_size"])]
    numbers["wide_mean"] = wide.groupby("item_id")["ns"].mean()
    counted = [json.loads(text or "{}") for text in done["counters"].fillna("")] if "counters" in done else []
    for name in dict.fromkeys(name for one in counted for name in one):
        numbers[COUNTED + name] = [one.get(name) for one in counted]
    if COUNTED + "nodes_visited" in numbers:
        numbers["nodes"] = numbers[COUNTED + "nodes_visited"]
    if "sizes" in done:
        sizes = [json.loads(text or "{}") for text in done["sizes"].fillna("")]
        if any(STEPS in one for one in sizes):
            numbers[STEPS] = [one.get(STEPS) for one in sizes]
    masks = times[times["measure"] == "mask"].rename(columns={"ns": "mask_ns"})
    masks = masks.assign(share=masks["allowed"] / masks["vocab_size"])
    compared = masks[masks["differs"].notna()]
    places = compared.groupby(["label", *CASE], dropna=False)["differs"].transform("max") > 0
    failed = items.loc[items["status"] != "ok", ["item_id", "label", "backend", "options", *CASE, "status"]]
    measured = done.assign(**numbers, done=done["label"].map(_done(items))).reset_index()
    grown = _grown(measured)
    return {
        "": pd.concat([measured, failed]) if len(failed) else measured,
        "grown": grown,
        "exponents": _exponents(grown),
        "steps": measured[measured[STEPS].notna()] if STEPS in measured else measured[:0],
        "mask": masks,
        "seen": times[times["measure"] == "seen"].rename(columns={"ns": "seen_ns"}),
        "advance": times[times["measure"] == "advance"].rename(columns={"ns": "advance_ns"}),
        "pooled": _pooled(measured, masks),
        "batch": _batches(times),
        "compared": compared,
        "differing": compared[places],
    }


#: Constraint of a family, as `tokdfa.lab.config.constraints` calls it.
_MEMBER = r"(?P<family>.*), n=(?P<n>\d+)"
#: What grows -> its name in a table.
_AGAINST = ("states", "terminals", "vocabulary size", "longest token")
#: What grows with a size: the cost's name -> its column.
_COSTS = {"time": "own", "mask": "seen_p50", "memory": "bytes", "transitions": "transitions"}


def _grown(items: pd.DataFrame) -> pd.DataFrame:
    """The items of families and of parts of vocabularies, with the size that grows: the fewest states that a contender
    has on the case (of a grammar its terminals), the vocabulary's size, or the bytes of its longest token.
    """
    import pandas as pd

    member = items["constraint"].astype(str).str.extract(_MEMBER)
    part = items["tokenizer"].astype(str).str.extract(PART)
    is_grammar = items["constraint_kind"] == "grammar"
    states = items.groupby(["tokenizer", "constraint"], dropna=False)["states"].transform("min")
    sizes = (
        states.where(member["n"].notna() & ~is_grammar),
        member["n"].where(is_grammar),
        items["vocab_size"].where(part["first"].notna()),
        part["longest"],
    )
    places = items.assign(
        family=member["family"].fillna(items["constraint"]), whole=part["whole"].fillna(items["tokenizer"])
    )
    found = [
        places.assign(against=against, size=pd.to_numeric(size).astype("float64"))[size.notna()]
        for against, size in zip(_AGAINST, sizes, strict=True)
    ]
    grown = pd.concat(found)
    return grown.assign(series=grown["whole"] + ", " + grown["family"])


def _exponents(grown: pd.DataFrame) -> pd.DataFrame:
    """A row for each series and contender: the exponent of each cost."""
    import pandas as pd

    by = ["against", "whole", "family", "label"]
    rows = []
    for key, mine in grown.groupby(by, sort=False):
        middles = mine.reindex(columns=["size", *_COSTS.values()]).astype("float64").groupby("size").median()
        powers = {
            f"{cost}_exponent": exponent(middles.index.tolist(), middles[column].tolist())
            for cost, column in _COSTS.items()
        }
        rows.append({**dict(zip(by, key, strict=True)), **powers})
    return pd.DataFrame(rows, columns=[*by, *(f"{cost}_exponent" for cost in _COSTS)])


def _pooled(items: pd.DataFrame, masks: pd.DataFrame) -> pd.DataFrame:
    """One row for each compile, first walk and mask."""
    import pandas as pd

    parts = {"compile, own": items.get("own"), "first walk": items.get("text")}
    found = [items.assign(what=what, pooled_ns=taken) for what, taken in parts.items() if taken is not None]
    return pd.concat([*found, masks.assign(what="mask", pooled_ns=masks["mask_ns"])]).dropna(subset=["pooled_ns"])


#: Number of threads -> how a batch was filled.
_CALLS = {"0": " loop", "1": " batch"}


def _batches(times: pd.DataFrame) -> pd.DataFrame:
    """The samples of batches, with their size, their phase, and who filled them how."""
    found = times[times["measure"].str.startswith("batch_")]
    told = found["measure"].str.extract(r"batch_(?P<size>\d+)_(?P<threads>\d+)_(?P<phase>\w+)")
    threads = told["threads"].map(_CALLS.get).fillna(" batch, " + told["threads"] + " threads")
    return found.assign(
        size=told["size"].astype(int),
        phase=told["phase"],
        way=found["label"] + threads,
        batch_ns=found["ns"],
        batch_mask_ns=found["ns"] / told["size"].astype("float"),
    )


def _done(items: pd.DataFrame) -> dict[str, str]:
    """label -> how many of its items succeeded, as ``14/18``."""
    groups = items.groupby("label", sort=False)["status"]
    return {str(label): f"{(found == 'ok').sum()}/{len(found)}" for label, found in groups}


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


def _options(results: Results) -> list[str]:
    """What each option changes most, where the experiment names no parts."""
    table, said = _OPTIONS.build(results), []
    for row in table.rows if not results.config.get("parts") else ():
        cells = dict(zip(table.columns, row, strict=True))
        known = {head: cell for head, cell in cells.items() if head in _TIME_HEADS and isinstance(cell.value, float)}
        if known:
            head = max(known, key=lambda one: abs(math.log(cast("float", known[one].value))))
            backend, option, value, first = (cell.text for cell in row[:4])
            said.append(f"{backend} with {option}={value} instead of {first}: {head} {known[head].text}.")
    return said


def _by_constraint(value: str, title: str) -> Pivot:
    note = "The median of the repeats, and of the workloads where there are several; the fastest of a row is bold."
    return Pivot(value, f"{title} by constraint and tokenizer", note, rows=("tokenizer", "constraint"), value=value)


_COLUMNS = (
    text("label", "backend"),
    *map(text, ("tokenizer", "constraint", "workload", "done", "phase", "way", "what", "against", "family")),
    text("whole", "tokenizer"),
    Column("size", "size"),
    *(Column(f"{cost}_exponent", f"exponent of {cost}", "", "lower") for cost in _COSTS),
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
            ("seen_ns", "seen mask time", "filling the mask of a state that has been seen before"),
            ("batch_ns", "time of a batch", "filling the masks of all matchers of a batch"),
            ("batch_mask_ns", "time of a mask in a batch", "the time of a batch over its masks"),
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
    place=("repeat", "step"),
    frames=frames,
    columns=_COLUMNS,
    tables=(
        Summary(
            "overview",
            "Backends side by side",
            "Medians over cases: tokenizer, constraint, workload and seed. Ratios are to the reference, paired case by "
            "case: median (lowest–highest). The best are in bold.",
            by=("label",),
            values=("done", *_TIMES, "memory_peak_bytes", "memory_retained_bytes"),
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
            for cost in _COSTS
        ),
        Pivot(
            "batches",
            "Time of a batch",
            "The masks of so many matchers at spread places, one after another or by the engine's call for batches.",
            rows=("tokenizer", "constraint", "size", "phase"),
            across="way",
            value="batch_ns",
            frame="batch",
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
        Points(
            "cost_states", "Compile time against states", x="states", y="compile", hover=("tokenizer", "constraint")
        ),
        Curves("cost_vocabulary", "Mean mask time by vocabulary size", x="vocab_size", y="mask_mean"),
        *(
            Curves(
                f"growth_{cost}_{place}",
                f"Growth of {cost} with {against}",
                "A curve that ends early: the engine failed on larger sizes.",
                x="size",
                y=_COSTS[cost],
                panels="series",
                frame="grown",
                where=f"against == '{against}'",
                log=True,
                optional=True,
            )
            for place, against in enumerate(_AGAINST)
            for cost in ("time", "mask", "memory")
        ),
    ),
    sentences=(
        Say(
            "{size} matchers, masks seen before: {way} takes {time} a mask.",
            per=("size", "way"),
            blanks={"time": "batch_mask_ns"},
            frame="batch",
            where="phase == 'seen' and size == size.max()",
        ),
        Computed(_parts),
        Ranking(("compile", "mask_mean", "mask_p99", "seen_p50"), over=CASE),
        *(
            Say(
                f"{{label}}: {cost} grows with {{against}} to the power of {{power}} (median of {{series}} series, "
                "{low} to {high}).",
                per=("against", "label"),
                blanks={
                    **{"power": f"{cost}_exponent", "series": f"{cost}_exponent:count"},
                    **{"low": f"{cost}_exponent:min", "high": f"{cost}_exponent:max"},
                },
                frame="exponents",
            )
            for cost in ("time", "mask")
        ),
        Computed(_options),
        Against(("compile", "mask_p50", "mask_mean", "mask_p99", "seen_p50", "memory_retained_bytes"), over=CASE),
        Say(
            "{label}: a lexeme ends at {share} of the nodes of its walks.",
            per=("label",),
            blanks={"share": Quotient("count_lexeme_ends:sum", "count_nodes_visited:sum", unit="share")},
            where="count_lexeme_ends > 0",
        ),
        Computed(_equal_masks),
    ),
)

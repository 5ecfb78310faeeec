"""The frames that ``kind: backends`` is told by: items with the statistics of their samples, samples, what grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.stats import exponent
from tokdfa.lab.measure.contenders import SHARED_PHASES
from tokdfa.lab.measure.growing import SUBSET

if TYPE_CHECKING:
    import pandas as pd

CASE = ("tokenizer", "constraint", "workload", "seed")
#: The prefix of columns with what matchers have counted.
COUNTED = "count_"
#: What `tokens_dfa` calls the steps of its walks, among its sizes.
STEPS = "dfa_steps"
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
        of_masks = times[times["measure"] == "mask"].groupby("item_id")
        numbers |= {name: of_masks[name].sum() for name in ("allowed", "differs")}
    if "advance" in groups:
        numbers["advance_p50"] = groups["advance"].quantile(0.5)
    if "seen" in groups:
        numbers["seen_p50"] = groups["seen"].quantile(0.5)
    # of the second half of a walk
    late = times[2 * times["step"] >= times.groupby("item_id")["step"].transform("max")]
    late = late[late["measure"].isin(["mask", "advance"])].groupby(["item_id", "measure"])["ns"].mean().unstack()
    if len(late.columns) == 2:
        numbers["token_mean"] = late.sum(axis=1)
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
        "compared": compared,
        "differing": compared[places],
    }


#: Constraint of a family, as `tokdfa.lab.config.constraints` calls it.
_MEMBER = r"(?P<family>.*), n=(?P<n>\d+)"
#: What grows -> its name in a table.
AGAINST = ("states", "terminals", "vocabulary size", "longest token", "length of the text")
#: The label of a workload that repeats a text.
_REPEATED = r"^(\d+) tokens$"
#: What grows with a size: the cost's name -> its column.
COSTS = {"time": "own", "mask": "seen_p50", "memory": "bytes", "transitions": "transitions", "token": "token_mean"}


def _grown(items: pd.DataFrame) -> pd.DataFrame:
    """The items of families, of subsets of vocabularies, and of texts that go on, with the size that grows: the fewest
    states that a contender has on the case (of a grammar its terminals), the vocabulary's size, the bytes of its
    longest token, or the tokens of the text, of which alone the cost of a token is told.
    """
    import pandas as pd

    member = items["constraint"].astype(str).str.extract(_MEMBER)
    subset = items["tokenizer"].astype(str).str.extract(SUBSET)
    is_grammar = items["constraint_kind"] == "grammar"
    states = items.groupby(["tokenizer", "constraint"], dropna=False)["states"].transform("min")
    sizes = (
        states.where(member["n"].notna() & ~is_grammar),
        member["n"].where(is_grammar),
        items["vocab_size"].where(subset["first"].notna()),
        subset["longest"],
        items["workload"].astype(str).str.extract(_REPEATED)[0],
    )
    places = items.assign(
        family=member["family"].fillna(items["constraint"]), whole=subset["whole"].fillna(items["tokenizer"])
    )
    found = [
        places.assign(against=against, size=pd.to_numeric(size).astype("float64"))[size.notna()]
        for against, size in zip(AGAINST, sizes, strict=True)
    ]
    grown = pd.concat(found)
    of_texts = grown["against"] == AGAINST[-1]
    for cost, column in COSTS.items():
        if column in grown:
            grown[column] = grown[column].where(of_texts if cost == "token" else ~of_texts)
    return grown.assign(series=grown["whole"] + ", " + grown["family"])


def _exponents(grown: pd.DataFrame) -> pd.DataFrame:
    """A row for each series and contender: the exponent of each cost."""
    import pandas as pd

    by = ["against", "whole", "family", "label"]
    rows = []
    for key, mine in grown.groupby(by, sort=False):
        middles = mine.reindex(columns=["size", *COSTS.values()]).astype("float64").groupby("size").median()
        powers = {
            f"{cost}_exponent": exponent(middles.index.tolist(), middles[column].tolist())
            for cost, column in COSTS.items()
        }
        rows.append({**dict(zip(by, key, strict=True)), **powers})
    return pd.DataFrame(rows, columns=[*by, *(f"{cost}_exponent" for cost in COSTS)])


def _pooled(items: pd.DataFrame, masks: pd.DataFrame) -> pd.DataFrame:
    """One row for each compile, first walk and mask."""
    import pandas as pd

    parts = {"compile, own": items.get("own"), "first walk": items.get("text")}
    found = [items.assign(what=what, pooled_ns=taken) for what, taken in parts.items() if taken is not None]
    return pd.concat([*found, masks.assign(what="mask", pooled_ns=masks["mask_ns"])]).dropna(subset=["pooled_ns"])


def _done(items: pd.DataFrame) -> dict[str, str]:
    """label -> how many of its items succeeded, as ``14/18``."""
    groups = items.groupby("label", sort=False)["status"]
    return {str(label): f"{(found == 'ok').sum()}/{len(found)}" for label, found in groups}

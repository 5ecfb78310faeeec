"""What a run of kind ``tokens_dfa_ablation`` measured, and the pairs by which a switch is judged.

A switch is judged by *pairs*: two variants on the same tokenizer and regex that differ in this switch only. The factor
of a pair is what the variant without it takes over what the variant with it takes, so above 1 it pays. All pairs of a
setting count alike: a part that pays only where another is missing shows it by its range. Compile time hides a part
behind the phases that it does not touch, above all making the DFA, so the phases it does touch have a factor of their
own.

*Settings*: 001 classifies tokens by their strings of byte classes; ours by transformations of the states.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.lab.report.data import complete_columns

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Compile phases of all contenders, in the order of the work. ``index`` is a baseline's table in one piece.
PHASES = ("parse", "automaton", "minimize", "classes", "walks", "index", "reduce", "masks")
#: What is counted; other sizes of a backend are in the stored results only.
SIZES = (
    *("dfa_states", "byte_classes", "tokens_left", "class_strings", "graph_nodes", "token_classes"),
    *("rows", "transitions", "table_bytes", "mask_bytes", "bytes"),
)
_NUMBERS = (
    *("vocab_size", "compiles", "compile_s", "mask_ns", "advance_ns"),
    *(f"phase_{name}" for name in PHASES),
    *(f"size_{name}" for name in SIZES),
)

#: Labels of the contenders that everything else is compared with: our default, which is called like the backend; 001 as
#: published but for its muting and its threads; and the two baselines.
DEFAULT, SEED, BASELINE, PEER = "tokens_dfa", "tokens_dfa, strings", "token_index", "outlines_core"

#: Variants that have a name, in the order of tables and plots: label -> name. One thread each.
NAMED = {
    PEER: "outlines_core",
    BASELINE: "token_index",
    SEED: "as in 001",
    "tokens_dfa, mute_literals, strings": "as in 001, muted",
    DEFAULT: "tokens_dfa",
    "tokens_dfa, mute_literals": "tokens_dfa, muted",
}
#: Variants that are shown with one thread and with two.
THREADED = {
    DEFAULT: "tokens_dfa",
    SEED: "as in 001",
    "tokens_dfa, strings, no prefix_graphs": "as in 001, no prefix graphs",
}
#: Suffixes of the two sides of a pair.
ENDS = ("without", "with")


class Switch(NamedTuple):
    """An option with the value that stands for without it and the value that stands for with it. `phases`: those that
    it is about; none means that it touches them all.
    """

    option: str
    without: Any
    value: Any
    phases: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is called: ``dead bytes``, ``none → strings``."""
        return f"{self.without} → {self.value}" if isinstance(self.value, str) else self.option.replace("_", " ")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the phases that it is about."""
        return tuple(f"phase_{name}" for name in self.phases or PHASES)


MUTING = Switch("mute_literals", False, True)
THREADS = Switch("threads", 1, 2, ("classes", "walks"))
#: The switches of one way of classifying tokens.
SWITCHES = (
    MUTING,
    Switch("minimal", False, True),
    Switch("dead_bytes", False, True, ("classes", "walks")),
    Switch("byte_classes", False, True, ("classes", "walks")),
    Switch("prefix_graphs", False, True, ("walks",)),
    THREADS,
    Switch("reduce", False, True, ("reduce", "masks")),
    Switch("ready_masks", False, True, ("masks",)),
)
#: The ways of classifying, each against the one before.
CLASSIFIERS = (
    Switch("token_classes", "none", "strings", ("classes", "walks", "reduce")),
    Switch("token_classes", "strings", "transformations", ("classes", "walks", "reduce")),
)
#: Setting (a value of ``token_classes``) -> its title.
SETTINGS = {"strings": "class strings (001)", "transformations": "transformations"}
#: In place of a setting, for the switches between settings.
CLASSES = "token classes"


def measured(data: RunData) -> pd.DataFrame:
    """The rows that succeeded, all their numbers as float, NaN where there is none."""
    return complete_columns(data.results[data.results["status"] == "ok"], (), _NUMBERS)


def pairs(data: RunData, switch: Switch, setting: str = "") -> pd.DataFrame:
    """One row per tokenizer, regex and pair of variants: their columns with the suffixes ``_without`` and ``_with``.

    `setting`: only variants with this value of ``token_classes``.
    """
    rows = measured(data)
    rows = rows[rows["backend"] == DEFAULT]
    if setting:
        rows = rows[rows["token_classes"] == setting]
    others = [{**json.loads(text), switch.option: None} for text in rows["options"]]
    rows = rows.assign(others=[json.dumps(options, sort_keys=True) for options in others])
    without, value = (rows[rows[switch.option] == chosen] for chosen in (switch.without, switch.value))
    return without.merge(value, on=["tokenizer", "constraint", "others"], suffixes=tuple(f"_{end}" for end in ENDS))


def factors(found: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series[float]:
    """For each pair the sum of `columns` without the switch over that with it; pairs where either is 0 are left out."""
    without, value = (found[[f"{column}_{end}" for column in columns]].sum(axis=1) for end in ENDS)
    return (without / value)[(without > 0) & (value > 0)]


def judged(data: RunData) -> list[tuple[str, Switch, pd.DataFrame]]:
    """(setting or `CLASSES`, switch, its pairs) for every switch that has a pair."""
    found = [(setting, switch, pairs(data, switch, setting)) for setting in SETTINGS for switch in SWITCHES]
    found += [(CLASSES, switch, pairs(data, switch)) for switch in CLASSIFIERS]
    return [entry for entry in found if len(entry[2])]


class Speed(NamedTuple):
    """How many times as fast one contender compiles a regex as another one does."""

    factor: float
    constraint: str
    tokenizer: str

    def __str__(self) -> str:
        return f"{self.constraint} on {self.tokenizer}"


def speeds(data: RunData, label: str, other: str) -> list[Speed]:
    """How many times as fast `label` compiles as `other`, for all that both compiled, the least first."""
    rows, place = measured(data), ["tokenizer", "constraint"]
    ours, theirs = (rows.loc[rows["variant"] == one, [*place, "compile_s"]] for one in (label, other))
    both = ours.merge(theirs, on=place, suffixes=("", "_other"))
    ratios = both["compile_s_other"] / both["compile_s"]
    cases = zip(ratios.astype(float), both["constraint"].astype(str), both["tokenizer"].astype(str), strict=True)
    return sorted(Speed(*case) for case in cases)


def largest_vocabulary(rows: pd.DataFrame) -> str:
    """The tokenizer with the largest vocabulary among `rows`, of which there must be one."""
    return str(rows["tokenizer"].iloc[int(rows["vocab_size"].argmax())])


def threaded(data: RunData) -> pd.DataFrame:
    """The pairs of one thread and two, of the variants in `THREADED`."""
    found = pairs(data, THREADS)
    return found[found["variant_without"].isin(list(THREADED))]


def by_regex(data: RunData) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """((tokenizer, regex), variant -> its row) in the order of the run."""
    groups = measured(data).groupby(["tokenizer", "constraint"], sort=False)
    return [
        (
            (str(one["tokenizer"].iloc[0]), str(one["constraint"].iloc[0])),
            {row["variant"]: row for _, row in one.iterrows()},
        )
        for _, one in groups
    ]

"""The experiment ``kind: regex_states``: how many states does the derivative DFA have?

000 claims that the automaton of derivatives "is not minimal, but typically much smaller than the un-minimised DFA from
determinising an NFA", depending on the simplifications. One item is a constraint; its rows count the states of

- ``all laws``: the derivative DFA with every simplification law of `tokdfa.regex.nodes.LAWS`;
- ``without LAW``: the same with one law off, for each law;
- ``no laws``: with all of them off (only the identities of nothing and empty remain), which need not be finite;
- ``subset construction``: the un-minimised subsets of the position automaton (Glushkov), dead subset not counted;
- ``minimal``: the minimal DFA, dead state not counted.

States are counted live or dead alike for the derivative DFAs (a simplification that finds out that a state is dead is
part of what the laws buy), without the one dead state *nothing*. A variant that passes ``max_states`` has status
``limit`` and the limit as its count. Variants are built twice, in turn, and the second time is measured: kernels are
then loaded. What does not finish is built once.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tokdfa.automata.algebra import minimize
from tokdfa.automata.nfa import subset_construction
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Pivot, Say, Stat, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.settings import Strict
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import LAWS, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import K_CONCAT, K_REPEAT, K_UNION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint

ALL_LAWS, NO_LAWS, SUBSETS, MINIMAL = "all laws", "no laws", "subset construction", "minimal"


class Settings(Strict):
    """`max_states`: what a variant may have."""

    max_states: Annotated[int, Field(ge=1)] = 20_000


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Count the states of one constraint; a row for each variant.

    `settings`: the fields of a regex or a choice, and those of `Settings`. `seed` is not used: nothing is random.
    """
    constraint = item_constraint(settings).build()
    limit = item_settings(Settings, settings).max_states
    variants = _variants(constraint, limit)
    found = {variant: _count(count, limit) for variant, count in variants.items()}
    again = {variant: _count(variants[variant], limit) for variant, row in found.items() if row["status"] == "ok"}
    return [{"constraint": constraint.name, "variant": variant, **row} for variant, row in (found | again).items()]


def _variants(constraint: Constraint, limit: int) -> dict[str, Callable[[], int]]:
    """variant -> what counts its states."""

    def derivatives(without: Iterable[str]) -> int:
        store = ExpressionStore(without, max_expressions=1_000_000)
        dfa = LazyDfa(store, lower_constraint(constraint, store), limit + 1)
        dfa.explore()
        return dfa.state_count

    def explicit() -> Dfa:
        store = ExpressionStore()
        return LazyDfa(store, lower_constraint(constraint, store), limit + 1).to_dfa()

    def subsets() -> int:
        # without the laws that merge and fold, so that the position automaton is that of the pattern as written
        store = ExpressionStore(without_laws=("union_merge_repeats", "concat_merge_repeats", "repeat_nested"))
        tree = _tree(store, lower_constraint(constraint, store))
        return subset_construction(tree, limit).state_count

    return {
        ALL_LAWS: lambda: derivatives(()),
        **{f"without {law}": partial(derivatives, (law,)) for law in LAWS},
        NO_LAWS: lambda: derivatives(LAWS),
        SUBSETS: subsets,
        MINIMAL: lambda: minimize(explicit()).state_count,
    }


def _count(count: Callable[[], int], limit: int) -> dict[str, Any]:
    status, message, started = "ok", "", time.perf_counter()
    try:
        with collector_off():
            started = time.perf_counter()
            states = count()
    except LimitExceeded as error:
        states, status, message = limit, "limit", str(error)
    except UnsupportedConstraint as error:
        states, status, message = 0, "unsupported", str(error)
    return {"states": states, "seconds": time.perf_counter() - started, "status": status, "message": message}


def _tree(store: ExpressionStore, expression: int) -> tuple[Any, ...]:
    """The nested-tuple form of an expression that `tokdfa.automata.nfa` takes."""
    view, kind = store.view(expression), store.kind(expression)
    if kind == K_CONCAT:
        parts = []
        while store.kind(expression) == K_CONCAT:
            head, expression = store.view(expression)[1:]
            parts.append(_tree(store, head))
        return "concat", [*parts, _tree(store, expression)]
    if kind == K_UNION:
        return "union", [_tree(store, part) for part in view[1]]
    if kind == K_REPEAT:
        return "repeat", _tree(store, view[1]), view[2], view[3]
    if view[0] in ("bytes", "empty", "nothing"):
        return view
    raise UnsupportedConstraint(f"a position automaton cannot have a node of kind {view[0]}")


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows beside the minimal DFA and all laws; the ways of building alone; the laws that change something, and
    of these the costliest one. What did not finish has its limit for its states.
    """
    done = rows["status"] == "ok"
    known = {name: rows[done & (rows["variant"] == name)].set_index("constraint")["states"] for name in rows["variant"]}
    none = rows["states"].iloc[:0]
    rows = rows.assign(
        over_minimal=(rows["states"] / rows["constraint"].map(known.get(MINIMAL, none))).where(done),
        all_laws=rows["constraint"].map(known.get(ALL_LAWS, none)),
        is_unfinished=~done,
    )
    rows["is_minimal"] = (rows["over_minimal"] == 1).where(rows["over_minimal"].notna())
    rows["over_all_laws"] = rows["states"] / rows["all_laws"]
    is_law = rows["variant"].str.startswith("without ")
    laws = rows[is_law & (rows["over_all_laws"] > 0) & (rows["over_all_laws"] != 1)]
    total = laws[laws["states"] > laws["all_laws"]].groupby("variant")["states"].sum()
    costliest = rows["variant"] == (total.idxmax() if len(total) else "")
    return {"": rows, "ways": rows[~is_law], "laws": laws, "costliest": rows[costliest]}


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("constraint"),
        text("variant"),
        Column("states", "states", "", "lower", "states of the byte automaton; of what did not finish the limit"),
        seconds("seconds", "build time", "building all states, kernels loaded"),
        Column("over_minimal", "states over those of the minimal DFA", "ratio", "lower"),
        Column("is_minimal", "already minimal", "", "higher"),
        Column("all_laws", "states with all laws"),
        Column("over_all_laws", "states over those with all laws", "ratio", "lower"),
        text("status", "ended"),
    ),
    engine="variant",
    reference=MINIMAL,
    case=("constraint",),
    frames=frames,
    tables=(
        Summary(
            "states_by_variant",
            "States by variant",
            "States over those of the minimal DFA, of the constraints that the variant finished.",
            by=("variant",),
            values=(
                Stat("over_minimal", "count", "finished"),
                Stat("is_minimal", "sum", "already minimal"),
                Stat("over_minimal", "median", "median"),
                Stat("over_minimal", "max", "max"),
                Stat("seconds", "median", "build time"),
            ),
        ),
        Pivot(
            "dfa_states",
            "States by constraint",
            rows=("constraint",),
            value=Stat("states", "max", where="status == 'ok'"),
            frame="ways",
        ),
        Listing(
            "laws",
            "Laws that change the number of states",
            "The states without a law against those with all laws.",
            shown=("constraint", "variant", "all_laws", "states", "over_all_laws", "status"),
            sort="over_all_laws",
            frame="laws",
        ),
    ),
    charts=(
        Bars(
            "states_over_minimal",
            "States over those of the minimal DFA",
            "Ways that did not finish have no point.",
            x="over_minimal",
            rows="constraint",
            log=True,
            frame="ways",
            where=f"variant != '{MINIMAL}'",
        ),
    ),
    sentences=(
        Say(
            "{variant}: minimal already for {minimal} of {finished} constraints; median {median} the states of the "
            "minimal DFA, at most {most}.",
            per=("variant",),
            blanks={
                "minimal": "is_minimal:sum",
                "finished": "over_minimal:count",
                "median": "over_minimal:median",
                "most": "over_minimal:max",
            },
            frame="ways",
            where=f"variant != '{MINIMAL}'",
        ),
        Say(
            "Of single laws the costliest to leave out: {variant}, with {states} states over all constraints "
            "({unfinished} unfinished, counted as their limit) against {all} with all laws.",
            per=("variant",),
            blanks={"states": "states:sum", "unfinished": "is_unfinished:sum", "all": "all_laws:sum"},
            frame="costliest",
        ),
        Tally("builds"),
    ),
)

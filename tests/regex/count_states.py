"""How many states does the derivative DFA have? A claim of llguidance's docs/optimizations.md, counted.

    python -m tests.regex.count_states

The automaton of derivatives "is not minimal, but typically much smaller than the un-minimised DFA from determinising an
NFA", depending on the simplifications. Of each pattern in ``count_states.yaml`` the states of

- ``all laws``: the derivative DFA with every simplification law of `tokdfa.regex.expression.LAWS`;
- ``without LAW``: the same with one law off, for each law;
- ``no laws``: with all of them off (only the identities of nothing and empty remain), which need not be finite;
- ``subset construction``: the un-minimised subsets of the position automaton (Glushkov), dead subset not counted;
- ``minimal``: the minimal DFA, dead state not counted.

States of derivative DFAs are counted live or dead alike (a simplification that finds out that a state is dead is part
of what the laws buy), without the one dead state *nothing*. What passes `MAX_STATES` counts as that, and is no part of
a median. Prints Markdown: the variants over the minimal DFA, the states by pattern, and the laws that change something.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import yaml

from tests.regex.subset_construction import subset_construction
from tokdfa.automata.algebra import minimize
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.lab.declare.cells import Table, text_cell
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import LAWS, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import K_CONCAT, K_REPEAT, K_UNION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_STATES = 20_000
ALL_LAWS, NO_LAWS, SUBSETS, MINIMAL = "all laws", "no laws", "subset construction", "minimal"
PATTERNS = Path(__file__).with_suffix(".yaml")
SHARED_PATTERNS = Path(__file__).parents[2] / "experiments" / "inputs" / "regexes.yaml"


class Count(NamedTuple):
    """`states`, and how the variant ended: ``ok``, ``limit`` or ``unsupported``."""

    states: int
    status: str = "ok"


def patterns() -> dict[str, str]:
    """Label -> pattern: outlines-core's, and those on which the laws act."""
    return {
        one["label"]: one["regex"] for file in (SHARED_PATTERNS, PATTERNS) for one in yaml.safe_load(file.read_text())
    }


def count_states(pattern: str, limit: int = MAX_STATES) -> dict[str, Count]:
    """Variant -> its states."""
    constraint = Regex(pattern)

    def derivatives(without: Iterable[str]) -> int:
        store = ExpressionStore(without, max_expressions=1_000_000)
        dfa = LazyDfa(store, lower_constraint(constraint, store), limit + 1)
        dfa.explore()
        return dfa.state_count

    def minimal() -> int:
        store = ExpressionStore()
        return minimize(LazyDfa(store, lower_constraint(constraint, store), limit + 1).to_dfa()).state_count

    def subsets() -> int:
        # without the laws that merge and fold, so that the position automaton is that of the pattern as written
        store = ExpressionStore(without_laws=("union_merge_repeats", "concat_merge_repeats", "repeat_nested"))
        return subset_construction(_tree(store, lower_constraint(constraint, store)), limit).state_count

    variants: dict[str, Callable[[], int]] = {
        ALL_LAWS: partial(derivatives, ()),
        **{f"without {law}": partial(derivatives, (law,)) for law in LAWS},
        **{NO_LAWS: partial(derivatives, LAWS), SUBSETS: subsets, MINIMAL: minimal},
    }
    found = {}
    for variant, count in variants.items():
        try:
            found[variant] = Count(count())
        except LimitExceeded:
            found[variant] = Count(limit, "limit")
        except UnsupportedConstraint:
            found[variant] = Count(0, "unsupported")
    return found


def _tree(store: ExpressionStore, expression: int) -> tuple[Any, ...]:
    """The nested-tuple form of an expression that `tests.regex.subset_construction` takes."""
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


def main() -> None:
    """Count, and print the tables."""
    found = {label: count_states(pattern) for label, pattern in patterns().items()}
    rows = [
        {"pattern": label, "variant": variant, **count._asdict(), "over": count.states / counts[MINIMAL].states}
        for label, counts in found.items()
        for variant, count in counts.items()
    ]
    done = pd.DataFrame(rows).query("status == 'ok'")
    groups = done.groupby("variant", sort=False)["over"]
    by_variant = groups.agg(
        finished="size", already_minimal=lambda over: (over == 1).sum(), median="median", most="max"
    )
    print(_markdown(by_variant.round(2).reset_index()))
    shown = [ALL_LAWS, NO_LAWS, SUBSETS, MINIMAL]
    by_pattern = [[label, *(_shown(counts[one]) for one in shown)] for label, counts in found.items()]
    print(_markdown(pd.DataFrame(by_pattern, columns=["pattern", *shown])))
    changed = [
        (label, variant, counts[ALL_LAWS].states, _shown(count), count.states / counts[ALL_LAWS].states)
        for label, counts in found.items()
        for variant, count in counts.items()
        if variant.startswith("without ") and count.states != counts[ALL_LAWS].states
    ]
    laws = pd.DataFrame(changed, columns=["pattern", "variant", ALL_LAWS, "without it", "times"])
    print(_markdown(laws.sort_values("times", ascending=False, kind="stable").round(2)))


def _shown(count: Count) -> str:
    return f"{count.states:,}" if count.status == "ok" else count.status


def _markdown(frame: pd.DataFrame) -> str:
    rows = tuple(tuple(text_cell(value) for value in row) for row in frame.itertuples(index=False))
    return Table("", "", "", tuple(frame.columns), rows).markdown() + "\n"


if __name__ == "__main__":
    main()

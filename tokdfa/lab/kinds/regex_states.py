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
``limit`` and the limit as its count.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.automata.algebra import minimize
from tokdfa.automata.nfa import glushkov, subset_construction
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import LAWS, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import K_CONCAT, K_REPEAT, K_UNION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Count the states of one constraint; a row for each variant.

    `settings`: label, and regex (with search, ascii_classes, flags) or choice; max_states (default 20,000). `seed` is
    not used: nothing is random.
    """
    constraint: Constraint
    if "choice" in settings:
        constraint = Choice(settings["choice"])
    else:
        names = ("search", "ascii_classes", "flags")
        constraint = Regex(settings["regex"], **{name: settings[name] for name in names if name in settings})
    limit = int(settings.get("max_states", 20_000))

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
        return subset_construction(glushkov(tree), limit).state_count

    variants: dict[str, Callable[[], int]] = {
        "all laws": lambda: derivatives(()),
        **{f"without {law}": partial(derivatives, (law,)) for law in LAWS},
        "no laws": lambda: derivatives(LAWS),
        "subset construction": subsets,
        "minimal": lambda: minimize(explicit()).state_count,
    }
    rows = []
    for variant, count in variants.items():
        started = time.perf_counter()
        status, message = "ok", ""
        try:
            states = count()
        except LimitExceeded as error:
            states, status, message = limit, "limit", str(error)
        except UnsupportedConstraint as error:
            states, status, message = 0, "unsupported", str(error)
        rows.append(
            {
                "constraint": settings.get("label") or constraint.name,
                "variant": variant,
                "states": states,
                "seconds": time.perf_counter() - started,
                "status": status,
                "message": message,
            }
        )
    return rows


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

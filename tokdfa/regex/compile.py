"""From a regex or a set of choices to an automaton over bytes: parse, lower, derive.

`compile_lazy` gives the lazy DFA: ready at once, states made on demand. `compile_dfa` gives the explicit one: all
states, only live ones, minimal unless asked otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, LimitExceeded, UnsupportedConstraint
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint

#: Default limit on the states of an explicit DFA: 100 times the largest of the benchmark regexes.
MAX_STATES = 100_000


def lower_constraint(constraint: Constraint, store: ExpressionStore) -> int:
    """The expression of a Regex or a Choice in `store`. Raises RegexSyntaxError or RegexUnsupported."""
    from tokdfa.regex.lower import lower_choice, lower_regex

    if isinstance(constraint, Regex):
        return lower_regex(constraint, store)
    if isinstance(constraint, Choice):
        return lower_choice(constraint, store)
    raise UnsupportedConstraint(f"a {constraint.kind} is not a regular language that this part can compile")


def compile_lazy(constraint: Constraint, *, max_states: int = 1_000_000) -> LazyDfa:
    """The lazy DFA of a Regex or a Choice. `max_states` bounds the states that it will ever make.

    Raises RegexSyntaxError, RegexUnsupported, EmptyLanguageError or LimitExceeded.
    """
    store = ExpressionStore()
    dfa = LazyDfa(store, lower_constraint(constraint, store), max_states)
    if dfa.is_empty:
        raise EmptyLanguageError(f"no text matches {constraint.name!r}; nothing could be generated")
    return dfa


def compile_dfa(constraint: Constraint, *, max_states: int = MAX_STATES, minimal: bool = True) -> Dfa:
    """The explicit DFA of a Regex or a Choice: only live states; the minimal one unless `minimal` is False.

    `max_states` bounds the states before minimisation. Raises what `compile_lazy` raises.
    """
    from tokdfa.automata.algebra import minimize, trim

    explicit = explicit_dfa(compile_lazy(constraint), constraint, max_states)
    return minimize(explicit) if minimal else trim(explicit)


def explicit_dfa(lazy: LazyDfa, constraint: Constraint, max_states: int) -> Dfa:
    """All states of `lazy`, live or not. LimitExceeded, which names `constraint`, past `max_states`."""
    try:
        return lazy.to_dfa(max_states + 1)
    except LimitExceeded as error:
        if error.limit != "max_states":
            raise
        raise LimitExceeded(
            f"the automaton of {constraint.name!r} has more than {max_states} states: lower its repeat bounds, "
            "make states on demand (token_index with lazy=True), or raise max_states",
            limit=error.limit,
            value=error.value,
        ) from None

"""The explicit automaton of a constraint, for strategies that need all of its states beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.constraint import JsonSchema

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.base import Phases
    from tokdfa.constraint import Constraint


def explicit_automaton(constraint: Constraint, max_states: int, phases: Phases) -> Dfa:
    """All states of a Regex, a Choice, or a JsonSchema whose values nest only so deep; not minimal.

    Measured as the phases "parse" and "automaton". Raises what reading the constraint raises, EmptyLanguageError, and
    LimitExceeded past `max_states`.
    """
    if isinstance(constraint, JsonSchema):
        from tokdfa.json_schema.write.lower import lower_schema
        from tokdfa.json_schema.write.program_automaton import program_dfa

        with phases.measure("parse"):
            program, _ = lower_schema(constraint)
        with phases.measure("automaton"):
            return program_dfa(program, constraint.name, max_states)
    from tokdfa.regex.compile import compile_lazy, explicit_dfa

    with phases.measure("parse"):
        lazy = compile_lazy(constraint)
    with phases.measure("automaton"):
        return explicit_dfa(lazy, constraint, max_states)

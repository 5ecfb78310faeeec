"""Situations in words: what each hypothesis takes the end of the text for.

A hypothesis is a lexer state and a stack. Shown are the terminals that the lexeme at the end of the text becomes if it
goes on, as far as they lead on from the stack; its obligations, the terminals that might match later on and must not;
and the stack. A lexeme that cannot go on has no terminals: that it may end here is another hypothesis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokdfa.backends.cfg_fsm.machine import Machine

#: What stands for the terminals that the parser never sees.
IGNORED = "ignored text"


class Reading(NamedTuple):
    """A hypothesis in words.

    `may_become`: terminals, in the order of the lexer; `begun`: whether the lexeme has a byte already;
    `must_not_match`: the obligations; `stack`: states of the parser, the start state first; `may_end`: whether the text
    may end here.
    """

    may_become: tuple[str, ...]
    begun: bool
    must_not_match: tuple[str, ...]
    stack: tuple[int, ...]
    may_end: bool


def readings(machine: Machine, situation: int) -> list[Reading]:
    """The hypotheses of a situation, in words."""
    lexer, stacks = machine.lexer, machine.stacks
    return [
        Reading(
            may_become(machine, state, stack),
            not lexer.is_start[state],
            tuple(terminal_name(machine, terminal) for terminal in lexer.owed(state)),
            tuple(stacks.states(stack)),
            lexer.is_start[state] and stacks.takes(stack, stacks.terminal_count),
        )
        for state, stack in machine.hypotheses.members[situation]
    ]


def may_become(machine: Machine, state: int, stack: int) -> tuple[str, ...]:
    """The terminals that a lexeme in lexer state `state` becomes if it goes on, and that lead on from `stack`."""
    leads_on, labels = leading_outcomes(machine, stack), machine.lexer.outcomes[:, 0].tolist()
    targets = set(machine.lexer.transitions[state].tolist()) - {-1}
    found = {labels[outcome] for target in targets for outcome in machine.lexer.reachable(target) if leads_on[outcome]}
    return tuple(terminal_name(machine, label) for label in sorted(found))


def terminal_name(machine: Machine, label: int) -> str:
    """What a label is called: a string in quotes, a regex by its name (its pattern if it has none), or `IGNORED`."""
    if label == machine.lexer.ignored_label:
        return IGNORED
    terminal = machine.tables.terminals[label]
    return f'"{terminal.value}"' if terminal.is_string else terminal.shown


def leading_outcomes(machine: Machine, stack: int) -> list[bool]:
    """Which outcomes of the next lexeme lead on from `stack`, a stack of some hypothesis."""
    labels, leads_on = machine.lexer.outcomes[:, 0].tolist(), machine.hypotheses.leads_on(stack)
    by_outcome = machine.hypotheses.is_searched
    return [bool(leads_on >> (outcome if by_outcome else label) & 1) for outcome, label in enumerate(labels)]

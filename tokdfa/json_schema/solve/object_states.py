"""Objects as automata over their members: for counts of members, demands that some member meets, and any order.

A state knows which declared names may still come, how many members there were (as far as the bounds care), and which
demands are met. By ``order="schema"`` the names come in their order, so a position is enough, and other names follow
the declared ones; by ``order="any"`` the names that have been are remembered, and anything may come at any time. Names
that are remembered without being declared (``duplicates="refused"``) are bits in both orders. What is left of choices
is part of the state (`tokdfa.json_schema.solve.choices`).

Whether a member meets a demand is guessed: a move that claims it reads a value that does, one that does not reads any
value. Moves into states that cannot come to an end are left out.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.solve.choices import Open, choices_of
from tokdfa.json_schema.solve.clauses import State, intersect_states
from tokdfa.json_schema.solve.ends import Ends, TooManyStates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.solve.clauses import ObjectClause
    from tokdfa.json_schema.solve.object_plan import ObjectPlan
    from tokdfa.json_schema.solve.oracle import Oracle

#: States looked at to see whether one comes to an end, at most.
MAX_STATES = 50_000
#: Work (`tokdfa.core.budget`) of a move, in nanoseconds.
MOVE_WORK = 3_000


class Members(NamedTuple):
    """A state: the next declared name (or, in any order, the bits of those that were), members, demands met (bits), and
    what is left of choices.

    Behind the last declared name `position` is their number plus the bits of the remembered names that were.
    """

    position: int
    members: int
    met: int
    left: Open = ()


class Move(NamedTuple):
    """A member: the index of its declared name or ~index of its kind, the state of its value, what follows."""

    member: int
    value: State
    following: Members


class ObjectStates:
    """The automaton of one plan. `any_order`: names come in any order."""

    def __init__(self, oracle: Oracle, clause: ObjectClause, plan: ObjectPlan, any_order: bool = False) -> None:
        self.oracle, self.demands, self.plan, self.any_order = oracle, clause.demands, plan, any_order
        if len(clause.demands) > 6:
            place = oracle.document.root.pointer
            raise SchemaUnsupported("more than 6 demands on some member of one object", place, "not")
        self.all_met = (1 << len(clause.demands)) - 1
        self.all_required = sum(1 << k for k, needed in enumerate(plan.required) if needed)
        #: Members are counted up to here.
        self.cap = plan.least if plan.most is None else plan.most
        self.choices = choices_of(oracle, clause, plan, any_order) if clause.choices else None
        self.start = Members(0, 0, 0, self.choices.start if self.choices else ())
        #: Whether names come in any order, and nothing but them decides what may follow. That is never a dead end: a
        #: plan has values for its required names, and names enough for the least of members.
        self.is_free = any_order and plan.most is None and not clause.demands and self.choices is None
        #: Whether a member that strikes out no alternative leaves a way to the end if there was one before it: the same
        #: way, less this member.
        self._is_open = any_order and plan.most is None and not clause.demands
        self._ends = Ends[Members](MAX_STATES)
        #: How many names are declared.
        self.declared = len(plan.names) - plan.remembered
        #: Position -> the last index of the window that begins there: the next required name.
        self.window: list[int] = [self.declared - 1] * (self.declared + 1)
        for k in range(self.declared - 1, -1, -1):
            self.window[k] = k if plan.required[k] else self.window[k + 1]

    def names_done(self, position: int) -> bool:
        """Whether all required names have been."""
        if self.any_order:
            return position & self.all_required == self.all_required
        return position >= self.declared or not self.plan.required[self.window[position]]

    def can_close(self, state: Members) -> bool:
        """Whether the object may end."""
        if not self.names_done(state.position) or state.members < self.plan.least or state.met != self.all_met:
            return False
        if self.choices is None:
            return True
        return self.choices.may_close(state.left, self._passed(state.position))

    def _passed(self, position: int) -> int:
        """Bits of the declared names that have been, or cannot come any more, as far as choices allow that."""
        return position if self.any_order else (1 << min(position, self.declared)) - 1

    def _all_moves(self, state: Members, only: int = -1) -> Iterator[Move]:
        """The moves from a state, dead ends among them; `only`: bits of names and of kinds, if others are left out."""
        plan = self.plan
        if plan.most is not None and state.members >= plan.most:
            return
        for k, position, left in self._free(state, only):
            yield from self._members(k, plan.states[k], plan.demands[k], position, state._replace(left=left))
        if not plan.kinds or (self.choices is not None and not only & self.choices.kinds_bit):
            return
        if self.any_order or self.names_done(state.position):
            position = state.position if self.any_order else max(state.position, self.declared)
            behind: Open | None = state.left
            if self.choices is not None and not self.any_order:
                behind = self.choices.behind(state.left, self._passed(state.position))
            if behind is None:
                return
            for k, kind in enumerate(plan.kinds):
                yield from self._members(~k, kind.value, kind.demands, position, state._replace(left=behind))

    def _free(self, state: Members, only: int) -> Iterator[tuple[int, int, Open]]:
        """The names that may come, the positions after them, and what is left of choices before them."""
        names, declared, choices = self.plan.names, self.declared, self.choices
        position, left = state.position, state.left
        if self.any_order:
            for k in range(len(names)):
                if not position >> k & 1 and only >> k & 1:
                    yield k, position | 1 << k, left
            return
        if position < declared:
            for k in range(position, self.window[position] + 1):
                if only >> k & 1:
                    yield k, k + 1, left
                if choices is not None:
                    passed = choices.without(k, left)
                    if passed is None:
                        return
                    left = passed
        if self.plan.remembered and self.names_done(position):
            seen = max(position - declared, 0)
            for k in range(declared, len(names)):
                bit = 1 << k - declared
                if not seen & bit and only >> k & 1:
                    yield k, declared + (seen | bit), left

    def _members(
        self, member: int, value: State, demands: tuple[int, ...], position: int, state: Members
    ) -> Iterator[Move]:
        """The moves by one member: one for each guess about choices and each set of open demands that it claims."""
        if self.choices is None:
            yield from self._claims(member, value, value, demands, position, state)
            return
        for guess, left in self.choices.claims(member, state.left, value):
            if member >= 0:  # what a kind says, `claims` has seen
                after = self.choices.after(member, left, position)
                if after is None:
                    continue
                left = after
            yield from self._claims(member, guess, value, demands, position, state._replace(left=left))

    def _claims(
        self, member: int, value: State, known: State, demands: tuple[int, ...], position: int, state: Members
    ) -> Iterator[Move]:
        """The moves by one member whose value is in `value`; that there is such a value is known of `known`."""
        count = min(state.members + 1, self.cap)
        open_demands = [k for k in demands if not state.met >> k & 1]
        for size in range(len(open_demands) + 1):
            for claimed in combinations(open_demands, size):
                claim, met = value, state.met
                for k in claimed:
                    claim, met = intersect_states(claim, self.demands[k].value), met | 1 << k
                spend(MOVE_WORK)
                if claim == known or self.oracle.has_value(claim):
                    yield Move(member, claim, Members(position, count, met, state.left))

    def moves(self, state: Members) -> list[Move]:
        """The moves from which the object can come to an end. Raises SchemaUnsupported."""
        if self.is_free:
            return self._free_moves(state)
        if self._is_open and self.alive(state):
            return [
                move
                for move in self._all_moves(state)
                if move.following.left == state.left or self.alive(move.following)
            ]
        return [move for move in self._all_moves(state) if self.alive(move.following)]

    def _free_moves(self, state: Members) -> list[Move]:
        """`moves` where they are plain to see."""
        plan = self.plan
        spend(MOVE_WORK * (len(plan.names) + len(plan.kinds)))
        found = [
            Move(k, value, self.follow(state, k)) for k, value in enumerate(plan.states) if not state.position >> k & 1
        ]
        return found + [Move(~k, kind.value, self.follow(state, ~k)) for k, kind in enumerate(plan.kinds)]

    def follow(self, state: Members, member: int) -> Members:
        """The state of an object that `is_free` after a member."""
        position = state.position | 1 << member if member >= 0 else state.position
        return Members(position, min(state.members + 1, self.cap), 0)

    def _following(self, state: Members) -> Iterator[Members]:
        """What moves lead to, for the question whether that comes to an end."""
        moves = self._all_moves(state)
        if self.choices is not None and not self.demands and state.members >= self.plan.least:
            # no other name brings the end nearer
            urgent, useful = self.choices.needed(state.left, self._passed(state.position))
            urgent |= self.all_required
            moves = chain(self._all_moves(state, urgent), self._all_moves(state, useful & ~urgent))
        found = (move.following for move in moves)
        return map(self._alike, found) if self.plan.remembered else found

    def _alike(self, state: Members) -> Members:
        """A state that comes to an end if `state` does, and only then; the same one for many.

        Remembered names are optional, so without demands it matters only how many of them are left: there are as many
        such states as names, not as sets of names.
        """
        if not self.plan.remembered or self.demands or self.choices is not None:
            return state
        if self.any_order:
            seen = state.position >> self.declared
            first = state.position & (1 << self.declared) - 1
            return state._replace(position=first | (1 << seen.bit_count()) - 1 << self.declared)
        seen = max(state.position - self.declared, 0)
        return state._replace(position=state.position - seen + (1 << seen.bit_count()) - 1)

    def is_inhabited(self) -> bool:
        """Whether the object can come to an end at all."""
        return (self.choices is None or not self.choices.impossible) and self.alive(self.start)

    def alive(self, state: Members) -> bool:
        """Whether a state that moves from the start lead to can come to an end. Raises SchemaUnsupported."""
        if self.is_free:
            return True
        try:
            return self._ends.alive(self._alike(state), self.can_close, self._following)
        except TooManyStates:
            place = self.oracle.document.root.pointer
            raise SchemaUnsupported("too many ways to count members", place, "minProperties") from None

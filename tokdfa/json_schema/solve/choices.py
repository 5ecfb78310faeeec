"""Choices of an object clause, settled while the object is read.

A choice is a list of object clauses of which one must hold (`ObjectClause.choices`); to multiply many of them out is
exponential. Instead a state of the object has for each choice the bits of the alternatives that the members so far
allow, 0 once it is settled: one that is left says nothing about the members that can still come.

A name that comes, or cannot come any more, strikes out alternatives. A value is guessed: alternatives that ask the same
of it stay together, with those that ask nothing, and the value read is one that they ask for. Guesses about one value
are joined choice by choice, and those that no listed value meets (`tokdfa.json_schema.solve.listed`) are dropped at
once, so hundreds of schemas that look at a tag come to one guess for each tag.

Where exactly one of many branches holds (`ObjectClause.exactly`), each branch is a choice between what it asks for and
what breaks it. As soon as one must hold, all others must be broken.

A closed object is broken by a name that it does not list (`ObjectClause.one_outside`); the first such name settles the
choice.

Cost: O(what the alternatives say) to prepare; of a member, what is said about its name, times the guesses.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from weakref import proxy

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.solve.clauses import EVERYTHING, LOOKUP_WORK, NEVER, NOTHING, State
from tokdfa.json_schema.solve.object_plan import kind_state, value_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.solve.clauses import ObjectClause, Scope
    from tokdfa.json_schema.solve.object_plan import ObjectPlan
    from tokdfa.json_schema.solve.oracle import Oracle

#: Guesses about the value of one member at most.
MAX_GUESSES = 1_000
#: For each choice the bits of its alternatives that are left; 0: one of them holds, whatever comes.
Open = tuple[int, ...]
#: What is said about a member: (choice, [(state of its value, bits of the alternatives that ask for it)], other bits).
Speakers = list[tuple[int, list[tuple[State, int]], int]]


def choices_of(oracle: Oracle, clause: ObjectClause, plan: ObjectPlan, any_order: bool) -> Choices:
    """The choices of a clause, made once for a plan: whether an object has a value is asked before it is written."""
    made_by, found = oracle.chosen.get(clause, (None, None))
    if made_by != (plan, any_order):
        found = Choices(oracle, clause, plan, any_order)
        oracle.chosen[clause] = (plan, any_order), found
    assert isinstance(found, Choices)
    return found


class Choices:
    """The choices of one clause. A *member* is the index of a name of the plan, or ~index of a kind."""

    def __init__(self, oracle: Oracle, clause: ObjectClause, plan: ObjectPlan, any_order: bool) -> None:
        self._oracle: Oracle = proxy(oracle)  # which keeps the choices that were made last
        self._any_order = any_order
        index = {name: k for k, name in enumerate(plan.names)}
        said: dict[int, dict[int, dict[State, int]]] = defaultdict(dict)
        start: list[int] = []
        places = {choice: place for place, choice in enumerate(clause.choices)} if clause.exactly else {}
        #: For each list of branches their choices, and the bits of the alternatives that say that the branch holds.
        self._branches = [
            [(places[choice], (1 << count) - 1) for choice, count in branches] for branches in clause.exactly
        ]
        self._holding: dict[int, int] = {place: bits for branches in self._branches for place, bits in branches}
        #: For each choice and alternative the bits of names that it requires.
        self._required: list[list[int]] = []
        #: The same of names that must have been before it holds whatever comes; -1: it never does before the end.
        self._spoken: list[list[int]] = []
        declared = len(plan.names) - plan.remembered
        #: Stands in the bits of names for all kinds.
        self.kinds_bit = 1 << len(plan.names)
        #: Member -> (choice, bits of the alternatives that ask for a name outside of a scope, as this one is).
        self._outside: dict[int, list[tuple[int, int]]] = defaultdict(list)
        #: For each choice and alternative the bits of names that bring it nearer.
        self._useful: list[list[int]] = []
        for place, choice in enumerate(clause.choices):
            bits, required, spoken, useful = 0, [], [], []
            for number, alternative in enumerate(choice):
                needed = mentioned = 0
                for name in alternative.required:
                    if name in index:
                        needed |= 1 << index[name]
                    else:
                        break  # there is no member of this name
                else:
                    bits |= 1 << number
                for member, state in self._states(alternative, plan, index):
                    if state:
                        by_state = said[member].setdefault(place, {})
                        by_state[state] = by_state.get(state, 0) | 1 << number
                        mentioned = mentioned | 1 << member if 0 <= member < declared and mentioned >= 0 else -1
                useful.append(needed)
                if alternative.one_outside is not None:
                    needed, mentioned = self.kinds_bit, -1  # it never passes: the alternative holds once settled
                    outside = self._members_outside(alternative.one_outside, plan)
                    if not outside:
                        bits &= ~(1 << number)
                    for member in outside:
                        useful[number] |= 1 << member if member >= 0 else self.kinds_bit
                        self._outside[member].append((place, 1 << number))
                required.append(needed)
                spoken.append(-1 if mentioned < 0 else mentioned | needed)
            settled = [number for number in range(len(choice)) if bits >> number & 1 and spoken[number] == 0]
            start.append(self._settled(place, settled[0]) if settled else bits or -1)
            self._required.append(required)
            self._useful.append(useful)
            self._spoken.append(spoken)
        #: Whether some choice has no alternative left from the start.
        self.impossible = -1 in start
        if not self.impossible:
            decided = self._decided(tuple(start))
            self.impossible, start = decided is None, start if decided is None else list(decided)
        self.start: Open = tuple(start)
        self._speakers: dict[int, Speakers] = {
            member: [(place, list(by_state.items()), ~sum(by_state.values())) for place, by_state in by_place.items()]
            for member, by_place in said.items()
        }
        #: Name -> (choice, bits of the alternatives that require it); the same of those of which it is the last word.
        self._requiring: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._last: dict[int, list[tuple[int, int]]] = defaultdict(list)
        #: Name -> the choices that speak of it.
        self._about: dict[int, list[int]] = defaultdict(list)
        for place, _ in enumerate(clause.choices):
            requiring: dict[int, int] = defaultdict(int)
            last: dict[int, int] = defaultdict(int)
            about = 0
            for number, (needed, spoken_bits) in enumerate(
                zip(self._required[place], self._spoken[place], strict=True)
            ):
                about |= needed | max(spoken_bits, 0)
                for k in _bits(needed):
                    requiring[k] |= 1 << number
                if spoken_bits > 0:
                    last[spoken_bits.bit_length() - 1] |= 1 << number
            for k, bits in requiring.items():
                self._requiring[k].append((place, bits))
            for k, bits in last.items():
                self._last[k].append((place, bits))
            for k in _bits(about):
                self._about[k].append(place)

    def _states(
        self, alternative: ObjectClause, plan: ObjectPlan, index: dict[str, int]
    ) -> Iterator[tuple[int, State]]:
        """What an alternative says about the values of members."""
        if all(not scope.patterns and not scope.additional for scope in alternative.scopes):
            names = dict.fromkeys(name for scope in alternative.scopes for name in scope.properties if name in index)
        else:
            names = dict.fromkeys(plan.names)
            for k, kind in enumerate(plan.kinds):
                yield ~k, kind_state(alternative, kind.matched)
        spend(LOOKUP_WORK * len(names))
        for name in names:
            yield index[name], value_state(self._oracle, alternative, name)

    @staticmethod
    def _members_outside(scope: Scope, plan: ObjectPlan) -> list[int]:
        """The members whose names are not among a scope's properties."""
        spend(LOOKUP_WORK * (len(plan.names) + len(plan.kinds)))
        found = [k for k, name in enumerate(plan.names) if name not in scope.properties]
        return found + [~k for k in range(len(plan.kinds))]

    def claims(self, member: int, left: Open, value: State) -> list[tuple[State, Open]]:
        """The guesses about a member's value, which is in `value`: what it is in, and what is left then."""
        if member in self._outside:
            left = _changed(left, tuple([(place, 0) for place, bits in self._outside[member] if left[place] & bits]))
        found: list[tuple[State, tuple[tuple[int, int], ...]]] = [(value, ())]
        for place, asked, others in self._speakers.get(member, ()):
            here = left[place]
            if not here:
                continue
            silent = here & others
            groups = [(state, here & bits | silent) for state, bits in asked if here & bits and NEVER not in state]
            alone = {literal for state, _ in groups if len(state) == 1 for literal in state}
            if silent and not any(literal ^ 1 in alone for literal in alone):  # else each value is in one of the groups
                groups.append((EVERYTHING, silent))
            spend(LOOKUP_WORK * len(found) * len(groups) ** 2)
            found = [
                (joined, (*changed, (place, bits)))
                for state, changed in found
                for joined, bits in self._joined(state, groups).items()
            ]
            if len(found) > MAX_GUESSES:
                pointer = self._oracle.document.root.pointer
                reason = f"more than {MAX_GUESSES} combinations of alternatives ask for different values of one member"
                raise SchemaUnsupported(reason, pointer, "allOf")
        decided = [(state, self._decided(_changed(left, changed))) for state, changed in found]
        return [(state, left) for state, left in decided if left is not None]

    def _joined(self, state: State, groups: list[tuple[State, int]]) -> dict[State, int]:
        """What a state is together with what each group asks for, and the bits of all groups that it meets."""
        merge = self._oracle.listed.merge
        joined = [merge(state, claimed) for claimed, _ in groups]
        found: dict[State, int] = {}
        for each in dict.fromkeys(joined):
            if each is not NOTHING:
                for (claimed, bits), own in zip(groups, joined, strict=True):
                    if own == each or merge(each, claimed) == each:
                        found[each] = found.get(each, 0) | bits
        return found

    def _settled(self, place: int, alternative: int) -> int:
        """What is left of a choice of which an alternative holds whatever comes."""
        bit = 1 << alternative
        return bit & self._holding.get(place, 0)

    def _decided(self, left: Open) -> Open | None:
        """What is left where a branch must hold, as all others must be broken; None if that cannot be."""
        for branches in self._branches:
            spend(LOOKUP_WORK * len(branches))
            sure = [place for place, holds in branches if left[place] and not left[place] & ~holds]
            if len(sure) > 1:
                return None
            if sure:
                changed = [(at, left[at] & ~holds) for at, holds in branches if at != sure[0] and left[at] & holds]
                if any(not bits for _, bits in changed):
                    return None
                left = _changed(left, tuple(changed))
        return left

    def after(self, member: int, left: Open, position: int) -> Open | None:
        """What is left when a name has come, None if nothing; `position`: bits of all names so far in any order."""
        changed = []
        if self._any_order:
            for place in self._about.get(member, ()):
                spoken = self._spoken[place]
                for a in _bits(left[place]):
                    if spoken[a] >= 0 and not spoken[a] & ~position:
                        changed.append((place, self._settled(place, a)))
                        break
        else:
            for place, bits in self._last.get(member, ()):
                if left[place] & bits:
                    changed.append((place, self._settled(place, next(_bits(left[place] & bits)))))
        return self._decided(_changed(left, tuple(changed))) if changed else left

    def without(self, name: int, left: Open) -> Open | None:
        """What is left when a name is passed over; None if a choice has no alternative any more."""
        changed = []
        for place, bits in self._requiring.get(name, ()):
            if left[place] & bits:
                if not left[place] & ~bits:
                    return None
                changed.append((place, left[place] & ~bits))
        decided = self._decided(_changed(left, tuple(changed))) if changed else left
        return None if decided is None else self.after(name, decided, 0)

    def may_close(self, left: Open, passed: int) -> bool:
        """Whether each choice has an alternative that requires none but the names of `passed` (bits)."""
        spend(LOOKUP_WORK * len(left))
        for place, bits in enumerate(left):
            if bits and not any(not self._required[place][a] & ~passed for a in _bits(bits)):
                return False
        return all(
            sum(any(not self._required[at][a] & ~passed for a in _bits(left[at] & holds)) for at, holds in branches)
            == 1
            for branches in self._branches
        )

    def behind(self, left: Open, passed: int) -> Open | None:
        """What is left when no name but those of `passed` (bits) has come or will; None if nothing."""
        found = list(left)
        for place, bits in enumerate(left):
            if not bits:
                continue
            kept = [a for a in _bits(bits) if not self._required[place][a] & ~(passed | self.kinds_bit)]
            if not kept:
                return None
            settled = [a for a in kept if self._spoken[place][a] >= 0]
            found[place] = self._settled(place, settled[0]) if settled else sum(1 << a for a in kept)
        return self._decided(tuple(found))

    def needed(self, left: Open, passed: int) -> tuple[int, int]:
        """Bits of the names that bring all alternatives of some choice nearer, or only some, beside `passed`."""
        spend(LOOKUP_WORK * len(left))
        urgent = useful = 0
        for place, bits in enumerate(left):
            if bits:
                missing = [self._useful[place][a] & ~passed for a in _bits(bits)]
                asked = reduce(or_, missing)
                useful |= asked
                if all(missing):
                    urgent |= asked
        return urgent, useful & ~urgent


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _changed(left: Open, changed: tuple[tuple[int, int], ...]) -> Open:
    if not changed:
        return left
    found = list(left)
    for place, bits in changed:
        found[place] = bits
    return tuple(found)

"""Lowering of objects: members in the order of the schema, then others; or, with counts and demands, by states.

The plain case, declared names that may or must be there and others of one kind or none, is a chain: before each member
one NAMES instruction with the window up to the next required name. After the last required name the object may close,
and other names may begin; what follows them is a loop.

Required names may also come first, in the order of ``required``: that is an array, and has an order, while
``properties`` is an object, which programs may write anew with its members sorted. So many of them as one likes come
first, and the others follow as a chain of their own, which is written when it is first reached.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from operator import and_, eq
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.json_schema.clauses import ANY_STRING, LOOKUP_WORK
from tokdfa.json_schema.lower_value import NAME_BYTES, NAME_WORK
from tokdfa.json_schema.object_plan import plan_object
from tokdfa.json_schema.object_states import Members, ObjectStates
from tokdfa.program.builder import MemberChain
from tokdfa.program.program import RETURN_PLACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.json_schema.clauses import ObjectClause
    from tokdfa.json_schema.lower_value import ValueWriter
    from tokdfa.json_schema.object_plan import ObjectPlan

#: The place after a name that is refused.
REFUSED = -1


class ObjectLowering:
    """Writes the code of object clauses. `any_order`: members may come in any order."""

    def __init__(self, writer: ValueWriter, any_order: bool) -> None:
        self.writer, self.builder, self.any_order = writer, writer.builder, any_order
        #: The numbers of the texts of punctuation.
        self.comma, self.colon = writer.punctuation(","), writer.punctuation(":")
        self.opens, self.closes = writer.punctuation("{"), writer.punctuation("}")
        self.bare = writer.punctuation("bare}")

    def lower(self, clause: ObjectClause) -> int:
        """The place at which an object of a clause that some object meets is read, before RETURN."""
        plan = plan_object(self.writer.oracle, clause)
        assert plan is not None
        is_plain = plan.most is None and plan.least <= sum(plan.required) and not clause.demands and not clause.choices
        if is_plain and not plan.remembered and not (self.any_order and plan.names):
            is_fixed = self.writer.oracle.compares and not plan.kinds  # see `tokdfa.json_schema.unique_items`
            return self._chain(plan, () if is_fixed else clause.required)
        return _StateLowering(self, clause, plan).lower()

    def table(self, plan: ObjectPlan) -> int:
        """The table of the names that a plan speaks of; those that cannot be there come last. -1 if there are none."""
        names = plan.names + plan.excluded
        spend(NAME_WORK * len(names), NAME_BYTES * len(names))
        return self.builder.name_table(names, self.writer.escapes) if names else -1

    def member(self, plan: ObjectPlan, table: int, low: int, targets: Sequence[int], kinds: Sequence[int]) -> int:
        """The place of a member's name: declared ones from `low` on, and kinds, by the places that follow each.

        `kinds`: for each kind of the plan the place after its name, or REFUSED; or empty.
        """
        builder = self.builder
        places, other = self._other_names(plan, table, kinds)
        if table >= 0 and (other >= 0 or any(target != REFUSED for target in targets)):
            for begin, run in _runs(targets):
                places.append(builder.names(table, low + begin, low + begin + len(run) - 1, run, other))
                other = -1
            if other >= 0:
                places.append(builder.names(table, 0, -1, (), other))
        return builder.any_of(places)

    def _other_names(self, plan: ObjectPlan, table: int, kinds: Sequence[int]) -> tuple[list[int], int]:
        """The places of undeclared names, and of what reads those that are in no table, or -1."""
        places, other = [], -1
        for kind, place in zip(plan.kinds, kinds, strict=False):
            if place == REFUSED:
                continue
            text = self.writer.read_string(kind.names, place)
            if kind.names is ANY_STRING and table >= 0 and other < 0:
                other = text
            else:
                places.append(text)
        return places, other

    def _chain(self, plan: ObjectPlan, first: tuple[str, ...]) -> int:
        """A plain object; `first`: names that may come first, in this order."""
        writer, builder, comma, colon = self.writer, self.builder, self.comma, self.colon
        close = builder.read(self.closes, RETURN_PLACE)
        table = self.table(plan)
        after, kinds, more, other = close, [], -1, -1
        if len(plan.kinds) == 1 and plan.kinds[0].names is ANY_STRING:
            state = plan.kinds[0].value
            after, other, more = builder.other_members(
                table, builder.string_terminal, comma, colon, close, lambda following: writer.value(state, following)
            )
        elif plan.kinds:
            loop = builder.frame("more members")
            after = builder.call(loop, RETURN_PLACE)
            kinds = [builder.read(colon, writer.value(kind.value, after)) for kind in plan.kinds]
            more = self.member(plan, table, 0, (), kinds)
            builder.enter(loop, builder.any_of([builder.read(comma, more), close]))
        is_done = not any(plan.required)
        if plan.names and (other >= 0 or not plan.kinds):
            values = [writer.reader(state) for state in plan.states]
            chain = MemberChain(table, values, plan.required, other, comma, colon, close, after, more)
            key = self._first_names(plan, first, chain) if first else builder.member_chain(chain)
        else:
            key = self._mixed_chain(plan, table, after, more, kinds)
        starts = [key] if key >= 0 else []
        if is_done:
            starts.append(builder.read(self.bare, RETURN_PLACE))
        return builder.read(self.opens, builder.any_of(starts))

    def _first_names(self, plan: ObjectPlan, first: tuple[str, ...], chain: MemberChain) -> int:
        """The place of the first name where some may come first; `chain`: what the members are otherwise."""
        begin = sum(accumulate(map(eq, first, plan.names), and_))  # so far both orders are the same
        if begin == len(first):
            return self.builder.member_chain(chain)
        places = {name: k for k, name in enumerate(plan.names)}
        key = self._after_first(plan, [places[name] for name in first], begin, chain)
        for k in reversed(range(begin)):
            value = self.writer.value(plan.states[k], self.builder.read(self.comma, key))
            key = self.builder.names(chain.table, k, k, [self.builder.read(self.colon, value)], -1)
        return key

    def _after_first(self, plan: ObjectPlan, first: list[int], count: int, chain: MemberChain) -> int:
        """The place of the next name when the first `count` of these have come first."""
        writer, builder = self.writer, self.builder
        done = frozenset(first[:count])
        kept = [k for k in range(len(plan.names)) if k not in done]
        key = chain.more
        if kept:
            others = tuple(plan.names[k] for k in first[:count])
            rest = plan._replace(names=tuple(plan.names[k] for k in kept), excluded=others + plan.excluded)
            values, required = [chain.values[k] for k in kept], [plan.required[k] for k in kept]
            key = builder.member_chain(chain._replace(table=self.table(rest), values=values, required=required))
        if count == len(first):
            return key
        after = builder.frame(f"after {count + 1} of {len(first)} required names")
        builder.enter(after, writer.lazy(partial(self._goes_on, plan, first, count + 1, chain)))
        value = writer.value(plan.states[first[count]], builder.call(after, RETURN_PLACE))
        return builder.names_instead(key, kept.index(first[count]), builder.read(self.colon, value))

    def _goes_on(self, plan: ObjectPlan, first: list[int], count: int, chain: MemberChain) -> int:
        """The place of a comma and the next name, or of the end, when so many names have come first."""
        key = self._after_first(plan, first, count, chain)
        places = [self.builder.read(self.comma, key)] if key >= 0 else []
        return self.builder.any_of(places + [chain.close] * (count == len(first)))

    def _mixed_chain(self, plan: ObjectPlan, table: int, after: int, more: int, kinds: Sequence[int]) -> int:
        """The place of the first name where other names are of several kinds."""
        writer, builder, comma, colon = self.writer, self.builder, self.comma, self.colon
        close = builder.read(self.closes, RETURN_PLACE)
        key, is_done, reach = more, True, len(plan.names) - 1
        targets = builder.reserve_targets(len(plan.names))
        others = self._other_names(plan, table, kinds)
        for k in range(reach, -1, -1):
            builder.arguments[targets + k] = builder.read(colon, writer.value(plan.states[k], after))
            if plan.required[k]:
                is_done, reach = False, k
            places, other = others if is_done else ([], -1)
            spend(LOOKUP_WORK * len(places))
            key = builder.any_of([*places, builder.names_at(table, k, reach, targets + k, other)])
            after = builder.read(comma, key)
            if is_done:
                after = builder.any_of([after, close])
        return key


def _runs(targets: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """The stretches of targets without a refused one: where each begins, and its targets."""
    if REFUSED not in targets:
        return [(0, targets)] if targets else []
    found, begin = [], 0
    for k in range(len(targets) + 1):
        if k == len(targets) or targets[k] == REFUSED:
            if k > begin:
                found.append((begin, targets[begin:k]))
            begin = k + 1
    return found


class _StateLowering:
    """The code of one object whose members are counted, demanded, or come in any order."""

    def __init__(self, objects: ObjectLowering, clause: ObjectClause, plan: ObjectPlan) -> None:
        self.objects, self.plan = objects, plan
        self.writer, self.builder = objects.writer, objects.builder
        self.states = ObjectStates(self.writer.oracle, clause, plan, objects.any_order)
        self.table = objects.table(plan)
        self._places: dict[Members, int] = {}
        self._close = self.builder.read(objects.closes, RETURN_PLACE)
        self._comma, self._colon = objects.comma, objects.colon

    def lower(self) -> int:
        """The place at which the object is read."""
        starts = self._names(self.states.start)
        if self.states.can_close(self.states.start):
            starts.append(self.builder.read(self.objects.bare, RETURN_PLACE))
        return self.builder.read(self.objects.opens, self.builder.any_of(starts))

    def _names(self, state: Members) -> list[int]:
        """The place of the next member, if there can be one."""
        writer, builder, plan = self.writer, self.builder, self.plan
        declared: dict[int, list[int]] = {}
        kinds: list[list[int]] = [[] for _ in plan.kinds]
        moves = self.states.moves(state)
        spend(NAME_WORK * len(moves), NAME_BYTES * len(moves))
        for member, value, following in moves:
            place = builder.read(self._colon, writer.value(value, self._after(following)))
            if member >= 0:
                declared.setdefault(member, []).append(place)
            else:
                kinds[~member].append(place)
        if not declared and not any(kinds):
            return []
        low, high = (min(declared), max(declared)) if declared else (0, -1)
        targets = [builder.any_of(declared[k]) if k in declared else REFUSED for k in range(low, high + 1)]
        others = [builder.any_of(places) if places else REFUSED for places in kinds]
        return [self.objects.member(plan, self.table, low, targets, others)]

    def _after(self, state: Members) -> int:
        """The place after a member's value: its code is written when it is first reached."""
        place = self._places.get(state)
        if place is None:
            place = self._places[state] = self.writer.lazy(partial(self._next, state))
        return place

    def _next(self, state: Members) -> int:
        """The place of a comma and the next member, or of the end."""
        places = [self.builder.read(self._comma, place) for place in self._names(state)]
        if self.states.can_close(state):
            places.append(self._close)
        return self.builder.any_of(places)

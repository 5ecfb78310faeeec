"""Lowering of objects: members in the order of the schema, then others; or, with counts and demands, by states.

The plain case, declared names that may or must be there and others of one kind or none, is a chain: before each member
one NAMES instruction with the window up to the next required name. After the last required name the object may close,
and other names may begin; what follows them is a loop.

Required names may also come first, in the order of ``required``: that is an array, and has an order, while
``properties`` is an object, which programs may write anew with its members sorted. So many of them as one likes come
first, and the others follow in the order of the chain: what lies behind all that came is the chain itself, and only the
names before that are written anew, when they are first reached.
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

    from tokdfa.json_schema.clauses import ObjectClause, State
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
            places = builder.member_chain(chain)
            begin = sum(accumulate(map(eq, first, plan.names), and_))  # so far both orders are the same
            if begin < len(first):
                _RequiredFirst(writer, chain, places, [plan.names.index(name) for name in first], begin).write()
            key = places[0][0]
        else:
            key = self._mixed_chain(plan, table, after, more, kinds)
        starts = [key] if key >= 0 else []
        if is_done:
            starts.append(builder.read(self.bare, RETURN_PLACE))
        return builder.read(self.opens, builder.any_of(starts))

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


class _RequiredFirst:
    """The code of a chain's members of which some come first: those of the indices `first`, in this order.

    `places`: what `ProgramBuilder.member_chain` returned; `begin`: so many are first in the chain, too.
    """

    def __init__(
        self, writer: ValueWriter, chain: MemberChain, places: list[tuple[int, int]], first: list[int], begin: int
    ) -> None:
        self.writer, self.builder, self.chain, self.places = writer, writer.builder, chain, places
        self.first, self.begin = first, begin

    def write(self) -> None:
        """Change the chain where the orders part."""
        code, (key, _) = self.builder.code, self.places[self.begin]
        code.extend(code[3 * key : 3 * key + 3])  # where it stands is what others lead to
        changed = self._next(self.begin, len(code) // 3 - 1)
        code[3 * key : 3 * key + 3] = code[3 * changed : 3 * changed + 3]

    def _next(self, count: int, key: int) -> int:
        """The place of the next name when `count` have come; `key`: the same if the others may not come first."""
        index = self.first[count]
        following = self.writer.lazy(partial(self._after, count + 1))
        place = self.builder.read(self.chain.colon, self._value(index, following))
        return self.builder.names_instead(key, self.chain.table, index, place)

    def _after(self, count: int) -> int:
        """The place of a comma and the next name, or of the end, when `count` have come."""
        builder, chain = self.builder, self.chain
        done = frozenset(self.first[:count])
        nearest = past = max(done) + 1
        key, after = self.places[past]
        is_done, high, beyond = not any(chain.required[past:]), -1, -1
        targets = builder.reserve_targets(past)
        spend(NAME_WORK * past, NAME_BYTES * past)
        for k in reversed(range(past)):
            if k in done:
                continue
            builder.arguments[targets + k] = builder.read(chain.colon, self._value(k, after))
            if chain.required[k]:
                is_done, high, beyond = False, k, -1
            elif nearest != k + 1 or k + 1 == past:
                high, beyond = k, key  # names that have come lie between
            key = builder.names_at(chain.table, k, high, targets + k)
            if beyond >= 0:
                key = builder.any_of([key, beyond])
            after, nearest = builder.read(chain.comma, key), k
            if is_done:
                after = builder.any_of([after, chain.close])
        return after if count == len(self.first) else builder.read(chain.comma, self._next(count, key))

    def _value(self, index: int, following: int) -> int:
        value = self.chain.values[index]
        if not isinstance(value, int):
            return value(following)
        return self.builder.read(value, following) if value >= 0 else self.builder.call(~value, following)


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
        builder, plan = self.builder, self.plan
        if self.states.is_free and state != self.states.start:
            return self._free_names(state)
        declared: dict[int, list[int]] = {}
        kinds: list[list[int]] = [[] for _ in plan.kinds]
        moves = self.states.moves(state)
        spend(NAME_WORK * len(moves), NAME_BYTES * len(moves))
        for member, value, following in moves:
            place = self._member(value, following)
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

    def _free_names(self, state: Members) -> list[int]:
        """`_names` of a free object that has begun. Of the names that may come a text has few: the code behind each
        waits for it.
        """
        plan, follow = self.plan, self.states.follow
        spend(NAME_WORK * len(plan.names), NAME_BYTES * len(plan.names))
        left = [k for k in range(len(plan.names)) if not state.position >> k & 1]
        first = self.builder.lazy_run([partial(self._named, state, k) for k in left])
        targets = [REFUSED] * len(plan.names)
        for place, k in enumerate(left, first):
            targets[k] = place
        others = [self._member(kind.value, follow(state, ~k)) for k, kind in enumerate(plan.kinds)]
        return [self.objects.member(plan, self.table, 0, targets, others)] if left or others else []

    def _named(self, state: Members, index: int) -> int:
        """The place after a declared name, with the code of what follows its value, which its text will have, too."""
        following = self.states.follow(state, index)
        place = self._member(self.plan.states[index], following)
        self.builder.write(self._after(following))
        self.writer.write_waiting()
        return place

    def _member(self, value: State, following: Members) -> int:
        """The place after a member's name."""
        return self.builder.read(self._colon, self.writer.value(value, self._after(following)))

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

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
from typing import TYPE_CHECKING
from weakref import proxy

from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import ANY_STRING
from tokdfa.json_schema.solve.object_plan import plan_object
from tokdfa.json_schema.solve.object_states import Members, ObjectStates
from tokdfa.json_schema.write.lower_value import NAME_BYTES, NAME_WORK, ValueWriter
from tokdfa.json_schema.write.members import write_members
from tokdfa.program.program import RETURN_PLACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.json_schema.solve.clauses import ObjectClause, State
    from tokdfa.json_schema.solve.object_plan import ObjectPlan

#: The place after a name that is refused.
REFUSED = -1


class ObjectWriter(ValueWriter):
    """Writes the code of object clauses. `any_order`: members may come in any order."""

    any_order = False

    def write_object(self, clause: ObjectClause) -> int:
        """The place at which an object of a clause that some object meets is read, before RETURN."""
        plan: ObjectPlan | None = self.oracle.plans.pop(clause, None) or plan_object(self.oracle, clause)
        assert plan is not None
        if self.oracle.distinct and plan.may_repeat:
            self.open_names = "limited" if plan.is_limited or self.open_names == "limited" else "endless"
        is_plain = plan.most is None and plan.least <= sum(plan.required) and not clause.demands and not clause.choices
        tables = self._tables_of(plan)
        if is_plain and len(tables) <= 1 and not plan.remembered and not (self.any_order and plan.names):
            is_fixed = self.oracle.compares and not plan.kinds  # see `tokdfa.json_schema.solve.unique_items`
            return self._chain(plan, tables, () if is_fixed else clause.required)
        return _StateLowering(self, clause, plan, tables).lower()

    def _tables_of(self, plan: ObjectPlan) -> list[tuple[int, int]]:
        """The tables of the names that a plan speaks of, and the index of the first name of each; names that cannot be
        there come last.
        """
        names = plan.names + plan.excluded
        spend(NAME_WORK * len(names), NAME_BYTES * len(names))
        return self.name_tables_of(names, self.escapes)

    def member(
        self, plan: ObjectPlan, tables: list[tuple[int, int]], low: int, targets: Sequence[int], kinds: Sequence[int]
    ) -> int:
        """The place of a member's name: declared ones from `low` on, and kinds, by the places that follow each.

        `kinds`: for each kind of the plan the place after its name, or REFUSED; or empty.
        """
        places, other = self._other_names(plan, tables, kinds)
        for table, first in tables:
            past = first + len(self.name_tables[table].names)
            here = targets[max(first - low, 0) : max(past - low, 0)]
            start = max(low, first) - first
            for begin, run in _runs(here):
                places.append(self.names(table, start + begin, start + begin + len(run) - 1, run, other))
                other = -1
            if other >= 0:
                places.append(self.names(table, 0, -1, (), other))
        return self.any_of(places)

    def _other_names(
        self, plan: ObjectPlan, tables: list[tuple[int, int]], kinds: Sequence[int]
    ) -> tuple[list[int], int]:
        """The places of undeclared names, and of what reads those that are not in the only table, or -1."""
        places, other = [], -1
        for kind, place in zip(plan.kinds, kinds, strict=False):
            if place == REFUSED:
                continue
            names = kind.names
            if names is ANY_STRING and len(tables) > 1:  # a NAMES knows one table only
                names = StringSet(not_values=frozenset(plan.names + plan.excluded))
            text = self.read_string(names, place)
            if names is ANY_STRING and tables and other < 0:
                other = text
            else:
                places.append(text)
        return places, other

    def _chain(self, plan: ObjectPlan, tables: list[tuple[int, int]], first: tuple[str, ...]) -> int:
        """A plain object; `first`: names that may come first, in this order, if all others are of one kind."""
        table = tables[0][0] if tables else -1
        others, after, more = self._others(plan, tables) if plan.kinds else (([], -1), self.close_object, -1)
        starts = [more] if more >= 0 else []
        if plan.names:
            places = write_members(self, plan, table, *others, after, more)
            if first != plan.names[: len(first)] and not others[0]:
                _RequiredFirst(self, plan, table, places, [plan.names.index(name) for name in first]).write()
            starts = [places[0][0]]
        if not any(plan.required):
            starts.append(self.no_member)
        return self.read(self.brace, self.any_of(starts))

    def _others(self, plan: ObjectPlan, tables: list[tuple[int, int]]) -> tuple[tuple[list[int], int], int, int]:
        """(what `_other_names` returns, the place after any member, the first of other members): a loop of members
        with undeclared names, of one table at most.
        """
        loop = self.frame("more members")
        after = self.call(loop, RETURN_PLACE)
        kinds = [self.read(self.colon, self.value(kind.value, after)) for kind in plan.kinds]
        places, other = self._other_names(plan, tables, kinds)
        more = self.any_of(places if other < 0 else [*places, self.names(tables[0][0], 0, -1, (), other)])
        self.enter(loop, self.any_of([self.read(self.comma, more), self.close_object]))
        return (places, other), after, more


class _RequiredFirst:
    """The code of a plan's members of which some come first: those of the indices `first`, in this order, which is not
    that of the plan. `places`: what `write_members` returned.
    """

    def __init__(
        self,
        writer: ObjectWriter,
        plan: ObjectPlan,
        table: int,
        places: list[tuple[int, int]],
        first: list[int],
    ) -> None:
        self.writer: ObjectWriter = proxy(writer)  # which keeps what it is to write later
        self.plan, self.table, self.places = plan, table, places
        #: So many are first in the plan, too: up to there both orders are the same.
        self.first, self.begin = first, next(count for count, index in enumerate(first) if count != index)

    def write(self) -> None:
        """Change the chain where the orders part."""
        code, (key, _) = self.writer.code, self.places[self.begin]
        code.extend(code[3 * key : 3 * key + 3])  # where it stands is what others lead to
        changed = self._next(self.begin, len(code) // 3 - 1)
        code[3 * key : 3 * key + 3] = code[3 * changed : 3 * changed + 3]

    def _next(self, count: int, key: int) -> int:
        """The place of the next name when `count` have come; `key`: the same if the others may not come first."""
        index = self.first[count]
        place = self._member(index, self.writer.lazy(partial(self._after, count + 1)))
        return self.writer.names_instead(key, self.table, index, place)

    def _after(self, count: int) -> int:
        """The place of a comma and the next name, or of the end, when `count` have come."""
        writer, required = self.writer, self.plan.required
        done = frozenset(self.first[:count])
        nearest = past = max(done) + 1
        key, after = self.places[past]
        is_done, high, beyond = not any(required[past:]), -1, -1
        targets = writer.reserve_targets(past)
        spend(NAME_WORK * past, NAME_BYTES * past)
        for k in reversed(range(past)):
            if k in done:
                continue
            writer.arguments[targets + k] = self._member(k, after)
            if required[k]:
                is_done, high, beyond = False, k, -1
            elif nearest != k + 1 or k + 1 == past:
                high, beyond = k, key  # names that have come lie between
            key = writer.names_at(self.table, k, high, targets + k)
            if beyond >= 0:
                key = writer.any_of([key, beyond])
            after, nearest = writer.read(writer.comma, key), k
            if is_done:
                after = writer.any_of([after, writer.close_object])
        return after if count == len(self.first) else writer.read(writer.comma, self._next(count, key))

    def _member(self, index: int, following: int) -> int:
        """The place after the name of a member."""
        return self.writer.read(self.writer.colon, self.writer.value(self.plan.states[index], following))


def _runs(targets: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """The stretches of targets without a refused one: where each begins, and its targets."""
    found, begin, ended = [], 0, [*targets, REFUSED]
    while begin < len(targets):
        end = ended.index(REFUSED, begin)
        if end > begin:
            found.append((begin, targets[begin:end]))
        begin = end + 1
    return found


class _StateLowering:
    """The code of one object whose members are counted, demanded, or come in any order."""

    def __init__(
        self, writer: ObjectWriter, clause: ObjectClause, plan: ObjectPlan, tables: list[tuple[int, int]]
    ) -> None:
        self.writer: ObjectWriter = proxy(writer)
        self.plan, self.tables = plan, tables
        self.states = ObjectStates(writer.oracle, clause, plan, writer.any_order)
        self._places: dict[Members, int] = {}

    def lower(self) -> int:
        """The place at which the object is read."""
        starts = self._names(self.states.start)
        if self.states.can_close(self.states.start):
            starts.append(self.writer.no_member)
        return self.writer.read(self.writer.brace, self.writer.any_of(starts))

    def _names(self, state: Members) -> list[int]:
        """The place of the next member, if there can be one."""
        writer, plan = self.writer, self.plan
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
        targets = [writer.any_of(declared[k]) if k in declared else REFUSED for k in range(low, high + 1)]
        others = [writer.any_of(places) if places else REFUSED for places in kinds]
        return [self.writer.member(plan, self.tables, low, targets, others)]

    def _free_names(self, state: Members) -> list[int]:
        """`_names` of a free object that has begun. Of the names that may come a text has few: the code behind each
        waits for it.
        """
        plan, follow = self.plan, self.states.follow
        spend(NAME_WORK * len(plan.names), NAME_BYTES * len(plan.names))
        left = [k for k in range(len(plan.names)) if not state.position >> k & 1]
        first = self.writer.lazy_run(partial(self._named, state), left)
        targets = [REFUSED] * len(plan.names)
        for place, k in enumerate(left, first):
            targets[k] = place
        others = [self._member(kind.value, follow(state, ~k)) for k, kind in enumerate(plan.kinds)]
        return [self.writer.member(plan, self.tables, 0, targets, others)] if left or others else []

    def _named(self, state: Members, index: int) -> int:
        """The place after a declared name, with the code of what follows its value, which its text will have, too."""
        following = self.states.follow(state, index)
        place = self._member(self.plan.states[index], following)
        self.writer.write(self._after(following))
        self.writer.write_waiting()
        return place

    def _member(self, value: State, following: Members) -> int:
        """The place after a member's name."""
        return self.writer.read(self.writer.colon, self.writer.value(value, self._after(following)))

    def _after(self, state: Members) -> int:
        """The place after a member's value: its code is written when it is first reached."""
        place = self._places.get(state)
        if place is None:
            place = self._places[state] = self.writer.lazy(partial(self._next, state))
        return place

    def _next(self, state: Members) -> int:
        """The place of a comma and the next member, or of the end."""
        places = [self.writer.read(self.writer.comma, place) for place in self._names(state)]
        if self.states.can_close(state):
            places.append(self.writer.close_object)
        return self.writer.any_of(places)

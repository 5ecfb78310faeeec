"""Plans: what an object or array clause comes to, in the words of the lowering.

An *object plan* lists the declared names in order, each with the state of its value, and the *kinds* of other names:
each a set of strings with one state. With patterns there is a kind for each combination of patterns that a name can
match. Declared names are excluded from all kinds. An *array plan* is the clause itself with what can never be removed.

Names whose value can be nothing are left out; a required one makes the clause empty.

Undeclared names are not remembered, so they may be repeated. If no name may be (`Oracle.distinct`), the names of a
kind that are few are listed in the plan, behind the declared ones, and remembered as these are. What is left then are
kinds of too many names (`may_repeat`), which a matcher remembers, or the schema is refused.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.sets.endless import is_endless
from tokdfa.json_schema.sets.patterns import has_readings
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import ANY_STRING, EVERYTHING, FEW, LOOKUP_WORK, NEVER, State, intersect_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.json_schema.solve.clauses import Demand, ObjectClause
    from tokdfa.json_schema.solve.oracle import Oracle

#: Kinds of names of one object at most, for each set of names that there may be.
MAX_KINDS = 64
#: Work (`tokdfa.core.budget`) of a declared name, and of dividing a kind, in nanoseconds.
PLAN_WORK, KIND_WORK = 1_000, 20_000
#: Undeclared names of one object that are remembered at most; codes of countries and currencies are fewer.
MAX_REMEMBERED = 256


class Kind(NamedTuple):
    """Names that are not declared: the set they are from, the state of the value, the demands a member can meet, and
    which of the patterns that anybody asks about they match.
    """

    names: StringSet
    value: State
    demands: tuple[int, ...]
    matched: frozenset[str] = frozenset()


class ObjectPlan(NamedTuple):
    """`names`, `states`: the declared names in order; `excluded`: declared names that cannot be there.

    `required`: for each name; `demands`: for each name which demands its member may meet; `kinds`: of other names.
    `remembered`: so many of `names`, the last ones, are not declared, and come behind the others in any order.
    """

    names: tuple[str, ...]
    states: tuple[State, ...]
    required: tuple[bool, ...]
    demands: tuple[tuple[int, ...], ...]
    excluded: tuple[str, ...]
    kinds: tuple[Kind, ...]
    least: int
    most: int | None
    remembered: int = 0

    @property
    def room(self) -> int | None:
        """How many members there can be that are not required; None: any number."""
        return None if self.most is None else self.most - sum(self.required)

    @property
    def may_repeat(self) -> bool:
        """Whether a name may come twice: there can be two members whose names are not remembered."""
        return bool(self.kinds) and (self.room is None or self.room > 1)

    @property
    def is_limited(self) -> bool:
        """Whether names that are not remembered may run out, or leave no choice once they have begun."""
        return any(kind.names._replace(not_values=frozenset()) != ANY_STRING for kind in self.kinds)


def value_state(oracle: Oracle, clause: ObjectClause, name: str) -> State:
    """The state of the value under a name."""
    found = EVERYTHING
    if len(clause.scopes) > FEW:
        spend(LOOKUP_WORK * len(clause.scopes))
    for scope in clause.scopes:
        known = scope.properties.get(name)
        if known is not None:
            found = intersect_states(found, known)
        matched = known is not None
        for pattern, state in scope.patterns:
            if oracle.may_match(pattern, name):  # where readings differ, the value has to do for both
                found, matched = intersect_states(found, state), matched or oracle.matches(pattern, name)
        if not matched:
            found = intersect_states(found, scope.additional)
    if clause.names and not any(strings.holds(name) for strings in oracle.shape_of(clause.names).strings):
        return frozenset([NEVER])
    return found


def kind_state(clause: ObjectClause, matched: frozenset[str]) -> State:
    """The state of the value under a name that is not declared and matches these patterns."""
    state = EVERYTHING
    for scope in clause.scopes:
        own = [value for pattern, value in scope.patterns if pattern in matched]
        for value in own or [scope.additional]:
            state = intersect_states(state, value)
    return state


def may_meet(oracle: Oracle, demand: Demand, name: str) -> bool:
    """Whether a member of this name can meet a demand, as far as its name goes."""
    if demand.pattern is not None and not oracle.matches(demand.pattern, name):
        return False
    if demand.names and not any(strings.holds(name) for strings in oracle.shape_of(demand.names).strings):
        return False
    scope = demand.scope
    if scope is None:
        return True
    return name not in scope.properties and not any(oracle.may_match(pattern, name) for pattern, _ in scope.patterns)


def declared_names(clause: ObjectClause) -> list[str]:
    """The names that a clause speaks of, in order: properties as they stand, then what is only required.

    Those of the alternatives of a choice are merged place by place, as most keep to one order.
    """
    found: dict[str, None] = {}
    for choice in ((clause,), *clause.choices):
        _merge(found, [[name for scope in each.scopes for name in scope.properties] for each in choice])
    for choice in ((clause,), *clause.choices):
        _merge(found, [each.required for each in choice])
    for choice in ((clause,), *clause.choices):
        for demand in (demand for each in choice for demand in each.demands):
            if demand.scope is not None:
                found.update(dict.fromkeys(demand.scope.properties))
    return list(found)


def _merge(found: dict[str, None], listed: list[Sequence[str]]) -> None:
    """Add the names of some lists: the first ones of all, then the second ones, and so on."""
    if len(listed) == 1:
        found.update(dict.fromkeys(listed[0]))
        return
    for names in zip_longest(*listed):
        spend(LOOKUP_WORK * len(names))
        found.update(dict.fromkeys(name for name in names if name is not None))


def plan_object(oracle: Oracle, clause: ObjectClause) -> ObjectPlan | None:
    """The plan of a clause, None if no object meets it."""
    names, states, demands, excluded = [], [], [], []
    has_value, inhabited = oracle.has_value, oracle.inhabited
    needed, scopes, claims = frozenset(clause.required), clause.scopes, clause.demands
    # of most objects one schema says everything, by names alone
    is_plain = len(scopes) == 1 and not (scopes[0].patterns or clause.names or claims or clause.choices)
    if is_plain:
        properties, additional = scopes[0].properties, scopes[0].additional
        if not needed <= properties.keys():
            properties = {**dict.fromkeys((*properties, *clause.required), additional), **properties}
        declared: Iterable[tuple[str, State]] = properties.items()
        if len(properties) > FEW:
            spend(PLAN_WORK * len(properties))
    else:
        declared = ((name, value_state(oracle, clause, name)) for name in declared_names(clause))
    for name, state in declared:
        if not is_plain:
            spend(PLAN_WORK * (1 + len(claims)))
        if inhabited.get(state) or has_value(state):  # of most it is known, and to ask takes longer
            names.append(name)
            states.append(state)
            if claims:
                demands.append(_demands_met(oracle, clause, name, state))
        elif name in needed:
            return None
        else:
            excluded.append(name)
    if not is_plain:
        kinds = name_kinds(oracle, clause, (*names, *excluded))
    else:
        kinds = (Kind(ANY_STRING, additional, ()),) if has_value(additional) else ()
    if clause.most is not None and clause.most < len(needed):
        return None
    if clause.least > len(names):
        listed = [kind.names.values for kind in kinds if kind.names.values is not None]
        if len(listed) == len(kinds) and clause.least > len(names) + len(frozenset().union(*listed)):
            return None
    required = tuple([name in needed for name in names])
    met = tuple(demands) if claims else ((),) * len(names)
    plan = ObjectPlan(tuple(names), tuple(states), required, met, tuple(excluded), kinds, clause.least, clause.most)
    return _remember_names(oracle, plan, clause) if oracle.distinct and plan.may_repeat else plan


def _demands_met(oracle: Oracle, clause: ObjectClause, name: str, state: State) -> tuple[int, ...]:
    """The demands that a member of this name, with a value in a state, can meet."""
    return tuple(
        k
        for k, demand in enumerate(clause.demands)
        if may_meet(oracle, demand, name) and oracle.has_value(intersect_states(state, demand.value))
    )


def _remember_names(oracle: Oracle, plan: ObjectPlan, clause: ObjectClause) -> ObjectPlan | None:
    """A plan with the names of small kinds listed; as it is if these are too many, None if no object meets it."""
    #: Name -> the state of its value, the demands that its member can meet.
    found: dict[str, tuple[State, frozenset[int]]] = {}
    kept = []
    for kind in plan.kinds:
        listed = kind.names.listed(MAX_REMEMBERED)
        if listed is None:
            kept.append(kind)
            continue
        for name in sorted(listed):  # a name is in several kinds if these divide by demands
            _, demands = found.get(name, (kind.value, frozenset[int]()))
            found[name] = kind.value, demands.union(kind.demands)
    if not found or len(found) > MAX_REMEMBERED:
        return plan if _has_enough(oracle, plan, clause) else None
    others = StringSet(not_values=frozenset(found))
    kept = [kind._replace(names=kind.names.intersect(others)) for kind in kept]
    kinds = tuple(kind for kind in kept if not oracle.is_empty(kind.names))
    names = plan.names + tuple(found)
    if not kinds and plan.least > len(names):
        return None
    plan = plan._replace(
        names=names,
        states=plan.states + tuple(state for state, _ in found.values()),
        required=plan.required + (False,) * len(found),
        demands=plan.demands + tuple(tuple(sorted(demands)) for _, demands in found.values()),
        kinds=kinds,
        remembered=len(found),
    )
    return plan if _has_enough(oracle, plan, clause) else None


def _has_enough(oracle: Oracle, plan: ObjectPlan, clause: ObjectClause) -> bool:
    """Whether the names that a matcher remembers (`tokdfa.backends.unique_items`) are enough for all members that there
    must be; whatever members came first, there are more of them. Raises SchemaUnsupported where that is not known.
    """
    if not plan.may_repeat or not plan.is_limited:
        return True
    # declared names that need not be there may have been passed
    needed = plan.least - sum(plan.required)
    place = oracle.document.root.pointer
    if clause.demands and not all(kind.names.listed(1) is None and is_endless(kind.names) for kind in plan.kinds):
        raise SchemaUnsupported("a demand on some member, among names that may run out", place, "propertyNames")
    if needed <= 0:
        return True
    total = set[str]()
    for kind in plan.kinds:
        listed = kind.names.listed(needed + len(plan.names))
        if listed is None:
            return True
        total |= listed
    if needed <= len(total):
        return True
    if plan.least > len(total) + len(plan.names):
        return False
    raise SchemaUnsupported("more members than there are undeclared names for", place, "minProperties")


def name_kinds(oracle: Oracle, clause: ObjectClause, declared: tuple[str, ...]) -> tuple[Kind, ...]:
    """The kinds of names that are not declared, without those whose value can be nothing."""
    patterns: dict[str, None] = {}
    for each in (clause, *(alternative for choice in clause.choices for alternative in choice)):
        for scope in each.scopes:
            patterns.update(dict.fromkeys(pattern for pattern, _ in scope.patterns))
    for demand in clause.demands:
        if demand.pattern is not None:
            patterns[demand.pattern] = None
        if demand.scope is not None:
            patterns.update(dict.fromkeys(pattern for pattern, _ in demand.scope.patterns))
    bases = oracle.shape_of(clause.names).strings if clause.names else (ANY_STRING,)
    if patterns or clause.names or any(demand.names for demand in clause.demands):
        hidden = StringSet(not_values=frozenset(declared))
        bases = tuple([base.intersect(hidden) for base in bases])
    kinds = []
    for strings, matched in [part for base in bases for part in _split_by_patterns(oracle, base, patterns)]:
        spend(LOOKUP_WORK * (1 + sum(1 + len(scope.patterns) for scope in clause.scopes)))
        state = kind_state(clause, matched)
        if NEVER in state or (strings is not ANY_STRING and oracle.is_empty(strings)) or not oracle.has_value(state):
            continue
        for names, met in _split_by_demands(oracle, clause, strings, matched, state):
            kinds.append(Kind(names, state, met, matched))
    return tuple(kinds)


def _split_by_patterns(
    oracle: Oracle, base: StringSet, patterns: Iterable[str]
) -> list[tuple[StringSet, frozenset[str]]]:
    """(names, the patterns that they match) for each combination of patterns that names in `base` match; some parts may
    be empty.

    Exclusions that are implied are left out. A name that matches `pattern` and `other` lies in a part whose patterns
    include `other`, and this part overlaps `pattern`; so if no such part does, what matches `pattern` does not match
    `other`. A name on which the readings of a pattern differ lies in no part.
    """
    #: (names, without regard to what they do not match; the patterns that they match; those that they do not)
    found: list[tuple[StringSet, frozenset[str], tuple[str, ...]]] = [(base, frozenset(), ())]
    for pattern in patterns:
        spend(KIND_WORK * len(found))
        one, differs = StringSet(patterns=(pattern,)), has_readings(pattern)
        also, overlaps = set[str](), []
        for names, matched, others in found:
            # with too few exclusions a part may turn out to be empty in the end
            overlaps.append(not oracle.is_empty(_without(names, _unclear(others, also)).intersect(one)))
            also |= matched if overlaps[-1] else set()
        split = []
        for (names, matched, others), meets in zip(found, overlaps, strict=True):
            if meets:
                split.append((names.intersect(one), matched | {pattern}, _unclear(others, also)))
            split.append((names, matched, (*others, pattern) if meets or differs else others))
        found = split
        if len(found) > MAX_KINDS:
            found = [part for part in found if not oracle.is_empty(_without(part[0], part[2]))]
        if len(found) > MAX_KINDS:
            reason = f"names match in more than {MAX_KINDS} ways"
            raise SchemaUnsupported(reason, oracle.document.root.pointer, "patternProperties")
    parts = []
    for names, matched, others in found:
        if matched and names.not_values:
            hidden = [name for name in names.not_values if all(oracle.matches(pattern, name) for pattern in matched)]
            names = names._replace(not_values=frozenset(hidden))
        parts.append((_without(names, others), matched))
    return parts


def _unclear(others: tuple[str, ...], also: set[str]) -> tuple[str, ...]:
    """The exclusions among `others` that are not implied: names may match `also`, or readings differ."""
    return tuple([other for other in others if other in also or has_readings(other)])


def _without(names: StringSet, patterns: tuple[str, ...]) -> StringSet:
    """Those of some names that do not match patterns."""
    return names.intersect(StringSet(not_patterns=patterns)) if patterns else names


def _split_by_demands(  # type: ignore[no-untyped-def]
    oracle: Oracle, clause: ObjectClause, strings: StringSet, matched: frozenset[str], state: State
):
    """(names, demands that their members can meet) of one kind: a demand on the name itself divides it."""
    parts: list[tuple[StringSet, tuple[int, ...]]] = [(strings, ())]
    for k, demand in enumerate(clause.demands):
        if demand.pattern is not None and demand.pattern not in matched:
            continue
        if demand.scope is not None and any(pattern in matched for pattern, _ in demand.scope.patterns):
            continue
        if not oracle.has_value(intersect_states(state, demand.value)):
            continue
        if not demand.names:
            parts = [(names, (*met, k)) for names, met in parts]
            continue
        divided = []
        spend(KIND_WORK * len(parts))
        for names, met in parts:
            for allowed in oracle.shape_of(demand.names).strings:
                narrowed = names.intersect(allowed)
                if not oracle.is_empty(narrowed):
                    divided.append((narrowed, (*met, k)))
            divided.append((names, met))  # the rest; overlapping does no harm
        parts = divided
    return parts

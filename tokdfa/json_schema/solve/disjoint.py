"""Which branches of oneOf may overlap, found without joining each with each.

Tagged objects are what most large oneOf consist of: each branch requires a member of one name, the *tag*, and lists
what its value may be (`const`, `enum`). Branches whose tags have no value in common are disjoint, so they are sorted by
the values, and only those that share one are compared; so it is with strings, numbers and constants that are listed.
Branches of which nothing is listed are compared with all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tokdfa.core.budget import spend
from tokdfa.json_schema.solve.clauses import LOOKUP_WORK

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tokdfa.json_schema.solve.clauses import Shape
    from tokdfa.json_schema.solve.listed import Listed, Values

#: Pairs of clauses of two branches whose tags are compared at most.
MOST_PAIRS = 64
#: Work and memory (`tokdfa.core.budget`) of a pair that is found, mostly more than once.
PAIR_WORK, PAIR_BYTES = 800, 100


def candidates(known: Listed, shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Pairs of indices, in order, of shapes that may have a value in common; all other pairs are surely disjoint.

    O(clauses + values that are listed + pairs).
    """
    found: set[tuple[int, int]] = set()
    constants = {
        k: frozenset(bit for bit in (1, 2, 4) if shape.constants & bit)
        for k, shape in enumerate(shapes)
        if shape.constants
    }
    numbers = {k: _listed_numbers(shape) for k, shape in enumerate(shapes) if shape.numbers}
    strings = {k: _listed_strings(shape) for k, shape in enumerate(shapes) if shape.strings}
    arrays: dict[int, Values] = {k: None for k, shape in enumerate(shapes) if shape.arrays}
    for listed in (constants, numbers, strings, arrays):
        found.update(_sharing(listed))
    clauses = {k: [known.tags(clause) for clause in shape.objects] for k, shape in enumerate(shapes) if shape.objects}
    found.update(pair for pair in _sharing(_by_tag(clauses)) if pair not in found and _overlap(clauses, *pair))
    return sorted(found)


def _sharing(listed: Mapping[int, Values]) -> Iterable[tuple[int, int]]:
    """The pairs that have a value in common, or of which one may have any; some come more than once."""
    by_value: dict[Hashable, list[int]] = defaultdict(list)
    free = [k for k, values in listed.items() if values is None]
    for k, values in listed.items():
        spend(LOOKUP_WORK * (1 + len(values or ())))
        for value in values or ():
            by_value[value].append(k)
    for same in by_value.values():
        spend(PAIR_WORK * len(same) ** 2 // 2, PAIR_BYTES * len(same))
        yield from combinations(same, 2)
    for k in free:
        spend(PAIR_WORK * len(listed))
        yield from ((min(k, other), max(k, other)) for other in listed if other != k)


def _listed_numbers(shape: Shape) -> Values:
    singles = [numbers.low for numbers in shape.numbers if numbers.low is not None and numbers.low == numbers.high]
    return frozenset(singles) if len(singles) == len(shape.numbers) else None


def _listed_strings(shape: Shape) -> Values:
    listed = [strings.values for strings in shape.strings if strings.values is not None]
    return frozenset().union(*listed) if len(listed) == len(shape.strings) else None


def _by_tag(clauses: Mapping[int, list[dict[str, frozenset[Any]]]]) -> dict[int, Values]:
    """The values of the name that most branches are tagged with."""
    common = {k: set(tags[0]).intersection(*tags[1:]) for k, tags in clauses.items()}
    counts = Counter(name for names in common.values() for name in names)
    if not counts:
        return dict.fromkeys(clauses)
    tag = max(counts, key=counts.__getitem__)
    return {
        k: frozenset().union(*(each[tag] for each in tags)) if tag in common[k] else None for k, tags in clauses.items()
    }


def _overlap(clauses: Mapping[int, list[dict[str, frozenset[Any]]]], first: int, second: int) -> bool:
    """Whether objects of two branches may be equal, as far as their tags go."""
    ones, others = clauses[first], clauses[second]
    if len(ones) * len(others) > MOST_PAIRS:
        return True
    spend(LOOKUP_WORK * len(ones) * len(others))
    return any(
        all(values & other[name] for name, values in one.items() if name in other) for one in ones for other in others
    )

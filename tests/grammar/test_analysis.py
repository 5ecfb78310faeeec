from hypothesis import given, settings

from tests.grammar.random_cfgs import cfgs, make_cfg
from tokdfa.grammar.analysis import (
    cyclic_symbols,
    left_recursive_symbols,
    nullable_symbols,
    productive_symbols,
    reachable_symbols,
    right_recursive_symbols,
)
from tokdfa.grammar.cfg import Cfg


def heights(cfg: Cfg, leaves: set[int]) -> set[int]:
    """Symbols with a derivation tree over `leaves`; one of least height is no higher than there are symbols."""
    found = set(leaves)
    for _ in range(len(cfg.names)):
        found |= {left for left, right in cfg.rules if all(symbol in found for symbol in right)}
    return found


def closure(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Which node reaches which, in one step or more: Warshall."""
    reached = set(pairs)
    nodes = {node for pair in pairs for node in pair}
    for middle in nodes:
        for source in nodes:
            for target in nodes:
                if (source, middle) in reached and (middle, target) in reached:
                    reached.add((source, target))
    return reached


def looping(pairs: set[tuple[int, int]]) -> set[int]:
    return {source for source, target in closure(pairs) if source == target}


@settings(deadline=None, derandomize=True, max_examples=200)
@given(cfgs())
def test_facts_are_their_definitions(cfg: Cfg) -> None:
    nullable = heights(cfg, set())
    assert nullable_symbols(cfg) == nullable
    assert productive_symbols(cfg) == heights(cfg, set(range(len(cfg.lexemes))))
    derives = closure({(left, symbol) for left, right in cfg.rules for symbol in right})
    assert reachable_symbols(cfg) == {cfg.start} | {symbol for left, symbol in derives if left == cfg.start}
    first, last, alone = set(), set(), set()
    for left, right in cfg.rules:
        for place, symbol in enumerate(right):
            before, behind = nullable.issuperset(right[:place]), nullable.issuperset(right[place + 1 :])
            first |= {(left, symbol)} if before else set()
            last |= {(left, symbol)} if behind else set()
            alone |= {(left, symbol)} if before and behind else set()
    assert left_recursive_symbols(cfg) == looping(first)
    assert right_recursive_symbols(cfg) == looping(last)
    assert cyclic_symbols(cfg) == looping(alone)


def test_hidden_recursion_and_cycles() -> None:
    # n0 -> n1 n0 a | b;  n1 -> nothing | a n1;  n2 -> n3 n1;  n3 -> n2
    cfg = make_cfg([(3, (4, 3, 0)), (3, (1,)), (4, ()), (4, (0, 4)), (5, (6, 4)), (6, (5,))], 4)
    assert left_recursive_symbols(cfg) == {3, 5, 6}
    assert right_recursive_symbols(cfg) == {4, 5, 6}
    assert cyclic_symbols(cfg) == {5, 6}


def test_long_chains_cost_no_stack() -> None:
    count = 20_000
    cfg = make_cfg([*((3 + i, (4 + i,)) for i in range(count)), (3 + count, (3,)), (3 + count, ())], count + 1)
    everything = set(range(3, 4 + count))
    assert nullable_symbols(cfg) == everything
    assert reachable_symbols(cfg) == everything
    assert left_recursive_symbols(cfg) == right_recursive_symbols(cfg) == cyclic_symbols(cfg) == everything

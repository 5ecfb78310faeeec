from hypothesis import given

from tests.grammar.random_cfgs import cfgs, make_cfg
from tokdfa.grammar.analysis import nullable_symbols, productive_symbols, reachable_symbols
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


@given(cfgs())
def test_facts_are_their_definitions(cfg: Cfg) -> None:
    nullable = heights(cfg, set())
    assert nullable_symbols(cfg) == nullable
    assert productive_symbols(cfg) == heights(cfg, set(range(len(cfg.lexemes))))
    derives = closure({(left, symbol) for left, right in cfg.rules for symbol in right})
    assert reachable_symbols(cfg) == {cfg.start} | {symbol for left, symbol in derives if left == cfg.start}


def test_long_chains_cost_no_stack() -> None:
    count = 20_000
    cfg = make_cfg([*((3 + i, (4 + i,)) for i in range(count)), (3 + count, (3,)), (3 + count, ())], count + 1)
    everything = set(range(3, 4 + count))
    assert nullable_symbols(cfg) == everything
    assert reachable_symbols(cfg) == everything
    assert productive_symbols(cfg) == everything | set(range(len(cfg.lexemes)))

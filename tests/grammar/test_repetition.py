from collections import Counter, defaultdict

import pytest

from tokdfa.errors import OptionError
from tokdfa.grammar.builder import CfgBuilder
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.repetition import LONGEST_CHOICE, Repetitions
from tokdfa.regex.expression import ExpressionStore


def repeated(low: int, high: int | None) -> Cfg:
    store = ExpressionStore()
    builder = CfgBuilder(store)
    start = builder.nonterminal("start")
    lexeme = builder.lexeme("x", store.literal(b"x"))
    builder.add_rule(start, (Repetitions(builder).repeat(lexeme, low, high),))
    return builder.finish(start)


def derivations(cfg: Cfg, longest: int) -> Counter[int]:
    """Number of lexemes -> number of derivations, up to `longest` lexemes; by counting until nothing is new."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    counts[0][1] = 1  # the lexeme
    while True:
        new: dict[int, Counter[int]] = defaultdict(Counter)
        new[0][1] = 1
        for left, right in cfg.rules:
            ways = Counter({0: 1})
            for symbol in right:
                longer: Counter[int] = Counter()
                for length, times in ways.items():
                    for added, more in counts[symbol].items():
                        if length + added <= longest:
                            longer[length + added] += times * more
                ways = longer
            new[left].update(ways)
        if new == counts:
            return new[cfg.start]
        counts = new


@pytest.mark.parametrize("low", [0, 1, 2, 3, 7, 8, 9, 12, 17, 40])
@pytest.mark.parametrize("more", [0, 1, 2, 5, 11, 12, 13, 16, 47, 48, 90, None])
def test_every_number_of_times_has_one_derivation(low: int, more: int | None) -> None:
    longest = low + (20 if more is None else more + 5)
    high = None if more is None else low + more
    expected = dict.fromkeys(range(low, (longest if high is None else high) + 1), 1)
    assert derivations(repeated(low, high), longest) == expected


@pytest.mark.parametrize(("low", "high"), [(0, 100_000), (100_000, 100_000), (99_999, 100_000), (100_000, None)])
def test_counts_take_few_flat_rules(low: int, high: int | None) -> None:
    cfg = repeated(low, high)
    assert len(cfg.rules) < 100
    assert max(len(right) for _, right in cfg.rules) <= LONGEST_CHOICE


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (3, 2)])
def test_bad_bounds(low: int, high: int) -> None:
    with pytest.raises(OptionError, match=r"0 <= low <= high"):
        repeated(low, high)

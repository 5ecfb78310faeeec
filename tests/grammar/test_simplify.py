import pytest
from hypothesis import assume, given, settings

from tests.grammar.random_cfgs import cfgs, make_cfg
from tests.naive.automata import all_words
from tests.naive.cfg_recogniser import CfgRecogniser
from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.simplify import inline, remove_useless

WORDS = list(all_words(b"abc", 3))


def language(cfg: Cfg) -> set[bytes]:
    recogniser = CfgRecogniser(cfg)
    return {word for word in WORDS if recogniser.accepts(word)}


def size(cfg: Cfg) -> int:
    return sum(1 + len(right) for _, right in cfg.rules)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(cfgs())
def test_smaller_grammars_for_the_same_texts(cfg: Cfg) -> None:
    if cfg.start not in productive_symbols(cfg):
        with pytest.raises(EmptyLanguageError):
            remove_useless(cfg)
        assume(False)
    useful, inlined = remove_useless(cfg), inline(cfg)
    expected = language(cfg)
    for smaller in (useful, inlined):
        assert language(smaller) == expected
        everything = set(range(len(smaller.names))) - {smaller.skip}
        assert reachable_symbols(smaller) == everything
        assert productive_symbols(smaller) >= everything
        assert (smaller.skip >= 0) == (cfg.skip >= 0)
        assert [smaller.names[symbol] for symbol in range(len(smaller.lexemes))] == [
            one.name for one in smaller.lexemes
        ]
    assert size(inlined) <= size(useful)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(cfgs())
def test_inlining_leaves_nothing_to_inline(cfg: Cfg) -> None:
    assume(cfg.start in productive_symbols(cfg))
    useful, inlined = remove_useless(cfg), inline(cfg)
    # two rules may become one, and then what stood in both stands in one place
    assume(len(useful.rules) - len(inlined.rules) == len(useful.names) - len(inlined.names))
    uses = [symbol for _, right in inlined.rules for symbol in right]
    for symbol in range(len(inlined.lexemes), len(inlined.names)):
        rights = [right for left, right in inlined.rules if left == symbol]
        if symbol != inlined.start and len(rights) == 1:
            assert len(rights[0]) > 1
            assert uses.count(symbol) > 1


def test_short_cuts() -> None:
    # n0 -> n1 n2 n2;  n1 -> n3;  n3 -> a n4;  n4 -> nothing;  n2 -> a b
    cfg = make_cfg([(3, (4, 5, 5)), (4, (6,)), (6, (0, 7)), (7, ()), (5, (0, 1))], 5)
    assert str(inline(cfg)) == "n0 -> a n2 n2\nn2 -> a b"


def test_the_message_names_what_never_ends() -> None:
    cfg = make_cfg([(3, (0, 4)), (4, (1, 4)), (5, (0,))], 3)
    with pytest.raises(EmptyLanguageError, match=r"'n0' derives no text.*: n0, n1$"):
        remove_useless(cfg)


def test_long_chains_cost_no_stack() -> None:
    count = 20_000
    cfg = make_cfg([*((3 + i, (0, 4 + i)) for i in range(count)), (3 + count, ())], count + 1)
    assert inline(cfg).rules == ((1, (0,) * count),)

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.grammar.random_cfgs import cfgs, make_cfg
from tests.naive.automata import all_words
from tests.naive.cfg_recogniser import CfgRecogniser
from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.simplify import ROUNDS, remove_ambiguity, remove_useless

Rule = tuple[int, tuple[int, ...]]

WORDS = list(all_words(b"abc", 3))


def language(cfg: Cfg) -> set[bytes]:
    recogniser = CfgRecogniser(cfg)
    return {word for word in WORDS if recogniser.accepts(word)}


@settings(max_examples=60)
@given(cfgs())
def test_a_smaller_grammar_for_the_same_texts(cfg: Cfg) -> None:
    if cfg.start not in productive_symbols(cfg):
        with pytest.raises(EmptyLanguageError):
            remove_useless(cfg)
        assume(False)
    smaller = remove_useless(cfg)
    assert language(smaller) == language(cfg)
    everything = set(range(len(smaller.names))) - {smaller.skip}
    assert reachable_symbols(smaller) == everything
    assert productive_symbols(smaller) >= everything
    assert (smaller.skip >= 0) == (cfg.skip >= 0)
    assert [smaller.names[symbol] for symbol in range(len(smaller.lexemes))] == [one.name for one in smaller.lexemes]


#: Rules of nonterminals 3 to 5, those of the start always with a join.
JOINS = st.tuples(
    st.lists(
        st.lists(st.sampled_from([0, 1, 4]), max_size=2).map(lambda between: (3, (3, *between, 3))),
        min_size=1,
        max_size=2,
    ),
    st.lists(
        st.tuples(st.integers(3, 5), st.lists(st.sampled_from([0, 1, 3, 4, 5]), max_size=3).map(tuple)),
        min_size=1,
        max_size=8,
    ),
)


@settings(max_examples=80)
@given(JOINS)
def test_joins_and_equal_rules_go_and_the_texts_stay(rules: tuple[list[Rule], list[Rule]]) -> None:
    cfg = make_cfg([*rules[0], *rules[1]], 3)
    assume(cfg.start in productive_symbols(cfg))
    useful = remove_useless(cfg)
    simpler = remove_ambiguity(useful)
    assert language(simpler) == language(useful)
    assert not any(len(right) > 1 and right[0] == right[-1] == left for left, right in simpler.rules)
    assert reachable_symbols(simpler) >= {*range(len(simpler.names))}
    assert productive_symbols(simpler) >= {*range(len(simpler.names))}


def test_a_join_is_a_list_and_copies_are_one() -> None:
    sums = make_cfg([(3, (3, 0, 3)), (3, (1,)), (3, (4,)), (4, (0, 0)), (5, (0, 0)), (3, (5, 5))], 3)
    assert str(remove_ambiguity(sums)).splitlines() == [
        *("n0 -> n0", "n0 -> n0 a n0", "n0 -> b", "n0 -> n1", "n1 -> a a", "n0 -> n1 n1"),
    ]


def test_equality_is_looked_for_in_bounded_rounds() -> None:
    """Two chains that are equal from the end on: a pass of the grammar for each link would take minutes."""
    count = 20_000
    links = [(3 + 2 * i + side, (0, 3 + 2 * (i + 1) + side)) for i in range(1, count) for side in (0, 1)]
    ends = [(3 + 2 * count, ()), (4 + 2 * count, ())]
    cfg = make_cfg([(3, (5, 6)), *links, *ends], 2 * count + 2)
    assert len(cfg.rules) - ROUNDS <= len(remove_ambiguity(cfg).rules) < len(cfg.rules)


def test_the_message_names_what_never_ends() -> None:
    cfg = make_cfg([(3, (0, 4)), (4, (1, 4)), (5, (0,))], 3)
    with pytest.raises(EmptyLanguageError, match=r"'n0' derives no text.*: n0, n1$"):
        remove_useless(cfg)


def test_long_chains_cost_no_stack() -> None:
    count = 20_000
    cfg = make_cfg([*((3 + i, (0, 4 + i)) for i in range(count)), (3 + count, ())], count + 1)
    assert len(remove_useless(cfg).rules) == count + 1

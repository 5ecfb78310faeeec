from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.grammar.random_cfgs import make_cfg
from tests.naive.automata import all_words
from tests.naive.cfg_recogniser import CfgRecogniser
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.simplify import productive_symbols, reachable_symbols, remove_ambiguity, remove_useless

Rule = tuple[int, tuple[int, ...]]

WORDS = list(all_words(b"abc", 3))


def language(cfg: Cfg) -> set[bytes]:
    recogniser = CfgRecogniser(cfg)
    return {word for word in WORDS if recogniser.accepts(word)}


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

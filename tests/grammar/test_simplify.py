import pytest
from hypothesis import assume, given, settings

from tests.grammar.random_cfgs import cfgs, make_cfg
from tests.naive.automata import all_words
from tests.naive.cfg_recogniser import CfgRecogniser
from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.analysis import productive_symbols, reachable_symbols
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.simplify import remove_useless

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


def test_the_message_names_what_never_ends() -> None:
    cfg = make_cfg([(3, (0, 4)), (4, (1, 4)), (5, (0,))], 3)
    with pytest.raises(EmptyLanguageError, match=r"'n0' derives no text.*: n0, n1$"):
        remove_useless(cfg)


def test_long_chains_cost_no_stack() -> None:
    count = 20_000
    cfg = make_cfg([*((3 + i, (0, 4 + i)) for i in range(count)), (3 + count, ())], count + 1)
    assert len(remove_useless(cfg).rules) == count + 1

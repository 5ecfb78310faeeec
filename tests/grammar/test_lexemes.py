from hypothesis import given
from hypothesis import strategies as st

from tests.naive.languages import all_texts
from tests.strategies import regex_patterns
from tokdfa.constraint import Regex
from tokdfa.grammar.lexemes import matches_nothing, without_empty
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.lower import lower_regex

PLAIN = regex_patterns(anchors=False, look_ahead=False, boundaries=False)
WORDS = sorted(all_texts(b"ab-\n", 3))


def nullable_patterns() -> st.SearchStrategy[str]:
    return st.lists(PLAIN, min_size=1, max_size=3).map(lambda parts: "".join(f"({part})?" for part in parts))


@given(st.one_of(PLAIN, nullable_patterns()))
def test_without_the_empty_text(pattern: str) -> None:
    store = ExpressionStore()
    expression = lower_regex(Regex(pattern), store)
    cut = without_empty(store, expression)
    assert not store.nullable(cut)
    before, after = LazyDfa(store, expression), LazyDfa(store, cut)
    for word in WORDS:
        assert after.accepts(word) == (word != b"" and before.accepts(word)), word
    assert matches_nothing(store, cut) == after.is_empty


def test_without_the_empty_text_of_what_is_boolean() -> None:
    store = ExpressionStore()
    a = store.literal(b"a")
    expression = store.concat(store.complement(a), store.repeat(store.literal(b"b"), 0, 2))
    cut = LazyDfa(store, without_empty(store, expression))
    assert all(map(cut.accepts, (b"b", b"ab", b"aa", b"abb")))
    assert not any(map(cut.accepts, (b"", b"a")))


def test_long_chains_cost_no_stack() -> None:
    store = ExpressionStore()
    optional = [store.repeat(store.literal(bytes([letter])), 0, 1) for letter in (97, 98)]
    cut = LazyDfa(store, without_empty(store, store.concat(*optional * 50)))
    assert [cut.accepts(word) for word in (b"", b"ab" * 50, b"b", b"ab" * 50 + b"b")] == [False, True, True, False]
    longer = without_empty(store, store.concat(*optional * 2500))
    assert not store.nullable(longer)
    assert not matches_nothing(store, longer)


def test_what_is_not_empty_is_left_as_it_is() -> None:
    store = ExpressionStore()
    three = store.repeat(store.literal(b"a"), 3, 5)
    assert without_empty(store, three) == three

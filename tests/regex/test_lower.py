import random
import sys

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import as_python, regex_patterns, short_texts
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LimitExceeded, RegexSyntaxError
from tokdfa.regex import tree_writer
from tokdfa.regex.dialects import MAX_NESTING
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.lower import lower, lower_choice, lower_regex
from tokdfa.regex.parse import parse

SHORT = short_texts(3)


def dfa_of(pattern: str, flags: str = "", search: bool = False, ascii_classes: bool = True) -> LazyDfa:
    store = ExpressionStore()
    return LazyDfa(store, lower(parse(pattern, flags, ascii_classes), store, search))


@settings(max_examples=300)
@given(regex_patterns(), st.sampled_from(["", "", "m", "s", "i"]))
@example("(?:^|a)*b$|(?:a|$)+", "")
@example("(?:^|-)*a(?:$)", "m")
@example("(?:(?:^|-)a(?:-|$)){2,3}", "")
@example("(?:(?!ab).)*\\b", "")
@example("(?:(?=a)(?:a|$))*^", "m")
def test_random_patterns_accept_what_re_accepts(pattern: str, flags: str) -> None:
    oracle = as_python(pattern, flags)
    whole, inside = dfa_of(pattern, flags), dfa_of(pattern, flags, search=True)
    for text in SHORT:
        if text or r"\B" not in pattern:  # Python before 3.14 has neither \b nor \B in an empty text
            assert whole.accepts(text.encode()) == bool(oracle.fullmatch(text)), text
            assert inside.accepts(text.encode()) == bool(oracle.search(text)), text


@given(regex_patterns(look_ahead=False, boundaries=False))
@example("(?:(?:^|a)(?:-|$))*")
@example("(?:(?:(?:^|a)b)*-|^)+")
def test_anchors_in_loops_are_resolved(pattern: str) -> None:
    """No zero-width node is left, but in nested loops that have both kinds of anchor."""
    node, oracle, store = parse(pattern, ascii_classes=True), as_python(pattern), ExpressionStore()
    root = lower(node, store)
    if len(node.assertions) < 2:
        assert not store.has_assertions(root)
    dfa = LazyDfa(store, root)
    for text in SHORT:
        assert dfa.accepts(text.encode()) == bool(oracle.fullmatch(text)), text


@pytest.mark.parametrize(
    ("pattern", "remains"),
    [
        (r"\bfoo\b", False),
        (r"(?m)^a$", False),
        (r"(^|x)y($|z)", False),
        (r"(a(,|$)){1,50}", False),
        (r"((^|;)(a(,|$)){2,}b?)*", True),
        (r"^(?=.*[a-z])(?=.*[0-9]).{8,}$", False),
        (r"(?!(?!a)b|c$)[a-z]*", False),
        (r"((?!end).)*end", True),
        (r"(\b[a-z]+ ?)+", True),
        (r"(?:(?![aeiou])[a-z])+", False),
    ],
)
@pytest.mark.parametrize("search", [False, True])
def test_which_assertions_remain_as_nodes(pattern: str, remains: bool, search: bool) -> None:
    store = ExpressionStore()
    assert store.has_assertions(lower(parse(pattern, ascii_classes=True), store, search)) == remains


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"^(?=.*[a-z])(?=.*[0-9]).{8,}$", ["abcdefg1", "ééééééé1a"], ["abcdefgh", "abc1", "12345678"]),
        (r"((?!end).)*end", ["end", "xxend"], ["endend", "en"]),
        (r"(\d+(,|$)){2,3}", ["1,2", "1,2,", "1,2,3,"], ["1", "1,2,3,4", ",1"]),
        (r"(?m)(^#.*\n?)+", ["#a\n#b", "#"], ["#a\nb", "a#"]),
        (r"(\b\w+\b\W*)+", ["one two", "one, two."], ["", " one"]),
        (r"((^|;)(a(,|$)){2,}b?)*", ["", "a,a,b", "a,a,;a,a", "a,a,;a,a,b"], ["a,", "a,a;"]),
        (r"(?:a|b$|^c){2,}", ["aa", "ab", "cb", "cab"], ["b", "ac", "ba"]),
        (r"(a|^){3}", ["", "a", "aa", "aaa"], ["aaaa"]),
        (r"(a|^$){2}", ["", "aa"], ["a"]),
        (r"a-?\b-?b?", ["a", "a-", "a-b"], ["ab", "a--", "a--b"]),
        (r"(?:a?-?){2}\ba?", ["a", "a-a", "-a"], ["", "-", "-aa", "a-"]),
        (r"(?m)\n?^(?:\Aa|b)", ["a", "b", "\nb"], ["\na"]),
        (r"(a|$){2,}b*", ["", "a", "aa", "aab"], ["ab", "b"]),
    ],
)
def test_chosen_texts(pattern: str, accepted: list[str], refused: list[str]) -> None:
    dfa, oracle = dfa_of(pattern), as_python(pattern, "")
    for text in accepted + refused:
        assert dfa.accepts(text.encode()) == (text in accepted) == bool(oracle.fullmatch(text)), text


@pytest.mark.parametrize("pattern", [r"\w+", r"[^\W\d_]{2}", r"\p{Greek}|\p{Emoji}+", r"\s\S", r"(?i)straße", "."])
def test_unicode_patterns_against_the_regex_package(pattern: str) -> None:
    dfa, oracle = dfa_of(pattern, ascii_classes=False), regex.compile(pattern)
    source = random.Random(1)
    alphabet = [*"aZ_0 \t\n", *"éßẞλΣς٣\u0301\u200d\u2028\U0001d7d8😀straSTRAE"]
    texts = ["".join(source.choices(alphabet, k=source.randint(0, 3))) for _ in range(400)] + ["STRASSE", "ſtraße"]
    texts += [chr(source.choice([source.randrange(0xD800), source.randrange(0xE000, 0x110000)])) for _ in range(400)]
    for text in texts:
        assert dfa.accepts(text.encode()) == bool(oracle.fullmatch(text)), text


def test_only_valid_utf8_is_accepted() -> None:
    for pattern, search in ((".*", False), ("(?s).*", False), ("a", True), (r"\W*(?!b)", False), (r"[^a]\b", True)):
        dfa = dfa_of(pattern, search=search)
        for data in (b"\xff", b"a\xc3", b"\xed\xa0\x80a", b"\xc0\x80", b"a\xf4\x90\x80\x80", b"\x80a"):
            assert not dfa.accepts(data), (pattern, data)
    assert dfa_of(r"\ud800|a").accepts(b"a")
    assert dfa_of(r"\ud800").is_empty


def test_constraints() -> None:
    store = ExpressionStore()
    regex_root = lower_regex(Regex("A|b.", search=True, flags="is"), store)
    assert LazyDfa(store, regex_root).accepts(b"xxB\n")
    assert lower_regex(Regex(r"\d", ascii_classes=True), store) == store.byte_set(range(48, 58))
    with pytest.raises(RegexSyntaxError, match="not closed"):
        lower_regex(Regex("(a"), store)
    choice_root = lower_choice(Choice(["tea", "ten", b"\xff", "é", "te", "", "tea"]), store)
    dfa = LazyDfa(store, choice_root)
    for text in (b"tea", b"ten", b"\xff", "é".encode(), b"te", b""):
        assert dfa.accepts(text)
    for text in (b"t", b"teas", b"\xc3", b"n"):
        assert not dfa.accepts(text)


@given(st.lists(st.text("ab", max_size=5), min_size=1, max_size=12))
def test_random_choices(choices: list[str]) -> None:
    store = ExpressionStore()
    dfa = LazyDfa(store, lower_choice(Choice(choices), store))
    for text in short_texts(5, "ab"):
        assert dfa.accepts(text.encode()) == (text in choices)
    store = ExpressionStore()
    dfa = LazyDfa(store, lower(parse("|".join(choices)), store))
    for text in short_texts(5, "ab"):
        assert dfa.accepts(text.encode()) == (text in choices)


def test_many_choices_share_prefixes_and_suffixes() -> None:
    """20,000 texts: nodes grow with the distinct prefixes, and equal ends are one expression."""
    numbers = [f"item-{number:05d}-end" for number in range(0, 40_000, 2)]
    store = ExpressionStore()
    root = lower_choice(Choice(numbers), store)
    assert len(store) < 150  # five digits, each the same choice of ten or of five
    dfa = LazyDfa(store, root)
    dfa.explore()
    assert dfa.state_count < 30
    assert dfa.accepts(b"item-12344-end")
    assert not dfa.accepts(b"item-12345-end")
    assert not dfa.accepts(b"item-40000-end")


@pytest.mark.parametrize("leaf", ["a", "^a", "a$", "(?!a)b", r"a\b", "^$a"])
@pytest.mark.parametrize("around", ["({}|b)*c", "(?:{}|b)?c", "(?!{}|b)c", "({}|b){{2,3}}c"])
def test_deep_nesting_takes_neither_python_stack_nor_exponential_work(leaf: str, around: str) -> None:
    pattern = leaf
    for _ in range(MAX_NESTING - 1):
        pattern = around.format(pattern)
    store, limit = ExpressionStore(), sys.getrecursionlimit()
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 60)
    try:
        node = parse(pattern, ascii_classes=True)
        lower(node, store)
        lower(node, store, search=True)
    finally:
        sys.setrecursionlimit(limit)
    assert len(store) < 60 * MAX_NESTING


def test_limits_of_the_store_hold_while_a_long_pattern_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_writer, "LONG_PROGRAM", 1000)
    store = ExpressionStore(max_expressions=500)
    node = parse("".join(f"[{chr(first)}-{chr(first + 999)}]+" for first in range(0x3000, 0x9000, 7)))
    with pytest.raises(LimitExceeded):
        lower(node, store)
    assert len(store) < 5000


@pytest.mark.parametrize("middle", ["^", r"\b", "(?m)^", "(?=a)", "$"])
def test_long_chains_are_linear(middle: str) -> None:
    """Thousands of parts that may be empty before an assertion: no product of parts and parts."""
    sizes = []
    for parts in (500, 2000):
        store = ExpressionStore()
        lower(parse("a?" * parts + middle + "a", ascii_classes=True), store)
        sizes.append(len(store))
    assert sizes[1] < 5 * sizes[0]

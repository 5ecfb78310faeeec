"""Machine against the definitions (tests.naive.lexed_earley), and texts whose fate is known by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import PATTERNS, accepts, lexed_cfgs, make_cfg, run
from tests.naive.lexed_earley import LexedEarley
from tokdfa.backends.earley_trie.machine import MAX_CHAIN, Machine
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme, SpecialTokens
from tokdfa.regex.expression import ExpressionStore

RULES = [(longest, at_ends) for longest in (True, False) for at_ends in (True, False)]


@pytest.mark.parametrize(("longest", "skip_at_ends"), RULES)
def test_texts_are_read_as_defined(longest, skip_at_ends):
    """All texts of up to six letters: which go on, and which are complete."""

    @settings(max_examples=50)
    @given(lexed_cfgs())
    def check(cfg):
        machine = Machine(cfg, longest=longest, skip_at_ends=skip_at_ends)
        twin = LexedEarley(cfg, longest, skip_at_ends)
        agenda = [b""]
        while agenda:
            text = agenda.pop()
            situation = run(machine, machine.start, text)
            assert (situation >= 0) == twin.goes_on(text), text
            if situation < 0:
                continue
            assert machine.can_end(situation) == twin.accepts(text), text
            if len(text) < 6:
                agenda += [text + letter for letter in (b"a", b"b", b"c")]

    check()


def chain_of(machine, situation):
    """The links of a situation, outmost first."""
    links = []
    while situation >= 0:
        *link, situation = machine.view(situation)
        links.append(tuple(link))
    return links


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True),
    st.text("ab", min_size=10, max_size=40).map(str.encode),
)
def test_long_texts_of_any_lexemes(patterns, text):
    """One list of all lexemes: fallbacks live long, and have fallbacks of their own."""
    cfg = make_cfg(tuple(patterns), {"s": [(), *(("s", pattern) for pattern in patterns)]})
    for longest in (True, False):
        machine, twin = Machine(cfg, longest=longest), LexedEarley(cfg, longest)
        for size in range(len(text) + 1):
            situation = run(machine, machine.start, text[:size])
            assert (situation >= 0) == twin.goes_on(text[:size])
            if situation < 0:
                break
            assert machine.can_end(situation) == twin.accepts(text[:size])


# Texts whose fate is known.

LISTED = make_cfg(("list|listen", "ed"), {"s": [("list|listen", "ed")]})
NUMBERS = make_cfg(
    (r"[0-9]+(\.[0-9]+)?", r"\.", "[a-z]+"),
    {"s": [("s", "t"), ("t",)], "t": [(r"[0-9]+(\.[0-9]+)?",), (r"\.",), ("[a-z]+",)]},
)
THREE = make_cfg(("aaa", "a+b", "x"), {"s": [("aaa",), ("a+b", "x")]})


@pytest.mark.parametrize(
    ("cfg", "text", "longest", "one_byte"),
    [
        (LISTED, b"listened", True, True),
        (LISTED, b"listed", True, False),  # "liste" may become "listen"; only the longest match goes back
        (LISTED, b"listend", False, False),
        (THREE, b"aaa", True, True),
        (THREE, b"aaabx", True, True),
        (THREE, b"aabx", True, True),
        (THREE, b"aaaa", False, False),
        (NUMBERS, b"1.5", True, True),
        (NUMBERS, b"1.x", True, False),
        (NUMBERS, b"1..5", True, False),
        (NUMBERS, b"1.5.x", True, True),
        (NUMBERS, b"1.5.2", True, True),
    ],
)
def test_where_a_lexeme_ends(cfg, text, longest, one_byte):
    assert accepts(Machine(cfg, longest=True), text) == longest
    assert accepts(Machine(cfg, longest=False), text) == one_byte


def test_a_fallback_of_a_fallback():
    """a|abcabcd, then b, c and a|abd: while abcabcd may come, so may a and b, and abd inside."""
    cfg = make_cfg(
        ("a|abcabcd", "b", "c", "a|abd"),
        {"s": [("a|abcabcd", "t")], "t": [(), ("u", "t")], "u": [("b",), ("c",), ("a|abd",)]},
    )
    machine, twin = Machine(cfg), LexedEarley(cfg)
    assert len(chain_of(machine, run(machine, machine.start, b"abcab"))) == 3
    for tail in (b"", b"c", b"cd", b"d", b"cc", b"cb", b"b", b"dab", b"dabd"):
        text = b"abcab" + tail
        assert accepts(machine, text) == twin.accepts(text), tail
    assert accepts(machine, b"abcabcd")
    assert accepts(machine, b"abcabd")
    assert not accepts(machine, b"abcabcdd")


def test_equal_links_are_one():
    """Each a of (a|a+b)* may be a lexeme, or all of them the beginning of one: two rows, three links."""
    pattern = "a|a+b"
    machine = Machine(make_cfg((pattern,), {"s": [("s", pattern), (pattern,)]}))
    for size in (10, 100, 5000):
        assert accepts(machine, b"a" * size)
        assert accepts(machine, b"a" * size + b"b" + b"a" * size)
    assert len(chain_of(machine, run(machine, machine.start, b"a" * 5000))) == 3
    assert len(machine.situations) <= 64


def nested_runs():
    """A row for each a, so a link for each a."""
    return Machine(make_cfg(("a|a+b", "c"), {"s": [("a|a+b", "s", "c"), ("a|a+b", "c")]}))


def test_long_chains():
    machine, size = nested_runs(), 200
    assert accepts(machine, b"a" * size + b"c" * size)
    assert not accepts(machine, b"a" * size + b"c" * (size - 1))
    assert accepts(machine, b"a" * size + b"bc")
    assert len(chain_of(machine, run(machine, machine.start, b"a" * size))) == size


def test_too_long_chains():
    machine = nested_runs()
    with pytest.raises(LimitExceeded, match="cut into lexemes") as caught:
        run(machine, machine.start, b"a" * (MAX_CHAIN + 1))
    assert (caught.value.limit, caught.value.value) == ("max_chain", MAX_CHAIN)
    assert accepts(machine, b"a" * 20 + b"c" * 20)


def test_too_many_situations():
    machine = Machine(nested_runs().cfg, max_rows=100)
    assert accepts(machine, b"a" * 5 + b"c" * 5)
    with pytest.raises(LimitExceeded) as caught:
        run(machine, machine.start, b"a" * 99)
    assert caught.value.limit == "max_rows"
    assert accepts(machine, b"a" * 5 + b"c" * 5)


@pytest.mark.parametrize(("longest", "skip_at_ends"), RULES)
def test_skipped_text(longest, skip_at_ends):
    machine = Machine(
        make_cfg(("[a-z]+", " +"), {"s": [("[a-z]+", "[a-z]+")]}, skip=1), longest=longest, skip_at_ends=skip_at_ends
    )
    assert accepts(machine, b"ab  cd")
    assert not accepts(machine, b"abcd")
    assert run(machine, machine.start, b"abcd") >= 0
    for text in (b" ab cd", b"ab cd ", b"   ab   cd   "):
        assert accepts(machine, text) == skip_at_ends


def test_skipped_text_at_the_end_where_more_may_come():
    machine = Machine(make_cfg(("a", " +"), {"s": [("s", "a"), ("a",)]}, skip=1), skip_at_ends=False)
    assert accepts(machine, b"a a ")
    assert run(machine, machine.start, b" ") == -1


def test_what_is_skipped_and_read():
    """Blanks are ignored and a lexeme, too: by longest match both readings live, in llguidance ignoring wins."""
    cfg = make_cfg(("a", "b", " +", " {1,}"), {"s": [("a", " +", "b")]}, skip=3)
    assert accepts(Machine(cfg), b"a b")
    assert not accepts(Machine(cfg, longest=False), b"a b")
    assert run(Machine(cfg, longest=False), 0, b"a  ") >= 0


def test_lazy_lexemes():
    first = Machine(make_cfg((".*END", "b"), {"s": [(".*END", "b")]}, lazy=(0,)))
    assert accepts(first, b"fooENDb")
    assert not accepts(first, b"fooENDbENDb")
    assert run(first, first.start, b"fooENDx") == -1
    assert accepts(Machine(make_cfg((".*END", "b"), {"s": [(".*END", "b")]})), b"fooENDbENDb")
    both = make_cfg(("a+", "aa", "b"), {"s": [("a+", "b"), ("aa", "b"), ("aa", "aa", "b")]}, lazy=(1,))
    for longest in (True, False):
        machine = Machine(both, longest=longest)
        assert [accepts(machine, b"a" * size + b"b") for size in range(1, 6)] == [True, True, False, True, False]


def test_special_tokens():
    """Between lexemes, after a lexeme that may end, and after one that a fallback ends."""
    store = ExpressionStore()
    names = ("<x>", "a|abc", "b", "s", "t")
    expressions = [store.union([store.literal(b"a"), store.literal(b"abc")]), store.literal(b"b")]
    lexemes = (
        SpecialTokens(names=("<x>",)),
        *(Lexeme(name, e) for name, e in zip(names[1:], expressions, strict=False)),
    )
    rules = ((3, (4, 0, 4)), (3, ()), (4, (1,)), (4, (1, 2)), (4, (4, 0)))
    cfg = Cfg(lexemes, names, rules, 3, -1, store)
    machine, twin = Machine(cfg), LexedEarley(cfg)
    token = frozenset({0})
    taken = 0
    for text in itertools.chain.from_iterable(itertools.product([*b"abc", token], repeat=size) for size in range(7)):
        situation = machine.start
        for symbol in text:
            if symbol == token:
                row = machine.row_at_border(situation)
                row = machine.next_row(row, machine.lexer.set_of([0])) if row >= 0 else -1
                situation = machine.intern(row, machine.start_state(row), -1) if row >= 0 else -1
            else:
                situation = run(machine, situation, bytes([symbol]))
            if situation < 0:
                break
        assert (situation >= 0 and machine.can_end(situation)) == twin.accepts(text), text
        taken += situation >= 0
    assert taken > 30
    assert twin.accepts((*b"ab", token, *b"abc", token))

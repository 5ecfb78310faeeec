"""Look-behind, atomic groups and possessive quantifiers: what is read accepts what `re` and `regex` accept."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.regex.test_lower import dfa_of
from tests.strategies import short_texts
from tokdfa.errors import RegexUnsupported
from tokdfa.regex.parse import parse

TEXTS = short_texts(5, "abc")
TEXTS += ["é", "aé", "éa", "\n", "a\nb", "A", "aB"]

_ATOMS = st.sampled_from(["a", "b", "c", "[ab]", "[^a]", ".", "(?:ab|ba)", "(?:a|bc)", "a?", "[bc]*", "(ab)+", "b{2}"])
_SEQUENCES = st.lists(_ATOMS, max_size=3).map("".join)
_FIXED = st.sampled_from(["a", "b", "[bc]", "ab", "a.", "[^b]c", "(?:ab|ca)", "a{2}", ""])
_VARYING = st.sampled_from(["a+b", "b?", "(?:a|bc)", "[^c]*b", "ab{1,2}"])


def assert_same(pattern: str, oracle: re.Pattern[str] | regex.Pattern[str], search: bool, flags: str = "") -> int:
    """How many texts are accepted."""
    dfa, found = dfa_of(pattern, flags, search), 0
    for text in TEXTS:
        is_member = bool(oracle.search(text) if search else oracle.fullmatch(text))
        assert dfa.accepts(text.encode()) == is_member, (pattern, text)
        found += is_member
    return found


@st.composite
def behind_patterns(draw: st.DrawFn, bodies: st.SearchStrategy[str]) -> str:
    options = []
    for _ in range(draw(st.integers(1, 2))):
        option = draw(st.sampled_from(["", "", "^"])) + draw(_SEQUENCES)
        for _ in range(draw(st.integers(1, 2))):
            option += f"(?<{draw(st.sampled_from('=!'))}{draw(bodies)})" + draw(_SEQUENCES)
        options.append(option + draw(st.sampled_from(["", "", "(?=b|$)", "(?!a)b?", "$"])))
    return "|".join(options)


@settings(max_examples=60)
@given(behind_patterns(_FIXED), st.booleans(), st.sampled_from(["", "", "i", "s"]))
def test_look_behind_of_fixed_width_is_that_of_re(pattern: str, search: bool, flags: str) -> None:
    wanted = re.compile(pattern.replace("$", r"\Z"), sum(re.RegexFlag[letter.upper()] for letter in flags))
    assert_same(pattern, wanted, search, flags)


@settings(max_examples=40)
@given(behind_patterns(st.one_of(_FIXED, _VARYING)), st.booleans())
def test_look_behind_of_any_width_is_that_of_regex(pattern: str, search: bool) -> None:
    assert_same(pattern, regex.compile(pattern.replace("$", r"\Z")), search)


_ATOMIC = st.one_of(
    st.tuples(_ATOMS, st.sampled_from(["*+", "++", "?+", "{2}+", "{1,2}+", "{1,}+"])).map(
        lambda pair: ("(?:" + pair[0] + ")" if len(pair[0]) > 1 and pair[0][0] != "[" else pair[0]) + pair[1]
    ),
    _SEQUENCES.map(lambda body: f"(?>{body})"),
    st.sampled_from(["(?>a|ab)", "(?>a)*", "(?>ab|bc){2}", "[ab]*+", "a++", "[^c]*+", "(?>b*)"]),
)


@pytest.mark.parametrize("search", [False, True])
def test_what_is_atomic_and_read_is_what_re_accepts(search: bool) -> None:
    """Whatever changes something is refused: of what is read, all texts are those of `re`, which backtracks less."""
    read: list[str] = []
    refused: list[str] = []

    @settings(max_examples=250)
    @given(st.lists(st.one_of(_ATOMIC, _ATOMS, st.just("|")), min_size=1, max_size=4).map("".join), st.booleans())
    def run(pattern: str, in_group: bool) -> None:
        pattern = f"(?:{pattern})c?" if in_group else pattern
        try:
            oracle = re.compile(pattern)
        except re.error:  # a quantifier after a quantifier
            return
        try:
            parse(pattern, ascii_classes=True)
        except RegexUnsupported:
            refused.append(pattern)
            return
        read.append(pattern)
        assert_same(pattern, oracle, search)

    run()
    atomic = [pattern for pattern in read if "(?>" in pattern or re.search(r"[*+?}]\+", pattern)]
    assert len(atomic) > 30
    assert len(refused) > 10


@pytest.mark.parametrize(
    "pattern",
    ['"[^"]*+"', r"\d++\.\d++", "(?>true|null)", "x*+", r"(?>[a-z]{3})+", "a*+b*+c*+", "(?:[a-z]++[0-9])*", "a?+$"],
)
def test_what_people_write_is_read(pattern: str) -> None:
    plain = pattern.replace("++", "+").replace("*+", "*").replace("?+", "?").replace("(?>", "(?:")
    assert parse(pattern, ascii_classes=True) == parse(plain, ascii_classes=True)


def test_the_engine_that_reads_them_otherwise_refuses_them() -> None:
    vocab = tokdfa.load_tokenizer("bytes").vocabulary
    for pattern in ("a{2}+b", "[^]a]*+]", r"a(?<=a)b", "a(?<!b)b"):
        with pytest.raises(tokdfa.TokdfaError, match=r"interegular (reads a possessive|has no look-behind)"):
            tokdfa.compile(tokdfa.Regex(pattern), vocab, "outlines_2023")
    for pattern in ("[*+]b", r"\*+b", "[a]+b", "[{1}+]b", r"[\]*+]b"):
        assert tokdfa.compile(tokdfa.Regex(pattern), vocab, "outlines_2023").start().allows(ord("b")) is False


def test_masks_and_terminals() -> None:
    vocab = tokdfa.load_tokenizer("bytes")
    matcher = tokdfa.compile(tokdfa.Regex(r"[a-z$]+(?<=\$)[0-9]+(?<!00)"), vocab).start()
    for token in b"a$20":
        matcher.advance(token)
    assert matcher.can_end()
    matcher.advance(ord("0"))
    assert not matcher.can_end()
    assert matcher.allows(ord("1"))
    assert tokdfa.compile(tokdfa.Grammar(r'start: /"[^"]*+"/ "x"'), vocab).start().allows(ord('"'))
    for pattern in ("(?<=a)b", "a*+", "(?>a)"):  # JSON Schema's patterns are ECMA-262's, and read as before
        with pytest.raises(tokdfa.TokdfaError):
            tokdfa.compile(tokdfa.JsonSchema({"type": "string", "pattern": pattern}), vocab)
    with pytest.raises(tokdfa.TokdfaError, match="a look-behind in"):
        tokdfa.compile(tokdfa.Regex("a(?<=a)b"), vocab.vocabulary, "outlines_core", dialect="tokdfa")

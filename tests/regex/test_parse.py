import random
import re
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.regex_matcher import full_match, search
from tests.strategies import as_python, regex_patterns, short_texts
from tokdfa.errors import LimitExceeded, RegexSyntaxError, RegexUnsupported
from tokdfa.regex.dialects import MAX_COUNT, MAX_NESTING
from tokdfa.regex.parse import MAX_PATTERN, parse
from tokdfa.regex.syntax_tree import (
    Alternation,
    Assertion,
    CharSet,
    Concat,
    Node,
    Repeat,
    alternation,
)
from tokdfa.regex.unicode_tables import scan


def chars(*ranges: str) -> CharSet:
    """The set of some characters ("a") and ranges ("a-z"), in order."""
    return CharSet(tuple((ord(text[0]), ord(text[-1])) for text in ranges))


A, B, C = chars("a"), chars("b"), chars("c")


@pytest.mark.parametrize(
    ("escape", "character"),
    [
        (r"\x41", "A"),
        (r"\x{1F600}", "😀"),
        (r"\u0041", "A"),
        (r"\u{41}", "A"),
        (r"\uD83D\uDE00", "😀"),
        (r"\ud83d\ude00", "😀"),
        (r"\U0001F600", "😀"),
        (r"\n", "\n"),
        (r"\r", "\r"),
        (r"\t", "\t"),
        (r"\f", "\f"),
        (r"\v", "\v"),
        (r"\a", "\a"),
        (r"\cA", "\x01"),
        (r"\cz", "\x1a"),
        (r"\0", "\0"),
        (r"\07", "\x07"),
        (r"\012", "\n"),
        (r"\101", "A"),
        (r"\377", "\xff"),
        (r"\é", "é"),
        *((f"\\{mark}", mark) for mark in "/.-_^$|()[]{}*+?!\"#%&',:;<=>@`~ \\"),
    ],
)
def test_escapes(escape: str, character: str) -> None:
    assert parse(escape) == chars(character)
    if character not in "^-]\\":
        assert parse(f"[{escape}]") == chars(character)
    assert parse(f"[{escape}-{escape}]") == chars(character)


def test_lone_surrogates_are_code_points_of_their_own() -> None:
    assert parse(r"\ud800\ud801") == Concat((chars("\ud800"), chars("\ud801")))
    assert parse(r"\ude00") == chars("\ude00")
    assert parse(r"[^\ud800-\udfff]") == chars("\0-\ud7ff", "\ue000-\U0010ffff")


@pytest.mark.parametrize(
    "pattern",
    [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\p{Lu}", r"\PL", r"\P{Script=Greek}", r"[^\p{L}\d-]", r"[\S\n]"],
)
def test_unicode_classes_are_those_of_the_regex_package(pattern: str) -> None:
    assert parse(pattern) == CharSet(scan(pattern))


@pytest.mark.parametrize("pattern", [r"\d", r"\D", r"\w", r"\W", r"[^\W\d]", "(?i)[c-f]", "(?i)[^K]", "(?i)ſ", "(?i)σ"])
def test_ascii_classes_and_case_are_those_of_re(pattern: str) -> None:
    flags = re.ASCII if "\\" in pattern else 0
    every = "".join(map(chr, range(0x3000)))
    wanted = {ord(character) for character in re.findall(pattern, every, flags)}
    node = parse(pattern, ascii_classes=True)
    assert isinstance(node, CharSet)
    assert {p for first, last in node.ranges for p in range(first, min(last, 0x2FFF) + 1)} == wanted


def test_case_folds_in_properties_before_negation_but_not_in_ascii_classes() -> None:
    lower_or_upper = parse(r"(?i)\p{Lu}")
    assert lower_or_upper == parse(r"(?i)[\p{Lu}]")
    assert isinstance(lower_or_upper, CharSet)
    assert full_match(lower_or_upper, "a")
    assert full_match(lower_or_upper, "A")
    assert not full_match(parse(r"(?i)\P{Lu}"), "a")
    assert not full_match(parse(r"(?i)[^\p{Lu}]"), "a")
    assert full_match(parse(r"\p{^Lu}"), "a")
    assert parse(r"(?i)\w", ascii_classes=True) == parse(r"\w", ascii_classes=True)


SHORT = short_texts(3)


@settings(max_examples=400)
@given(regex_patterns(), st.sampled_from(["", "", "m", "s", "i"]))
@example("(?:^|a)*b$|(?:a|$)+", "")
@example("(?:^|-)*a(?:$)", "m")
def test_random_patterns_mean_what_re_says(pattern: str, flags: str) -> None:
    node, oracle = parse(pattern, flags, ascii_classes=True), as_python(pattern, flags)
    for text in SHORT:
        if not text and r"\B" in pattern:
            continue  # Python before 3.14 has neither \b nor \B in an empty text
        assert full_match(node, text) == bool(oracle.fullmatch(text)), text
        assert search(node, text) == bool(oracle.search(text)), text


PIECES = re.split(
    " ",
    r"a b - 1 ] } { [ [^ ( (?: (?= (?! (?P<n> (?i: (?x: (?s-i: ) ) ] | * + ? {1} {1,2} {,2} {2, *? ^ $ . \ \d \W \s"
    r" \b \B \A \Z \n \x41 \0 \01 \101 \1 \] \- \^ \u0061 (?#x) # , : && -- \. \/",
)


def test_random_rubbish_is_read_as_re_reads_it_or_refused_inside_the_pattern() -> None:
    """What `re` accepts is never a syntax error here and means the same; every error points into the pattern."""
    source = random.Random(5)
    read = refused = 0
    texts = short_texts(2, "ab-1]{")
    for _ in range(6000):
        pattern = "".join(source.choice([*PIECES, " ", "\n"]) for _ in range(source.randint(1, 7)))
        oracle, ours = compile_with_re(pattern), parse_or_error(pattern)
        if isinstance(ours, RegexSyntaxError):
            assert isinstance(ours, RegexUnsupported) or oracle is None, pattern
            assert 0 <= ours.position <= len(pattern)
            refused += 1
        elif oracle is not None:
            read += 1
            for text in texts:
                if text or r"\B" not in pattern:
                    assert full_match(ours, text) == bool(oracle.fullmatch(text)), (pattern, text)
                    assert search(ours, text) == bool(oracle.search(text)), (pattern, text)
    assert read > 1000
    assert refused > 1000


def parse_or_error(pattern: str) -> Node | RegexSyntaxError:
    try:
        return parse(pattern, ascii_classes=True)
    except RegexSyntaxError as error:
        return error


def compile_with_re(pattern: str) -> re.Pattern[str] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(pattern, re.ASCII)
        except (re.error, FutureWarning, DeprecationWarning):
            return None


@pytest.mark.parametrize(
    ("pattern", "position", "message"),
    [
        ("(a", 0, "not closed"),
        ("a(b(c)", 1, "not closed"),
        ("(?#a", 0, "comment is not closed"),
        ("a)b", 1, r"unbalanced \)"),
        ("[a", 0, "class is not closed"),
        ("a[]", 1, r"\] directly after \[ is literal"),
        ("a[^]", 1, r"\] directly after \[ is literal"),
        ("a[b-a]", 2, "bad range b-a"),
        (r"[\d-z]", 1, r"bad range \\d-z"),
        (r"[a-\w]", 1, r"bad range a-\\w"),
        ("*a", 0, "nothing to repeat"),
        ("(+)", 1, "nothing to repeat"),
        ("a|?", 2, "nothing to repeat"),
        ("{2}", 0, "nothing to repeat"),
        ("^*", 1, "nothing to repeat"),
        ("(?i)*", 4, "nothing to repeat"),
        ("a**", 2, "multiple repeat"),
        ("a{2}{3}", 4, "multiple repeat"),
        ("a{3,2}", 1, "low <= high"),
        ("a\\", 1, "lone backslash"),
        (r"a\q", 1, r"unknown escape \\q"),
        (r"[\B]", 1, r"unknown escape \\B"),
        (r"\x4", 0, "incomplete escape"),
        (r"\u12", 0, "incomplete escape"),
        (r"\u{}", 0, "incomplete escape"),
        (r"\u{110000}", 0, "at most 10FFFF"),
        (r"\777", 0, "octal"),
        (r"\c1", 0, "needs a letter"),
        (r"a\p{Foo}", 1, "unknown Unicode property 'Foo'"),
        (r"\p1", 0, "needs a Unicode property"),
        ("[[:foo:]]", 1, "unknown POSIX class 'foo'"),
        ("a(?P<1>b)", 1, "group name"),
        ("(?<>a)", 0, "group name"),
        ("(?", 0, "unknown kind of group"),
        ("(?)", 0, "unknown kind of group"),
        ("(?-)", 0, "unknown kind of group"),
        ("(?i-)", 0, "unknown kind of group"),
        ("(?~a)", 0, "unknown kind of group"),
    ],
)
def test_syntax_errors_name_the_position(pattern: str, position: int, message: str) -> None:
    with pytest.raises(RegexSyntaxError, match=message) as caught:
        parse(pattern)
    assert type(caught.value) is RegexSyntaxError
    assert caught.value.position == position
    assert caught.value.pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "position", "message"),
    [
        (r"(a)\1", 3, "back-reference"),
        (r"(?P<n>a)(?P=n)", 8, "back-reference"),
        ("a*+a", 2, "a possessive quantifier is not supported; it changes the language here"),
        ("a{1,2}+[a-c]", 6, "possessive"),
        ("(a*+b?)c", 3, "possessive"),
        ("(ab|a)++c", 7, "possessive"),
        ("(?>a|ab)c", 0, "an atomic group"),
        ("x(?>a+)*b", 1, "an atomic group"),
        ("((?<=a)b)", 1, "look-behind inside a group"),
        (r"a(?<=^)b", 1, "look-behind inside a group, or with an assertion"),
        (r"(?=ab)a(?<=a)b", 7, "look-behind beside other assertions"),
        ("(?m)(?<=a)b^", 4, "look-behind beside other assertions"),
        (r"a\b", 1, "use ascii_classes=True"),
        (r"\B", 0, "use ascii_classes=True"),
        ("[a&&b]", 2, "&&"),
        ("[a-z--b]", 4, "--"),
        ("[+--]", 2, "--"),
        ("[a~~b]", 2, "~~"),
        ("(?a)b", 2, "ascii_classes=True"),
        ("(?iU)b", 3, "inline flag U"),
        ("(?-u:b)", 3, "flag u"),
    ],
)
def test_refusals_name_construct_and_position(pattern: str, position: int, message: str) -> None:
    with pytest.raises(RegexUnsupported, match=message) as caught:
        parse(pattern)
    assert caught.value.position == position


def test_word_boundaries_need_ascii_classes() -> None:
    wanted = Concat((Assertion("word_boundary"), A, Assertion("not_word_boundary")))
    assert parse(r"\ba\B", ascii_classes=True) == wanted
    with pytest.raises(RegexUnsupported, match="word boundary"):
        parse(r"\b{start}", ascii_classes=True)


def test_limits() -> None:
    deepest = "(" * MAX_NESTING + "a" + ")*" * MAX_NESTING
    assert parse(deepest) == Repeat(parse(deepest[1:-2]), 0, None)
    for pattern in ("(" + deepest + ")", "(" * 100_000, "(?:" * 100_000):
        with pytest.raises(LimitExceeded, match=f"deeper than {MAX_NESTING}"):
            parse(pattern)
    with pytest.raises(LimitExceeded, match="characters"):
        parse("a" * (MAX_PATTERN + 1))
    assert parse(f"a{{{MAX_COUNT}}}") == Repeat(A, MAX_COUNT, MAX_COUNT)
    for count in (str(MAX_COUNT + 1), "9" * 5000):
        with pytest.raises(LimitExceeded, match="position 2"):
            parse(f"a{{{count}}}")
    assert parse(f"a{{{'0' * 5000}2}}") == Repeat(A, 2, 2)


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        ("[a](?i)[a]", Concat((A, chars("A", "a")))),
        ("(a)(?i)(a)(?-i)(a)", Concat((A, chars("A", "a"), A))),
        ("(.)(?s:(.))", Concat((parse("."), parse("(?s).")))),
        ("(a b)(?x)(a b)", Concat((A, chars(" "), B, A, B))),
        ("(?x:(a#)\n))(a#)", Concat((A, A, chars("#")))),
        ("(a)b|(a)c", Alternation((Concat((A, B)), Concat((A, C))))),
        ("((a)b)((a)c)((a)b)", Concat((A, B, A, C, A, B))),
        ("[]a][]b][]a]", Concat((chars("]", "a"), chars("]", "b"), chars("]", "a")))),
        (r"[\]a][\]b]", Concat((chars("]", "a"), chars("]", "b")))),
        ("(?:^a)*(?:^a)*", Concat((Repeat(Concat((Assertion("text_start"), A)), 0, None),) * 2)),
    ],
)
def test_what_looks_alike_is_read_as_it_stands(pattern: str, tree: Node) -> None:
    assert parse(pattern) == tree


@given(regex_patterns(), regex_patterns(), st.sampled_from(["", "i", "s", "m"]))
def test_repeated_text_means_what_it_means_alone(one: str, other: str, flags: str) -> None:
    """Each occurrence against a parser that has not seen it before."""
    fresh = {text: parse(text, flags, ascii_classes=True) for text in (one, other)}
    node = parse(f"(?:{one})|((?:{other})|(?:{one}))|(?:{other})|({one})", flags, ascii_classes=True)
    assert node == alternation([fresh[one], fresh[other], fresh[one], fresh[other], fresh[one]])


def test_text_read_again_nests_as_deep_as_it_does() -> None:
    half = "(" * (MAX_NESTING // 2) + "ab" + ")*" * (MAX_NESTING // 2)
    for levels in (MAX_NESTING // 2, MAX_NESTING // 2 + 1):
        pattern = half + "(" * levels + half + ")" * levels
        if levels <= MAX_NESTING // 2:
            assert parse(pattern) == Concat((parse(half), parse(half)))
        else:
            with pytest.raises(LimitExceeded, match=f"deeper than {MAX_NESTING}"):
                parse(pattern)

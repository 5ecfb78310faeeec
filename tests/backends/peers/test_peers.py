"""The peers: translations of patterns against Python's `re`, their known faults, errors, end tokens, set-up."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packages import backend
from tests.strategies import as_python, regex_patterns, short_texts
from tests.walks import accepts
from tests.walks import mask_of as allowed
from tokdfa.backends.peers.common import PRIMER
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Constraint, Grammar, Regex
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    MissingDependency,
    OptionError,
    RegexSyntaxError,
    UnsupportedConstraint,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher

PEERS = ("llguidance", "outlines_core", "glrmask")
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [b"", b"ab", b""], [256, 258], name="bytes")


def start(peer: str, constraint: Constraint, vocab: Vocabulary = BYTES, **options: Any) -> Matcher:
    return create_backend(peer, vocab, **options).compile(constraint).start()


# Translation.


@pytest.mark.parametrize(
    ("peer", "examples", "flags"),
    [
        backend("llguidance", 250, ["", "s", "i"]),
        backend("outlines_core", 250, ["", "s", "i"]),
        backend("glrmask", 80, ["", "s", "i"]),
        backend("xgrammar", 100, [""]),
    ],
)
def test_exact_patterns_are_what_re_says(peer: str, examples: int, flags: list[str]) -> None:
    texts = short_texts(3)
    made = create_backend(peer, BYTES)

    @settings(deadline=None, derandomize=True, max_examples=examples)
    @given(
        regex_patterns(anchors=False, look_ahead=False, boundaries=False),
        st.booleans(),
        st.sampled_from(flags),
    )
    def check(pattern: str, search: bool, flags: str) -> None:
        regex = Regex(pattern, search=search, flags=flags, ascii_classes=True)
        python = as_python(pattern, flags)
        matching = [text for text in texts if (python.search if search else python.fullmatch)(text)]
        assert made.supports(regex)
        try:
            compiled = made.compile(regex)
        except EmptyLanguageError:
            assert not matching
            return
        assert [text for text in texts if accepts(compiled.start(), text)] == matching

    check()


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "^a",
            "a$",
            "^a$",
            "^a|b$",
            "(^|-)a($|b)",
            "^(a|-b)$|b",
            "(^a|b$)",
            "^(^a)",
            "(^)?a",
            "a($)?",
            "^",
            "$",
            "^$",
        ),
        *("(^|a|^b)-", "^a*b*$", "^(a|b$)", r"\Aa\Z", "((^a)|-)b", "(a$|b)"),
    ],
)
def test_anchors_at_the_edges(pattern: str, search: bool) -> None:
    python = as_python(pattern)
    texts = short_texts(3)
    made = create_backend("llguidance", BYTES)
    assert made.supports(Regex(pattern, search=search)), pattern
    compiled = made.compile(Regex(pattern, search=search))
    matching = [text for text in texts if (python.search if search else python.fullmatch)(text)]
    assert [text for text in texts if accepts(compiled.start(), text)] == matching


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        (Regex("a?^b"), r"an anchor inside 'a\?\^b', away from its edges"),
        (Regex("(^a)*b"), "an anchor inside"),
        (Regex("a$b?"), "an anchor inside"),
        (Regex("$a"), "an anchor inside"),
        (Regex("^a", flags="m"), r"a line anchor \(\^ with flag m\)"),
        (Regex("a$", flags="m"), r"a line anchor \(\$ with flag m\)"),
        (Regex(r"a\b", ascii_classes=True), r"a word boundary \(\\b\)"),
        (Regex(r"a\B", ascii_classes=True), r"a word boundary \(\\B\)"),
        (Regex("a(?!bc)"), "a look-ahead"),
        (Regex("(^)?" * 12 + "a"), "more than 1000 cases"),
        (Choice([b"\xff", "a"]), r"the choice b'\\xff' is no UTF-8"),
    ],
)
def test_what_peers_cannot_express_is_refused(regex: Constraint, reason: str) -> None:
    for peer in PEERS:
        made = create_backend(peer, BYTES)
        answer = made.supports(regex)
        assert not answer
        assert answer.reason.startswith(f"{peer}: ")
        with pytest.raises(UnsupportedConstraint, match=reason):
            made.compile(regex)


def test_faults_of_the_constraint_are_reported_as_such() -> None:
    for peer in PEERS:
        made = create_backend(peer, BYTES)
        for wrong, error in [
            (Regex("(a"), RegexSyntaxError),
            (Regex(r"(a)\1"), RegexSyntaxError),
            (Regex(r"[^\s\S]"), EmptyLanguageError),
            (Regex(r"[\ud800-\udfff]+"), EmptyLanguageError),
            (Regex(r"a[^\s\S]|(b[^\s\S])+", search=True), EmptyLanguageError),
            (Choice(["a", "\ud800"]), OptionError),
        ]:
            assert made.supports(wrong), "not a matter of the backend"
            with pytest.raises(error):
                made.compile(wrong)


def test_choices_are_taken_whole() -> None:
    for peer in PEERS:
        compiled = create_backend(peer, BYTES).compile(Choice(["a", "é/", "ab", ""]))
        for text in ("", "a", "ab", "é/", "é", "b", "aba"):
            assert accepts(compiled.start(), text) == (text in ("", "a", "ab", "é/"))


# The peers' own dialect.


@pytest.mark.parametrize("peer", PEERS)
def test_unicode_versions_differ_in_the_own_dialect_only(peer: str) -> None:
    """U+11DE0 is a digit since Unicode 17; the peers' tables are of version 16."""
    new_digit = "\U00011de0"
    assert accepts(start(peer, Regex(r"\d")), new_digit)
    assert not accepts(start(peer, Regex(r"\d"), dialect="own"), new_digit)
    for dialect in ("tokdfa", "own"):
        assert accepts(start(peer, Regex(r"\d"), dialect=dialect), "٣")


def test_patterns_that_a_peer_reads_otherwise() -> None:
    """``{,2}`` is no quantifier in Rust, and glrmask knows no lazy ones: refused in the own dialect, exact in ours."""
    for peer in PEERS:
        assert accepts(start(peer, Regex("a{,2}")), "aa")
        with pytest.raises(UnsupportedConstraint):
            start(peer, Regex("a{,2}"), dialect="own")
    assert accepts(start("glrmask", Regex("a*?b")), "aab")
    with pytest.raises(UnsupportedConstraint, match="reluctant"):
        start("glrmask", Regex("a*?b"), dialect="own")


# Faults of the peers, which the exact form works around.


@pytest.mark.parametrize(
    ("pattern", "lost", "kept", "form"),
    [
        ("a|ab", "ab", "a", "anchored"),
        ("a(bc)?", "abc", "a", "anchored"),
        ("(ab)*", "ab", "", "primed"),
        ("é*", "é", "", "primed"),
        ("a*?", "a", "", "plain"),  # printed greedy, it loses nothing
        ("[a-c]{2,5}-?", None, "ab", "plain"),
    ],
)
def test_outlines_core_loses_texts_only_in_its_own_dialect(
    pattern: str, lost: str | None, kept: str, form: str
) -> None:
    made = create_backend("outlines_core", BYTES)
    exact, plain = made.compile(Regex(pattern)), start("outlines_core", Regex(pattern), dialect="own")
    assert accepts(exact.start(), kept)
    assert accepts(plain.fork(), kept)
    if lost is not None:
        assert accepts(exact.start(), lost)
        assert not accepts(plain.fork(), lost)
    fitted = made.fitted_pattern(Regex(pattern))  # type: ignore[attr-defined]
    anchored = fitted.pattern.endswith(r"\z")
    assert form == ("primed" if fitted.primed else "anchored" if anchored else "plain")


def test_outlines_core_anchors_what_is_too_large_to_compare() -> None:
    made = create_backend("outlines_core", Vocabulary([b"a", b"b", b""], end_tokens=[2]))
    huge = Regex("(a|b)*a(a|b){17}")
    with pytest.raises(LimitExceeded):
        compile_dfa(huge)
    assert made.fitted_pattern(huge).primed  # type: ignore[attr-defined]


def test_glrmask_confuses_start_and_end_only_in_its_own_dialect() -> None:
    for pattern, wrong in [("c*a", "ac"), ("[ab]*a", "ab"), ("(?:a*b)*a", "ab")]:
        assert accepts(start("glrmask", Regex(pattern), dialect="own"), wrong)
        assert not accepts(start("glrmask", Regex(pattern)), wrong)
    made = create_backend("glrmask", BYTES)
    assert made.fitted_pattern(Regex("c*a")).primed  # type: ignore[attr-defined]
    assert not made.fitted_pattern(Regex("ca+b")).primed  # type: ignore[attr-defined]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("size", [None, 288, 289])
def test_the_primer_leaves_no_trace(peer: str, size: int | None) -> None:
    """Not even where it is a text of its own, whatever the place of the last bit."""
    vocab = Vocabulary([bytes([byte]) for byte in range(256)] + [b"", PRIMER.encode()], [256], size=size)
    assert vocab.size == (size or 258)
    matcher = start(peer, Regex("(?s:.)*"), vocab)
    starts = [byte for byte in range(256) if byte < 0x80 or 0xC2 <= byte <= 0xF4]
    assert allowed(matcher) == [*starts, 256, 257]
    matcher.advance(257)
    assert allowed(matcher) == [*starts, 256, 257]
    matcher.rollback(1)
    assert allowed(matcher.fork()) == [*starts, 256, 257]


# Errors of the peers.


def test_llguidance_limits() -> None:
    regex = Regex("[a-z]*(foo|bar){3}")
    with pytest.raises(LimitExceeded, match=r"llguidance gave up on .*too many states"):
        allowed(start("llguidance", regex, max_states=2))
    matcher = start("llguidance", regex, max_states=20)
    assert len(allowed(matcher)) == 27
    with pytest.raises(LimitExceeded, match="too many states"):
        accepts(matcher, "xfoobarfoo")
    with pytest.raises(LimitExceeded, match="too many expressions"):
        allowed(start("llguidance", Regex("(a|b|ab){1,500}(x|yy|z){3}"), step_fuel=10))


@pytest.mark.parametrize("peer", ["llguidance", "glrmask"])
def test_bad_grammars(peer: str) -> None:
    made = create_backend(peer, BYTES)
    for bad in (Grammar("start: nowhere"), Grammar('a: "a"', start="b")):
        with pytest.raises(UnsupportedConstraint, match=f"{peer} cannot compile"):
            made.compile(bad)


def test_outlines_core_cannot_spell() -> None:
    vocab = Vocabulary([b"a", b""], end_tokens=[1], name="only a")
    with pytest.raises(VocabularyCannotSpell, match="cannot spell"):
        start("outlines_core", Regex("ab"), vocab)


# Matchers.


def test_llguidance_comes_back_from_a_dead_end() -> None:
    vocab = Vocabulary([b"a", b"ab", b"c", b""], end_tokens=[3])
    matcher = start("llguidance", Regex("abd|ac"), vocab)
    matcher.advance(1)
    assert allowed(matcher) == []
    fork = matcher.fork()
    matcher.rollback(1)
    assert allowed(matcher) == [0, 1]
    assert matcher.counters == {"tokens_replayed": 0}
    assert allowed(fork) == []
    fork.rollback(1)
    fork.advance(0)
    assert allowed(fork) == [2]


# Grammars.


@pytest.mark.parametrize("peer", [backend("llguidance"), backend("glrmask"), backend("xgrammar")])
def test_grammars_with_another_start(peer: str) -> None:
    made = create_backend(peer, BYTES)
    grammar = Grammar('list: "[" (list ("," list)*)? "]"\n', start="list")
    for text, inside in [("[]", True), ("[[],[[]]]", True), ("[[],]", False), ("", False)]:
        assert accepts(made.compile(grammar).start(), text) == inside
    with pytest.raises(UnsupportedConstraint, match=f"{peer} cannot compile"):
        made.compile(Grammar("start: ("))


# Set-up.

#: Every peer, the module that it needs, and what it keeps for a vocabulary.
KEPT = [
    backend("llguidance", "llguidance", "tokenizer"),
    backend("outlines_core", "outlines_core", "vocabulary"),
    backend("glrmask", "glrmask", "vocabulary"),
    backend("xgrammar", "xgrammar", "compiler"),
    backend("lm_format_enforcer", "lmformatenforcer", "tokenizer"),
    backend("maskforge", "maskforge", "compiler"),
]


@pytest.mark.parametrize(("peer", "module", "kept"), KEPT)
def test_a_missing_package_is_named(peer: str, module: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=r"pip install 'tokdfa\[(peers|xgrammar)\]'"):
        create_backend(peer, BYTES)


@pytest.mark.parametrize(("peer", "module", "kept"), KEPT)
def test_objects_of_a_vocabulary_are_made_once_and_let_go(peer: str, module: str, kept: str) -> None:
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    one, other = create_backend(peer, vocab), create_backend(peer, vocab)
    assert getattr(one, kept) is getattr(other, kept)
    assert one.setup_seconds == other.setup_seconds > 0  # type: ignore[attr-defined]
    elsewhere = create_backend(peer, Vocabulary([b"a", b""], end_tokens=[1]))
    assert getattr(elsewhere, kept) is not getattr(one, kept)
    gone = weakref.ref(vocab)
    del vocab, one, other
    gc.collect()
    assert gone() is None


def test_a_vocabulary_that_a_peer_cannot_take() -> None:
    """A token of more bytes than its trie is deep makes llguidance panic."""
    long = Vocabulary([b"a" * 1100, b""], [1], name="long")
    with pytest.raises(VocabularyError, match=r"llguidance cannot take Vocabulary\(long"):
        create_backend("llguidance", long)


@pytest.mark.parametrize("size", [95, 96, 97, 128])
def test_outlines_core_has_masks_of_vocabularies_that_fill_their_words(size: int) -> None:
    """Its primer is a token more, which may need a word more."""
    vocab = Vocabulary([*(bytes([33 + place]) for place in range(size - 1)), b""], [size - 1])
    matcher, plain = (
        create_backend(name, vocab).compile(Regex("[a-z]{2}")).start() for name in ("outlines_core", "token_index")
    )
    for token in (ord("a") - 33, ord("b") - 33):
        assert np.array_equal(allowed(matcher), allowed(plain))
        matcher.advance(token)
        plain.advance(token)
    assert np.array_equal(allowed(matcher), allowed(plain))


def test_outlines_core_lists_the_tokens_of_its_masks() -> None:
    vocab = Vocabulary([*(bytes([byte]) for byte in range(90)), b""], [90])
    for pattern in ("(0|1)*", "[0-9]{2}(:[0-9]{2})?"):
        matchers = [
            create_backend("outlines_core", vocab, masks=masks).compile(Regex(pattern)).start()
            for masks in ("reference", "list")
        ]
        for token in b"01":
            one, other = (allowed(matcher) for matcher in matchers)
            assert np.array_equal(one, other)
            for matcher in matchers:
                matcher.advance(token)

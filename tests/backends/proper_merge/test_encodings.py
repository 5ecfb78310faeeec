"""Every strategy of proper sequences against the reference libraries: the encodings of a constraint's texts, no more.

All ways are asked of the same tokenizers, small random ones and real ones, and of the same constraints, finite and
infinite, at the start and after a context.
"""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.backends.proper_merge.token_languages import TEXTS, finite_languages, regexes
from tests.backends.proper_oracle import END, accepted, allowed, check_sequences, check_texts, piece_texts, words
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import BYTE, HARD, MAKERS, merge_list, ranked_pieces, real, scored_pieces
from tokdfa.automata.algebra import words as words_of
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Constraint, Regex
from tokdfa.errors import UnsupportedConstraint, VocabularyCannotSpell, VocabularyError
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint

Way = tuple[str, dict[str, Any]]
WAYS: list[Way] = [
    ("direct_merge", {}),
    ("direct_merge", {"minimal": False}),
    ("cartesian_merge", {}),
    ("cartesian_merge", {"relevance": "pairs"}),
    ("cartesian_merge", {"vegas": "parts"}),
]
BOTH = WAYS[0], WAYS[2]
REAL = ("mistral-v1", "llama3", "tekken", pytest.param("smollm2", marks=needs_smollm2))
every_way = pytest.mark.parametrize("way", WAYS, ids=str)
both_strategies = pytest.mark.parametrize("way", BOTH, ids=["direct", "cartesian"])


def compiled_by(way: Way, tokenizer: Tokenizer, constraint: Constraint) -> CompiledConstraint:
    return create_backend(way[0], tokenizer.vocabulary, **way[1]).compile(constraint)


# Random tokenizers.

#: tiktoken: a pre-tokenizer with borders.
with_borders: st.SearchStrategy[Any] = piece_texts("a b1", 4).map(lambda texts: lambda path: ranked_pieces(path, texts))


def _with_fallback(path: Path, known: str, pieces: list[str]) -> str:
    """SentencePiece with byte fallback: é is a token in some of the models, the euro sign in none."""
    bytes_ = {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    ranked = {text: -1.0 - place for place, text in enumerate(text for text in pieces if set(text) <= set(known))}
    return scored_pieces(path, ranked | dict.fromkeys(["\u2581", *known], -9.0) | bytes_, dict.fromkeys(bytes_, BYTE))


with_fallback: st.SearchStrategy[Any] = st.builds(
    lambda known, pieces: lambda path: _with_fallback(path, known, pieces),
    st.sampled_from(["a", "aé"]),
    st.lists(st.text("aé", min_size=2, max_size=4), max_size=6, unique=True),
)
KINDS = {
    **{kind: (makers, finite_languages()) for kind, makers in MAKERS.items()},
    "borders": (with_borders, words("a b1", 8)),
    "byte fallback": (with_fallback, words("aé\u20ac", 5)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_finite_languages(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Several splits of one token, ranks that do not rise along derivations, whole pieces, ties of scores."""

    @settings(max_examples=30)
    @given(*KINDS[kind])
    def check(make: Any, texts: list[str]) -> None:
        tokenizer = load_tokenizer(make(tmp_path_factory.mktemp("finite") / "model"))
        for way in WAYS:
            check_texts(compiled_by(way, tokenizer, Choice(texts)), tokenizer, texts)

    check()


def check_language(make: Any, pattern: str, path: Path, longest: int = 6) -> None:
    tokenizer = load_tokenizer(make(path))
    texts = [text for text in TEXTS if len(text) <= longest and re.fullmatch(pattern, text)]
    expected = {tuple(tokenizer.encode(text)) for text in texts}
    for way in WAYS:
        assert accepted(compiled_by(way, tokenizer, Regex(pattern)), longest) == expected, way


@pytest.mark.parametrize("kind", MAKERS)
def test_infinite_languages(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=30)
    @given(KINDS[kind][0], regexes())
    def check(make: Any, pattern: str) -> None:
        check_language(make, pattern, tmp_path_factory.mktemp("infinite") / "model")

    check()


@pytest.mark.parametrize("pattern", HARD)
def test_irregular_tokens_ties_and_whole_pieces(pattern: str, tmp_path: Path) -> None:
    for number, make in enumerate(HARD[pattern]):
        check_language(make, pattern, tmp_path / str(number), 7)


def with_pre_tokenizer(path: Path) -> str:
    """Letters a, 1 and the space only, no byte fallback, and GPT-2's pieces."""
    name = merge_list(path, "a1\u0120", [("\u0120", "a")])
    content = json.loads(path.read_text())
    content["pre_tokenizer"]["use_regex"] = True
    path.write_text(json.dumps(content))
    return name


@both_strategies
@pytest.mark.parametrize("whole", [False, True])
def test_a_text_of_which_no_letter_is_a_token(way: Way, whole: bool, tmp_path: Path) -> None:
    """``aba`` is made of a whole piece only, as ``ba`` merges first."""
    merges = [("b", "a"), ("a", "b"), ("ab", "a")]
    name = merge_list(tmp_path / "tokenizer.json", "ab", merges, ignore_merges=whole)
    with pytest.raises(VocabularyCannotSpell):
        compiled_by(way, load_tokenizer(name), Choice(["c"]))


@both_strategies
def test_letters_that_are_no_tokens(way: Way, tmp_path: Path) -> None:
    """Behind a border a text could stand that no tokens spell: that is no way on."""
    tokenizer = load_tokenizer(with_pre_tokenizer(tmp_path / "tokenizer.json"))
    for texts, spellable in (
        (["a c", "1a"], ["1a"]),
        (["aa c", "1"], ["1"]),
        (["a1c", "1", " a a"], ["1", " a a"]),
    ):
        check_texts(compiled_by(way, tokenizer, Choice(texts)), tokenizer, spellable)
    with pytest.raises(VocabularyCannotSpell):
        compiled_by(way, tokenizer, Choice(["a c"]))


# Real tokenizers.

#: Runs of spaces and of letters, rules, digits, contractions, line ends, characters that need byte fallback.
PATTERNS = [
    r" {0,20}x?",
    r"(-|=){0,6}",
    r"[ab ]{0,4}",
    r"(yes|no|maybe)( |\n){0,3}(foo|bar)",
    r"é?[αβ]{1,3}ẟ?",
    r"[0-2]{0,5}",
    r"( |\t){0,4}[1a]?",
    r"(é|ẟ|🎉|a| |\u200d){0,2}",
    r"('s|S'|'LL| 't){0,3}[a1]",
]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(name: str, pattern: str) -> None:
    tokenizer = load_tokenizer(name)
    texts = [word.decode() for word in words_of(compile_dfa(Regex(pattern)), 2000)]
    assert 10 < len(texts) < 500
    for way in BOTH:
        found = accepted(compiled_by(way, tokenizer, Regex(pattern)))
        assert found == {tuple(tokenizer.encode(text)) for text in texts}


ALPHABETS = {"letters": "ab", "spaces": " a\n", "digits": "0123.", "mixed": "a1 '\"é🦜\n-", "contractions": "'stdn re"}
LISTS = [
    ["a" * k for k in range(1, 24)] + [" " * k for k in range(1, 24)] + ["-" * k for k in range(1, 24)],
    ["It's", "don't", "Don't stop", " we'll", "12345", "1,000.00", "naïve café", "日本語", "🦜🦜", "\r\n\r\n"],
    [str(number) for number in range(0, 3000, 7)],
]


@pytest.mark.parametrize("name", REAL)
def test_lists_of_texts(name: str) -> None:
    tokenizer, rng = load_tokenizer(name), random.Random(name)
    for number in range(20):
        letters = ALPHABETS[sorted(ALPHABETS)[number % len(ALPHABETS)]]
        texts = sorted({"".join(rng.choices(letters, k=rng.randrange(9))) for _ in range(12)})
        check_texts(compiled_by(rng.choice(WAYS), tokenizer, Choice(texts)), tokenizer, texts)
    for texts in LISTS:
        check_texts(compiled_by(rng.choice(WAYS), tokenizer, Choice(texts)), tokenizer, texts)


@both_strategies
def test_whole_pieces_of_llama3(way: Way) -> None:
    """Improper tokens are proper as whole pieces, alone and between borders."""
    tokenizer = load_tokenizer("llama3")
    whole = load_canonicity(tokenizer).whole_pieces.tokens.tolist()
    texts = [tokenizer.vocabulary.token_bytes(token).decode(errors="replace") for token in whole]
    texts = [text for text in texts if "\ufffd" not in text]
    assert len(texts) > 300
    check_texts(compiled_by(way, tokenizer, Choice(texts)), tokenizer, texts)
    longer = {form for text in texts[::7] for form in (f"{text} {text}", f"{text}s", f"x{text}\n{text}", f"{text},")}
    check_texts(compiled_by(way, tokenizer, Choice(longer)), tokenizer, longer)


WALKS: dict[str, Constraint] = {
    "date": Regex("[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]"),
    "string": Regex(r'"([^"\\\x00-\x1f]|\\["\\n])*"'),
    "names": Regex("[A-ZÄÖÜ][a-zäöüß]+( [A-ZÄÖÜ][a-zäöüß]+){0,3}"),
    "json": Regex(r'\{"name": "[^"\\\x00-\x1f]{1,20}", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, "[a-z]+")*)?\]\}'),
    "lines": Regex("((- )?[a-z]+: ([0-9]+|[^\n]+)\n)+"),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("label", WALKS)
def test_random_walks_spell_encodings(name: str, label: str) -> None:
    """Whatever is generated is what the tokenizer makes of its text, states being settled when needed or in advance."""
    lazy, tokenizer, rng = label != "date", load_tokenizer(name), random.Random(f"{name} {label}")
    compiled = compiled_by(("cartesian_merge", {"lazy": lazy}), tokenizer, WALKS[label])
    for _ in range(4):
        matcher, tokens = compiled.start(), list[int]()
        while len(tokens) < 60:
            found = allowed(matcher, tokenizer.vocabulary)
            assert found, f"dead end after {tokenizer.spell(tokens)!r}"
            if END in found and (rng.random() < 0.3 or found == {END}):
                assert tokenizer.encode(tokenizer.spell(tokens).decode()) == tokens
                break
            tokens.append(rng.choice(sorted(found - {END})))
            matcher.advance(tokens[-1])
            encoded = tokenizer.encode(tokenizer.spell(tokens).decode(errors="ignore"))
            settled = max(0, len(tokens) - 12)  # the last tokens may still depend on what follows
            assert encoded[:settled] == tokens[: min(len(encoded), settled)]


# After a context.


def check_context(way: Way, tokenizer: Tokenizer, context: list[int], texts: Sequence[str]) -> int:
    """What follows a context in the encoding of the whole, wherever the whole begins with the context; how many texts
    can.
    """
    whole = [tokenizer.encode(tokenizer.decode(context) + text) for text in texts]
    following = [tokens[len(context) :] for tokens in whole if tokens[: len(context)] == context]
    compiled = compiled_by(way, tokenizer, Choice(texts))
    if following:
        check_sequences(compiled, tokenizer.vocabulary, following, context)
    else:
        with pytest.raises(UnsupportedConstraint, match="context"):
            compiled.start(context)
    return len(following)


CONTEXTS = [
    "",
    "The answer is",
    "The answer is ",
    "boolean: t",
    "x = 12",
    "don'",
    "a  ",
    "naï",
    "日",
    "\n",
    '{"a": "',
    "It",
]
CONTEXTS += ["it'", " \n ", "x..", "A\u200d", "caf", "  "]
AFTER = ["rue", " true", "3", "34", "345", "t", "s", "'s", " x", "  x", "x", "本", "\n", '"', "ï", "ve", "not", "."]
AFTER += ["", " ", "4567", "\n\n x", "...", "é", "\u0301"]


@pytest.mark.parametrize("name", REAL)
@every_way
def test_contexts_of_real_tokenizers(name: str, way: Way) -> None:
    tokenizer = load_tokenizer(name)
    counts = [check_context(way, tokenizer, tokenizer.encode(context), AFTER) for context in CONTEXTS]
    assert all(counts)  # the empty text can follow
    assert sum(counts) < len(counts) * len(AFTER) - 10


@pytest.mark.parametrize("kind", MAKERS)
def test_contexts_of_random_tokenizers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=20)
    @given(
        KINDS[kind][0],
        st.text("ab", max_size=7),
        st.lists(st.text("ab", max_size=5), min_size=1, max_size=6, unique=True),
        st.data(),
    )
    @example(lambda path: ranked_pieces(path, ["aa"]), "a", ["a"], None)
    def check(make: Any, before: str, texts: list[str], data: Any) -> None:
        tokenizer = load_tokenizer(make(tmp_path_factory.mktemp("context") / "model"))
        whole = tokenizer.encode(before + texts[-1])
        cut = len(whole) // 2 if data is None else data.draw(st.integers(0, len(whole)))
        for way in WAYS:
            check_context(way, tokenizer, tokenizer.encode(before), texts)
            check_context(way, tokenizer, whole[:cut], texts)

    check()


@both_strategies
@pytest.mark.parametrize("name", REAL)
def test_any_border_inside_a_text(name: str, way: Way) -> None:
    """The context is the beginning of an encoding, and the rest follows, be it the rest of a character."""
    tokenizer = load_tokenizer(name)
    tokens = tokenizer.encode("It's   1234 things:\n\n    don't   \t--- naïve 🎉")
    for cut in range(len(tokens) + 1):
        matcher = compiled_by(way, tokenizer, Choice([tokenizer.vocabulary.spell(tokens[cut:]), b"xyz"])).start(
            tokens[:cut]
        )
        for token in tokens[cut:]:
            assert matcher.allows(token)
            matcher.advance(token)
        assert matcher.can_end()


@both_strategies
def test_a_whole_piece_that_the_context_has_begun(way: Way) -> None:
    """Llama 3: with the rest of an improper token, the piece would have become that token at once."""
    tokenizer, tried = load_tokenizer("llama3"), 0
    for encoding, token in list(real("llama3").whole_piece_of.items())[::5]:
        before, rest = list(encoding[:1]), tokenizer.vocabulary.spell(encoding[1:])
        if len(tokenizer.vocabulary.spell(before)) < 2 or not tokenizer.vocabulary.token_bytes(token).isascii():
            continue
        if tokenizer.encode(tokenizer.decode(before)) == before:
            check_context(way, tokenizer, before, [rest.decode() + more for more in ("", "x", ".", " y")])
            check_context(way, tokenizer, [token], ["", "x", " x", ".", "\n"])
            behind = tokenizer.encode("1\n\n" + tokenizer.decode(before))
            if behind[-1:] == before:  # the piece begins behind a border of the context
                check_context(way, tokenizer, behind, [rest.decode(), rest.decode() + "x"])
            tried += 1
    assert tried > 2


@both_strategies
def test_an_improper_context_is_taken_as_it_is(way: Way) -> None:
    tokenizer = load_tokenizer("tekken")
    letters = [token for letter in "Hello" for token in tokenizer.encode(letter)]
    compiled = compiled_by(way, tokenizer, Choice([" world", "world"]))
    assert tuple(tokenizer.encode(" world")) in accepted(compiled, context=letters)
    with pytest.raises(VocabularyError, match="outside"):
        compiled.start([tokenizer.vocabulary.size])

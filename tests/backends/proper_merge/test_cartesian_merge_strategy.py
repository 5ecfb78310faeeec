"""CartesianMerge against the reference libraries' encoders, and its options against each other."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.proper_oracle import END, allowed, check_sequences, check_texts, merge_pairs, piece_texts, words
from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import merge_list, ranked_pieces, scored_pieces
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import UnsupportedConstraint, VocabularyCannotSpell
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.constraint import Constraint

REAL = ("mistral-v1", "llama3", "tekken", pytest.param("smollm2", marks=needs_smollm2))
MANY = settings(deadline=None, derandomize=True, max_examples=120)


def check_choice(name: str, texts: list[str], relevance: str = "fixpoint") -> int:
    tokenizer = load_tokenizer(name)
    return check_texts(
        CartesianMerge(tokenizer.vocabulary, relevance=relevance).compile(Choice(texts)), tokenizer, texts
    )


both_ways = st.sampled_from(["fixpoint", "pairs"])


@MANY
@given(pairs=merge_pairs(), texts=words(), relevance=both_ways)
def test_random_merge_lists(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], texts: list[str], relevance: str
) -> None:
    check_choice(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "ab", pairs), texts, relevance)


@MANY
@given(
    drawn=st.one_of(st.tuples(piece_texts(), words()), st.tuples(piece_texts("a b1", 4), words("a b1", 8))),
    relevance=both_ways,
)
def test_random_ranked_pieces(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[str], list[str]], relevance: str
) -> None:
    """tiktoken: whole pieces, some of which merging would not make, and a pre-tokenizer with borders."""
    pieces, texts = drawn
    check_choice(ranked_pieces(tmp_path_factory.mktemp("t") / "ranks.tiktoken", pieces), texts, relevance)


@MANY
@given(data=st.data(), texts=words("aé\u20ac", 5), relevance=both_ways)
def test_random_scored_pieces(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, texts: list[str], relevance: str
) -> None:
    """SentencePiece with byte fallback: é is a token in some of the models, the euro sign in none."""
    known = data.draw(st.sampled_from(["a", "aé"]))
    pieces = data.draw(st.lists(st.text(known, min_size=2, max_size=4), max_size=6, unique=True))
    letters = ["\u2581", *known]
    scores = {text: -1.0 - place for place, text in enumerate(pieces)} | dict.fromkeys(letters, -9.0)
    bytes_ = {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    name = scored_pieces(tmp_path_factory.mktemp("t") / "m.model", scores | bytes_, dict.fromkeys(bytes_, 6))
    check_choice(name, texts, relevance)


ALPHABETS = {"letters": "ab", "spaces": " a\n", "digits": "0123.", "mixed": "a1 '\"é🦜\n-", "contractions": "'stdn re"}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_real_tokenizers_on_random_choices(name: str, alphabet: str) -> None:
    rng = random.Random(f"{name} {alphabet}")
    compared = 0
    for _ in range(12):
        texts = {"".join(rng.choices(ALPHABETS[alphabet], k=rng.randrange(9))) for _ in range(12)}
        compared += check_choice(name, sorted(texts))
    assert compared > 200


@pytest.mark.parametrize("name", REAL)
def test_real_words_and_runs(name: str) -> None:
    check_choice(name, ["boolean: true", "boolean: false"])
    check_choice(
        name, ["a" * k for k in range(1, 24)] + [" " * k for k in range(1, 24)] + ["-" * k for k in range(1, 24)]
    )
    check_choice(
        name, ["It's", "don't", "Don't stop", " we'll", "12345", "1,000.00", "naïve café", "日本語", "🦜🦜", "\r\n\r\n"]
    )
    check_choice(name, [str(number) for number in range(0, 3000, 7)])


def test_whole_pieces_of_llama3() -> None:
    """Improper tokens are proper as whole pieces, alone and between borders."""
    tokenizer = load_tokenizer("llama3")
    from tokdfa.proper.rules_cache import load_canonicity

    whole = load_canonicity(tokenizer).whole_pieces
    texts = [tokenizer.vocabulary.token_bytes(token).decode(errors="replace") for token in whole.tokens.tolist()]
    texts = [text for text in texts if "\ufffd" not in text]
    assert len(texts) > 300
    check_choice("llama3", texts)
    check_choice("llama3", [text + rest for text in texts[::9] for rest in ("", "!", " x", "ing", "1")])


def all_texts(letters: str, longest: int) -> list[str]:
    texts = [""]
    for text in texts:
        if len(text) < longest:
            texts += [text + letter for letter in letters]
    return texts


@pytest.mark.parametrize("pattern", ["(a|b)*", "a*b*", "(ab)*a?", "(aa|b)*", "a(a|b){2,}b", "(a{3})*", "b(ab*)+"])
def test_infinite_languages(tmp_path: Path, pattern: str) -> None:
    """Encodings of texts of the language are accepted, every other tokenization of a short text is refused."""
    import re

    pairs = [("a", "b"), ("a", "a"), ("aa", "a"), ("b", "b"), ("ab", "a"), ("aa", "ab"), ("aaa", "aaa")]
    tokenizer = load_tokenizer(merge_list(tmp_path / "tokenizer.json", "ab", pairs))
    compiled = CartesianMerge(tokenizer.vocabulary).compile(Regex(pattern))
    accepted = set()
    agenda: list[tuple[int, ...]] = [()]
    for prefix in agenda:
        matcher = compiled.start()
        for token in prefix:
            matcher.advance(token)
        found = allowed(matcher, tokenizer.vocabulary)
        assert found, f"dead end after {prefix}"
        if END in found:
            accepted.add(prefix)
        agenda += [(*prefix, token) for token in found - {END} if len(tokenizer.spell((*prefix, token))) <= 8]
    texts = [text for text in all_texts("ab", 8) if re.fullmatch(pattern, text)]
    assert accepted == {tuple(tokenizer.encode(text)) for text in texts}


WALKS: dict[str, Constraint] = {
    "date": Regex("[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]"),
    "string": Regex(r'"([^"\\\x00-\x1f]|\\["\\n])*"'),
    "names": Regex("[A-ZÄÖÜ][a-zäöüß]+( [A-ZÄÖÜ][a-zäöüß]+){0,3}"),
    "json": Regex(r'\{"name": "[^"\\\x00-\x1f]{1,20}", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, "[a-z]+")*)?\]\}'),
    "lines": Regex("((- )?[a-z]+: ([0-9]+|[^\n]+)\n)+"),
}


def check_walks(name: str, label: str, count: int, **options: bool) -> None:
    """Whatever is generated is what the tokenizer makes of its text."""
    tokenizer = load_tokenizer(name)
    vocabulary = tokenizer.vocabulary
    compiled = CartesianMerge(vocabulary, **options).compile(WALKS[label])
    rng = random.Random(f"{name} {label}")
    for _ in range(count):
        matcher, tokens = compiled.start(), list[int]()
        while len(tokens) < 60:
            found = allowed(matcher, vocabulary)
            assert found, f"dead end after {tokenizer.spell(tokens)!r}"
            if END in found and (rng.random() < 0.3 or found == {END}):
                assert tokenizer.encode(tokenizer.spell(tokens).decode()) == tokens
                break
            tokens.append(rng.choice(sorted(found - {END})))
            matcher.advance(tokens[-1])
            complete = tokenizer.spell(tokens).decode(errors="ignore")
            encoded = tokenizer.encode(complete)
            # The last tokens may still depend on what follows; those well before the end may not.
            assert encoded[: len(tokens) - 12] == tokens[: min(len(encoded), len(tokens) - 12)] or len(tokens) < 12


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("label", WALKS)
def test_random_walks_spell_encodings(name: str, label: str) -> None:
    check_walks(name, label, 5)


@pytest.mark.parametrize(("name", "label"), [("llama3", "date"), ("tekken", "date"), ("mistral-v1", "string")])
def test_random_walks_with_all_states_settled_in_advance(name: str, label: str) -> None:
    check_walks(name, label, 2, lazy=False)


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


@pytest.mark.parametrize("name", REAL)
def test_context(name: str) -> None:
    """After a context, the allowed sequences are those with which context + text is encoded as context, text."""
    tokenizer = load_tokenizer(name)
    texts = ["rue", " true", "3", "34", "345", "t", "s", "'s", " x", "  x", "x", "本", "\n", '"', "ï", "ve", "not", "."]
    compiled = CartesianMerge(tokenizer.vocabulary).compile(Choice(texts))
    refused = 0
    for context in map(tokenizer.encode, CONTEXTS):
        whole = [tokenizer.encode(tokenizer.decode(context) + text) for text in texts]
        sequences = [tokens[len(context) :] for tokens in whole if tokens[: len(context)] == context]
        refused += len(texts) - len(sequences)
        assert sequences
        check_sequences(compiled, tokenizer.vocabulary, sequences, context)
    assert refused > 10


def test_context_that_leaves_no_way_on() -> None:
    tokenizer = load_tokenizer("mistral-v1")
    compiled = CartesianMerge(tokenizer.vocabulary).compile(Choice(["rue"]))
    with pytest.raises(UnsupportedConstraint, match="after the given context"):
        compiled.start(tokenizer.encode("boolean: t"))


def with_pre_tokenizer(path: Path) -> str:
    """Letters a, 1 and the space only, no byte fallback, and GPT-2's pieces."""
    name = merge_list(path, "a1\u0120", [("\u0120", "a")])
    content = json.loads(path.read_text())
    content["pre_tokenizer"]["use_regex"] = True
    path.write_text(json.dumps(content))
    return name


@pytest.mark.parametrize(
    ("texts", "spellable"), [(["a c", "1a"], ["1a"]), (["aa c", "1"], ["1"]), (["a1c", "1", " a a"], ["1", " a a"])]
)
def test_letters_that_are_no_tokens(tmp_path: Path, texts: list[str], spellable: list[str]) -> None:
    """Behind a border a text could stand that no tokens spell: that is no way on."""
    tokenizer = load_tokenizer(with_pre_tokenizer(tmp_path / "tokenizer.json"))
    compiled = CartesianMerge(tokenizer.vocabulary).compile(Choice(texts))
    check_texts(compiled, tokenizer, spellable)
    with pytest.raises(VocabularyCannotSpell):
        CartesianMerge(tokenizer.vocabulary).compile(Choice(["a c"]))

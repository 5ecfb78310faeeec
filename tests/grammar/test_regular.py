"""Regular constraints as grammars: the same masks as the token index, which knows nothing of grammars."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import regex_patterns
from tests.walks import walk_along
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, VocabularyCannotSpell
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

TOKENS = [b"\xc3", b"\xa9", b"-\xc3"]
TOKENS += map(str.encode, ("a", "b", "-", "\n", "ab", "a-", "ba", "aab", "bb", "éa", "--", ""))
LETTERS = Vocabulary(TOKENS, end_tokens=[14])


@pytest.mark.parametrize("options", [{}, {"mask": "walk", "memo": False}, {"lexer": "one_byte", "memo_steps": False}])
def test_any_pattern(options):
    @settings(max_examples=70)
    @given(regex_patterns(), st.booleans(), st.randoms(use_true_random=False))
    def check(pattern, search, rng):
        regex = Regex(pattern, search=search, ascii_classes=True)
        refused = []
        compiled = []
        for name, given_options in (("token_index", {}), ("earley_trie", options)):
            try:
                compiled.append(create_backend(name, LETTERS, **given_options).compile(regex))
            except (EmptyLanguageError, VocabularyCannotSpell) as error:
                refused.append(type(error))
        if refused:
            assert refused[0] is refused[1]
            return
        walk_along([one.start() for one in compiled], LETTERS, (), 5, rng)

    check()


@pytest.mark.parametrize(
    "constraint",
    [
        Regex(r'"([^"\\\x00-\x1f]|\\["\\n])*"', label="JSON string"),
        Regex(r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]", label="date"),
        Regex(r"(\w+ ){3,500}\w+\.", label="words"),
        Choice(["yes", "no", "not sure", "その他", ""], label="answers"),
    ],
    ids=lambda constraint: constraint.name,
)
def test_on_a_real_vocabulary(constraint):
    vocab = load_tokenizer("mistral-v1").vocabulary
    first, second = (
        create_backend(n, vocab, **o).compile(constraint)
        for n, o in (("token_index", {"lazy": True}), ("earley_trie", {}))
    )
    rng = random.Random(3)
    for _ in range(6):
        walk_along([first.start(), second.start()], first.vocab, (), 12, rng)

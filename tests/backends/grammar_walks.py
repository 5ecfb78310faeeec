"""The shipped grammars with their texts, compiled by any engine, and walks along which engines are compared."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from tests.strategies import short_texts
from tests.walks import mask_of, walk_along
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

FOLDER = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))
#: The engines of grammars, each with the ways that it cuts a text into lexemes.
EVERY = [("earley_trie", "longest"), ("pushdown_trie", "longest"), ("pushdown_trie", "any")]
#: ASCII by single bytes, three special tokens, and a token of two letters.
SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(128)), b"", b"", b"", b"ab"],
    end_tokens=[130],
    special_tokens={128: "<|tool|>", 129: "<|end|>", 130: "</s>"},
)
#: Letters, and tokens of several.
SHORT = Vocabulary([b"a", b"b", b"c", b"ab", b"ba", b"aab", b"bc", b"abab", b""], end_tokens=[8])


@cache
def tokenizer_of(name):
    return load_tokenizer(name)


@cache
def grammar_of(name):
    return Grammar((FOLDER / f"{name}.lark").read_text(), label=name)


@cache
def texts_of(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


def compile_with(constraint, vocab, backend="pushdown_trie", **options):
    """What a backend makes of a constraint, or of a grammar's text."""
    constraint = Grammar(constraint) if isinstance(constraint, str) else constraint
    return create_backend(backend, vocab, **options).compile(constraint)


def bytes_start(constraint, backend="pushdown_trie", **options):
    """A matcher for a constraint, or a grammar's text, on the vocabulary of single bytes."""
    return compile_with(constraint, tokenizer_of("bytes").vocabulary, backend, **options).start()


def check_every_text(compiled, accepts, length=8):
    """Masks over SHORT after up to 3 letters, by brute force: `accepts` is asked of every text of up to `length`."""
    complete = set(filter(accepts, short_texts(length, "abc")))
    possible = {text[:end] for text in complete for end in range(len(text) + 1)}
    agenda, checked = [(compiled.start(), "")], 0
    while agenda:
        matcher, text = agenda.pop()
        allowed = mask_of(matcher)
        for token in range(8):
            longer = text + SHORT.token_bytes(token).decode()
            assert (token in allowed) >= (longer in possible), longer
            if token in allowed:
                checked += 1
                assert longer in possible or len(longer) > 3, longer
                if len(longer) <= 3:
                    agenda.append((matcher.fork(), longer))
                    agenda[-1][0].advance(token)
        assert (8 in allowed) == matcher.can_end() == (text in complete)
    assert checked


def walk_all(matchers, tokenizer, text, steps, rng):
    """Equal masks along one walk: first the tokens of `text`, then any. How many masks there were."""
    return walk_along(matchers, tokenizer.vocabulary, tokenizer.encode(text), steps, rng)

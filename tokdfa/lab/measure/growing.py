"""Constraints and vocabularies that grow: templates of regexes, and parts of a vocabulary."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Regex

_COUNT = re.compile(r"\{(\d+,)?n\}")
_WORDS = "<words>"
_WORD_LETTERS = (4, 10)


def fill_template(template: str, n: int, seed: int) -> str:
    """`template` with n for each count written as ``n`` and n random words for ``<words>``; OptionError if it has none.

    The words of a smaller n are among those of a larger one.
    """
    if not is_template(template):
        raise OptionError(f"{template!r} is no template: it has neither a count such as {{1,n}} nor {_WORDS}")
    filled = _COUNT.sub(lambda match: f"{{{match[1] or ''}{n}}}", template)
    return filled.replace(_WORDS, "|".join(random_words(n, seed)))


def is_template(pattern: str) -> bool:
    """Whether a pattern has a place for n."""
    return _WORDS in pattern or _COUNT.search(pattern) is not None


def random_words(count: int, seed: int) -> list[str]:
    """`count` distinct words of 4 to 10 letters a to z, the same for the same seed. Expected O(count)."""
    choose = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(choose.choices("abcdefghijklmnopqrstuvwxyz", k=choose.randint(*_WORD_LETTERS)))] = None
    return list(words)


def sub_vocabulary(vocab: Vocabulary, tokens: Sequence[int]) -> Vocabulary:
    """The given tokens in their order, then the single bytes that are not among them, then an end token."""
    spelled = [vocab.token_bytes(int(token)) for token in tokens]
    present = set(spelled)
    spelled += [one for one in (bytes([byte]) for byte in range(256)) if one not in present]
    return Vocabulary([*spelled, b""], [len(spelled)], name=f"{len(spelled)} tokens of {vocab.name}")


def first_tokens(vocab: Vocabulary, count: int) -> Vocabulary:
    """The first `count` tokens by id that spell something, with all single bytes and an end token."""
    return sub_vocabulary(vocab, np.flatnonzero(vocab.lengths)[:count].tolist())


def sample_by_length(vocab: Vocabulary, longest: int, count: int, seed: int) -> Vocabulary:
    """`count` tokens of at most `longest` bytes: the single bytes and a sample of the others; fewer if there are fewer.

    Each sample takes the first that fit from one shuffled list, so samples of different lengths share what they can.
    """
    shuffled = np.random.default_rng(seed).permutation(vocab.size)
    lengths = vocab.lengths[shuffled]
    fitting = shuffled[(lengths > 1) & (lengths <= longest)]
    return sub_vocabulary(vocab, fitting[: max(0, count - 256)].tolist())


def state_count(constraint: Regex) -> int | None:
    """The states of the minimal byte DFA, None if it has too many."""
    try:
        return compile_dfa(constraint).state_count
    except LimitExceeded:
        return None  # the engines get their own chance, and their rows say what became of it

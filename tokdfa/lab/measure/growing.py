"""Constraints and vocabularies that grow: templates of regexes, grammars and schemas, and parts of a vocabulary."""

from __future__ import annotations

import json
import random
import re
import string
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import OptionError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT = re.compile(r"\{(\d+,)?n\}")
_WORDS, _LONGER, _MEMBERS = "<words>", "<16 words of n letters>", "<members>"
#: What the members of an object may hold, in turn.
_VALUES = ("(true|false)", '"(red|green|blue|yellow)"', "-?(0|[1-9][0-9]*)", r'"[^"\\\x00-\x1f]{1,20}"')
ALTERNATIVES, SEQUENCE = "<alternatives>", "<sequence>"
#: What stands for the number of a copy in a schema.
COPY = "{k}"
#: What the terminals of `ALTERNATIVES` begin with. A slash or a backslash would have to be written in other ways.
_BEGINNINGS = string.ascii_uppercase + string.digits + re.sub(r"[/\\]", "", string.punctuation)
#: The most terminals of a grammar.
MOST = 64


def fill_template(template: str, n: int, seed: int) -> str:
    """`template` with n for each count written as ``n``, n random words for ``<words>``, words of n letters for
    ``<16 words of n letters>``, and n members of a JSON object for ``<members>``; OptionError if it has none of these.

    The words and members of a smaller n are among those of a larger one.
    """
    if not is_template(template):
        raise OptionError(f"{template!r} is no template: it has no {{n}} or {{1,n}}, no {_WORDS}, no {_MEMBERS}")
    words = random_words(n, seed) if _WORDS in template or _MEMBERS in template else []
    members = [f'"{name}": {_VALUES[place % len(_VALUES)]}' for place, name in enumerate(words)]
    filled = _COUNT.sub(lambda match: f"{{{match[1] or ''}{n}}}", template)
    if _LONGER in filled:
        filled = filled.replace(_LONGER, "|".join(random_words(16, seed, (n, n))))
    return filled.replace(_WORDS, "|".join(words)).replace(_MEMBERS, ", ".join(members))


def is_template(pattern: str) -> bool:
    """Whether a pattern has a place for n."""
    return any(place in pattern for place in (_WORDS, _LONGER, _MEMBERS)) or _COUNT.search(pattern) is not None


def random_words(count: int, seed: int, letters: tuple[int, int] = (4, 10)) -> list[str]:
    """`count` distinct words of so many letters a to z, the same for the same seed; fewer are the first of more.

    Raises OptionError if there are not twice as many words of the shortest length. Expected O(count).
    """
    if 2 * count > len(string.ascii_lowercase) ** letters[0]:
        raise OptionError(f"there are hardly {count} distinct words of {letters[0]} letters: take longer or fewer")
    choose = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(choose.choices(string.ascii_lowercase, k=choose.randint(*letters)))] = None
    return list(words)


def fill_grammar(template: str, count: int) -> tuple[str, str]:
    """The grammar with `count` terminals (2 to `MOST`), in Lark's notation, and a text of it with every terminal.

    ``<alternatives>`` stands for terminals with bars between, one of 64 characters and lower-case letters each
    (``/A[a-z]*/``, ``/B[a-z]*/``, ...): a token such as "StringBuilder" runs through two of them, and any may follow.
    ``<sequence>`` stands for terminals in a row, a lower-case letter each: a token of k letters runs through k of them.
    The text is that of the terminals in order, so the template should be a repetition of what it stands for at most.
    Raises OptionError for other numbers, and for a grammar without a place for terminals.
    """
    if not 2 <= count <= MOST:
        raise OptionError(f"2 to {MOST} terminals can be made, not {count}")
    if ALTERNATIVES not in template and SEQUENCE not in template:
        raise OptionError(f"this grammar is no template: it has no {ALTERNATIVES} and no {SEQUENCE}")
    names = [f"T{number}" for number in range(count)]
    if ALTERNATIVES in template:
        filled = template.replace(ALTERNATIVES, " | ".join(names))
        patterns = [f"{re.escape(first)}[a-z]*" for first in _BEGINNINGS[:count]]
        text = "".join(f"{first}ab" for first in _BEGINNINGS[:count])
    else:
        filled = template.replace(SEQUENCE, " ".join(names))
        patterns = ["[a-z]"] * count
        text = (string.ascii_lowercase * 3)[:count]
    lines = [f"{name}: /{pattern}/" for name, pattern in zip(names, patterns, strict=True)]
    return "\n".join([filled.rstrip("\n"), *lines, ""]), text


def fill_schema(template: Any, n: int) -> Any:
    """A JSON schema with each member that has ``{k}`` in its name, and each item of a list that has it anywhere, n
    times, with the numbers from 0 on for it; OptionError if there is none.
    """
    if COPY not in str(template):
        raise OptionError(f"this schema is no template: it has no name and no item of a list with {COPY}")
    return _copied(template, n)


def _copied(part: Any, n: int) -> Any:
    if isinstance(part, dict):
        pairs: dict[str, Any] = {}
        for name, value in part.items():
            copies = [_numbered({name: value}, k) for k in range(n)] if COPY in name else [{name: _copied(value, n)}]
            for copy in copies:
                pairs |= copy
        return pairs
    if isinstance(part, list):
        return [copy for one in part for copy in ([_numbered(one, k) for k in range(n)] if COPY in str(one) else [one])]
    return part


def _numbered(part: Any, k: int) -> Any:
    return json.loads(json.dumps(part).replace(COPY, str(k)))


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


#: A subset of a tokenizer's vocabulary, by name.
SUBSET = re.compile(
    r"(?P<whole>.+)\?(?:first=(?P<first>[1-9]\d*)|longest=(?P<longest>[1-9]\d*)&tokens=(?P<tokens>[1-9]\d*))"
)


class VocabularySubset:
    """A subset of a tokenizer's vocabulary under the name of `SUBSET`. A text is encoded by the tokens of its bytes."""

    def __init__(self, name: str, vocabulary: Vocabulary) -> None:
        self.name, self.vocabulary = name, vocabulary
        self._byte_tokens = {
            vocabulary.token_bytes(token): token for token in np.flatnonzero(vocabulary.lengths == 1).tolist()
        }

    def encode(self, text: str) -> list[int]:
        """One token a byte."""
        return [self._byte_tokens[bytes([byte])] for byte in text.encode()]


def load_subset(name: str) -> Tokenizer | VocabularySubset:
    """The tokenizer of that name, or a subset of one: ``mistral-v1?first=2000`` has its first tokens by id,
    ``mistral-v1?longest=4&tokens=14000`` a sample of those with at most so many bytes; single bytes are in all of them.

    Raises as `load_tokenizer` does.
    """
    subset = SUBSET.fullmatch(name)
    if subset is None:
        return load_tokenizer(name)
    whole = load_tokenizer(subset["whole"]).vocabulary
    if subset["first"]:
        return VocabularySubset(name, first_tokens(whole, int(subset["first"])))
    return VocabularySubset(name, sample_by_length(whole, int(subset["longest"]), int(subset["tokens"]), seed=0))

"""Self-intoxication: how far one improperly tokenized word moves a model's next-token distribution.

Theory (002, challenge 2). What a constraint makes a model write is fed back to it. A model has seldom or never seen
improper tokens, so a word spelled with them may mean less to it, or something else. Here that is measured: one text is
tokenized twice, properly and with one word respelled, and the rows after both are compared.

Words. The *proper* tokens of the text are those of the tokenizer. The *span* of a word is the stretch of proper tokens
that it touches; where a token also holds neighbours of the word (the space before it, say), they belong to the span.
A *respelling* is another sequence of tokens with the bytes of the span; all other tokens stay. A text has one proper
sequence, so every respelling is improper, which `tokdfa.proper.explain_text` confirms. Respellings use the tokens that
may stand in some proper sequence, and no byte tokens beside characters that are tokens themselves. The number of *extra
tokens* is how much longer the respelling is than the span; it may be negative, as merging is greedy.

How a respelling is chosen: ``fewest``: one of those with the fewest tokens; ``random``: one of all; ``letters``: one of
those with the most tokens. Each is uniform among its candidates, by a seed, and they are counted without listing them.

The divergence is KL(proper || improper) and its relatives (`tokdfa.skew.distances`), in nats, of the next token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from tokdfa.decoding.draws import check_vocabulary
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import OptionError, TokdfaError, UnsupportedConstraint
from tokdfa.skew.distances import jensen_shannon, kl_divergence, total_variation
from tokdfa.skew.improper_mass import proper_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.tokenizers import Tokenizer

How = Literal["fewest", "random", "letters"]

#: The animals of the experiment with sharks, and how the text goes on.
SHARKS = ("whale", "tiger", "weasel", "cow")
SHARK_CONTINUATIONS = (" mammal", " fish")
#: A word of a random text, with the space before it.
WORD = re.compile(r" ?[A-Za-z]{4,}")
#: Sentences of the default text have so many characters.
SENTENCE_LENGTHS = range(40, 301)
#: The longest span that is respelled, in bytes: the tables are quadratic in it.
MAX_SPAN_BYTES = 400


@dataclass(frozen=True)
class Respelled:
    """A text tokenized twice. `span`: begin and end of the respelled stretch in `proper`, in tokens."""

    text: str
    proper: tuple[int, ...]
    improper: tuple[int, ...]
    span: tuple[int, int]

    @property
    def extra_tokens(self) -> int:
        """How many tokens the improper sequence has more."""
        return len(self.improper) - len(self.proper)

    @property
    def distance(self) -> int:
        """How many tokens come after the span; the next token is so many further on."""
        return len(self.proper) - self.span[1]


@dataclass(frozen=True)
class Intoxication:
    """The next-token distributions after a text tokenized properly and improperly, in nats.

    `kl`: KL(proper || improper); `same_top`: whether the most probable token is the same. `continuations`: text ->
    (log-probability after the proper tokens, after the improper ones), natural, of the text's own proper tokens.
    """

    respelled: Respelled
    kl: float
    jensen_shannon: float
    total_variation: float
    same_top: bool
    continuations: Mapping[str, tuple[float, float]]

    def ratio(self, one: str, other: str) -> tuple[float, float]:
        """P(one) / P(other) after the proper tokens and after the improper ones, two of the continuations."""
        proper, improper = (a - b for a, b in zip(self.continuations[one], self.continuations[other], strict=True))
        return float(np.exp(proper)), float(np.exp(improper))


def retokenize(tokenizer: Tokenizer, text: str, span: tuple[int, int], how: How = "fewest", seed: int = 0) -> Respelled:
    """Spell ``text[span[0]:span[1]]`` improperly and the rest properly. O(bytes of the span squared) and 15 us a token.

    Raises OptionError (a span outside the text, an unknown `how`), UnsupportedConstraint if the span has no other
    spelling, and TokenizerError for a text that the tokenizer changes or that does not merge.
    """
    proper, begin, end = _find_span(tokenizer, text, span)
    spellings = _Spellings(tokenizer, proper[begin:end])
    respelling = spellings.choose(how, np.random.default_rng(seed))
    return _verified(tokenizer, text, proper, respelling, (begin, end))


def respellings(tokenizer: Tokenizer, text: str, span: tuple[int, int]) -> Iterator[Respelled]:
    """All improper spellings of a span, the shortest first, one at a time: there may be exponentially many.

    Raises what `retokenize` raises; nothing comes if the span has no other spelling.
    """
    proper, begin, end = _find_span(tokenizer, text, span)
    spellings = _Spellings(tokenizer, proper[begin:end])
    for length in range(1, spellings.longest + 1):
        for index in range(spellings.count(length)):
            found = spellings.nth(length, index)
            if found != spellings.proper:
                yield _verified(tokenizer, text, proper, found, (begin, end))


def intoxication(
    model: LanguageModel,
    tokenizer: Tokenizer,
    before: str,
    word: str,
    after: str,
    *,
    how: How = "fewest",
    seed: int = 0,
    continuations: Sequence[str] = (),
) -> Intoxication:
    """Compare the rows of `model` after ``before + word + after`` with `word` spelled properly and improperly.

    Two rows, and one more for each further token of a continuation, in one call. Raises what `retokenize` raises, and
    ModelError if the model has another vocabulary.
    """
    span = (len(before), len(before) + len(word))
    return compare_rows(model, retokenize(tokenizer, before + word + after, span, how, seed), tokenizer, continuations)


def compare_rows(
    model: LanguageModel, respelled: Respelled, tokenizer: Tokenizer, continuations: Sequence[str] = ()
) -> Intoxication:
    """`intoxication` of a text that has been respelled."""
    check_vocabulary(model, tokenizer.vocabulary, f"the tokenizer {tokenizer.name}")
    ways = tuple((*model.start_tokens, *tokens) for tokens in (respelled.proper, respelled.improper))
    further = {text: proper_tokens(tokenizer, text) for text in continuations}
    prefixes = [way + tokens[:size] for way in ways for tokens in further.values() for size in range(len(tokens))]
    asked = list(dict.fromkeys((*ways, *prefixes)))
    rows = dict(zip(asked, model.log_probabilities(asked), strict=True))

    def log_probability(way: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        return float(sum(rows[way + tokens[:size]][token] for size, token in enumerate(tokens)))

    proper, improper = (_probabilities(rows[way]) for way in ways)
    return Intoxication(
        respelled,
        kl=kl_divergence(proper, improper),
        jensen_shannon=jensen_shannon(proper, improper),
        total_variation=total_variation(proper, improper),
        same_top=bool(proper.argmax() == improper.argmax()),
        continuations={
            text: (log_probability(ways[0], tokens), log_probability(ways[1], tokens))
            for text, tokens in further.items()
        },
    )


def sharks(
    model: LanguageModel, tokenizer: Tokenizer, *, how: How = "fewest", seed: int = 0
) -> dict[str, Intoxication]:
    """Animal -> `intoxication` of "A [animal] shark is a kind of" with `` shark`` respelled, and what it is a kind of.

    ``result["whale"].ratio(" mammal", " fish")`` is how the model weighs a mammal against a fish. The four animals are
    `SHARKS`.
    """
    return {
        animal: intoxication(
            *(model, tokenizer, f"A {animal}", " shark", " is a kind of"),
            how=how,
            seed=seed,
            continuations=SHARK_CONTINUATIONS,
        )
        for animal in SHARKS
    }


def intoxicate_texts(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Iterable[str] | None = None,
    *,
    count: int = 200,
    seed: int = 0,
    how: How = "random",
) -> list[Intoxication]:
    """`count` random texts, one random word of each respelled.

    `texts`: where they are drawn from, without repetition; by default sentences of the English reference text inside
    Python (`reference_sentences`). Texts without a word of four letters that has another spelling are passed over. Two
    rows of the model a text. Raises OptionError if there are fewer than `count` texts to be had.
    """
    given = reference_sentences() if texts is None else list(texts)
    generator = np.random.default_rng(seed)
    found: list[Intoxication] = []
    for number in generator.permutation(len(given)).tolist():
        if len(found) == count:
            break
        words = [match.span() for match in WORD.finditer(given[number])]
        if not words:
            continue
        span = words[int(generator.integers(len(words)))]
        try:
            respelled = retokenize(tokenizer, given[number], span, how, int(generator.integers(1 << 31)))
        except UnsupportedConstraint:
            continue
        found.append(compare_rows(model, respelled, tokenizer))
    if len(found) < count:
        raise OptionError(
            f"only {len(found)} of {len(given)} texts have a word to respell, not {count}; give more texts"
        )
    return found


def reference_sentences() -> list[str]:
    """Sentences of Python's own reference pages, which `ngram` learns from too, of `SENTENCE_LENGTHS` characters."""
    from tokdfa.models.ngram import default_documents

    sentences: dict[str, None] = {}
    for document in default_documents():
        for paragraph in document.split("\n\n"):
            for sentence in re.split(r"(?<=\.) (?=[A-Z])", " ".join(paragraph.split())):
                if len(sentence) in SENTENCE_LENGTHS and sentence[0].isupper() and sentence.endswith("."):
                    sentences[sentence] = None
    return list(sentences)


def _probabilities(row: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A row as probabilities that add up to 1 in float64, where models leave 1e-5."""
    return np.exp(row - log_total(row))


def _find_span(tokenizer: Tokenizer, text: str, span: tuple[int, int]) -> tuple[tuple[int, ...], int, int]:
    """The proper tokens of the text, and the stretch of them that the span touches."""
    if not 0 <= span[0] < span[1] <= len(text):
        raise OptionError(f"the span {span} is no part of a text of {len(text)} characters")
    proper = proper_tokens(tokenizer, text)
    first, last = len(text[: span[0]].encode()), len(text[: span[1]].encode())
    ends = list(accumulate(int(tokenizer.vocabulary.lengths[token]) for token in proper))
    begin = next(index for index, end in enumerate(ends) if end > first)
    end = next(index for index, end in enumerate(ends) if end >= last) + 1
    return proper, begin, end


def _verified(
    tokenizer: Tokenizer, text: str, proper: tuple[int, ...], respelling: tuple[int, ...], span: tuple[int, int]
) -> Respelled:
    from tokdfa.proper.explain_text import explain_tokens

    improper = (*proper[: span[0]], *respelling, *proper[span[1] :])
    verdict = explain_tokens(tokenizer, improper)
    if verdict.is_proper or verdict.text != text.encode():
        raise TokdfaError(f"internal error: {improper} is no improper spelling of {text!r}; please report this")
    return Respelled(text, proper, improper, span)


class _Step(NamedTuple):
    token: int
    end: int


class _Spellings:
    """The spellings of a span, counted by length, so that the n-th of a length can be found without listing them.

    ``ways[place][k]``: how many sequences of k tokens spell the bytes from `place` on. Exact integers.
    """

    def __init__(self, tokenizer: Tokenizer, proper: tuple[int, ...]) -> None:
        self.proper = proper
        data = tokenizer.vocabulary.spell(proper)
        if len(data) > MAX_SPAN_BYTES:
            raise OptionError(f"a span of {len(data)} bytes is too long to respell; at most {MAX_SPAN_BYTES}")
        tokens = _tokens_by_text(tokenizer)
        longest = max(map(len, tokens), default=0)
        self._data = data
        self._steps: list[list[_Step]] = []
        for place in range(len(data)):
            ends = range(place + 1, min(len(data), place + longest) + 1)
            self._steps.append([_Step(token, end) for end in ends for token in tokens.get(data[place:end], ())])
        self._ways = [[0] * (len(data) + 1) for _ in range(len(data) + 1)]
        self._ways[len(data)][0] = 1
        for place in reversed(range(len(data))):
            for step in self._steps[place]:
                for length, ways in enumerate(self._ways[step.end][:-1]):
                    self._ways[place][length + 1] += ways
        self.longest = max((length for length, ways in enumerate(self._ways[0]) if ways), default=0)

    def count(self, length: int) -> int:
        """How many spellings have `length` tokens, the proper one included."""
        return self._ways[0][length]

    def nth(self, length: int, index: int) -> tuple[int, ...]:
        """The `index`-th spelling of `length` tokens."""
        found, place = [], 0
        for left in reversed(range(length)):
            for step in self._steps[place]:
                ways = self._ways[step.end][left]
                if index < ways:
                    found.append(step.token)
                    place = step.end
                    break
                index -= ways
        return tuple(found)

    def choose(self, how: How, generator: np.random.Generator) -> tuple[int, ...]:
        """A spelling other than the proper one."""
        if how not in get_args(How):
            raise OptionError(f"how is {', '.join(map(repr, get_args(How)))}, not {how!r}")
        lengths = [length for length in range(1, self.longest + 1) if self._others(length)]
        if not lengths:
            raise UnsupportedConstraint(f"{self._data!r} has one spelling only; choose a longer word")
        if how == "random":
            total = sum(map(self._others, lengths))
            drawn = _below(total, generator)
            for length in lengths:
                if drawn < self._others(length):
                    break
                drawn -= self._others(length)
        else:
            length = lengths[0] if how == "fewest" else lengths[-1]
            drawn = _below(self._others(length), generator)
        found = self.nth(length, drawn)
        # the last spelling of the length stands for the proper one, which must not come
        return found if found != self.proper else self.nth(length, self.count(length) - 1)

    def _others(self, length: int) -> int:
        """How many spellings of `length` tokens are not the proper one."""
        return self.count(length) - (length == len(self.proper) and self._proper_is_counted)

    @property
    def _proper_is_counted(self) -> bool:
        """Whether the proper tokens are among the spellings: not if they hold byte tokens."""
        place = 0
        for token in self.proper:
            step = next((step for step in self._steps[place] if step.token == token), None)
            if step is None:
                return False
            place = step.end
        return True


def _below(bound: int, generator: np.random.Generator) -> int:
    """A uniform integer below `bound`, which may have any number of bits."""
    size = (bound.bit_length() + 7) // 8
    excess = 8 * size - bound.bit_length()
    while True:
        drawn = int.from_bytes(generator.bytes(size), "little") >> excess
        if drawn < bound:
            return drawn


def _tokens_by_text(tokenizer: Tokenizer) -> dict[bytes, tuple[int, ...]]:
    """Token bytes -> the tokens with these bytes that may stand in a proper sequence and are no byte tokens."""
    from tokdfa.proper.rules_cache import load_canonicity

    def make() -> dict[bytes, tuple[int, ...]]:
        canonicity = load_canonicity(tokenizer)
        usable = canonicity.usable.copy()
        if canonicity.fallback is not None:
            usable &= canonicity.fallback.byte_of < 0
        found: dict[bytes, tuple[int, ...]] = {}
        for token in np.flatnonzero(usable).tolist():
            text = tokenizer.vocabulary.token_bytes(token)
            found[text] = (*found.get(text, ()), token)
        return found

    return tokenizer.keep("tokens_by_text", make)

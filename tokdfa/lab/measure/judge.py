"""Token sequences worth judging, drawn by chance, and our verdicts on them beside the reference library's.

Of one *piece* (`draw_pieces`), where merging alone decides:

- pairs at the edges of an interval of forbidden successors, the last one inside or the first one outside, where a wrong
  bound would show (3 of 8);
- pairs that a rule merges; random pairs; random triples of all tokens, and of proper ones (1 of 8 each);
- the proper tokens of both parts of a text, side by side (1 of 8): mostly proper, or nearly.

`tokdfa.proper.explain` judges them by the test of one pair (`tokdfa.proper.adjacent_pairs`); where the interval lists
say something else of a pair, the verdict is *disputed*.

Of whole *texts* (`draw_texts_of`), where the pre-tokenizer has its say; texts are `tokdfa.lab.measure.text_mixture`'s:

- the library's own encodings (1 of 8), proper by definition;
- *variants* of one (4 of 8): two neighbours cut elsewhere, a token cut in two, or two made one. They spell the same
  text, whose encoding is known, so the reference says that they are improper;
- *splices* (3 of 8): the beginning of one encoding with the end of another, or a stretch of one. They spell other
  texts, in which borders of pieces may fall elsewhere; the library encodes them anew.

The matcher of all proper sequences judges them (`tokdfa.backends.proper.proper_texts`), which is what ``proper=True``
runs beside a grammar.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper import proper_texts
from tokdfa.errors import OptionError, TokenRefused
from tokdfa.lab.measure.text_mixture import draw_texts
from tokdfa.proper.explain import explain
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

    #: Whether a sequence is proper; None if that is disputed, or not known yet.
    Verdict = bool | None
    Tokens = Sequence[int]

#: Sequences that are judged at once: bounds the memory.
CHUNK = 40_000
#: Draws of a place for each variant; a short text may have none.
TRIES = 8
#: How many examples of mismatches are kept.
EXAMPLES = 5
#: What is printed for a verdict.
_SAID = {True: "proper", False: "improper", None: "disputed"}


@dataclass
class Tally:
    """What has been judged so far, and how it came out.

    `proper`, `improper`: by the reference; `disputed`: on how many the interval lists and the pair test differ (all of
    these are `mismatches` too); `examples`: the first mismatches; `our_seconds`, `reference_seconds`: of the judging.
    """

    proper: int = 0
    improper: int = 0
    mismatches: int = 0
    disputed: int = 0
    our_seconds: float = 0.0
    reference_seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    @property
    def judged(self) -> int:
        return self.proper + self.improper

    @property
    def distinct(self) -> int:
        """Different sequences among them."""
        return len(self._seen)

    def judge(
        self,
        rows: Sequence[tuple[Tokens, Verdict]],
        ours: Callable[[Tokens], Verdict],
        reference: Callable[[Tokens], bool],
    ) -> None:
        """Judge sequences, each with what the reference says of it if that is known."""
        started = time.perf_counter()
        expected = [reference(tokens) if known is None else known for tokens, known in rows]
        between = time.perf_counter()
        verdicts = [ours(tokens) for tokens, _ in rows]
        self.our_seconds += time.perf_counter() - between
        self.reference_seconds += between - started
        for (tokens, _), mine, theirs in zip(rows, verdicts, expected, strict=True):
            self.proper += theirs
            self.improper += not theirs
            self.disputed += mine is None
            self._seen.add(hash(tuple(tokens)))
            if mine is not theirs:
                self.mismatches += 1
                if len(self.examples) < EXAMPLES:
                    said = f"{_SAID[mine]}, but the reference says {_SAID[theirs]}"
                    self.examples.append(f"{list(tokens)}: {said}")


def judge_pieces(canonicity: Canonicity, count: int, seed: int, seconds: float = math.inf) -> Tally:
    """Judge `count` sequences as pieces, or as many as `seconds` allow. About 30 us each."""
    drawn, tally = np.random.default_rng(seed), Tally()

    def reference(tokens: Tokens) -> bool:
        return reproduces(canonicity.source.encode_piece, tokens, canonicity.vocabulary)

    end = time.perf_counter() + seconds
    while tally.judged < count and time.perf_counter() < end:
        rows = draw_pieces(canonicity, min(CHUNK, count - tally.judged), drawn)
        tally.judge([(row, None) for row in rows], lambda tokens: judge_piece(canonicity, tokens), reference)
    return tally


def judge_texts(tokenizer: Tokenizer, count: int, seed: int, seconds: float = math.inf) -> Tally:
    """Judge `count` sequences as encodings of whole texts, pre-tokenizer included, or as many as `seconds` allow.

    100 to 200 us each. Raises OptionError for a tokenizer of bytes without a pre-tokenizer: nothing in it knows which
    bytes are a text; UnsupportedConstraint for isolated tokens, whose texts are cut out before all this.
    """
    if load_marked_dfa(tokenizer) is None and load_canonicity(tokenizer).source.unit == "byte":
        raise OptionError(f"{tokenizer.name}: without a pre-tokenizer, sequences of bytes need not be texts")
    compiled, tally, drawing = proper_texts(tokenizer.vocabulary), Tally(), draw_texts_of(tokenizer, seed)

    def reference(tokens: Tokens) -> bool:
        return reproduces(lambda data: tokenizer.encode(data.decode()), tokens, tokenizer.vocabulary)

    end = time.perf_counter() + seconds
    while tally.judged < count and time.perf_counter() < end:
        rows = list(islice(drawing, min(CHUNK, count - tally.judged)))
        tally.judge(rows, lambda tokens: judge_text(compiled, tokens), reference)
    return tally


def judge_piece(canonicity: Canonicity, tokens: Tokens) -> Verdict:
    """Whether the tokenizer makes these tokens of their text, taken as one piece; None if the interval lists and the
    test of one pair differ on two neighbours, up to the first fault.
    """
    fault = explain(canonicity, tokens)
    end = len(tokens) if fault is None else fault.position + 1
    for place, (left, right) in enumerate(pairwise(tokens[:end]), 1):
        if canonicity.usable[left] and canonicity.usable[right]:
            starts, ends = canonicity.forbidden(left)
            number = canonicity.merge_tree.number[right]
            interval = int(starts.searchsorted(number, "right")) - 1
            is_listed = interval >= 0 and number < ends[interval]
            if is_listed != (fault is not None and fault.kind == "pair" and fault.position == place):
                return None
    return fault is None


def judge_text(compiled: CompiledConstraint, tokens: Tokens) -> bool:
    """Whether a matcher takes these tokens and may end."""
    matcher = compiled.start()
    try:
        for token in tokens:
            matcher.advance(token)
    except TokenRefused:
        return False
    return matcher.can_end()


def reproduces(encode: Callable[[bytes], Tokens], tokens: Tokens, vocabulary: Vocabulary) -> bool:
    """Whether `encode` makes these tokens of what they spell; bytes that are no text are never proper."""
    try:
        return encode(vocabulary.spell(tokens)) == list(tokens)
    except UnicodeDecodeError:
        return False


def draw_pieces(canonicity: Canonicity, count: int, drawn: np.random.Generator) -> list[Tokens]:
    """`count` sequences to be taken as one piece each."""
    order, rules, lists = canonicity.merge_tree.order, canonicity.rules, canonicity.lists
    spelling = np.flatnonzero(canonicity.vocabulary.lengths)
    kinds = np.bincount(drawn.integers(8, size=count), minlength=8)
    left = drawn.choice(order, int(kinds[:3].sum()))
    begin = lists.list_starts[lists.state_of[left]]
    sizes = lists.list_starts[lists.state_of[left] + 1] - begin
    some = sizes > 0
    interval = begin[some] + drawn.integers(sizes[some])
    starts, ends = lists.starts[interval], lists.ends[interval]
    places = drawn.permuted(np.stack([starts - 1, starts, ends - 1, ends], axis=1), axis=1)[:, 0]
    edges = np.stack([left[some], order[np.clip(places, 0, len(order) - 1)]], axis=1)
    chosen = drawn.integers(len(rules), size=int(kinds[3])) if len(rules) else np.zeros(0, dtype=np.int64)
    merging = np.stack([rules.left[chosen], rules.right[chosen]], axis=1)
    rest = count - len(edges) - len(merging) - int(kinds[4:7].sum())
    pairs = np.stack([drawn.choice(order, rest), drawn.choice(spelling, rest)], axis=1)
    rows: list[Tokens] = [*edges.tolist(), *merging.tolist(), *pairs.tolist()]
    rows += drawn.choice(spelling, (int(kinds[4]), 3)).tolist()
    rows += drawn.choice(order, (int(kinds[5]), 3)).tolist()
    spell, encode = canonicity.vocabulary.spell, canonicity.source.encode_piece
    for triple in drawn.choice(order, (int(kinds[6]), 3)).tolist():
        letters = [letter for token in triple for letter in rules.letters(token).tolist()]
        cut = int(drawn.integers(len(letters) + 1))
        rows.append([token for half in (letters[:cut], letters[cut:]) for token in encode(spell(half))])
    return rows


def draw_texts_of(tokenizer: Tokenizer, seed: int) -> Iterator[tuple[list[int], Verdict]]:
    """(sequence, what the reference says of it or None if it has to be asked), without end.

    A text that the tokenizer does not give back (characters without tokens) is passed over.
    """
    drawn = random.Random(seed)
    cutter = _Cutter(tokenizer, drawn)
    before: list[int] = []
    for _, text in draw_texts(seed + 1):
        tokens = encode_exactly(tokenizer, tokenizer.vocabulary, text)
        if tokens is None:
            continue
        yield tokens, True
        for variant in cutter.variants(tokens, 4):
            yield variant, False
        for other in (before, tokens, []):
            begin, end = sorted(drawn.choices(range(len(tokens) + 1), k=2))
            splice = [*other[: drawn.randint(0, len(other))], *tokens[begin : end if not other else None]]
            if splice:
                yield splice, None
        before = tokens


class _Cutter:
    """Other token sequences with the same bytes."""

    def __init__(self, tokenizer: Tokenizer, drawn: random.Random) -> None:
        self.drawn = drawn.random
        vocabulary = tokenizer.vocabulary
        self.bytes_of = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        self.tokens_of: dict[bytes, list[int]] = {}
        for token in np.flatnonzero(vocabulary.lengths).tolist():
            self.tokens_of.setdefault(self.bytes_of[token], []).append(token)

    def variants(self, tokens: Sequence[int], count: int) -> Iterator[list[int]]:
        """Up to `count` times `tokens` with one or two neighbours replaced by one or two others that spell the same."""
        drawn, known = self.drawn, self.tokens_of
        for _ in range(TRIES * count):
            place = int(drawn() * len(tokens))
            end = place + (1 if drawn() < 0.3 else 2)
            spelled = b"".join([self.bytes_of[token] for token in tokens[place:end]])
            cut = int(drawn() * len(spelled))
            left, right = spelled[:cut], spelled[cut:]
            if right not in known or (left and left not in known):
                continue
            new = [known[part][int(drawn() * len(known[part]))] for part in (left, right) if part]
            if new != tokens[place:end]:
                yield [*tokens[:place], *new, *tokens[end:]]
                count -= 1
                if not count:
                    return

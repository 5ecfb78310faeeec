"""Token sequences worth judging, drawn by chance, of one piece and of whole texts; judged, as many as asked for.

Of one piece (`draw_pieces`), where merging alone decides:

- pairs at the edges of an interval of forbidden successors, the last one inside or the first one outside, where a wrong
  bound would show (3 of 8);
- pairs that a rule merges; random pairs; random triples of all tokens, and of proper ones (1 of 8 each);
- the proper tokens of both parts of a text, side by side (1 of 8): mostly proper, or nearly.

Of whole texts (`draw_texts_of`), where the pre-tokenizer has its say; texts are `tokdfa.lab.measure.text_mixture`'s:

- the library's own encodings (1 of 8), proper by definition;
- *variants* of one (4 of 8): two neighbours cut elsewhere, a token cut in two, or two made one. They spell the same
  text, whose encoding is known, so the reference says that they are improper;
- *splices* (3 of 8): the beginning of one encoding with the end of another, or a stretch of one. They spell other
  texts, in which borders of pieces may fall elsewhere; the library encodes them anew.
"""

from __future__ import annotations

import math
import random
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import OptionError
from tokdfa.lab.measure.judge import Judge, Tally, TokenSequences, reference_on_pieces, reference_on_texts
from tokdfa.lab.measure.text_mixture import draw_texts
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer

    Rows = npt.NDArray[Any]

#: Sequences that are judged at once: bounds the memory.
CHUNK = 40_000
#: Draws of a place for each variant; a short text may have none.
TRIES = 8


def judge_pieces(canonicity: Canonicity, count: int, seed: int, seconds: float = math.inf) -> Tally:
    """Judge `count` sequences as pieces, or as many as `seconds` allow. About 15 us each, hardly any of it ours."""
    drawn, judge, tally = np.random.default_rng(seed), Judge(canonicity), Tally(canonicity.vocabulary)
    end = time.perf_counter() + seconds
    while tally.judged < count and time.perf_counter() < end:
        sequences = draw_pieces(canonicity, min(CHUNK, count - tally.judged), drawn)
        started = time.perf_counter()
        expected = reference_on_pieces(canonicity, sequences)
        tally.reference_seconds += time.perf_counter() - started
        tally.add(judge, sequences, expected)
    return tally


def judge_texts(tokenizer: Tokenizer, count: int, seed: int, seconds: float = math.inf) -> Tally:
    """Judge `count` sequences as encodings of whole texts, pre-tokenizer included, or as many as `seconds` allow.

    40 to 60 us each, nearly all of it the drawing and the reference.

    Raises OptionError for a tokenizer of bytes without a pre-tokenizer: nothing in it knows which bytes are a text.
    """
    canonicity, marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
    if marked is None and canonicity.source.unit == "byte":
        raise OptionError(f"{tokenizer.name}: without a pre-tokenizer, sequences of bytes need not be texts")
    judge, tally = Judge(canonicity, marked), Tally(tokenizer.vocabulary)
    drawing = draw_texts_of(tokenizer, seed)
    end = time.perf_counter() + seconds
    while tally.judged < count and time.perf_counter() < end:
        rows = list(islice(drawing, min(CHUNK, count - tally.judged)))
        started = time.perf_counter()
        asked = np.array([k for k, (_, known) in enumerate(rows) if known is None], dtype=np.int64)
        answers = reference_on_texts(tokenizer, TokenSequences.of(rows[k][0] for k in asked))
        tally.reference_seconds += time.perf_counter() - started
        expected = np.array([known is True for _, known in rows], dtype=np.bool_)
        expected[asked] = answers
        tally.add(judge, TokenSequences.of(row for row, _ in rows), expected)
    return tally


def draw_pieces(canonicity: Canonicity, count: int, drawn: np.random.Generator) -> TokenSequences:
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
    rows: list[Sequence[int]] = [*edges.tolist(), *merging.tolist(), *pairs.tolist()]
    rows += drawn.choice(spelling, (int(kinds[4]), 3)).tolist()
    rows += drawn.choice(order, (int(kinds[5]), 3)).tolist()
    rows += _halves(canonicity, drawn.choice(order, (int(kinds[6]), 3)), drawn)
    return TokenSequences.of(rows)


def _halves(canonicity: Canonicity, triples: Rows, drawn: np.random.Generator) -> Iterator[list[int]]:
    """The reference's tokens of both halves of some text, side by side."""
    rules, spell, encode = canonicity.rules, canonicity.vocabulary.spell, canonicity.source.encode_piece
    for triple in triples.tolist():
        letters = [letter for token in triple for letter in rules.letters(token).tolist()]
        cut = int(drawn.integers(len(letters) + 1))
        yield [token for half in (letters[:cut], letters[cut:]) for token in encode(spell(half))]


def draw_texts_of(tokenizer: Tokenizer, seed: int) -> Iterator[tuple[list[int], bool | None]]:
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

"""Token sequences worth judging, drawn by chance, and our verdicts on them beside the reference library's.

``python -m tests.proper.judge NAME ... --count N`` judges N pieces and N texts of each tokenizer; the tests judge some
thousands. Of one *piece* (`draw_pieces`), where merging alone decides:

- pairs at the edges of an interval of forbidden successors, the last one inside or the first one outside, where a wrong
  bound would show (3 of 8);
- pairs that a rule merges; random pairs; random triples of all tokens, and of proper ones (1 of 8 each);
- the proper tokens of both parts of a text, side by side (1 of 8): mostly proper, or nearly.

`tokdfa.proper.explain` judges them by the test of one pair (`tokdfa.proper.adjacent_pairs`); where the interval lists
say something else of a pair, the verdict is None, *disputed*.

Of whole *texts* (`draw_texts_of`), where the pre-tokenizer has its say; texts are `tests.proper.text_mixture`'s:

- the library's own encodings (1 of 8), proper by definition;
- *variants* of one (4 of 8): two neighbours cut elsewhere, a token cut in two, or two made one. They spell the same
  text, whose encoding is known, so the reference says that they are improper;
- *splices* (3 of 8): the beginning of one encoding with the end of another, or a stretch of one. They spell other
  texts, in which borders of pieces may fall elsewhere; the library encodes them anew.

The matcher of all proper sequences judges them (`tokdfa.backends.proper.proper_texts`), which is what ``proper=True``
runs beside a grammar.
"""

from __future__ import annotations

import argparse
import random
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from tests.proper.replay_table import compare_with_replay
from tests.proper.text_mixture import draw_texts
from tokdfa.backends.proper import proper_texts
from tokdfa.errors import OptionError, TokenRefused
from tokdfa.proper.explain import explain
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import encode_exactly, load_tokenizer

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


def reference_says(canonicity: Canonicity, tokens: Tokens) -> bool:
    """Whether the reference library encodes the text of `tokens` (one piece) as `tokens`."""
    return reproduces(canonicity.source.encode_piece, tokens, canonicity.vocabulary)


def is_proper_piece(canonicity: Canonicity, tokens: Tokens) -> bool:
    """Whether the tokenizer makes exactly `tokens` of their text, taken as one piece."""
    return explain(canonicity, tokens) is None


def judge(canonicity: Canonicity, count: int, seed: int = 0) -> tuple[int, int]:
    """(proper, improper) among `count` pieces, all of which the reference judges alike; AssertionError if not."""
    proper, drawn = 0, np.random.default_rng(seed)
    for done in range(0, count, CHUNK):
        for tokens in draw_pieces(canonicity, min(CHUNK, count - done), drawn):
            ours, theirs = judge_piece(canonicity, tokens), reference_says(canonicity, tokens)
            assert ours is theirs, f"{list(tokens)}: {ours}, but the reference says {theirs}"
            if len(tokens) == 2 and tuple(tokens) not in canonicity.whole_piece_of and _is_text(canonicity, tokens):
                assert canonicity.pair_is_canonical(*tokens) == theirs, tokens
            proper += theirs
    return proper, count - proper


def judge_texts(tokenizer: Tokenizer, count: int, seed: int = 0) -> tuple[int, int]:
    """(proper, improper) among `count` whole texts, pre-tokenizer included; AssertionError as above.

    Raises UnsupportedConstraint for isolated tokens, whose texts are cut out before all this, and OptionError for a
    tokenizer of bytes without a pre-tokenizer: nothing in it knows which bytes are a text.
    """
    if load_marked_dfa(tokenizer) is None and load_canonicity(tokenizer).source.unit == "byte":
        raise OptionError(f"{tokenizer.name}: without a pre-tokenizer, sequences of bytes need not be texts")
    compiled, proper = proper_texts(tokenizer.vocabulary), 0
    for tokens, known in islice(draw_texts_of(tokenizer, seed), count):
        ours = judge_text(compiled, tokens)
        theirs = known
        if theirs is None:
            theirs = reproduces(lambda data: tokenizer.encode(data.decode()), tokens, tokenizer.vocabulary)
        assert ours is theirs, f"{list(tokens)}: {ours}, but the reference says {theirs}"
        proper += theirs
    return proper, count - proper


def _is_text(canonicity: Canonicity, tokens: Tokens) -> bool:
    """Whether byte fallback has no say: it looks at more than pairs."""
    return canonicity.fallback is None or all(canonicity.fallback.byte_of[token] < 0 for token in tokens)


def assert_replay_agrees(canonicity: Canonicity) -> None:
    """AssertionError unless the table that 002 replays equals the interval lists, for all pairs of tokens.

    Only where ranks rise along every derivation and no two results share a rank.
    """
    result = compare_with_replay(canonicity)
    assert (result.rows, result.differing) == (canonicity.size, 0)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizers", nargs="+", metavar="NAME")
    parser.add_argument("--count", type=int, default=1_000_000, help="pieces, and texts, of each tokenizer")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.tokenizers:
        tokenizer = load_tokenizer(name)
        for what, found in (
            ("pieces", judge(load_canonicity(tokenizer), given.count, given.seed)),
            ("texts", judge_texts(tokenizer, given.count, given.seed)),
        ):
            print(f"{name}: {given.count:,} {what}, {found[0]:,} proper, all as the reference says", flush=True)


if __name__ == "__main__":
    main()

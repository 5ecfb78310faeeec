"""Our verdict on token sequences, compiled, and the reference library's, on as many sequences as asked for.

`Judge` reads a sequence token by token, as a matcher does: it keeps the *hypotheses* (a state of the marked language,
how much of a whole piece's encoding has been seen, a state of the byte fallback) that the tokens so far may be in. A
token goes on inside the piece if it is proper, may follow the last one and can be read from the state; or it begins a
piece, if a border may stand there. The sequence is proper iff some hypothesis is left at the end that may end a text.
Without a marked language the sequence is one piece.

Whether a token may follow is asked twice, by the interval lists (`tokdfa.proper.intervals`) and by the test of one pair
(`tokdfa.proper.adjacent_pairs`); if they differ, the verdict is DISPUTED. Nothing here merges anything: the tables are
judged, not an encoder of ours.

Cost: 0.3 us a pair, 3 us for a text of 12 tokens. `tokdfa.lab.measure.judge_draws` draws sequences worth judging.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.errors import OptionError
from tokdfa.proper.adjacent_pairs import find_break_kernel, pair_arrays
from tokdfa.proper.intervals import is_listed_kernel
from tokdfa.proper.merge_rules import find_rule_kernel
from tokdfa.proper.pretokenizer_dfa import MarkedDfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.proper.whole_pieces import PLAIN, WHOLE
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Verdicts. DISPUTED: interval lists and pair test differ on a pair of the sequence.
IMPROPER, PROPER, DISPUTED = 0, 1, 2
#: How many examples of mismatches are kept.
EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class TokenSequences:
    """`tokens`: int32, those of all sequences; `starts`: int64, sequence k is ``tokens[starts[k] : starts[k + 1]]``."""

    tokens: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> TokenSequences:
        """The sequences in `rows`."""
        listed = list(rows)
        starts = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in listed], out=starts[1:])
        flat = [token for row in listed for token in row]
        return cls(np.array(flat, dtype=np.int32), starts)

    def lists(self) -> list[list[int]]:
        """Each sequence as a list."""
        tokens = self.tokens.tolist()
        return [tokens[begin:end] for begin, end in pairwise(self.starts.tolist())]

    def spell(self, vocabulary: Vocabulary) -> list[bytes]:
        """What each sequence spells."""
        lengths = vocabulary.lengths[self.tokens]
        ends = np.append(0, np.cumsum(lengths, dtype=np.int64))
        places = np.arange(ends[-1]) + np.repeat(vocabulary.offsets[self.tokens] - ends[:-1], lengths)
        data = vocabulary.byte_data[places].tobytes()
        return [data[begin:end] for begin, end in pairwise(ends[self.starts].tolist())]


class _Tables(NamedTuple):
    """What the kernels read: canonicity, whole pieces, byte fallback and the marked language, in flat arrays."""

    usable: npt.NDArray[np.bool_]
    pairs: tuple[npt.NDArray[np.int32], ...]
    number: npt.NDArray[np.int32]
    state_of: npt.NDArray[np.int32]
    list_starts: npt.NDArray[np.int32]
    list_begins: npt.NDArray[np.int32]
    list_ends: npt.NDArray[np.int32]
    byte_of: npt.NDArray[np.int16]
    fallback: npt.NDArray[np.int32]
    root: int
    is_whole: npt.NDArray[np.bool_]
    child_starts: npt.NDArray[np.int32]
    child_tokens: npt.NDArray[np.int32]
    child_nodes: npt.NDArray[np.int32]
    terminal: npt.NDArray[np.bool_]
    transitions: npt.NDArray[np.int32]
    byte_class: npt.NDArray[np.uint8]
    marker: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.bool_]
    start: int
    byte_data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


class Judge:
    """Verdicts on sequences of one tokenizer. `marked`: its marked language; None to take each sequence as one piece.

    Raises OptionError for a tokenizer with isolated tokens, whose texts are cut out before all this.
    """

    def __init__(self, canonicity: Canonicity, marked: MarkedDfa | None = None) -> None:
        if canonicity.source.isolated:
            raise OptionError("a tokenizer with isolated tokens cannot be judged: their texts are cut out first")
        vocabulary, lists, whole = canonicity.vocabulary, canonicity.lists, canonicity.whole_pieces
        fallback = canonicity.fallback
        is_whole = np.zeros(vocabulary.size, dtype=np.bool_)
        is_whole[whole.tokens] = True
        by_token = np.lexsort((whole.child_tokens, np.repeat(np.arange(whole.node_count), np.diff(whole.child_starts))))
        cutting = _one_piece() if marked is None else marked
        self._tables = _Tables(
            usable=np.array(canonicity.usable),
            pairs=pair_arrays(canonicity.rules, canonicity.derivations),
            number=canonicity.merge_tree.number,
            state_of=lists.state_of,
            list_starts=lists.list_starts,
            list_begins=lists.starts,
            list_ends=lists.ends,
            byte_of=np.full(vocabulary.size, -1, dtype=np.int16) if fallback is None else fallback.byte_of,
            fallback=np.full((1, 256), -1, dtype=np.int32) if fallback is None else fallback.table,
            root=whole.root,
            is_whole=is_whole,
            child_starts=whole.child_starts,
            child_tokens=whole.child_tokens[by_token],
            child_nodes=whole.child_nodes[by_token],
            terminal=whole.terminal,
            transitions=np.array(cutting.transitions),
            byte_class=np.array(cutting.byte_class),
            marker=np.array(cutting.marker),
            accepting=np.array(cutting.accepting),
            start=cutting.start,
            byte_data=np.array(vocabulary.byte_data),
            offsets=np.array(vocabulary.offsets),
        )

    def verdicts(self, sequences: TokenSequences) -> npt.NDArray[np.int8]:
        """IMPROPER, PROPER or DISPUTED for each sequence; int8. The empty sequence is proper."""
        out = np.empty(len(sequences), dtype=np.int8)
        _judge_sequences_kernel(sequences.tokens, sequences.starts, self._tables, out)
        return out


def _one_piece() -> MarkedDfa:
    """Every sequence of bytes is one piece."""
    state = np.zeros((1, 1), dtype=np.int32)
    return MarkedDfa(state, np.zeros(256, dtype=np.uint8), np.ones(1, dtype=np.bool_), 0, np.full(1, -1, np.int32))


def reference_on_pieces(canonicity: Canonicity, sequences: TokenSequences) -> npt.NDArray[np.bool_]:
    """Whether the reference library encodes what each sequence spells, taken as one piece, as that sequence; bool.

    2 to 10 us each. Bytes that are no text are never proper where letters are characters.
    """
    return _reproduced(canonicity.source.encode_piece, sequences, canonicity.vocabulary)


def reference_on_texts(tokenizer: Tokenizer, sequences: TokenSequences) -> npt.NDArray[np.bool_]:
    """Whether the reference library encodes the text of each sequence as that sequence; bool. 10 to 60 us each.

    What is not UTF-8 is no text, so never proper.
    """
    return _reproduced(lambda data: tokenizer.encode(data.decode()), sequences, tokenizer.vocabulary)


def _reproduced(
    encode: Callable[[bytes], Sequence[int]], sequences: TokenSequences, vocabulary: Vocabulary
) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(sequences), dtype=np.bool_)
    for k, (data, tokens) in enumerate(zip(sequences.spell(vocabulary), sequences.lists(), strict=True)):
        with contextlib.suppress(UnicodeDecodeError):
            found[k] = encode(data) == tokens
    return found


@dataclass
class Tally:
    """What has been judged so far, and how it came out.

    `proper`, `improper`: by the reference; `distinct`: different sequences among them; `disputed`: on how many the
    interval lists and the pair test differ (all of these are `mismatches` too); `examples`: the first mismatches;
    `our_seconds`: of the compiled judge; `reference_seconds`: of the library.
    """

    vocabulary: Vocabulary
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
        return len(self._seen)

    def add(self, judge: Judge, sequences: TokenSequences, expected: npt.NDArray[np.bool_]) -> None:
        """Judge `sequences`, of which the reference says `expected`."""
        started = time.perf_counter()
        verdicts = judge.verdicts(sequences)
        self.our_seconds += time.perf_counter() - started
        wrong = np.flatnonzero(verdicts != expected)
        self.proper += int(expected.sum())
        self.improper += int(len(expected) - expected.sum())
        self.mismatches += len(wrong)
        self.disputed += int((verdicts == DISPUTED).sum())
        rows = sequences.lists()
        self._seen.update(hash(tuple(row)) for row in rows)
        for place in wrong[: EXAMPLES - len(self.examples)].tolist():
            spelled = [self.vocabulary.token_bytes(token) for token in rows[place]]
            said = ("improper", "proper", "disputed")[verdicts[place]]
            theirs = "proper" if expected[place] else "improper"
            self.examples.append(f"{rows[place]} {spelled}: {said}, but the reference says {theirs}")


@kernel
def _judge_one_kernel(tokens, tables, here, there):  # type: ignore[no-untyped-def]
    """The verdict on `tokens`; -1 if there are more hypotheses than rows (state, node, fallback) in `here`."""
    here[0, 0], here[0, 1], here[0, 2] = tables.start, tables.root, 0
    count = 1
    for index in range(len(tokens)):
        token = tokens[index]
        byte = tables.byte_of[token]
        broken = False
        if index > 0 and tables.usable[tokens[index - 1]] and tables.usable[token]:
            last = tokens[index - 1]
            broken = find_break_kernel(last, token, *tables.pairs) >= 0
            listed = is_listed_kernel(
                tables.state_of[last], tables.number[token], tables.list_starts, tables.list_begins, tables.list_ends
            )
            if broken != listed:
                return DISPUTED
        kept = 0
        for which in range(2 * count):
            state, node, inside = here[which >> 1, 0], here[which >> 1, 1], here[which >> 1, 2]
            begins_piece = index == 0
            if which & 1:  # after a border
                if index == 0 or inside > 0 or tables.terminal[node]:
                    continue
                state, node = tables.marker[state], tables.root
                begins_piece = True
            if state < 0 or node == WHOLE or (broken and not begins_piece):
                continue
            if byte >= 0:
                inside = tables.fallback[inside, byte]
                if inside < 0:
                    continue
            elif inside > 0:
                continue
            if tables.usable[token]:
                child = find_rule_kernel(node, token, tables.child_starts, tables.child_tokens)
                following = tables.child_nodes[child] if child >= 0 else PLAIN
            elif begins_piece and tables.is_whole[token]:
                following = WHOLE
            else:
                continue
            for place in range(tables.offsets[token], tables.offsets[token + 1]):
                if state >= 0:
                    state = tables.transitions[state, tables.byte_class[tables.byte_data[place]]]
            if state < 0:
                continue
            is_new = True
            for k in range(kept):
                is_new &= there[k, 0] != state or there[k, 1] != following or there[k, 2] != inside
            if is_new:
                if kept == len(there):
                    return -1
                there[kept, 0], there[kept, 1], there[kept, 2] = state, following, inside
                kept += 1
        if kept == 0:
            return IMPROPER
        here, there = there, here
        count = kept
    for k in range(count):
        if tables.accepting[here[k, 0]] and not tables.terminal[here[k, 1]] and here[k, 2] == 0:
            return PROPER
    return IMPROPER


@kernel
def _judge_sequences_kernel(tokens, starts, tables, out):  # type: ignore[no-untyped-def]
    """The verdict on each sequence; hypotheses get more room when they need it."""
    here, there = np.empty((16, 3), dtype=np.int32), np.empty((16, 3), dtype=np.int32)
    for k in range(len(out)):
        verdict = -1
        while verdict < 0:
            verdict = _judge_one_kernel(tokens[starts[k] : starts[k + 1]], tables, here, there)
            if verdict < 0:
                here, there = np.empty((2 * len(here), 3), np.int32), np.empty((2 * len(here), 3), np.int32)
        out[k] = verdict


def _warm_up() -> None:
    """Compile the kernels of this page."""
    Judge(build_canonicity(load_tokenizer("bytes"))).verdicts(TokenSequences.of([[97, 98], [99]]))

"""One mask in several ways: what concatenation and union cost, by what is kept from one mask to the next.

The situations are those after each byte of some texts, each once. In a turn each way makes the mask of every one of
them; ways take turns, A B C, B C A, ... What is kept between masks:

- ``tree``: no mask. The vocabulary's split table, the vectors of lexer states and the tree of terminals with its groups
  of tokens; a mask is a descent of the tree that ORs groups (`tokdfa.backends.cfg_fsm.speculation`). Option ``memo:
  false``;
- ``nothing``: the split table. Vectors and tree are forgotten before each mask, which is not timed, and made again;
- ``product``: the split table and, for each situation, the vectors that 003 precomputes, packed. Their product is done
  for each mask (`Product`);
- ``walk``: no mask. The token trie is walked with sets of hypotheses;
- ``kept``: the mask itself, by situation; the backend as it is by default.

All keep the machine: tables, lexer states, and the stacks and situations that were met. Each mask is compared with that
of ``walk``, the plainest: ``differs`` counts the tokens.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.packed_vectors import multiply_kernel, pack
from tokdfa.backends.cfg_fsm.speculation import Speculation
from tokdfa.backends.cfg_fsm.splits import split_table
from tokdfa.backends.cfg_fsm.stacks import REFUSED
from tokdfa.backends.cfg_fsm.strategy import CfgFsm, CompiledCfgFsm
from tokdfa.backends.situations import SituationMatcher
from tokdfa.errors import OptionError
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.engines import spread
from tokdfa.lab.measure.measure import rotated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.packed_vectors import Packed
    from tokdfa.backends.cfg_fsm.splits import RestVectors
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Bools = npt.NDArray[np.bool_]

TREE, NOTHING, PRODUCT, WALK, KEPT = "tree", "nothing", "product", "walk", "kept"
#: Way -> options of the backend.
WAYS: dict[str, dict[str, Any]] = {
    TREE: {"memo": False},
    NOTHING: {"memo": False},
    PRODUCT: {"memo": False},
    WALK: {"memo": False, "masks": "walk"},
    KEPT: {},
}


class _Ready(NamedTuple):
    """Of a situation, packed. `inside`: over tokens; `prefixes`, `suffixes`: over cuts, row by row to be multiplied."""

    inside: Packed
    prefixes: Packed
    suffixes: Packed


class Product:
    """Makes masks by the product of 003, done anew for each: the tokens that run from one terminal into the next.

    A *cut* of a token is a prefix and a suffix, both not empty. For a lexer state and an outcome there is a vector over
    all cuts of the vocabulary: whether the lexeme may end so after the prefix. For the lexer state in which the next
    lexeme begins there is another: whether that lexeme takes the whole suffix. Their product marks the cuts whose
    tokens are allowed across this boundary ("RegexFSM() + RegexFSM()", the base case of two); tokens inside of one
    lexeme come from one more vector, and those that run through three terminals or more are not found. The vectors of a
    situation are made once, as 003 precomputes them, and packed into bits. `tokdfa.backends.cfg_fsm.speculation` does
    such a product once for each pair of lexer states and keeps what came out. `cut_count`: how many cuts the tokens
    have together.
    """

    def __init__(self, compiled: CompiledCfgFsm) -> None:
        self._machine, self._compiled, self._vocab = compiled.machine, compiled, compiled.vocab
        self._table = split_table(self._vocab)
        offsets, lengths = self._vocab.offsets, self._vocab.lengths
        is_cut = np.ones(len(self._table.rest_at), dtype=np.bool_)
        is_cut[offsets[:-1][lengths > 0]] = False
        self._cut_tokens = np.repeat(np.arange(self._vocab.size, dtype=np.int32), lengths)[is_cut]
        self._cut_rests = self._table.rest_at[is_cut]
        self.cut_count = len(self._cut_tokens)
        #: By place of a byte of the vocabulary, the cut before it.
        self._cut_at = np.cumsum(is_cut) - 1
        self._ready: dict[int, _Ready] = {}
        self._allowed: Packed = pack(np.zeros(self._vocab.size, dtype=np.bool_))

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors."""
        return sum(vectors.nbytes for one in self._ready.values() for vectors in one)

    def prepare(self, situation: int) -> None:
        """Make the vectors of a situation. Milliseconds."""
        inside = np.zeros(self._vocab.size, dtype=np.bool_)
        pairs: list[tuple[Bools, Bools]] = []
        for state, stack in self._machine.hypotheses.members[situation].tolist():
            vectors = self._table.vectors(self._machine.lexer, state)
            inside[self._table.tokens[vectors.after[self._table.wholes] >= 0]] = True
            prefixes = self._prefixes(vectors)
            for outcome, (label, residue) in enumerate(self._machine.lexer.outcomes.tolist()):
                after = self._machine.stacks.shift(stack, label)
                if after == REFUSED or not prefixes[outcome].any():
                    continue
                begin = int(self._machine.lexer.starts[residue, self._machine.stacks.context(after)])
                following = self._table.vectors(self._machine.lexer, begin)
                pairs.append((prefixes[outcome], following.after[self._cut_rests] >= 0))
        if self._compiled.can_end(situation):
            inside[list(self._vocab.end_tokens)] = True
        packed = np.zeros((2, len(pairs), (self.cut_count + 63) // 64), dtype=np.uint64)
        for row, (prefix, suffix) in enumerate(pairs):
            packed[0, row], packed[1, row] = pack(prefix), pack(suffix)
        self._ready[situation] = _Ready(pack(inside), packed[0], packed[1])

    def _prefixes(self, vectors: RestVectors) -> Bools:
        """By outcome and cut, whether the lexeme may end so after the prefix: bool, shape (O, cuts)."""
        table = self._table
        begins = vectors.begins[table.wholes]
        counts = vectors.begins[table.wholes + 1] - begins
        first = np.cumsum(counts) - counts
        exits = np.arange(counts.sum()) + np.repeat(begins - first, counts)
        ends = np.repeat(self._vocab.offsets[1:][table.tokens], counts)
        cuts = self._cut_at[ends - table.lengths[vectors.rests[exits]]]
        found = np.zeros((len(self._machine.lexer.outcomes), self.cut_count), dtype=np.bool_)
        found[vectors.outcomes[exits], cuts] = True
        return found

    def fill(self, situation: int, out: Mask) -> None:
        """Write the mask of a prepared situation, by one product for each pair of vectors."""
        ready = self._ready[situation]
        self._allowed[:] = ready.inside
        multiply_kernel(ready.prefixes, ready.suffixes, self._cut_tokens, self._allowed)
        out[:] = self._allowed.view(np.int32)[: len(out)]


@dataclass
class _Way:
    """One way at work. `fill` writes the mask of a situation, given by its place; `before` is done untimed."""

    name: str
    compiled: CompiledCfgFsm
    fill: Callable[[int, Mask], None]
    before: Callable[[], None] | None = None
    product: Product | None = None
    ns: list[list[int]] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)

    @property
    def kept_bytes(self) -> int:
        """Bytes of vectors, trees and masks that are kept."""
        filler = self.compiled.filler
        vectors = filler.nbytes if isinstance(filler, Speculation) else 0
        return self.product.nbytes if self.product is not None else vectors + self.compiled.masks.nbytes

    def turn(self, mask: Mask) -> list[int]:
        """The mask of every situation once, in ns."""
        found = []
        for place in range(len(self.masks)):
            if self.before is not None:
                self.before()
            started = time.perf_counter_ns()
            self.fill(place, mask)
            found.append(time.perf_counter_ns() - started)
        return found

    def work(self) -> dict[str, float | None]:
        """What a mask takes, a mean over the situations: nodes (of the tree, or of the trie), and nodes and vectors
        made; None where a way has no such thing.
        """
        before = dict(self.compiled.filler.counters)
        self.turn(self.masks[0].copy())
        grown = {
            name: (total - before[name]) / len(self.masks) for name, total in self.compiled.filler.counters.items()
        }
        if self.name in (PRODUCT, KEPT):
            grown = {}
        # a tree that does not pay is left for the trie
        nodes = [grown[name] for name in ("nodes_passed", "nodes_visited") if name in grown]
        made = {"nodes_made": grown.get("nodes_made"), "vectors": grown.get("vectors_made")}
        return {"nodes": sum(nodes) if nodes else None, **made}


def measure_ways(
    constraint: Constraint,
    vocab: Vocabulary,
    texts: Sequence[str],
    ways: Sequence[str],
    positions: int,
    turns: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """A row for each of `ways`: nanoseconds of a mask, masks per second (of the median turn), work and memory.

    `positions`: at most so many situations, evenly spread; `seconds`: after which a way sits out the `turns` that are
    left (there is always one). Raises what the backend raises, and OptionError if a text is not of the grammar.
    """
    found = [_make_way(name, constraint, vocab, texts, positions) for name in ways]
    work = [one.work() for one in found]
    left = dict.fromkeys(ways, seconds)
    mask = masks.allocate_mask(vocab.size)
    with collector_off():
        for turn in range(turns):
            for one in rotated(found, turn):
                if left[one.name] > 0:
                    begun = time.perf_counter()
                    one.ns.append(one.turn(mask))
                    left[one.name] -= time.perf_counter() - begun
    plain = next((one for one in found if one.name == WALK), found[0])
    return [{**_summary(one, plain), **made} for one, made in zip(found, work, strict=True)]


def _make_way(name: str, constraint: Constraint, vocab: Vocabulary, texts: Sequence[str], limit: int) -> _Way:
    """A way with its first masks made: whatever it keeps is there."""
    compiled = CfgFsm(vocab, **WAYS[name]).compile(constraint)
    assert isinstance(compiled, CompiledCfgFsm)
    situations = spread(situations_of(compiled, texts), limit)
    one = _Way(name, compiled, _filling(compiled, situations))
    filler = compiled.filler
    if name == NOTHING:
        assert isinstance(filler, Speculation)
        one.before = filler.clear
    if name == PRODUCT:
        product = one.product = Product(compiled)
        for situation in situations:
            product.prepare(situation)
        one.fill = lambda place, out: product.fill(situations[place], out)
    for place in range(len(situations)):
        mask = masks.allocate_mask(vocab.size)
        one.fill(place, mask)
        one.masks.append(mask)
    return one


def situations_of(compiled: CompiledCfgFsm, texts: Sequence[str]) -> list[int]:
    """The situations before and after each byte of the texts, each once. OptionError for a text not of the grammar."""
    found: dict[int, None] = {}
    for text in texts:
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        here = compiled.machine.start
        found[here] = None
        for place in range(len(data)):
            here = compiled.machine.run(here, data, place, place + 1)
            if here < 0:
                raise OptionError(f"the text {text!r} is not of the grammar {compiled.constraint.name!r}")
            found[here] = None
        if not compiled.can_end(here):
            raise OptionError(f"the text {text!r} of the grammar {compiled.constraint.name!r} is not complete")
    return list(found)


def _filling(compiled: CompiledCfgFsm, situations: Sequence[int]) -> Callable[[int, Mask], None]:
    """`Matcher.fill_mask` of a matcher in each situation."""
    matchers = []
    for situation in situations:
        matcher = compiled.start()
        assert isinstance(matcher, SituationMatcher)
        matcher.state = situation
        matchers.append(matcher)
    return lambda place, out: matchers[place].fill_mask(out)


def _summary(one: _Way, plain: _Way) -> dict[str, Any]:
    times = np.asarray(one.ns, dtype=np.float64)
    return {
        "way": one.name,
        "situations": len(one.masks),
        # of each situation the median: the wide ones count as they are, and what has interrupted a mask does not
        "mask_ns": float(np.median(times, axis=0).mean()),
        "ns_p99": float(np.percentile(times, 99)),
        "masks_per_s": 1e9 / float(np.median(times.mean(axis=1))),
        "allowed": float(np.mean([masks.count(mask) for mask in one.masks])),
        "differs": sum(masks.count(mine ^ theirs) for mine, theirs in zip(one.masks, plain.masks, strict=True)),
        "kept_bytes": one.kept_bytes,
        "lexer_states": one.compiled.machine.lexer.state_count,
    }

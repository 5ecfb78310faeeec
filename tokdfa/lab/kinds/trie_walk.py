"""The experiment ``kind: trie_walk``: nanoseconds a trie node, ours and a peer's, by mask density and vocabulary size.

One item is a tokenizer and a pattern. For the mask of the pattern's first state we time, in turn, A B C A B C:

- ``tokdfa``: `Matcher.fill_mask` of ``token_index`` with ``lazy=True`` and ``cache_masks=False``, so each call walks;
- ``tokdfa, walk alone``: the bare `tokdfa.vocabulary.byte_table.walk`, rows filled beforehand, into a mask;
- ``toktrie's loop`` and ``toktrie's loop, all bytes``: the walk of toktrie as its source prints it, over its own nodes
  (`tokdfa.vocabulary.walk_layout`), with alphabet compression and without; reads and writes of these and of our bare
  walk are counted, and ``python -m tests.vocabulary.count_instructions`` counts their instructions;
- ``earley_trie``: walks without tables and memories, a lexer and Earley rows at each node; a regex is a grammar of one
  lexeme;
- each peer: `Matcher.fill_mask` of a fresh fork of a matcher that has not made a mask yet, after another fork has made
  the same mask once. So tables that forks share are warm, and a peer that remembers its last mask cannot answer from
  memory. Forking is not timed.

An item of a grammar with texts has the rows of ``earley_trie`` and the peer: all masks of the texts, their times and
nodes summed, so that a node of a grammar's walk stands beside one of a regex's in one table.

``cycles`` are ``ns_per_node`` over what a cycle takes, measured beside the walks by a chain of dependent additions
(`tokdfa.vocabulary.cycle_clock`). ``ns_per_node`` divides by the nodes that our walk visits, for all engines: a peer's
own count is not visible, and the trie's shape is the same for everyone. The masks are compared; ``differs`` counts
tokens in which an engine differs from ours. Source of the question: 004 and 000 claim 13 cycles a node, and 000 that a
grammar's walk is almost as fast as a regex's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Curves, Kind, Pivot, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.contenders import positions
from tokdfa.lab.measure.settings import Strict
from tokdfa.regex.compile import compile_lazy
from tokdfa.vocabulary.byte_table import walk
from tokdfa.vocabulary.cycle_clock import cycle_ns
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.trie import build_trie
from tokdfa.vocabulary.walk_layout import source_nodes, walk_source

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pandas as pd

    from tokdfa.backends.base import Matcher
    from tokdfa.vocabulary.trie import TokenTrie

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]
    #: Nanoseconds of a mask, the mask, and its tokens.
    Fill = Callable[[], tuple[int, masks.Mask, int]]

#: A peer, and the options under which it really walks its trie.
PEER: Literal["llguidance"] = "llguidance"
PEER_OPTIONS = {"slices": "off"}
SOURCE = "toktrie's loop"
#: Our engine of grammars, and the options under which it walks the trie for every mask.
EARLEY = "earley_trie"
EARLEY_OPTIONS = {"mask": "walk", "memo": False, "memo_steps": False, "shared_effects": False}


class Settings(Strict):
    """`repeats`: masks of each engine, of a grammar so many in all, each three times at least; `peers`: whose walk is
    timed, too.
    """

    repeats: Annotated[int, Field(ge=1)] = 100
    peers: list[Literal["llguidance"]] = Field(default_factory=lambda: [PEER])


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one pattern or grammar; a row for each engine.

    `settings`: tokenizer (name), the fields of a regex or a grammar, and those of `Settings`. `seed` is not used.
    """
    typed, entry = item_settings(Settings, settings), item_constraint(settings)
    constraint, tokenizer = entry.build(), load_tokenizer(settings["tokenizer"])
    vocab = tokenizer.vocabulary
    peers = [create_backend(PEER, vocab, **PEER_OPTIONS).compile(constraint)] if typed.peers else []
    about: dict[str, Any] = {"build_ms": None}
    accesses: dict[str, tuple[float, float]] = {}
    if isinstance(constraint, Grammar) and entry.texts:
        ours, walks = EARLEY, [tokenizer.encode(written) for written in entry.texts]
        compiled = {EARLEY: create_backend(EARLEY, vocab, **EARLEY_OPTIONS).compile(constraint)}
        compiled |= {f"{PEER} slices off": peer for peer in peers}
        places = {engine: positions(one, walks) for engine, one in compiled.items()}
        engines = {engine: [_fill_fork(one) for one in matchers] for engine, matchers in places.items()}
        nodes = sum(_count_nodes(matcher, vocab.size) for matcher in places[EARLEY])
    elif isinstance(constraint, Regex):
        ours, table, trie = "tokdfa", compile_lazy(constraint), vocab.trie
        about["build_ms"] = 1e-6 * float(
            np.median([time_call(partial(build_trie, vocab.joined_bytes))[1] for _ in range(5)])
        )
        nodes = walk(trie, table, 0, masks.allocate_mask(vocab.size)).nodes_visited
        lazy = create_backend("token_index", vocab, lazy=True, cache_masks=False).compile(constraint)
        engines = {ours: [_fill_fork(lazy.start())]}
        engines["tokdfa, walk alone"] = [lambda: _timed_fill(lambda mask: walk(trie, table, 0, mask), vocab.size)]
        engines[EARLEY] = [_fill_fork(create_backend(EARLEY, vocab, **EARLEY_OPTIONS).compile(constraint).start())]
        layouts, accesses = _layouts(trie, table)
        engines |= {engine: [fill] for engine, fill in layouts.items()}
        engines |= {f"{PEER} slices off": [_fill_fork(peer.start())] for peer in peers}
    else:
        raise OptionError("trie_walk takes regexes, and grammars with texts, no other constraints")

    cycles = [cycle_ns()]
    count = len(engines[ours])
    found = _timed(engines, max(3, typed.repeats // count))  # a grammar has hundreds of masks, a pattern one
    cycles.append(cycle_ns())
    ns_per_cycle = sum(cycles) / len(cycles)
    ends = masks.mask_to_bool(masks.mask_from_ids(vocab.end_tokens, vocab.size), vocab.size)
    base = found[ours][1]
    rows = []
    for engine, (samples, allowed) in found.items():
        taken, mean_allowed = float(np.median(samples, axis=0).sum()), float(allowed.sum()) / count
        rows.append(
            {
                "tokenizer": settings["tokenizer"],
                "vocab_size": vocab.size,
                "trie_nodes": vocab.trie.node_count,
                "label": settings.get("label") or constraint.name,
                "engine": engine,
                "allowed": int(mean_allowed),
                "density": mean_allowed / vocab.size,
                # the bare walk knows nothing of end tokens
                "differs": int(((allowed != base) & ~ends).sum()),
                "nodes_visited": nodes,
                "ns_median": taken,
                "ns_min": float(samples.min(axis=0).sum()),
                "ns_per_node": taken / max(1, nodes),
                "ns_per_cycle": ns_per_cycle,
                "cycles": taken / max(1, nodes) / ns_per_cycle,
                **about,
                **dict(zip(("reads", "writes"), accesses.get(engine, (None, None)), strict=True)),
            }
        )
    return rows


def _timed(engines: dict[str, list[Fill]], turns: int) -> dict[str, tuple[Floats, Bools]]:
    """Nanoseconds of each engine's masks, (turns, masks), engines in turn; and the masks, (masks, tokens)."""
    taken: dict[str, Floats] = {engine: np.zeros((turns, len(fills))) for engine, fills in engines.items()}
    found: dict[str, list[Any]] = {engine: [] for engine in engines}
    with collector_off():
        for turn in range(-1, turns):  # the first turn warms up
            for place in range(max(map(len, engines.values()), default=0)):
                for engine, fills in engines.items():
                    nanoseconds, mask, size = fills[place]()
                    if turn >= 0:
                        taken[engine][turn, place] = nanoseconds
                    else:
                        found[engine].append(masks.mask_to_bool(mask, size))
    return {engine: (taken[engine], np.array(one)) for engine, one in found.items()}


def _count_nodes(matcher: Matcher, size: int) -> int:
    """The nodes that the matcher's mask visits."""
    forked = matcher.fork()
    before = forked.counters.get("nodes_visited", 0)
    forked.fill_mask(masks.allocate_mask(size))
    return forked.counters.get("nodes_visited", 0) - before


def _timed_fill(fill: Callable[[masks.Mask], object], size: int) -> tuple[int, masks.Mask, int]:
    """Nanoseconds of one fill of a fresh mask, the mask, and its tokens."""
    mask = masks.allocate_mask(size)
    return time_call(partial(fill, mask))[1], mask, size


def _fill_fork(matcher: Matcher) -> Fill:
    """A measurement of one mask of a matcher; the fork is made outside the clock."""
    return lambda: _timed_fill(matcher.fork().fill_mask, matcher.vocab.size)


def _layouts(trie: TokenTrie, table: Any) -> tuple[dict[str, Fill], dict[str, tuple[float, float]]]:
    """The walk of 004 with alphabet compression and without; reads and writes of a node, of these and our bare walk.

    Each node reads itself, the stack and the table, and its class if there are classes. One that survives reads and
    writes a word of the mask. toktrie pushes a state that survives, we every state.
    """
    nodes, classes = source_nodes(trie), table.class_count
    flat = np.array(table.transitions, dtype=np.int32)
    by_byte = flat.reshape(-1, classes)[:, table.byte_class]
    by_byte = np.where(by_byte >= 0, by_byte // classes * 256, by_byte).astype(np.int32).ravel()
    layouts: dict[str, tuple[Any, Any]] = {SOURCE: (flat, table.byte_class), f"{SOURCE}, all bytes": (by_byte, None)}
    words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
    visited, survived = walk_source(trie, nodes, flat, table.byte_class, 0, words)
    share = survived / visited
    counted = {
        SOURCE: (4 + share, 2 * share),
        f"{SOURCE}, all bytes": (3 + share, 2 * share),
        "tokdfa, walk alone": (4 + share, 1 + share),
    }

    def fill(parts: tuple[Any, Any]) -> tuple[int, masks.Mask, int]:
        words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        nanoseconds = time_call(partial(walk_source, trie, nodes, *parts, 0, words))[1]
        words[trie.size >> 5] &= np.uint32(~(1 << (trie.size & 31)) & 0xFFFFFFFF)  # the spare bit
        return nanoseconds, words.view(np.int32)[: masks.mask_words(trie.size)].copy(), trie.size

    return {engine: partial(fill, parts) for engine, parts in layouts.items()}, counted


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and those of each tokenizer's widest mask."""
    widest = rows["allowed"] == rows.groupby("tokenizer")["allowed"].transform("max")
    return {"": rows, "widest": rows[widest]}


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("label", "pattern"),
        text("engine"),
        Column("vocab_size", "vocabulary size"),
        Column("trie_nodes", "trie nodes"),
        Column("allowed", "allowed"),
        Column("density", "share of the vocabulary allowed", "share"),
        Column("differs", "tokens that differ", "", "lower", "tokens in which a mask is not that of tokdfa"),
        Column("reads", "reads of a node"),
        Column("writes", "writes of a node"),
        Column("nodes_visited", "nodes", "", "neither", "nodes that tokdfa's walk visits"),
        seconds("ns_median", "walk", "one mask, median of the repeats"),
        seconds("ns_per_node", "time per node", "over the nodes that tokdfa's walk visits"),
        Column("cycles", "cycles a node", "", "lower", "the same over the time of a cycle, measured beside it"),
        seconds("ns_per_cycle", "time of a cycle", "by a chain of dependent additions"),
        seconds("build_ms", "build time", "building the trie, median of five"),
    ),
    reference="tokdfa",
    case=("tokenizer", "label"),
    frames=frames,
    tables=(
        Pivot(
            "trie_walk",
            "Walks of the token trie",
            "The mask of a pattern's first state, again and again: median, and how it compares with tokdfa's.",
            rows=("tokenizer", "label"),
            beside=("allowed:max", Stat("density", "max", "share"), "nodes_visited", "differs:max"),
            value="ns_median",
        ),
        Pivot(
            "node_times",
            "Time per trie node, and cycles",
            "Time over the nodes that tokdfa's walk visits, for every engine; of a grammar, all masks of its texts. "
            "The same in cycles of this processor: what a chain of dependent additions says that a cycle takes, before "
            "and after the walks. 004 and 000 say 13 on an AMD EPYC.",
            rows=("tokenizer", "label"),
            beside=(Stat("density", "max", "share"), "ns_per_cycle"),
            value="ns_per_node",
            detail="cycles",
        ),
        Summary(
            "accesses",
            "Reads and writes of a node",
            "Means over the nodes visited, by how many survive. toktrie's page counts 5 reads and 2 writes where "
            "nothing is skipped; a node that is skipped writes nothing there, and a state here.",
            by=("engine", "tokenizer"),
            values=("reads:min", "reads:max", "writes:min", "writes:max"),
            where="reads.notna()",
        ),
        Summary(
            "tries",
            "The tries",
            by=("tokenizer",),
            values=("vocab_size", "trie_nodes", Quotient("trie_nodes", "vocab_size", "nodes per token"), "build_ms"),
        ),
    ),
    charts=(
        Curves(
            "node_time_density",
            "Time per trie node by mask density",
            "One point per pattern.",
            x="density",
            y="ns_per_node",
            panels="tokenizer",
            hover=("label",),
            where="density > 0",
        ),
        Curves(
            "node_time_vocabulary",
            "Time per trie node of the widest mask by vocabulary size",
            "Of each tokenizer the pattern that allows most tokens.",
            x="vocab_size",
            y="ns_per_node",
            hover=("tokenizer", "label"),
            frame="widest",
        ),
    ),
    sentences=(
        Say(
            "{tokenizer}: the widest mask ({allowed} tokens) takes tokdfa {time}, {node} a node.",
            per=("tokenizer",),
            blanks={"allowed": "allowed:max", "time": "ns_median", "node": "ns_per_node"},
            frame="widest",
            where="engine == 'tokdfa'",
        ),
    ),
)

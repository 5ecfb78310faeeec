"""The proper sequences of a tokenizer in figures: how many rules, tokens and states; what a token forbids, and by what.

Nothing else is built on these; they are for people who look at a tokenizer, and for comparing with 002, whose notebook
reports 12,260 as the largest count for Mistral v1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build, rules_folder

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer


@dataclass(frozen=True)
class Statistics:
    """Counts of a tokenizer's proper sequences, memory in bytes, times in seconds.

    `proper_tokens`, `improper_tokens`, `irregular_tokens`: see `tokdfa.proper.derivations`; `byte_tokens`: those that
    byte fallback uses; `whole_pieces`: the improper tokens that are proper as a whole piece. `states`, `intervals`: of
    the lists of forbidden successors. `largest_count`: the most tokens that a token forbids next; `largest_after`: the
    tokens that forbid so many. `memory_bytes`: rules, derivations, merge_tree, lists. `marked_states`, `marked_bytes`:
    the automaton of the pre-tokenizer, None without one. `build_seconds`: from the loaded tokenizer to the lists,
    without the disk; `load_seconds`: the same from the disk, verified (if `on_disk`; else built again).
    """

    tokens: int
    rules: int
    proper_tokens: int
    improper_tokens: int
    irregular_tokens: int
    byte_tokens: int
    isolated_tokens: int
    whole_pieces: int
    states: int
    intervals: int
    largest_count: int
    largest_after: tuple[int, ...]
    memory_bytes: int
    marked_states: int | None
    marked_bytes: int | None
    build_seconds: float
    on_disk: bool
    load_seconds: float


def collect_statistics(tokenizer: Tokenizer) -> Statistics:
    """The figures of `tokenizer`; both times are measured here and now: about 1 s for 131,072 tokens.

    Raises as `load_canonicity` and `load_marked_dfa` do.
    """
    canonicity = load_canonicity(tokenizer)  # from now on it is on the disk
    begin = time.perf_counter()
    build_canonicity(tokenizer)
    built = time.perf_counter()
    read_or_build(tokenizer, rules_folder())
    loaded = time.perf_counter()
    marked = load_marked_dfa(tokenizer)
    derivations, lists, fallback = canonicity.derivations, canonicity.lists, canonicity.fallback
    parts: list[Any] = [canonicity.rules, derivations, canonicity.merge_tree, lists, *filter(None, [fallback])]
    largest = int(canonicity.forbidden_counts.argmax())
    return Statistics(
        tokens=canonicity.size,
        rules=len(canonicity.rules),
        proper_tokens=int(derivations.is_proper.sum()),
        improper_tokens=len(canonicity.improper_tokens),
        irregular_tokens=len(derivations.irregular_tokens()),
        byte_tokens=0 if fallback is None else len(fallback.used_tokens()),
        isolated_tokens=len(canonicity.source.isolated),
        whole_pieces=len(canonicity.whole_piece_encodings),
        states=lists.state_count,
        intervals=len(lists.starts),
        largest_count=int(canonicity.forbidden_counts[largest]),
        largest_after=tuple(np.flatnonzero(lists.state_of == largest).tolist()),
        memory_bytes=sum(getattr(part, name).nbytes for part in parts for name in part.__match_args__),
        marked_states=None if marked is None else marked.state_count,
        marked_bytes=None if marked is None else marked.nbytes,
        build_seconds=built - begin,
        on_disk=any(rules_folder().glob(f"{tokenizer.fingerprint}-*.npz")),
        load_seconds=loaded - built,
    )


def forbidden_by_rule(canonicity: Canonicity, token: int) -> dict[int, list[int]]:
    """The first rule that merges across the border (an index in `MergeRules`) -> the tokens that may not follow.

    The rules that forbid most come first, the tokens in ascending order. 2 us for each forbidden token. Raises
    VocabularyError for a token that is not proper inside a piece.
    """
    starts, ends = canonicity.forbidden(token)
    order = canonicity.merge_tree.order
    parts = [order[begin:end] for begin, end in zip(starts, ends, strict=True)]
    forbidden = np.sort(np.concatenate([order[:0], *parts]))
    by_rule: dict[int, list[int]] = {}
    for follower in forbidden.tolist():
        by_rule.setdefault(canonicity.pairs.first_merge(token, follower), []).append(follower)
    return dict(sorted(by_rule.items(), key=lambda item: (-len(item[1]), canonicity.rules.rank[item[0]])))

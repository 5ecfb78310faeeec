"""The experiment ``kind: slices``: the claims of 000 on slices, one by one, with partitions beside them.

000: a slice is a part of the vocabulary that is often allowed as a whole; where it is, its ready mask is taken and its
tokens need no walk; this makes masks "about 10x faster for JSON schemas". So the questions are, for each constraint:

- how many times as fast as the walk over the whole trie are the masks: all of them, and the *wide* ones (at least half
  of the vocabulary), for which slices are meant;
- to how many masks a slice applies, and how many nodes are left to be walked;
- how many proofs of containment that took, and how many were given up;
- the same of partitions (`tokdfa.backends.earley_trie.partition`), which need no slices to be chosen;
- and of llguidance, whose walk and slices are compared with each other.

Nothing but the way of making a mask differs: our engines remember no masks and no steps, and read lexemes by the peer's
rule. The timed rounds are warm (`tokdfa.lab.measure.grammar_replay`), so they are about what slices save and not about
what is made once: tries of slices, proofs, partitions, lexer states, rows. That is in ``first_ns_mean``, of the first
round. llguidance has caches that cannot be switched off. Rows: one for each path and engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.measure.grammar_replay import (
    Engine,
    Replay,
    check_numbers,
    chosen,
    constraint_of,
    plan_paths,
    quantiles,
    replay,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

_PLAIN = {"lexer": "one_byte", "ignore": "between", "memo": False, "memo_steps": False, "shared_partitions": False}
_OURS, _PEER = "one_byte", "llguidance"
#: Engines by label; each after the walk that it is compared with.
ENGINES: dict[str, Engine] = {
    engine.label: engine
    for engine in (
        Engine("walk", "earley_trie", {**_PLAIN, "mask": "walk"}, _OURS),
        Engine("slices", "earley_trie", {**_PLAIN, "mask": "slices"}, _OURS),
        Engine("general slices", "earley_trie", {**_PLAIN, "mask": "slices", "slices": "general"}, _OURS),
        Engine("partition", "earley_trie", {**_PLAIN, "mask": "partition"}, _OURS),
        Engine("llguidance walk", "llguidance", {"slices": "off"}, _PEER),
        Engine("llguidance slices", "llguidance", {"slices": "default"}, _PEER),
    )
}
#: Engine -> the walk that it is compared with.
WALK_OF = {label: "walk" if engine.language == _OURS else "llguidance walk" for label, engine in ENGINES.items()}
#: A mask is wide from this share of the vocabulary on.
WIDE = 0.5


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    check_numbers("slices", settings, ("engines",))
    chosen(settings, "engines", ENGINES)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each path and engine.

    `settings`: tokenizer (name), label, grammar (and start) or regex, texts; engines (labels of `ENGINES`; all of them
    by default); walks, steps, text_tokens, rounds, seconds (see `replay` and `plan_paths`). `seed` decides the walks.
    """
    constraint, tokenizer = constraint_of(settings), load_tokenizer(settings["tokenizer"])
    engines = [ENGINES[label] for label in chosen(settings, "engines", ENGINES)]
    size = tokenizer.vocabulary.size
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": size,
        "trie_nodes": tokenizer.vocabulary.trie.node_count,
        "constraint": settings.get("label") or constraint.name,
    }
    return [
        {**place, "path": path, **_names(one.engine), **_summary(one, size)}
        for path, walks in plan_paths(settings, constraint, tokenizer, ENGINES["walk"], seed).items()
        for one in replay(engines, constraint, tokenizer, walks, settings, warm=True)
    ]


def _names(engine: Engine) -> dict[str, Any]:
    """Which engine it is, the walk that it is compared with, and how it makes masks (None: llguidance knows)."""
    return {
        "engine": engine.label,
        "backend": engine.backend,
        "walk": WALK_OF[engine.label],
        "mask": engine.options.get("mask"),
    }


def _summary(one: Replay, size: int) -> dict[str, Any]:
    """The numbers of an engine on one path, over all masks and over the wide ones."""
    wide = np.asarray(one.allowed) >= WIDE * size
    applied = np.asarray([work.get("slices_applied", 0) > 0 for work in one.work], dtype=np.bool_)
    nodes = np.asarray([work.get("nodes_visited", 0) for work in one.work], dtype=np.int64)
    times: npt.NDArray[np.int64] = np.asarray(one.mask_ns, dtype=np.int64)
    known = len(times) > 0
    return {
        "status": one.status,
        "message": one.message,
        "rounds": len(times),
        "first_ns_mean": float(np.mean(one.first_ns)) if one.first_ns else None,
        **quantiles(one.mask_ns, "mask_ns"),
        **quantiles(times[:, wide].tolist() if known and wide.any() else [], "wide_ns"),
        "masks": len(one.allowed),
        "wide_masks": int(wide.sum()),
        "applied": int(applied.sum()),
        "wide_applied": int((applied & wide).sum()),
        "nodes_visited": int(nodes.sum()),
        "wide_nodes": int(nodes[wide].sum()),
        "slice_tokens": one.total("slice_tokens"),
        **{name: one.total(name, first=True) for name in ("slice_proofs", "slice_proofs_given_up")},
    }

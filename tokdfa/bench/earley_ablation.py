"""The experiment ``kind: earley_ablation``: what does each part of the Earley engine buy, and how much work is left?

One item is a tokenizer and a grammar with its texts. The variants of ``earley_trie`` in `VARIANTS` drive along random
walks and along the texts (`tokdfa.bench.grammar_replay`). Two kinds of rows come out, told apart by the column ``row``:

- ``variant``: one for each path and variant. Times of compiles, masks and advances; how many masks were made anew and
  how many situations there were; nodes that the walks visited; at how many of them a lexeme ended; and how often the
  parser was asked: what it had been asked before is looked up, and of what is new some rows are found to be there.
- ``mask``: one for each of at most ``points`` positions of a path, evenly spread, for the variants in `DRAWN`: how many
  tokens the mask allows, and the median time it took. This is the figure of 000, time against mask density.

All variants take the random walks of one_byte, whose language is within that of longest. Rounds are cold. Where
partitions are shared between grammars, they are there before the timed rounds begin, from the first: as if another
grammar had met the same lexemes. A node at which a fallback is stepped along (`tokdfa.grammar.machine`) is not counted
as one where a lexeme ends, so the shares to compare with 000's "under 0.5 %" are those of one_byte, which has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.bench.grammar_replay import (
    Engine,
    Replay,
    check_numbers,
    chosen,
    constraint_of,
    plan_paths,
    quantiles,
    replay,
)
from tokdfa.bench.workloads import canonical_json
from tokdfa.errors import OptionError
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

_BARE = {"memo": False, "memo_steps": False, "shared_partitions": False}
#: Variant -> its options. What is not named is as by default.
VARIANTS: dict[str, dict[str, Any]] = {
    "all on": {},
    "cold partitions": {"shared_partitions": False},
    "no mask memo": {"memo": False},
    "no step memo": {"memo_steps": False},
    "partition": {**_BARE},
    "slices": {**_BARE, "mask": "slices"},
    "walk": {**_BARE, "mask": "walk"},
    "one_byte": {"lexer": "one_byte"},
    "one_byte walk": {**_BARE, "mask": "walk", "lexer": "one_byte"},
}
#: Variants whose single masks are kept, for the plot of time against density.
DRAWN = ("all on", "partition", "slices", "walk")
#: The engine that decides the random walks.
DECIDER = Engine("decider", "earley_trie", {"lexer": "one_byte"}, "one_byte")
#: Settings besides those of `tokdfa.bench.grammar_replay`; points is a number of positions.
POINTS = 200


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    check_numbers("earley_ablation", settings, ("variants", "points"))
    chosen(settings, "variants", VARIANTS)
    points = settings.get("points", POINTS)
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise OptionError(f"settings.points must be a positive int, not {points!r}")


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one grammar; rows as the module's page says.

    `settings`: tokenizer (name), label, grammar (and start) or regex, texts; variants (labels of `VARIANTS`; all of
    them by default), points (default 200); walks, steps, text_tokens, rounds, seconds (see `replay` and `plan_paths`).
    `seed` decides the random walks.
    """
    constraint, tokenizer = constraint_of(settings), load_tokenizer(settings["tokenizer"])
    engines = [_engine(label) for label in chosen(settings, "variants", VARIANTS)]
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": tokenizer.vocabulary.size,
        "constraint": settings.get("label") or constraint.name,
    }
    rows = []
    for path, walks in plan_paths(settings, constraint, tokenizer, DECIDER, seed).items():
        for one in replay(engines, constraint, tokenizer, walks, settings):
            here = {**place, "path": path, "variant": one.engine.label}
            rows.append({"row": "variant", **here, **_summary(one)})
            if one.ok and one.engine.label in DRAWN:
                rows += [{"row": "mask", **here, **mask} for mask in _points(one, settings.get("points", POINTS))]
    return rows


def _engine(label: str) -> Engine:
    options = VARIANTS[label]
    return Engine(label, "earley_trie", options, options.get("lexer", "longest"))


def _summary(one: Replay) -> dict[str, Any]:
    """The numbers of a variant on one path; None where it failed before there were any."""
    rounds = one.compile_ns
    return {
        "options": canonical_json(dict(one.engine.options)),
        "status": one.status,
        "message": one.message,
        "rounds": len(rounds),
        "masks": len(one.allowed),
        "compile_s": float(np.median(rounds)) * 1e-9 if rounds else None,
        **quantiles(one.mask_ns, "mask_ns"),
        **quantiles(one.advance_ns, "advance_ns"),
        "masks_made": one.total("masks_made"),
        "nodes_visited": one.total("nodes_visited"),
        "lexeme_ends": one.total("lexeme_ends"),
        "mask_scans": one.total("rows_scanned"),
        **one.held,
    }


def _points(one: Replay, limit: int) -> list[dict[str, Any]]:
    """At most `limit` positions, evenly spread: tokens allowed, and the median time over the rounds."""
    times = np.median(np.asarray(one.mask_ns, dtype=np.float64), axis=0)
    return [
        {
            "position": position,
            "allowed": one.allowed[position],
            "ns": float(times[position]),
            "nodes_visited": one.work[position].get("nodes_visited", 0),
        }
        for position in spread_out(range(len(times)), limit)
    ]


def spread_out(positions: Sequence[int], limit: int) -> list[int]:
    """At most `limit` of the positions, evenly spread."""
    count = min(limit, len(positions))
    return [positions[number * len(positions) // count] for number in range(count)]

"""The experiment ``kind: engine_ablation``: what does each part of a grammar engine buy, and how much work is left?

One item is a tokenizer and a constraint with its texts, mostly a grammar. The variants of one engine (`FAMILIES`; the
setting ``engine`` names it), and whatever stands beside them, drive along random walks and along the texts
(`tokdfa.lab.measure.grammar_replay`), which checks that those of one lexing rule give the same masks. Two kinds of rows
come out, told apart by the column ``row``:

- ``variant``: one for each path and variant. Times of compiles, masks and advances; how many masks were made anew and
  how many situations there were; nodes that the walks visited; what the compiled constraint holds in the end. Of
  ``earley_trie`` also at how many nodes a lexeme ended, and how often the parser was asked: what it had been asked
  before is looked up, and of what is new some rows are found to be there. A peer counts nothing.
- ``mask``: one for each of at most ``points`` positions of a path, evenly spread, for the variants that are drawn: how
  many tokens the mask allows, and the median time it took. This is the figure of 000, time against mask density.

A family's `decider` makes the random walks; its language is within those of all variants, so that none refuses a token.
Rounds are cold. What constraints of a vocabulary share (partitions, automata) is there before the timed rounds begin,
from the first: as if another grammar had met the same lexemes. With ``earley_trie`` a node at which a fallback is
stepped along (`tokdfa.backends.earley_trie.machine`) is not counted as one where a lexeme ends, so the shares to
compare with 000's "under 0.5 %" are those of one_byte, which has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import OptionError, UnknownNameError
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
from tokdfa.lab.measure.workloads import canonical_json
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Family:
    """The variants of one engine by label, with what stands beside them.

    `decider` makes the random walks; `drawn`: the variants whose single masks are kept, for the plot of time against
    density.
    """

    variants: Mapping[str, Engine]
    decider: Engine
    drawn: tuple[str, ...]


def _engines(backend: str, default: str, options_by_label: Mapping[str, dict[str, Any]]) -> dict[str, Engine]:
    """Variants of a backend; those of one value of the option ``lexer`` have one language."""
    return {
        label: Engine(label, backend, options, options.get("lexer", default))
        for label, options in options_by_label.items()
    }


def _beside(backend: str, language: str) -> dict[str, Engine]:
    return {backend: Engine(backend, backend, {}, language)}


_EARLEY_BARE = {"memo": False, "memo_steps": False, "shared_partitions": False}
_PUSHDOWN_BARE = {"memo": False, "shared": False}
#: The rule of llguidance. Its language is within that of longest match, which is within that of any match.
_ONE_BYTE = {"lexer": "one_byte", "ignore": "between"}

#: Engine -> its variants. Labels that families share mean the same. What is not named is as by default.
FAMILIES: dict[str, Family] = {
    "earley_trie": Family(
        _engines(
            "earley_trie",
            "longest",
            {
                "all on": {},
                "cold partitions": {"shared_partitions": False},
                "no clipping": {"shared_partitions": False, "clip_counters": False},
                "no mask memo": {"memo": False},
                "no step memo": {"memo_steps": False},
                "partition": {**_EARLEY_BARE},
                "no first byte": {**_EARLEY_BARE, "first_byte": False},
                "slices": {**_EARLEY_BARE, "mask": "slices"},
                "walk": {**_EARLEY_BARE, "mask": "walk"},
                "one_byte": {"lexer": "one_byte"},
                "one_byte walk": {**_EARLEY_BARE, "mask": "walk", "lexer": "one_byte"},
            },
        ),
        Engine("decider", "earley_trie", {"lexer": "one_byte"}, "one_byte"),
        ("all on", "partition", "slices", "walk"),
    ),
    "pushdown_trie": Family(
        {
            **_engines(
                "pushdown_trie",
                "longest",
                {
                    "all on": {},
                    "not shared": {"shared": False},
                    "no mask memo": {"memo": False},
                    "no subtrees": {"subtrees": False},
                    "no partition": {"partition": False},
                    "no first bytes": {"first_bytes": False},
                    "subtrees": {**_PUSHDOWN_BARE},
                    "partition": {**_PUSHDOWN_BARE, "subtrees": False},
                    "walk": {**_PUSHDOWN_BARE, "partition": False},
                    "any": {"lexer": "any"},
                    "any, no mask memo": {"lexer": "any", "memo": False},
                    "any, no exits": {"lexer": "any", "memo": False, "exits": False},
                    "any walk": {**_PUSHDOWN_BARE, "partition": False, "lexer": "any"},
                },
            ),
            **_beside("earley_trie", "longest"),
            **_beside("llguidance", "llguidance"),
        },
        Engine("decider", "earley_trie", _ONE_BYTE, "one_byte"),
        ("all on", "no mask memo", "walk", "llguidance"),
    ),
}
#: Settings besides those of `tokdfa.lab.measure.grammar_replay`; points is a number of positions.
POINTS = 200


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    check_numbers("engine_ablation", settings, ("engine", "variants", "points"))
    chosen(settings, "variants", family_of(settings).variants)
    points = settings.get("points", POINTS)
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise OptionError(f"settings.points must be a positive int, not {points!r}")


def family_of(settings: Mapping[str, Any]) -> Family:
    """The family that ``settings["engine"]`` names. Raises OptionError or UnknownNameError."""
    if "engine" not in settings:
        raise OptionError(f"settings.engine must say whose parts are meant: {' or '.join(FAMILIES)}")
    if not isinstance(settings["engine"], str) or settings["engine"] not in FAMILIES:
        raise UnknownNameError("engine of engine_ablation", str(settings["engine"]), FAMILIES)
    return FAMILIES[settings["engine"]]


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; rows as the module's page says.

    `settings`: tokenizer (name), label, grammar (and start) or regex, texts; engine (a name of `FAMILIES`), variants
    (labels of it; all of them by default), points (default 200); walks, steps, text_tokens, rounds, seconds (see
    `replay` and `plan_paths`). `seed` decides the random walks.
    """
    constraint, tokenizer = constraint_of(settings), load_tokenizer(settings["tokenizer"])
    family = family_of(settings)
    engines = [family.variants[label] for label in chosen(settings, "variants", family.variants)]
    place = {
        "engine": settings["engine"],
        "tokenizer": settings["tokenizer"],
        "vocab_size": tokenizer.vocabulary.size,
        "constraint": settings.get("label") or constraint.name,
    }
    rows = []
    for path, walks in plan_paths(settings, constraint, tokenizer, family.decider, seed).items():
        for one in replay(engines, constraint, tokenizer, walks, settings):
            here = {**place, "path": path, "variant": one.engine.label}
            rows.append({"row": "variant", **here, **_summary(one)})
            if one.ok and one.engine.label in family.drawn:
                rows += [{"row": "mask", **here, **mask} for mask in _points(one, settings.get("points", POINTS))]
    return rows


def _summary(one: Replay) -> dict[str, Any]:
    """The numbers of a variant on one path; None where it failed before there were any, or counts no such thing."""
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
        "masks_made": _counted(one, "masks_made"),
        "nodes_visited": _counted(one, "nodes_visited"),
        "lexeme_ends": _counted(one, "lexeme_ends"),
        "mask_scans": _counted(one, "rows_scanned"),
        **one.held,
    }


def _counted(one: Replay, counter: str) -> int | None:
    """The sum of a counter over the positions of the last round; None if the engine has no such counter."""
    return one.total(counter) if any(counter in work for work in one.work) else None


def _points(one: Replay, limit: int) -> list[dict[str, Any]]:
    """At most `limit` positions, evenly spread: tokens allowed, and the median time over the rounds."""
    times = np.median(np.asarray(one.mask_ns, dtype=np.float64), axis=0)
    return [
        {
            "position": position,
            "allowed": one.allowed[position],
            "ns": float(times[position]),
            "nodes_visited": one.work[position].get("nodes_visited"),
        }
        for position in spread_out(range(len(times)), limit)
    ]


def spread_out(positions: Sequence[int], limit: int) -> list[int]:
    """At most `limit` of the positions, evenly spread."""
    count = min(limit, len(positions))
    return [positions[number * len(positions) // count] for number in range(count)]

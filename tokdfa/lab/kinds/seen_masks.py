"""The experiment ``kind: seen_masks``: what a mask costs when its state has been seen before.

The other experiments replay walks, so their masks are partly first visits, and they measure the engines in turn, step
by step, so each finds the caches full of the others' data. In a decoding loop one engine runs by itself and meets the
same few states again and again. Here each engine gets blocks of its own: a matcher for each position of a seeded random
walk fills its mask once, untimed; then all of them are filled again and again, in blocks of one engine, A B C A B C.

An engine that remembers only its last mask answers from memory too, as every position has a matcher of its own.
Rows: median and 99th percentile in nanoseconds over all positions and rounds, the Python call included.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.lab.measure.clock import collector_off
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher

#: Engines by label, unless the experiment names its own: (backend, options).
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    "token_index": ("token_index", {}),
    "token_index lazy": ("token_index", {"lazy": True}),
    "tokens_dfa": ("tokens_dfa", {}),
    "llguidance": ("llguidance", {}),
    "outlines_core": ("outlines_core", {}),
    "glrmask": ("glrmask", {}),
}


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one regex; a row for each engine.

    `settings`: tokenizer (name), label, regex (and search, ascii_classes, flags), engines (labels of `ENGINES`; all of
    them by default), steps (positions of the walk, default 20), rounds (default 20).
    """
    vocab = load_tokenizer(settings["tokenizer"]).vocabulary
    names = ("search", "ascii_classes", "flags")
    constraint = Regex(settings["regex"], **{name: settings[name] for name in names if name in settings})
    mask = masks.allocate_mask(vocab.size)
    compiled = {}
    for label in settings.get("engines") or ENGINES:
        backend, options = ENGINES[label]
        compiled[label] = create_backend(backend, vocab, **options).compile(constraint)
    tokens = _walk(next(iter(compiled.values())).start(), seed, int(settings.get("steps", 20)))

    matchers: dict[str, list[Matcher]] = {}
    for label, ready in compiled.items():
        matcher = ready.start()
        matchers[label] = [matcher.fork()]
        for token in tokens:
            matcher.advance(token)
            matchers[label].append(matcher.fork())
        for position in matchers[label]:
            position.fill_mask(mask)

    samples: dict[str, list[int]] = {label: [] for label in compiled}
    with collector_off():
        for _ in range(int(settings.get("rounds", 20))):
            for label, positions in matchers.items():
                positions[0].fill_mask(mask)  # brings the engine's code back into the caches
                for position in positions:
                    started = time.perf_counter_ns()
                    position.fill_mask(mask)
                    samples[label].append(time.perf_counter_ns() - started)
    return [
        {
            "tokenizer": settings["tokenizer"],
            "vocab_size": vocab.size,
            "constraint": settings.get("label") or constraint.name,
            "engine": label,
            "positions": len(matchers[label]),
            "samples": len(nanoseconds),
            "ns_median": float(np.median(nanoseconds)),
            "ns_p99": float(np.percentile(nanoseconds, 99)),
        }
        for label, nanoseconds in samples.items()
    ]


def _walk(matcher: Matcher, seed: int, steps: int) -> list[int]:
    """Tokens of a walk, uniform among the allowed ones, that takes no end token."""
    random = np.random.default_rng(seed)
    vocab = matcher.vocab
    mask = masks.allocate_mask(vocab.size)
    tokens: list[int] = []
    while len(tokens) < steps:
        matcher.fill_mask(mask)
        allowed = [token for token in masks.mask_to_ids(mask).tolist() if token not in vocab.end_token_set]
        if not allowed:
            break
        tokens.append(int(random.choice(allowed)))
        matcher.advance(tokens[-1])
    return tokens

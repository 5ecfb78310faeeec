"""The fixed cost of a mask in which hardly anything is allowed, beside llguidance.

    python -m tests.backends.earley_trie.narrow_masks

New masks, nothing remembered: `earley_trie` by a walk of the trie and by effects, and llguidance with its slices off,
each of whose masks is made by a fork of its own, as it remembers the last one. Processor time of a call from Python in
microseconds, the least of ROUNDS rounds in turn; the nodes that the walk visits, and the tokens allowed.
"""

from __future__ import annotations

import time

import numpy as np

import tokdfa
from tests.walks import mask_of
from tokdfa.lab.measure.clock import collector_off

GRAMMAR = tokdfa.Grammar(
    'start: ("interface" NAME "{" NUM "}" | "port" "=" NUM ";" | "flag" "=" ("true" | "false") ";")+\n'
    'NAME: /[a-z]+/\nNUM: /[0-9]+/\n%ignore " "\n'
)
#: Where the mask is made, and the text so far.
PLACES = {"in a keyword": "inter", "in a literal": "flag =tr", "punctuation": "port", "digits": "port ="}
NEW = {"memo": False, "memo_steps": False, "shared_effects": False}
WAYS = {
    "walk": ("earley_trie", {"mask": "walk", **NEW}),
    "effects": ("earley_trie", {"mask": "effects", **NEW}),
    "llguidance": ("llguidance", {"slices": "off"}),
}
ROUNDS, CALLS = 15, 200


def measured(tokenizer: str) -> None:
    """Print a line for each place."""
    vocab = tokdfa.load_tokenizer(tokenizer).vocabulary
    single = {vocab.token_bytes(token): token for token in np.flatnonzero(vocab.lengths == 1).tolist()}
    compiled = {way: tokdfa.compile(GRAMMAR, vocab, backend, **given) for way, (backend, given) in WAYS.items()}
    out = tokdfa.allocate_mask(vocab.size)
    for place, text in PLACES.items():
        matchers = {way: one.start() for way, one in compiled.items()}
        for byte in text.encode():
            for matcher in matchers.values():
                matcher.advance(single[bytes([byte])])
        # twice, so that what is made once is there
        found = [mask_of(matcher.fork()) for matcher in matchers.values() for _ in range(2)]
        assert all(mask == found[0] for mask in found)
        walked = matchers["walk"].fork()
        walked.fill_mask(out)
        best = dict.fromkeys(WAYS, float("inf"))
        with collector_off():
            for _ in range(ROUNDS):
                for way, matcher in matchers.items():
                    forks = [matcher.fork() for _ in range(CALLS)]
                    started = time.process_time_ns()
                    for fork in forks:
                        fork.fill_mask(out)
                    best[way] = min(best[way], (time.process_time_ns() - started) / CALLS / 1_000)
        times = "".join(f"{best[way]:12.2f}" for way in WAYS)
        print(f"{tokenizer:12} {place:14}{walked.counters['nodes_visited']:7} {len(found[0]):7}{times}")


if __name__ == "__main__":
    print(f"{'vocabulary':12} {'place':14}{'nodes':>7} {'allowed':>7}" + "".join(f"{way:>12}" for way in WAYS))
    for name in ("mistral-v1", "llama3", "tekken"):
        measured(name)

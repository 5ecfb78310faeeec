"""Masks a second of two terminals in a row, by the product that Outlines issue 669 describes.

    python -m tests.backends.cfg_fsm.product_speed

The issue has 44,191 concatenated masks a second over 32,000 tokens, one core. Here, for six pairs of terminals and two
vocabularies, at the states of the first terminal after each byte of some texts:

- ``product``: the vectors of the states are there, packed (`tokdfa.backends.cfg_fsm.regex_fsm`); a mask is their
  product, done anew each time into a packed buffer;
- ``tree``: `cfg_fsm` without kept masks, at the same places.

Both are timed in turns; the best of the turns is printed. Masks are compared with those of `RegexFsm.mask`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

import tokdfa
from tokdfa.backends.cfg_fsm.cuts import multiply
from tokdfa.backends.cfg_fsm.regex_fsm import RegexFsm, labels_of
from tokdfa.lab.measure.clock import collector_off

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.mask import Mask

#: Two terminals, and beginnings of the first; the issue's own example, and wider ones.
PAIRS = [
    ("A", "B", ["A"]),
    ("[A-Z][a-z]+", " [A-Z][a-z]+", ["Happy", "An"]),
    ("[a-z]+", r"[0-9]+(\.[0-9]+)?", ["word", "a"]),
    ('"[^"]*"', '[^"]+', ['"a text"', '""']),
    ("AAB?", "BD", ["AAB"]),
    (r"[ \t]*//[^\n]*", r"\n/aaa/", ["  // why", "//"]),
]
TURNS, ROUNDS = 15, 40


def compared(first: str, second: str, texts: list[str], tokenizer: str) -> tuple[float, float, int]:
    """Masks a second of both ways, and how many masks of the product differ from those of `RegexFsm.mask`."""
    vocab = tokdfa.load_tokenizer(tokenizer).vocabulary
    labels = labels_of(vocab)
    left, right = RegexFsm(first, vocab), RegexFsm(second, vocab)
    begin = right._terminal.vectors(right._state)
    prefixes = list(dict.fromkeys(text.encode()[:end] for text in texts for end in range(len(text) + 1)))
    states = [left.after(prefix) for prefix in prefixes]
    vectors = [one._terminal.vectors(one._state) for one in states]
    words = (labels.token_cuts + 63) // 64  # cuts of tokens come first
    taken = begin.taken[:words]
    begun = [one.begun[:words] for one in vectors]
    # where the first may end, the second may begin
    inside = [
        one.inside | begin.inside if state.can_end else one.inside for one, state in zip(vectors, states, strict=True)
    ]
    allowed = np.zeros(labels.words, dtype=np.uint64)

    def product(place: int) -> None:
        allowed[:] = inside[place]
        multiply(begun[place], taken, labels.wholes, allowed)

    differing = 0
    for place, state in enumerate(states):
        product(place)
        mine = tokdfa.mask_to_bool(allowed.view(np.int32), vocab.size)
        theirs = tokdfa.mask_to_bool((state + right).mask(), vocab.size)
        mine[list(vocab.end_tokens)] = theirs[list(vocab.end_tokens)]
        differing += bool((mine != theirs).any())

    grammar = tokdfa.Grammar(
        f"start: A B\nA: /{first.replace('/', chr(92) + '/')}/\nB: /{second.replace('/', chr(92) + '/')}/\n"
    )
    compiled = tokdfa.compile(grammar, vocab, backend="cfg_fsm", memo=False)
    single = {vocab.token_bytes(token): token for token in np.flatnonzero(vocab.lengths == 1).tolist()}
    matchers = []
    for prefix in prefixes:
        matcher = compiled.start()
        for byte in prefix:
            matcher.advance(single[bytes([byte])])
        matchers.append(matcher)
    out: Mask = tokdfa.allocate_mask(vocab.size)
    ways: list[Callable[[int], None]] = [product, lambda place: matchers[place].fill_mask(out)]
    best = [float("inf")] * len(ways)
    with collector_off():
        for turn in range(TURNS):
            for number in ((0, 1), (1, 0))[turn % 2]:
                started = time.perf_counter()
                for _ in range(ROUNDS):
                    for place in range(len(states)):
                        ways[number](place)
                best[number] = min(best[number], time.perf_counter() - started)
    count = ROUNDS * len(states)
    return count / best[0], count / best[1], differing


if __name__ == "__main__":
    print(f"{'vocabulary':12} {'terminals':34} {'product/s':>10} {'tree/s':>10} {'differ':>6}")
    for name in ("mistral-v1", "tekken"):
        for one, other, beginnings in PAIRS:
            by_product, by_tree, wrong = compared(one, other, beginnings, name)
            print(f"{name:12} {one + ' + ' + other:34} {by_product:10,.0f} {by_tree:10,.0f} {wrong:6}")

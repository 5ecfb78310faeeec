"""Forks again and again while threads compile; each child compiles and fills a mask. Run by `tests.core.test_locks`.

``python -m tests.forking FORKS SECONDS``: prints how many children ended well, and exits with 1 if one did not within
so many seconds.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
import time
import warnings

import tokdfa
from tokdfa import mask as masks
from tokdfa.backends.batch import fill_masks

VOCAB = tokdfa.load_tokenizer("bytes").vocabulary
BACKENDS = ("pushdown_trie", "earley_trie", "token_index", "tokens_dfa", "cfg_fsm")


def constraint(number: int, kind: str) -> tokdfa.Constraint:
    if kind in ("pushdown_trie", "earley_trie") and number % 2:
        return tokdfa.JsonSchema({"properties": {f"name{number}": {"pattern": f"^[a-z]{{{number % 50}}}"}}})
    return tokdfa.Regex(f'"[^"]{{{number % 70}}}"|[a-z]{{1,{number % 90 + 1}}}x')


def use(backend: str, number: int, threads: int = 1) -> None:
    """Compile a constraint that nobody had, and fill masks."""
    compiled = tokdfa.compile(constraint(number, backend), VOCAB, backend)
    matcher, out = compiled.start(), tokdfa.allocate_mask(VOCAB.size, 8)
    for row in out:
        matcher.fill_mask(row)
        if not matcher.is_finished():
            matcher.advance(int(tokdfa.mask_to_ids(row)[number % masks.count(row)]))
    fill_masks([compiled.start() for _ in out], out, threads)


def compile_always(first: int, stop: threading.Event) -> None:
    for number in itertools.count(first, 3):
        if stop.is_set():
            return
        use(BACKENDS[number % len(BACKENDS)], number, threads=2)


def run_child(number: int) -> None:
    """What the child of a fork does; it never returns."""
    try:
        for backend in BACKENDS:
            use(backend, 10**6 + number, threads=2)
        os._exit(0)
    except BaseException as error:  # the parent must not go on twice
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)


def wait_for(child: int, seconds: float) -> bool:
    """Whether the child ended well in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def main(forks: int, seconds: float) -> int:
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*multi-threaded.*fork")
    sys.setswitchinterval(1e-4)
    for backend in BACKENDS:
        use(backend, 0, threads=2)
        use(backend, 1, threads=2)
    stop, drawn = threading.Event(), random.Random(0)
    workers = [threading.Thread(target=compile_always, args=(2 + k, stop), daemon=True) for k in range(3)]
    for worker in workers:
        worker.start()
    good, waited = 0, 0.0
    for number in range(forks):
        time.sleep(drawn.random() * 0.05)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            run_child(number)
        waited = max(waited, time.monotonic() - started)
        good += wait_for(child, seconds)
        if good <= number:
            break
    stop.set()
    for worker in workers:  # or what they hand to others fails while the interpreter ends
        worker.join(60)
    print(f"{good} of {forks} children ended well; the longest fork took {waited:.2f} s")
    return good != forks


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2])))

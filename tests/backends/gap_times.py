"""Processor time of compile and first mask with a vocabulary that lacks bytes, beside one that has all of them.

    python -m tests.backends.gap_times                       (smollm2 and llama3, both grammar engines)
    python -m tests.backends.gap_times --proper --backend pushdown_trie

For each engine and vocabulary: the schemas and the grammars of ``experiments/inputs``, each compiled once in one
process, after a first run over all, which is not counted. Milliseconds of the thread's processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import tokdfa
from tokdfa.errors import TokdfaError

INPUTS = Path(__file__).parents[2] / "experiments" / "inputs"


def constraints(kind):
    """The constraints of a kind by name."""
    if kind == "grammars":
        return {path.stem: tokdfa.Grammar(path.read_text()) for path in sorted((INPUTS / kind).glob("*.lark"))}
    paths = sorted((INPUTS / kind).glob("*.json"))
    return {path.stem: tokdfa.JsonSchema(json.dumps(json.loads(path.read_text())["schema"])) for path in paths}


def measure(constraint, vocab, backend, options):
    """Milliseconds of processor time, and what it was refused with, if it was."""
    mask, refused = tokdfa.allocate_mask(vocab.size), ""
    began = time.thread_time_ns()
    try:
        tokdfa.compile(constraint, vocab, backend=backend, **options).start().fill_mask(mask)
    except TokdfaError as error:
        refused = type(error).__name__
    return (time.thread_time_ns() - began) / 1e6, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", nargs="+", default=["smollm2", "llama3"])
    parser.add_argument("--backend", nargs="+", default=["pushdown_trie", "earley_trie"])
    parser.add_argument("--proper", action="store_true", help="proper sequences only")
    parser.add_argument("--once", action="store_true", help="no first run: what is slow need not run twice")
    given = parser.parse_args()
    options = {"proper": True} if given.proper else {}
    warnings.simplefilter("ignore")
    print(f"{'ms of processor time':28} {'sum':>9} {'median':>8} {'longest':>9}  refused  longest case")
    for backend in given.backend:
        for kind in ("schemas", "grammars"):
            for name in given.tokenizer:
                vocab, cases = tokdfa.load_tokenizer(name).vocabulary, constraints(kind)
                for _ in range(1 if given.once else 2):
                    found = {case: measure(each, vocab, backend, options) for case, each in cases.items()}
                times = [taken for taken, _ in found.values()]
                longest = max(found, key=lambda case: found[case][0])
                refused = sum(bool(reason) for _, reason in found.values())
                print(
                    f"{backend + ' ' + kind + ' ' + name:38} {sum(times):9.1f} {statistics.median(times):8.2f}"
                    f" {max(times):9.1f}  {refused:7}  {longest}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

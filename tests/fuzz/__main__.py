"""``python -m tests.fuzz ENTRY [--minutes 10] [--seed 1] [--megabytes 2048] [--seconds 5]``: fuzz one entry, or all.

Prints every kind of failure with its smallest input, and ends with 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.child import Limits
from tests.fuzz.driver import Findings, fuzz
from tests.fuzz.entries import ENTRIES


def main(arguments: list[str] | None = None) -> int:
    """Run it; the number of kinds of failures, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("entry", choices=[*ENTRIES, "all"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=Limits.megabytes, help="of memory that a case may take")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="of processor time that a case may take")
    given = parser.parse_args(arguments)
    _compile_kernels()
    limits = Limits(seconds=given.seconds, megabytes=given.megabytes)
    failed = False
    for entry in ENTRIES if given.entry == "all" else [given.entry]:
        begun = time.monotonic()
        findings = fuzz(entry, seconds=given.minutes * 60, seed_number=given.seed, limits=limits, tell=_tell)
        print(summary(entry, findings, given.seed, limits, time.monotonic() - begun), flush=True)
        failed |= bool(findings.failures)
    return int(failed)


def _tell(text: str) -> None:
    print(text, flush=True)


def _compile_kernels() -> None:
    """Otherwise the first case of a kernel would seem to hang."""
    from tokdfa.core.jit import is_warm, warm_up

    if not is_warm():
        for _ in warm_up():
            pass


def summary(entry: str, findings: Findings, seed: int, limits: Limits, seconds: float) -> str:
    """What a run has done and found, in lines."""
    words = ", ".join(f"{word} {count:,}" for word, count in findings.words.most_common())
    lines = [
        f"{entry}: {findings.executed:,} cases in {seconds / 60:.1f} minutes, seed {seed}, at most {limits.seconds:g} s"
        f" and {limits.megabytes} MB each, {findings.children} processes",
        f"  answers: {words}",
        f"  slowest: {findings.slowest[0]:.2f} s of processor time: {str(findings.slowest[1])[:300]}",
    ]
    lines += [f"  not seen again: {kind} ({count} times)" for kind, count in findings.unconfirmed.items()]
    for kind, failure in findings.failures.items():
        lines += [f"FAILURE {kind} ({failure.count} times)", f"  {failure.case}"]
    return "\n".join([*lines, f"{len(findings.failures)} kinds of failures"])


if __name__ == "__main__":
    sys.exit(main())

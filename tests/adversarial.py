"""Adversarial inputs, each in a process of its own: how long until a result or a typed error, and how much memory?

    python -m tests.adversarial            prints the table of papers/reports/robustness.md
    python -m tests.adversarial NAME       one input

An input passes if it ends, in a result or a typed error, within 10 s of processor time and 1 GB, with no step over 2 s.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.errors import TokdfaError
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 100
#: Tokens of the large vocabulary.
LARGE = 876_723


def _nested_all_of(levels: int, fan_out: int) -> dict[str, Any]:
    """Each level demands the one below several times."""
    steps = {f"s{k}": {"allOf": [{"$ref": f"#/$defs/s{k - 1}"}] * fan_out} for k in range(1, levels)}
    base = {"s0": {"properties": {"name": {"type": "string"}}}}
    return {"$defs": {**base, **steps}, "$ref": f"#/$defs/s{levels - 1}"}


def _tagged(count: int) -> list[dict[str, Any]]:
    tags = [{"type": "object", "properties": {"tag": {"const": f"t{k}"}}, "required": ["tag"]} for k in range(count)]
    return tags


#: Name -> what makes (constraint, tokenizer, backend, options).
INPUTS: dict[str, Callable[[], tuple[tokdfa.Constraint, str, str, dict[str, Any]]]] = {
    "allOf of equal references, 23 levels": lambda: _schema(_nested_all_of(23, 2)),
    "allOf of 10 equal references, 30 levels": lambda: _schema(_nested_all_of(30, 10)),
    "oneOf of 500 tagged objects": lambda: _schema({"oneOf": _tagged(500)}),
    "allOf of two 1,000-way anyOfs": lambda: _schema(
        {"allOf": [{"anyOf": [{"required": [f"{letter}{k}"]} for k in range(1_000)]} for letter in "xy"]}
    ),
    "1,000 patternProperties": lambda: _schema(
        {"type": "object", "patternProperties": {f"^n{k}-.*y{k}": {"type": "integer"} for k in range(1_000)}}
    ),
    "100,000 properties": lambda: _schema(
        {"type": "object", "properties": {f"n{k}": {"type": "integer"} for k in range(100_000)}}
    ),
    "a letter 60 before another": lambda: _schema({"type": "string", "pattern": ".*a.{60}b.*"}),
    "look-arounds in counted loops": lambda: _regex(r"(((?!\sggf)(\p{L})){7,16}){2,10}", "tokens_dfa"),
    "look-aheads at distances": lambda: _regex(
        "((?=.{7}a|.{11}b|.{13}c)[a-z]|(?!.{5}d)[0-9])*", "token_index", lazy=True
    ),
    "four periods at once": lambda: _regex(
        "".join(f"(?=(.{{{period}}})*$)" for period in (97, 89, 83, 79)) + ".*", "pushdown_trie"
    ),
    "a password's demands": lambda: _regex(
        r"(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?=.*[^\w\s])[^\s]{8,64}", "pushdown_trie"
    ),
    "an ambiguous LALR lexer": lambda: (
        tokdfa.Grammar("start: T start~0..2 T\nT: /a+b/\n"), "bytes", "cfg_fsm", {"conflicts": "shift"},
    ),
    "20,000 rules": lambda: (
        tokdfa.Grammar(
            "start: r0\n" + "".join(f'r{k}: "a{k}" | r{k + 1}\n' for k in range(20_000)) + 'r20000: "z"\n'
        ),
        "bytes", "pushdown_trie", {},
    ),
    "a vocabulary of 876,723 tokens": lambda: (
        tokdfa.JsonSchema({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 40},
                "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
                "size": {"type": "number"},
                "when": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "pattern": "^[a-z]+@[a-z]+\\.[a-z]{2,3}$"},
                "more": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            },
        }),
        "large", "pushdown_trie", {},
    ),
}  # fmt: skip


def _schema(schema: dict[str, Any]) -> tuple[tokdfa.Constraint, str, str, dict[str, Any]]:
    return tokdfa.JsonSchema(schema), "mistral-v1", "pushdown_trie", {}


def _regex(pattern: str, backend: str, **options: Any) -> tuple[tokdfa.Constraint, str, str, dict[str, Any]]:
    return tokdfa.Regex(pattern), "mistral-v1", backend, options


def _vocabulary(name: str) -> Vocabulary:
    """That of a tokenizer; "large": the tokens of Llama 3, and these before what others begin with."""
    if name != "large":
        return tokdfa.load_tokenizer(name).vocabulary
    known = tokdfa.load_tokenizer("llama3").vocabulary
    tokens = sorted({known.token_bytes(token) for token in range(known.size)} - {b""})
    found, rng = dict.fromkeys(tokens), random.Random(0)
    while len(found) < LARGE - 1:
        found[rng.choice(tokens) + rng.choice(tokens)[:2]] = None
    return Vocabulary([*found, b""], end_tokens=[LARGE - 1])


def run(name: str) -> dict[str, Any]:
    """Compile one input and walk it; what it took in seconds of processor time and MB, and how it ended."""
    constraint, tokenizer, backend, options = INPUTS[name]()
    vocab, slowest, outcome = _vocabulary(tokenizer), 0.0, "a result"
    # modules are imported before
    kinds = {"json_schema": tokdfa.JsonSchema(True), "grammar": tokdfa.Grammar('start: "a"+\n')}
    small = tokdfa.load_tokenizer("bytes").vocabulary if tokenizer == "large" else vocab
    tokdfa.compile(kinds.get(constraint.kind, tokdfa.Regex("a+")), small, backend=backend, **options)
    started = time.process_time()
    try:
        matcher, mask = tokdfa.compile(constraint, vocab, backend=backend, **options).start(), None
        compiled = time.process_time() - started
        mask = tokdfa.allocate_mask(vocab.size)
        for step in range(STEPS):
            before = time.process_time()
            matcher.fill_mask(mask)
            allowed = [token for token in tokdfa.mask_to_ids(mask).tolist() if token not in vocab.end_tokens]
            if not allowed:
                break
            matcher.advance(allowed[step * 7_919 % len(allowed)])
            slowest = max(slowest, time.process_time() - before)
    except TokdfaError as error:
        compiled = time.process_time() - started
        limit = getattr(error, "limit", "")
        outcome = f"{type(error).__name__}{f' ({limit})' if limit else ''}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"seconds": compiled, "slowest": slowest, "mb": peak, "outcome": outcome}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(run(sys.argv[1])))
        return
    print("| input | to the end of the compile or the error, s | slowest step, s | peak, MB | ends in |")
    print("|---|--:|--:|--:|---|")
    for name in INPUTS:
        command = [sys.executable, "-m", "tests.adversarial", name]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"| {name} | {found['seconds']:.1f} | {found['slowest']:.2f} | {found['mb']} | {found['outcome']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Constraints of all kinds mixed in one vocabulary: no mask may show what else was compiled, filled or dropped before.

Strategies share automata, divisions and masks between the constraints of a vocabulary. `MixedConstraints` compiles,
walks, forks, rolls back, drops and recompiles random constraints with different options in one vocabulary, and compares
each mask with those of references that share nothing: the same backend in a vocabulary of its own, the pushdown engine
without divisions, and the Earley engine's plain walk.

    python -m tests.backends.mixed_constraints --masks 100000     (by hand; 30 masks a second and more)
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import tokdfa
from tokdfa.errors import LimitExceeded, TokdfaError
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint

Options = tuple[tuple[str, Any], ...]

_WORDS = (
    *("ab", "abc", "ba", "aa", "xx", "00", "12", "123", "2024", "0.", ".5", "-1", "1,", ", ", ",1", "1.", "e5", '"a'),
    *('":', '": "', '",', "],", "}}", "{}", "[[", '{"', '"}', "1}", "1]", "true", "null", "  ", "   ", " \n", "\n\n"),
    *('a"', " 1", " a", "a ", " x", "+1", "1+", "(1", "1)", "#x", "# ", "x\n", "\\n", "\\u00", "é", "日本", "😀", "ab"),
)  # fmt: skip
#: `words` has longer tokens than bytes; `lacking` lacks some bytes; `large` has a trie that is worth slices.
VOCABULARIES = ("bytes", "words", "lacking", "large")


def new_vocabulary(name: str) -> Vocabulary:
    """A vocabulary of VOCABULARIES that shares nothing with any other."""
    tokens = [bytes([byte]) for byte in range(256)]
    if name != "bytes":
        tokens += [text.encode() for text in _WORDS]
    if name == "lacking":
        tokens = [token for token in tokens if not set(token) & set(b"bx2#\n+") or len(token) > 2]
    if name == "large":
        letters = 'abcdefghijklmnoxyz 012".,-_{'
        tokens += ["".join(pair).encode() for n in (2, 3) for pair in itertools.product(letters, repeat=n)]
    return Vocabulary([*tokens, b"", b""], [len(tokens)], {len(tokens) + 1: "<tool>"})


# Constraints. Bounded and unbounded repeats of the same things, so that states of different automata are alike.

_ATOMS = ("[0-9]", "[a-c]", "[ \\t\\n]", ".", "x", ",", "[^,]", "[0-9a-z]", "ab", "[ ]")
_REPEATS = ("", "*", "+", "{0,3}", "{2}", "{0,30}", "{0,300}", "{1,40}", "?")
_BLANKS = ('" "', "/[ \\t\\f\\r\\n]+/", "/[ \\t\\f\\r\\n]+|#[^\\n]*/", "/[ ]*x/", "/#.*/")


def patterns(atoms: tuple[str, ...] = _ATOMS) -> st.SearchStrategy[str]:
    """Concatenations and alternatives of repeated atoms."""
    part = st.tuples(st.sampled_from(atoms), st.sampled_from(_REPEATS)).map("".join)
    whole = st.lists(part, min_size=1, max_size=4).map("".join)
    return whole | st.tuples(whole, whole).map("|".join)


@st.composite
def grammars(draw: st.DrawFn) -> tokdfa.Grammar:
    """Lists, sums, brackets and left recursion over random terminals, with blanks or without."""
    terminal = patterns(("[0-9]", "[a-c]", "x", "y", "[^,)]", "[0-9a-z]", '\\"', "b"))
    names = ("A", "B", "C")[: draw(st.integers(1, 3))]
    lines = [f"{name}: /{draw(st.sampled_from(('x', 'y', '1')))}{draw(terminal)}/" for name in names]
    symbols = st.sampled_from((*names, '","', '"("', '")"', "item", "start", '"+"'))
    items = st.lists(st.tuples(symbols, st.sampled_from(("", "", "*", "?", "+"))).map("".join), min_size=1, max_size=4)
    alternatives = [" ".join(draw(items)) for _ in range(draw(st.integers(1, 3)))]
    lines = [
        f"start: {' | '.join([*alternatives, names[0]])}",
        f"item: item {draw(st.sampled_from(names))} | {names[-1]}",
        *lines,
    ]
    if draw(st.booleans()):
        lines.append(f"%ignore {draw(st.sampled_from(_BLANKS))}")
    return tokdfa.Grammar("\n".join(lines) + "\n")


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    """Strings, numbers, arrays, objects and alternatives of them."""
    kinds = ["string", "pattern", "number", "integer", "enum"] + ["array", "object", "anyOf"] * (depth > 0)
    match draw(st.sampled_from(kinds)):
        case "string":
            return {
                "type": "string",
                **draw(st.sampled_from(({}, {"minLength": 1}, {"maxLength": 3}, {"maxLength": 99}))),
            }
        case "pattern":
            return {"type": "string", "pattern": f"^{draw(patterns(('[0-9]', '[a-c]', ',', '.', '[^,]')))}$"}
        case "number":
            return {"type": "number", **draw(st.sampled_from(({}, {"minimum": 0}, {"maximum": 99})))}
        case "integer":
            return {"type": "integer", **draw(st.sampled_from(({}, {"minimum": 1}, {"multipleOf": 5})))}
        case "enum":
            return {"enum": draw(st.lists(st.sampled_from((1, "a", "ab", None, 12, "1")), min_size=1, max_size=3))}
        case "array":
            return {"type": "array", "items": draw(schemas(depth - 1)), **draw(st.sampled_from(({}, {"maxItems": 2})))}
        case "anyOf":
            return {"anyOf": [draw(schemas(depth - 1)), draw(schemas(depth - 1))]}
    members = draw(st.dictionaries(st.sampled_from(("a", "ab", "x", "12")), schemas(depth - 1), max_size=2))
    closed = {"additionalProperties": False} if draw(st.booleans()) else {}
    return {"type": "object", "properties": members, "required": sorted(members)[:1], **closed}


def json_schemas() -> st.SearchStrategy[tokdfa.JsonSchema]:
    """Schemas with random ways to be spelled."""
    spelling = st.fixed_dictionaries(
        {
            "escapes": st.sampled_from(("all", "needed")),
            "whitespace": st.sampled_from(("flexible", "compact")),
            "order": st.sampled_from(("schema", "any")),
        }
    )
    return st.builds(lambda schema, how: tokdfa.JsonSchema(schema, **how), schemas(), spelling)


REGULAR = st.one_of(
    patterns().map(tokdfa.Regex), st.lists(st.text("abx1 ,", max_size=4), min_size=1, max_size=4).map(tokdfa.Choice)
)


def _some(**values: tuple[Any, ...]) -> st.SearchStrategy[Options]:
    """A few options with one of these values each."""
    pairs = [(name, value) for name, given_values in values.items() for value in given_values]
    some = st.lists(st.sampled_from(pairs), max_size=2, unique_by=lambda pair: pair[0])
    return some.map(lambda chosen: tuple(sorted(chosen)))


_OFF = (False,)
_PUSHDOWN = st.tuples(
    st.just("pushdown_trie"),
    _some(
        lexer=("any",),
        table_mb=(1,),
        **dict.fromkeys(("partition", "subtrees", "first_bytes", "memo", "shared_automata"), _OFF),
    ),
)
_EARLEY = st.tuples(
    st.just("earley_trie"),
    _some(mask=("slices", "walk"), patience=(0, 3), **dict.fromkeys(("shared_effects", "clip_counters", "memo"), _OFF)),
)
_SHIFT = ("conflicts", "shift")  # most drawn grammars have some
_CFG_FSM = st.tuples(st.just("cfg_fsm"), _some(masks=("walk",), memo=_OFF).map(lambda chosen: (_SHIFT, *chosen)))
_INDEX = st.sampled_from((("token_index", ()), ("token_index", (("lazy", True),)), ("tokens_dfa", ())))


def ways(constraint: Constraint) -> st.SearchStrategy[tuple[str, Options]]:
    """Backends with options that take a constraint; mostly the pushdown engine, as it shares most."""
    others = {"grammar": (_EARLEY, _CFG_FSM), "json_schema": (_EARLEY,)}.get(constraint.kind, (_EARLEY, _INDEX))
    return st.one_of(_PUSHDOWN, _PUSHDOWN, _PUSHDOWN, *others)


def compile_in(vocab: Vocabulary, constraint: Constraint, backend: str, options: Options) -> CompiledConstraint | str:
    """The compiled constraint, or the kind of error."""
    try:
        return tokdfa.compile(constraint, vocab, backend=backend, **dict(options))
    except TokdfaError as error:
        return type(error).__name__


@lru_cache(maxsize=200)
def references(name: str, constraint: Constraint, backend: str, options: Options) -> list[CompiledConstraint | str]:
    """The same in a vocabulary of its own, then those that share nothing and must have the same masks."""
    lexer = dict(options).get("lexer", "longest")
    others: list[tuple[str, Options]] = []
    if backend != "cfg_fsm":  # which reads grammars its own way
        others.append(("pushdown_trie", (("lexer", lexer), ("partition", False), ("shared", False))))
        if lexer == "longest" or not isinstance(constraint, tokdfa.Grammar):
            others.append(("earley_trie", (("mask", "walk"),)))
    own = compile_in(new_vocabulary(name), constraint, backend, options)
    found = (
        [compile_in(new_vocabulary(name), constraint, *other) for other in others] if not isinstance(own, str) else []
    )
    return [own, *(compiled for compiled in found if not isinstance(compiled, str))]


@dataclass
class Trial:
    """A matcher in the mixed vocabulary, and its references."""

    entry: tuple[Any, ...]
    matchers: list[Matcher]
    tokens: list[int] = field(default_factory=list)


class MixedConstraints(RuleBasedStateMachine):
    """See the module's docstring."""

    #: Masks compared, in all examples.
    compared = 0
    #: Walks given up because a matcher ran out of budget, and said so.
    given_up = 0

    @initialize(name=st.sampled_from(VOCABULARIES))
    def begin(self, name: str) -> None:
        self.name, self.vocab = name, new_vocabulary(name)
        self.made: list[tuple[CompiledConstraint, tuple[Any, ...]]] = []
        self.trials: list[Trial] = []

    @rule(data=st.data(), constraint=json_schemas())
    def compile_schema(self, data: st.DataObject, constraint: Constraint) -> None:
        self._compile((constraint, *data.draw(ways(constraint))))

    @rule(data=st.data(), constraint=grammars())
    def compile_grammar(self, data: st.DataObject, constraint: Constraint) -> None:
        self._compile((constraint, *data.draw(ways(constraint))))

    @rule(data=st.data(), constraint=REGULAR)
    def compile_regular(self, data: st.DataObject, constraint: Constraint) -> None:
        self._compile((constraint, *data.draw(ways(constraint))))

    @precondition(lambda self: self.made)
    @rule(data=st.data(), which=st.integers(0, 99))
    def recompile(self, data: st.DataObject, which: int) -> None:
        """The same constraint in another way."""
        constraint = self.made[which % len(self.made)][1][0]
        self._compile((constraint, *data.draw(ways(constraint))))

    def _compile(self, entry: tuple[Any, ...]) -> None:
        compiled, own = compile_in(self.vocab, *entry), references(self.name, *entry)[0]
        if isinstance(compiled, str) or isinstance(own, str):
            assert compiled == own, (compiled, own, entry)
        else:
            self.made.append((compiled, entry))
            self._start(len(self.made) - 1)

    def _start(self, which: int) -> None:
        compiled, entry = self.made[which]
        others = [other.start() for other in references(self.name, *entry) if not isinstance(other, str)]
        self.trials.append(Trial(entry, [compiled.start(), *others]))

    @precondition(lambda self: self.made)
    @rule(which=st.integers(0, 99))
    def start(self, which: int) -> None:
        self._start(which % len(self.made))

    @precondition(lambda self: self.trials)
    @rule(which=st.integers(0, 99), seed=st.integers(0, 1 << 30), steps=st.integers(1, 12))
    def walk(self, which: int, seed: int, steps: int) -> None:
        """Random allowed tokens, with all masks on the way compared."""
        trial, rng = self.trials[which % len(self.trials)], random.Random(seed)
        for _ in range(steps):
            allowed = self._compare(trial)
            if not len(allowed) or trial.matchers[0].is_finished():  # an end token more would not be counted
                return
            token = self._choose(allowed.tolist(), rng)
            try:
                for matcher in trial.matchers:
                    matcher.advance(token)
            except LimitExceeded:
                self._give_up(trial)
                return
            trial.tokens.append(token)

    def _choose(self, allowed: list[int], rng: random.Random) -> int:
        """One of the tokens with a random first byte, as letters would outnumber all that has a structure."""
        by_byte: dict[bytes, list[int]] = {}
        for token in allowed:
            by_byte.setdefault(self.vocab.token_bytes(token)[:1], []).append(token)
        return rng.choice(by_byte[rng.choice(sorted(by_byte))])

    def _compare(self, trial: Trial) -> np.ndarray[Any, Any]:
        """The tokens allowed in a trial, by all of its matchers alike; none, and no trial, if one ran out of budget."""
        try:
            return self._compare_all(trial)
        except LimitExceeded:
            self._give_up(trial)
            return np.zeros(0, dtype=np.int32)

    def _give_up(self, trial: Trial) -> None:
        self.trials = [other for other in self.trials if other is not trial]
        MixedConstraints.given_up += 1

    def _compare_all(self, trial: Trial) -> np.ndarray[Any, Any]:
        masks = [tokdfa.allocate_mask(self.vocab.size) for _ in trial.matchers]
        for matcher, mask in zip(trial.matchers, masks, strict=True):
            matcher.fill_mask(mask)
        allowed = tokdfa.mask_to_ids(masks[0])
        for matcher, mask in zip(trial.matchers[1:], masks[1:], strict=True):
            other = tokdfa.mask_to_ids(mask)
            differing = [(token, self.vocab.token_bytes(token)) for token in np.setxor1d(allowed, other)[:5].tolist()]
            assert not differing, (
                f"{trial.entry} after {trial.tokens}: {len(allowed)} tokens, but {len(other)} by"
                f" {type(matcher).__name__}; they differ in {differing}"
            )
            MixedConstraints.compared += 1
        for token in {0, 65, self.vocab.size // 2, *allowed[:1].tolist()}:
            assert trial.matchers[0].allows(token) == bool(masks[0][token >> 5] >> (token & 31) & 1), (trial, token)
        return allowed

    @precondition(lambda self: self.trials)
    @rule(which=st.integers(0, 99))
    def fork(self, which: int) -> None:
        trial = self.trials[which % len(self.trials)]
        self.trials.append(Trial(trial.entry, [matcher.fork() for matcher in trial.matchers], trial.tokens.copy()))

    @precondition(lambda self: self.trials)
    @rule(which=st.integers(0, 99), count=st.integers(1, 6))
    def rollback(self, which: int, count: int) -> None:
        trial = self.trials[which % len(self.trials)]
        count = min(count, len(trial.tokens))
        for matcher in trial.matchers:
            matcher.rollback(count)
        del trial.tokens[len(trial.tokens) - count :]

    @precondition(lambda self: self.made)
    @rule(which=st.integers(0, 99))
    def drop(self, which: int) -> None:
        """Forget a compiled constraint with its matchers, so that its tables are reused."""
        _, entry = self.made.pop(which % len(self.made))
        self.trials = [trial for trial in self.trials if trial.entry is not entry]
        gc.collect(0)

    def teardown(self) -> None:
        for trial in getattr(self, "trials", []):
            self._compare(trial)


def check(examples: int, steps: int = 30, **more: Any) -> None:
    """Run so many examples of so many rules."""
    how = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck), **more
    )
    run_state_machine_as_test(MixedConstraints, settings=how)  # type: ignore[no-untyped-call]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--masks", type=int, default=100_000, help="comparisons of masks")
    wanted = parser.parse_args().masks
    while MixedConstraints.compared < wanted:
        check(50, steps=60, derandomize=False, database=None)
        given_up = MixedConstraints.given_up
        print(f"{MixedConstraints.compared:,} comparisons of masks, all equal; {given_up} walks given up", flush=True)


if __name__ == "__main__":
    main()

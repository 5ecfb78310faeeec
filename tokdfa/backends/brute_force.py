"""The brute force: every token, byte by byte, from every state, in plain Python. Slow, and obviously right.

It is the oracle of the contract laws, so it shares no code with the trie walk, the lazy automata or the token index.
What it takes for granted is the byte language: the explicit automaton of the constraint (`tokdfa.regex.compile`), whose
states are all live, and which has oracles of its own.

A token is allowed in a state iff the automaton survives the token's bytes and ends in a state from which *tokens* reach
acceptance. If every byte that the automaton reads is a token by itself, all states are such; otherwise the graph of
states and tokens is explored in full and the live states are found backwards from the accepting ones. With
``liveness="bytes"`` the second condition is left out: what remains is what an engine does that looks at bytes only.

Costs 0.1 us a token byte and state: good for small vocabularies, bearable (30 to 100 ms a state) for large ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.liveness import cannot_spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask


class BruteForce(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "brute_force"
    summary: ClassVar[str] = "every token byte by byte from every state, in plain Python (the oracle)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice")
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "liveness",
            str,
            "tokens",
            "tokens: a token is refused if no tokens complete the text after it; bytes: if no bytes do",
            choices=("tokens", "bytes"),
        ),
        Option("max_states", int, 100_000, "limit on DFA states", minimum=1),
    )

    def _compile(self, constraint: Constraint) -> BruteForceConstraint:
        return BruteForceConstraint(self, constraint)


class BruteForceConstraint(CompiledConstraint):
    """A table of byte transitions, and per state the tokens found so far.

    `complete`: whether every byte that the automaton reads is a token by itself.
    """

    def __init__(self, backend: BruteForce, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        with self.phases.measure("automaton"):
            dfa = compile_dfa(constraint, max_states=backend.settings["max_states"], minimal=False)
        self._start: int = dfa.start
        self._table: list[list[int]] = dfa.byte_table().tolist()
        self._accepting: list[bool] = dfa.accepting.tolist()
        self._spelled = [
            (token, spelled) for token in range(self.vocab.size) if (spelled := self.vocab.token_bytes(token))
        ]
        self._targets: dict[int, dict[int, int]] = {}
        self.complete = self._spells_every_byte()
        self._live: set[int] | None = None
        if backend.settings["liveness"] == "tokens" and not self.complete:
            with self.phases.measure("liveness"):
                self._live = self._find_live(dfa)
        self.sizes = {"states": len(self._table)}

    def _spells_every_byte(self) -> bool:
        single = {spelled[0] for _, spelled in self._spelled if len(spelled) == 1}
        return all(target < 0 or byte in single for row in self._table for byte, target in enumerate(row))

    def _find_live(self, dfa: Dfa) -> set[int]:
        """The states between tokens from which tokens reach acceptance."""
        leads_from: dict[int, set[int]] = {}
        agenda, seen = [self._start], {self._start}
        while agenda:
            state = agenda.pop()
            for target in set(self.all_targets(state).values()):
                leads_from.setdefault(target, set()).add(state)
                if target not in seen:
                    seen.add(target)
                    agenda.append(target)
        live = {state for state in seen if self._accepting[state]}
        agenda = list(live)
        while agenda:
            for before in leads_from.get(agenda.pop(), set()) - live:
                live.add(before)
                agenda.append(before)
        if self._start not in live:
            raise cannot_spell(dfa, self.vocab, self.constraint.name)
        return live

    def start(self, context: Sequence[int] = ()) -> BruteForceMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return BruteForceMatcher(self)

    def run(self, state: int, spelled: bytes) -> int:
        """The state after `spelled`, or -1."""
        for byte in spelled:
            state = self._table[state][byte]
            if state < 0:
                break
        return state

    def all_targets(self, state: int) -> dict[int, int]:
        """Token -> state after it, for all tokens whose bytes the automaton survives. Remembered."""
        if state not in self._targets:
            self._targets[state] = {
                token: target for token, spelled in self._spelled if (target := self.run(state, spelled)) >= 0
            }
        return self._targets[state]

    def is_live(self, state: int) -> bool:
        """Whether a text in `state` (of the automaton, or -1) may be completed."""
        return state >= 0 and (self._live is None or state in self._live)

    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return self._accepting[state]


class BruteForceMatcher(StateMatcher[int]):
    """A matcher whose state is a state of the byte automaton."""

    def __init__(self, compiled: BruteForceConstraint) -> None:
        super().__init__(compiled.vocab, compiled._start)
        self._compiled = compiled

    def _step(self, state: int, token: int) -> int | None:
        spelled = self.vocab.token_bytes(token)
        target = self._compiled.run(state, spelled)
        return target if spelled and self._compiled.is_live(target) else None

    def _accepts(self, state: int) -> bool:
        return self._compiled.accepts(state)

    def _fill(self, state: int, out: Mask) -> None:
        masks.check_mask(out, self.vocab.size)
        is_live = self._compiled.is_live
        out.fill(0)
        for token, target in self._compiled.all_targets(state).items():
            if is_live(target):
                masks.set_token(out, token)
        if self._compiled.accepts(state):
            for end in self.vocab.end_tokens:
                masks.set_token(out, end)

    def _fork_empty(self) -> BruteForceMatcher:
        return BruteForceMatcher(self._compiled)

"""The brute force: every token, byte by byte, from every state, in plain Python. Slow, and obviously right.

It is the oracle of the contract laws, so it shares no code with the trie walk, the lazy automata or the token index.
What it takes for granted is the byte language: the explicit automaton of the constraint (`tokdfa.regex.compile`), whose
states are all live, and which has oracles of its own. That of a schema is what `lower_schema` makes of it, as for our
engines: so of a schema this judges the masks, and the library jsonschema judges the lowering.

A token is allowed in a state iff the automaton survives the token's bytes and ends in a state from which *tokens* reach
acceptance. If every byte that the automaton reads is a token by itself, all states are such; otherwise the graph of
states and tokens is explored in full and the live states are found backwards from the accepting ones. With
``liveness="bytes"`` the second condition is left out: what remains is what an engine does that looks at bytes only.

Costs 0.1 us a token byte and state: good for small vocabularies, bearable (30 to 100 ms a state) for large ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.automata.algebra import trim
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.backends.explicit_automaton import explicit_automaton
from tokdfa.token_automata.liveness import cannot_spell

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask


class BruteForce(Backend):
    """See the module's docstring."""

    name: ClassVar[str] = "brute_force"
    summary: ClassVar[str] = "every token byte by byte from every state, in plain Python (the oracle)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
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


class Following(NamedTuple):
    """The tokens whose bytes the automaton survives in some state: ids and the states after them, both int32."""

    tokens: npt.NDArray[np.int32]
    states: npt.NDArray[np.int32]


class BruteForceConstraint(CompiledConstraint):
    """A table of byte transitions, and per state the tokens found so far.

    `complete`: whether every byte that the automaton reads is a token by itself.
    """

    def __init__(self, backend: BruteForce, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        dfa = trim(explicit_automaton(constraint, backend.settings["max_states"], self.phases))
        self._initial: int = dfa.start
        self._table: list[list[int]] = dfa.byte_table().tolist()
        self._accepting: list[bool] = dfa.accepting.tolist()
        self._spelled = [
            (token, spelled) for token in range(self.vocab.size) if (spelled := self.vocab.token_bytes(token))
        ]
        self._following: dict[int, Following] = {}
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
        agenda, seen = [self._initial], {self._initial}
        while agenda:
            state = agenda.pop()
            for target in np.unique(self.following(state).states).tolist():
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
        if self._initial not in live:
            raise cannot_spell(dfa, self.vocab, self.constraint.name)
        return live

    def _start(self, context: tuple[int, ...]) -> BruteForceMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return BruteForceMatcher(self)

    def run(self, state: int, spelled: bytes) -> int:
        """The state after `spelled`, or -1."""
        for byte in spelled:
            state = self._table[state][byte]
            if state < 0:
                break
        return state

    def following(self, state: int) -> Following:
        """Every token tried in `state`, whether or not its text can be completed. Remembered."""
        if state not in self._following:
            found = [(token, after) for token, spelled in self._spelled if (after := self.run(state, spelled)) >= 0]
            pairs = np.array(found, dtype=np.int32).reshape(-1, 2)
            self._following[state] = Following(pairs[:, 0].copy(), pairs[:, 1].copy())
        return self._following[state]

    def allowed(self, state: int) -> list[int]:
        """The text tokens allowed in `state`, ascending."""
        tokens, states = self.following(state)
        live = {after for after in np.unique(states).tolist() if self.is_live(after)}
        return [token for token, after in zip(tokens.tolist(), states.tolist(), strict=True) if after in live]

    def is_live(self, state: int) -> bool:
        """Whether a text in `state` (of the automaton, or -1) may be completed."""
        return state >= 0 and (self._live is None or state in self._live)

    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""
        return self._accepting[state]


class BruteForceMatcher(StateMatcher[int]):
    """A matcher whose state is a state of the byte automaton."""

    def __init__(self, compiled: BruteForceConstraint) -> None:
        super().__init__(compiled.vocab, compiled._initial)
        self._compiled = compiled

    def _step(self, state: int, token: int) -> int | None:
        spelled = self.vocab.token_bytes(token)
        target = self._compiled.run(state, spelled)
        return target if spelled and self._compiled.is_live(target) else None

    def _accepts(self, state: int) -> bool:
        return self._compiled.accepts(state)

    def _fill(self, state: int, out: Mask) -> None:
        ends = self.vocab.end_tokens if self._compiled.accepts(state) else ()
        out[:] = masks.mask_from_ids([*self._compiled.allowed(state), *ends], self.vocab.size)

    def _fork_empty(self) -> BruteForceMatcher:
        return BruteForceMatcher(self._compiled)

"""The automaton that DirectMerge changes: edges in both directions, and the two changes of a stage.

`add_token` puts a token beside the ways that spell it. `part` takes pairs of tokens apart that may no longer stand side
by side: where t leads into a state and u out of it, the state is split, so that t leads into a copy without u. 002
tells four cases apart by what else leads in and out; here they are one rule with its short cuts:

- if nothing else leads in, no copy is needed: the state loses u;
- a copy that would neither accept nor lead anywhere is not made: what leads to it is deleted;
- a state that loses its last way in or out is deleted, and so on along its edges.

*Entered* states of a token are those that it leads into. They say at once whether a token is there at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def too_large(what: str, limit: int) -> LimitExceeded:
    """The error for more than `limit` states or transitions."""
    return LimitExceeded(
        f"the automaton of proper sequences has more than {limit} {what}: use the backend cartesian_merge, which does "
        f"not build it, or raise max_{what}",
        limit=f"max_{what}",
        value=limit,
    )


#: What it takes to make or delete an edge, and what it holds.
NS_PER_EDGE, BYTES_PER_EDGE = 1_000, 100


class MergingAutomaton:
    """A mutable deterministic automaton over tokens. `letters` must be trimmed (or empty); its rows are taken over.

    LimitExceeded as soon as it has more than `max_states` states or `max_transitions` transitions.
    """

    def __init__(self, letters: TokenRows, max_states: int, max_transitions: int) -> None:
        self._rows = dict(enumerate(letters.rows))
        self._accepting = dict(enumerate(letters.accepting))
        self._start = letters.start
        spend(NS_PER_EDGE * letters.transition_count)
        hold(BYTES_PER_EDGE * letters.transition_count)
        self._incoming: dict[int, dict[int, set[int]]] = {state: {} for state in self._rows}  # state, token -> sources
        #: Token -> the states that it leads into, for the tokens that are there.
        self.entered: dict[int, set[int]] = {}
        for state, row in self._rows.items():
            for token, target in row.items():
                self._incoming[target].setdefault(token, set()).add(state)
                self.entered.setdefault(token, set()).add(target)
        self._next = letters.state_count
        self._transitions = letters.transition_count
        self._max_states, self._max_transitions = max_states, max_transitions
        self._check_limits()

    def ways(self, parts: Sequence[int]) -> list[tuple[int, int]]:
        """(source, target) of all ways that are spelled `parts`. O(ways + states that the first part enters)."""
        first, rest = parts[0], parts[1:]
        spend(NS_PER_EDGE // 4 * len(self.entered.get(first, ())))
        found = []
        for state in self.entered.get(first, ()):
            target: int | None = state
            for token in rest:
                target = self._rows[target].get(token)  # type: ignore[index]
                if target is None:
                    break
            else:
                found += [(source, target) for source in self._incoming[state][first]]
        spend(NS_PER_EDGE * len(found))
        return found  # type: ignore[return-value]

    def add_token(self, token: int, ways: Iterable[tuple[int, int]]) -> None:
        """An edge for `token`, which is new, beside each of `ways`."""
        entered = self.entered.setdefault(token, set())
        for source, target in ways:
            hold(BYTES_PER_EDGE)
            self._rows[source][token] = target
            self._incoming[target].setdefault(token, set()).add(source)
            entered.add(target)
            self._transitions += 1
        self._check_limits()

    def part(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Take `pairs` of tokens apart, wherever they stand side by side."""
        lost: dict[int, dict[int, set[int]]] = {}  # state -> token that leads in -> tokens that may not follow
        for left, right in pairs:
            spend(NS_PER_EDGE // 4 * (1 + len(self.entered.get(left, ()))))
            for state in self.entered.get(left, ()):
                if right in self._rows[state]:
                    lost.setdefault(state, {}).setdefault(left, set()).add(right)
        for state, by_token in lost.items():
            groups: dict[frozenset[int], list[int]] = {}
            for token, following in by_token.items():
                groups.setdefault(frozenset(following), []).append(token)
            self._split(state, groups)
            self._check_limits()

    def _split(self, state: int, groups: dict[frozenset[int], list[int]]) -> None:
        """After the tokens of each group, the group's key may no longer follow in `state`."""
        for following, tokens in groups.items():
            incoming = self._incoming.get(state, {})  # none if `state` is gone
            tokens = [token for token in tokens if token in incoming]
            row = self._rows.get(state, {})
            spend(NS_PER_EDGE // 4 * (len(row) + len(tokens)))
            kept = {token: target for token, target in row.items() if token not in following}
            if not tokens or len(kept) == len(row):
                continue
            if len(tokens) == len(incoming) and state != self._start:
                for token in following & row.keys():
                    self._delete_edge(state, token)
            elif kept or self._accepting[state]:
                self._redirect(tokens, state, self._add_copy(state, kept))
            else:
                for token in tokens:
                    for source in list(incoming.get(token, ())):
                        if source in self._rows:
                            self._delete_edge(source, token)

    def _add_copy(self, state: int, row: dict[int, int]) -> int:
        """A state with the row `row`, accepting if `state` is; nothing leads to it yet."""
        spend(NS_PER_EDGE * len(row))
        hold(BYTES_PER_EDGE * len(row))
        copy = self._next
        self._next += 1
        self._rows[copy], self._accepting[copy], self._incoming[copy] = row, self._accepting[state], {}
        incoming = self._incoming
        for token, target in row.items():
            incoming[target][token].add(copy)
        self._transitions += len(row)
        return copy

    def _redirect(self, tokens: Iterable[int], state: int, copy: int) -> None:
        """What leads by `tokens` into `state` leads into `copy`, into which nothing leads yet."""
        for token in tokens:
            sources = self._incoming[state].pop(token)
            self._incoming[copy][token] = sources
            spend(NS_PER_EDGE // 4 * len(sources))
            for source in sources:
                self._rows[source][token] = copy
            self.entered[token].discard(state)
            self.entered[token].add(copy)

    def _delete_edge(self, state: int, token: int) -> None:
        """Delete an edge, and every state that is cut off by it from the start or from acceptance."""
        agenda = [(state, token)]
        while agenda:
            spend(NS_PER_EDGE)
            source, token = agenda.pop()
            target = self._rows.get(source, {}).pop(token, None)
            if target is None:
                continue
            self._transitions -= 1
            sources = self._incoming[target][token]
            sources.discard(source)
            if not sources:
                del self._incoming[target][token]
                self._leave(token, target)
            if not self._incoming[target] and target != self._start:
                agenda += [(target, following) for following in self._rows[target]]
            if not self._rows[source] and not self._accepting[source] and source != self._start:
                agenda += [(other, before) for before, others in self._incoming[source].items() for other in others]
            for end in (source, target):
                if end != self._start and not self._rows[end] and not self._incoming[end]:
                    del self._rows[end], self._incoming[end], self._accepting[end]
                    if source == target:
                        break

    def _leave(self, token: int, state: int) -> None:
        entered = self.entered[token]
        entered.discard(state)
        if not entered:
            del self.entered[token]

    def _check_limits(self) -> None:
        for count, limit, name in (
            (len(self._rows), self._max_states, "states"),
            (self._transitions, self._max_transitions, "transitions"),
        ):
            if count > limit:
                raise too_large(name, limit)

    def result(self) -> TokenRows:
        """The automaton as it is now, trimmed. Changes to it are no longer allowed."""
        number = {state: place for place, state in enumerate(self._rows)}
        rows = [{token: number[target] for token, target in row.items()} for row in self._rows.values()]
        return TokenRows(rows, list(self._accepting.values()), number.get(self._start, -1)).trimmed()

"""The muted language by its definition, twice: on an automaton with bound tokens, and on a syntax tree without any
automaton.

`MutedLanguage` keeps the set of states that a token prefix can lead to: a token leads on by its bytes, and by each
bound token that is bound to it. `spells_muted` knows nothing of bound tokens: it matches a tree against a token
sequence, where a literal matches exactly the tokens of its spelling and everything else matches bytes. Neither shares
code with the package.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tokdfa.regex.syntax_tree import Alternation, CharSet, Concat, Empty, Node, Repeat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.vocabulary import Vocabulary


class MutedLanguage:
    """The token sequences of a byte automaton with bound tokens, by brute force.

    `bound_targets`: shape (states, bound tokens), -1 where there is none; `bound_token_ids`: shape (bound tokens,).
    """

    def __init__(
        self,
        dfa: Dfa,
        bound_targets: npt.NDArray[np.int32],
        bound_token_ids: npt.NDArray[np.int32],
        vocab: Vocabulary,
    ) -> None:
        rows, classes = dfa.transitions.tolist(), dfa.byte_class.tolist()
        self._by_byte = [[row[column] for column in classes] for row in rows]
        self._by_bound_token: list[dict[int, set[int]]] = []  # state -> token -> targets
        for row in bound_targets.tolist():
            targets: dict[int, set[int]] = {}
            for token, target in zip(bound_token_ids.tolist(), row, strict=True):
                if target >= 0:
                    targets.setdefault(token, set()).add(target)
            self._by_bound_token.append(targets)
        self._accepting, self._start = dfa.accepting.tolist(), dfa.start
        self._tokens = [vocab.token_bytes(token) for token in range(vocab.size)]
        self._moves: dict[int, dict[int, set[int]]] = {}

    def start(self) -> frozenset[int]:
        """The states before the first token."""
        return frozenset([self._start] if self._start >= 0 else [])

    def step(self, states: frozenset[int], token: int) -> frozenset[int]:
        """The states after one more token, whether acceptance can be reached from them or not."""
        return frozenset(target for state in states for target in self._targets(state, token))

    def mask(self, states: frozenset[int]) -> set[int]:
        """The tokens after which some token sequence leads to acceptance; end tokens are not among them."""
        allowed = set()
        for state in states:
            allowed |= {token for token, targets in self._moves_of(state).items() if targets & self._alive}
        return allowed

    def accepts(self, states: frozenset[int]) -> bool:
        """Whether the text may end here."""
        return any(self._accepting[state] for state in states)

    def _targets(self, state: int, token: int) -> set[int]:
        targets = set(self._by_bound_token[state].get(token, ()))
        spelled = self._tokens[token]
        for byte in spelled:
            state = self._by_byte[state][byte]
            if state < 0:
                return targets
        return targets | {state} if spelled else targets

    def _moves_of(self, state: int) -> dict[int, set[int]]:
        if state not in self._moves:
            found = ((token, self._targets(state, token)) for token in range(len(self._tokens)))
            self._moves[state] = {token: targets for token, targets in found if targets}
        return self._moves[state]

    @cached_property
    def _alive(self) -> set[int]:
        """The states, reached from the start by tokens, that reach acceptance by tokens."""
        reached, agenda = set(self.start()), list(self.start())
        while agenda:
            new = set().union(*self._moves_of(agenda.pop()).values()) - reached
            reached |= new
            agenda.extend(new)
        following = {state: set().union(*self._moves_of(state).values()) for state in reached}
        alive = {state for state in reached if self._accepting[state]}
        while more := {state for state in reached - alive if following[state] & alive}:
            alive |= more
        return alive


def spells_muted(
    tree: Node,
    tokens: Sequence[int],
    spellings: Mapping[str, Sequence[int]],
    vocab: Vocabulary,
    *,
    search: bool = False,
) -> bool:
    """Whether `tokens` is a token sequence of the muted `tree`, which has no assertions.

    `spellings`: the literals that are muted, with their tokens.
    """
    return _Matcher(tokens, spellings, vocab).matches(tree, search)


class _Matcher:
    """Match relations of nodes on the bytes of one token sequence."""

    def __init__(self, tokens: Sequence[int], spellings: Mapping[str, Sequence[int]], vocab: Vocabulary) -> None:
        self.tokens, self.spellings = tokens, spellings
        self.text = b"".join(vocab.token_bytes(token) for token in tokens)
        self.boundaries = {0: 0}  # place in the text -> number of tokens before it
        place = 0
        for index, token in enumerate(tokens):
            place += len(vocab.token_bytes(token))
            self.boundaries[place] = index + 1

    def matches(self, tree: Node, search: bool) -> bool:
        if not search:
            return len(self.text) in self.ends(tree, 0, True)
        try:
            text = self.text.decode()
        except UnicodeDecodeError:
            return False
        places = {len(text[:index].encode()) for index in range(len(text) + 1)}
        return any(self.ends(tree, place, True) & places for place in places)

    def ends(self, node: Node, begin: int, may_mute: bool) -> set[int]:
        """Where a match of `node` that begins at `begin` can end. `may_mute`: no counted repeat is around it."""
        match node:
            case Empty():
                return {begin}
            case CharSet() | Concat():
                parts = node.parts if isinstance(node, Concat) else (node,)
                return self.sequence_ends(parts, begin, may_mute)
            case Alternation(options=options):
                return {end for option in options for end in self.ends(option, begin, may_mute)}
            case Repeat(body=body, low=low, high=high):
                may_mute = may_mute and (low, high) in [(0, 1), (0, None), (1, None)]
                ends = {begin}
                for _ in range(low):
                    ends = {end for place in ends for end in self.ends(body, place, may_mute)}
                found, rounds = set(ends), low
                while ends and rounds != high:
                    ends = {end for place in ends for end in self.ends(body, place, may_mute)} - found
                    found |= ends
                    rounds += 1
                return found
        raise AssertionError(node)

    def sequence_ends(self, parts: Sequence[Node], begin: int, may_mute: bool) -> set[int]:
        ends, index = {begin}, 0
        while index < len(parts):
            run = ""
            while index + len(run) < len(parts) and (letter := _letter(parts[index + len(run)])):
                run += letter
            if may_mute and run in self.spellings:
                ends = {end for place in ends for end in self.literal_ends(self.spellings[run], place)}
                index += len(run)
                continue
            for part in parts[index : index + max(len(run), 1)]:
                if isinstance(part, CharSet):
                    ends = {end for place in ends for end in self.character_ends(part, place)}
                else:
                    ends = {end for place in ends for end in self.ends(part, place, may_mute)}
            index += max(len(run), 1)
        return ends

    def literal_ends(self, spelling: Sequence[int], begin: int) -> set[int]:
        first = self.boundaries.get(begin)
        if first is None or list(self.tokens[first : first + len(spelling)]) != list(spelling):
            return set()
        return {place for place, count in self.boundaries.items() if count == first + len(spelling)}

    def character_ends(self, node: CharSet, begin: int) -> set[int]:
        for length in range(1, 5):
            try:
                character = self.text[begin : begin + length].decode()
            except UnicodeDecodeError:
                continue
            if len(character) == 1 and any(first <= ord(character) <= last for first, last in node.ranges):
                return {begin + length}
            return set()
        return set()


def _letter(node: Node) -> str:
    """The character of a literal that `node` is, or nothing."""
    if not isinstance(node, CharSet) or len(node.ranges) != 1 or node.ranges[0][0] != node.ranges[0][1]:
        return ""
    character = chr(node.ranges[0][0])
    return character if character.isalnum() else ""

"""The muted language by its definition, on a syntax tree and without any automaton; it shares no code with the package.

A tree is matched against a token sequence, where a literal matches exactly the tokens of its spelling and everything
else matches bytes, however tokens cut them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.syntax_tree import Alternation, CharSet, Concat, Empty, Node, Repeat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.vocabulary.vocabulary import Vocabulary


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

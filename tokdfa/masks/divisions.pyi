from typing import Final, final

from tokdfa.vocabulary.trie_nodes import FlatTrie

#: The rest of whole tokens.
WHOLE: Final[int]

@final
class Divisions:
    """The divisions of a trie. Not thread-safe. `own_tries`: rests get tries of their own."""

    #: Divisions made so far, those forgotten included.
    made: int

    def __init__(self, flat: FlatTrie, own_tries: bool = False) -> None: ...
    @property
    def count(self) -> int:
        """How many divisions are made now."""
    def ranges(self, rest: int) -> list[tuple[int, int, int]]:
        """The first node, the node after the last, and the depth where reading goes on, of each range of a rest."""
    def tokens_left(self, rest: int) -> list[int]:
        """The tokens of a rest, ascending, those with equal bytes included."""
    def view(self, rest: int, state: int) -> tuple[list[int], list[tuple[int, int]]] | None:
        """(the tokens inside, ascending; what is left, as pairs of a tag and a rest); None if it is not made."""
    def sizes(self, rest: int, state: int) -> tuple[int, int] | None:
        """(how many tokens are inside of a division, how many nodes it leaves); None if it is not made."""
    def inside_of(self, number: int) -> tuple[int, int]:
        """(how many tokens are inside of a division that is made, bytes of the longest of them)."""
    def states(self) -> list[int]:
        """The states by which whole tokens are divided, or have been asked for."""

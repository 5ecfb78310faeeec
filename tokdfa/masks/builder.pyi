from collections.abc import Sequence
from typing import Final

from tokdfa.masks.divisions import Divisions
from tokdfa.masks.shared_divisions import SharedDivisions
from tokdfa.vocabulary.trie import TokenTrie

#: Nodes that a walk takes as long for as the name of a part of a state.
NODES_PER_NAME: Final[int]

class MaskBuilder:
    """Makes masks over a trie. Not thread-safe.

    `limit`: bytes of divisions; past it all are dropped and made anew. `patience`: how often a rest is walked before it
    is divided. `names`: whether states that no token tells apart share a division; `shared`: where divisions by such
    states are looked up first, those of other constraints among them, or None.
    """

    trie: TokenTrie
    divisions: Divisions
    limit: int
    patience: int
    #: Work done: nodes of walks, and those at which the state alone does not decide.
    nodes_visited: int
    borders: int

    def __init__(
        self,
        trie: TokenTrie,
        *,
        limit: int = 1 << 28,
        patience: int = 1,
        names: bool = True,
        shared: SharedDivisions | None = None,
        own_tries: bool = False,
    ) -> None: ...
    def forget(self) -> None:
        """Forget all divisions."""
    @property
    def nbytes(self) -> int:
        """Memory of what is kept in bytes."""
    def describe(self, state: int) -> tuple[str, tuple[int, ...]]:
        """(the name of a state, its letters in an order that the name implies); ("", ()) for one without a name.

        States of one name read all texts as long as a token alike, but for the numbers of their letters, which tags
        are made of (`tag_of`, `letters_of`).
        """
    def tag_of(self, letters: Sequence[int]) -> int:
        """The tag made of these letters."""
    def letters_of(self, tag: int) -> list[int]:
        """The letters that a tag is made of."""
    def parts_of(self, state: int) -> int:
        """How many parts of a state are to be named."""

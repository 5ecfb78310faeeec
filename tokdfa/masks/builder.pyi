from collections.abc import Sequence
from typing import Final

from tokdfa.masks.divisions import Divisions
from tokdfa.masks.shared_divisions import SharedDivisions
from tokdfa.vocabulary.trie_nodes import FlatTrie

#: Nodes that a walk takes as long for as the name of a part of a state.
NODES_PER_NAME: Final[int]

class MaskBuilder:
    flat: FlatTrie
    divisions: Divisions
    limit: int
    patience: int
    #: Work done: nodes of walks, and those at which the state alone does not decide.
    nodes_visited: int
    borders: int

    def __init__(
        self,
        flat: FlatTrie,
        *,
        limit: int = 1 << 28,
        patience: int = 1,
        names: bool = True,
        shared: SharedDivisions | None = None,
        own_tries: bool = False,
    ) -> None: ...
    def forget(self) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def describe(self, state: int) -> tuple[str, tuple[int, ...]]: ...
    def tag_of(self, letters: Sequence[int]) -> int: ...
    def letters_of(self, tag: int) -> list[int]: ...
    def parts_of(self, state: int) -> int: ...

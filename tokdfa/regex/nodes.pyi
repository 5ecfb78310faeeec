from typing import Any, Final

import numpy as np
import numpy.typing as npt

NOTHING: Final[int]
EMPTY: Final[int]
ANY_BYTE: Final[int]
ANY_BYTES: Final[int]
K_NOTHING: Final[int]
K_EMPTY: Final[int]
K_BYTES: Final[int]
K_CONCAT: Final[int]
K_UNION: Final[int]
K_INTERSECTION: Final[int]
K_COMPLEMENT: Final[int]
K_REPEAT: Final[int]
K_LOOK_AHEAD: Final[int]
K_ASSERTION: Final[int]
F_NULLABLE: Final[int]
F_INHABITED: Final[int]
F_ASSERTS: Final[int]
F_BOOLEAN: Final[int]
F_CONTEXT: Final[int]
F_PARTS: Final[int]
INFINITE: Final[int]
MAX_REPEAT: Final[int]
KIND_NAMES: Final[tuple[str, ...]]
ASSERTIONS: Final[tuple[str, ...]]

class Nodes:
    room: Final[int]
    def __len__(self) -> int: ...
    def kind(self, expression: int) -> int: ...
    def nullable(self, expression: int) -> bool: ...
    def inhabited(self, expression: int) -> bool: ...
    def has_assertions(self, expression: int) -> bool: ...
    def reads_context(self, expression: int) -> bool: ...
    def is_boolean(self, expression: int) -> bool: ...
    def fields(self, expression: int) -> tuple[int, int, int]: ...
    def members(self, expression: int) -> list[int]: ...
    def bits_of(self, expression: int) -> bytes: ...
    def bytes_of(self, expression: int) -> npt.NDArray[np.bool_]: ...
    def chain(self, expression: int, longest: int) -> list[int] | None: ...
    def view(self, expression: int) -> tuple[Any, ...]: ...

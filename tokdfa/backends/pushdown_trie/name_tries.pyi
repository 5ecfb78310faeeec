from typing import Final

#: Columns of a node.
N_CHARACTER: Final[int]
N_LOW: Final[int]
N_HIGH: Final[int]
#: Columns of a table.
T_NODES: Final[int]
T_ORDER: Final[int]
MAX_NAME_NODES: int

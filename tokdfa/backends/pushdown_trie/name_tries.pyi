from typing import Final

#: Columns of a node.
N_CHARACTER: Final[int]
N_PARENT: Final[int]
N_FIRST: Final[int]
N_PAST: Final[int]
N_LOW: Final[int]
N_HIGH: Final[int]
N_LEAST: Final[int]
N_MOST: Final[int]
N_NAME: Final[int]
#: Columns of a table.
T_NODES: Final[int]
T_ORDER: Final[int]
T_NEEDED: Final[int]
MAX_NAME_NODES: int

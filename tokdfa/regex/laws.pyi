from typing import Final

from tokdfa.regex.nodes import Nodes

LAWS: Final[dict[str, int]]

class Constructors(Nodes): ...

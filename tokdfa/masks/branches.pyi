from typing import final

@final
class Branches:
    """The branches of all tries in one array of nodes."""

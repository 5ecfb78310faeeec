from typing import final

@final
class Branches: ...

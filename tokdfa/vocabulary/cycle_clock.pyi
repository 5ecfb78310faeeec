from typing import Final

CYCLES_PER_TURN: Final = 2
TURNS: Final = 100_000

def cycle_ns(runs: int = 21) -> float: ...
def run_chain(turns: int, a: int, b: int) -> int:
    """What ``x = (x + a) ^ b``, in 64 bits from 0 on, comes to after so many turns."""

from threading import RLock

LOOKS: int
REST: float

def enter(lock: RLock) -> bool: ...

"""How a lock of `tokdfa.core.locks` is taken by ``with``.

It is compiled, so that no signal handler runs between taking the lock and entering the block: a handler that raised
there would leave the lock taken.
"""

import time

#: How often a busy lock is looked at before it is queued for, and the seconds of rest before each look.
LOOKS, REST = 2, 1e-3


def enter(lock):
    """Take a lock; if it is busy, queue for it only after some rest."""
    if lock.acquire(False):
        return True
    for _ in range(LOOKS):
        time.sleep(REST)
        if lock.acquire(False):
            return True
    return lock.acquire()

"""How a lock of `tokdfa.core.locks` is taken by ``with``.

It is compiled so that nothing comes between taking the lock and the block: behind each call of a function of Python an
exception of a signal's handler may rise, and whoever had just taken the lock would keep it.
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

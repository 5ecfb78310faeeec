# cython: auto_pickle=False
"""The account of a thread: what of the budget of its compile or step is left (`tokdfa.core.budget`)."""

from concurrent.futures import CancelledError
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from tokdfa.errors import LimitExceeded

cdef extern from *:
    """
    static thread_local PyObject* tokdfa_account = nullptr;
    """
    PyObject* tokdfa_account

cdef enum:
    MOST = 0x4000000000000000


cdef class spending:
    """See account.pyi."""

    cdef object limits, stopped
    cdef public object what
    cdef readonly int64_t work_left, bytes_left
    cdef int64_t work, bytes  # of the budget
    cdef int within           # how often it was entered while the thread had a budget open

    def __init__(self, budget, what, stopped=None):
        self.budget, self.what, self.stopped = budget, what, stopped
        self.work_left, self.bytes_left = self.work, self.bytes

    @property
    def budget(self):
        return self.limits

    @budget.setter
    def budget(self, budget):
        self.limits, self.work, self.bytes = budget, budget.work, budget.bytes

    @property
    def work_done(self):
        return self.work - self.work_left

    def refuse_beyond(self, work, nbytes):
        if work > self.work:
            raise self.out_of_work()
        if nbytes > self.bytes:
            raise self.out_of_memory()

    def __enter__(self):
        global tokdfa_account
        if tokdfa_account is NULL:
            self.work_left, self.bytes_left = self.work, self.bytes
            Py_INCREF(self)
            tokdfa_account = <PyObject*>self
        else:
            self.within += 1
        return self

    def __exit__(self, kind, error, trace):
        global tokdfa_account
        if self.within:
            self.within -= 1
        else:
            tokdfa_account = NULL
            Py_DECREF(self)

    cdef int count(self, int64_t work, int64_t nbytes) except -1:
        if self.stopped is not None and self.stopped.is_set():
            raise CancelledError
        if work > self.work_left:
            self.work_left = -1
            raise self.out_of_work()
        self.work_left -= work
        self.bytes_left -= nbytes
        if nbytes and self.bytes_left < 0:
            raise self.out_of_memory()
        return 0

    cdef object out_of_work(self):
        seconds = self.limits.seconds
        return self.exceeded("seconds", f"{seconds:g} s of work", seconds)

    cdef object out_of_memory(self):
        megabytes = self.limits.megabytes
        return self.exceeded("mb", f"{megabytes:g} MB", megabytes)

    cdef object exceeded(self, str unit, str limit, object value):
        option = f"{self.limits.kind}_{unit}"
        what = self.what if isinstance(self.what, str) else self.what()
        return LimitExceeded(
            f"{what} takes more than {limit}; raise {option}, or ask for something simpler", limit=option, value=value
        )


cdef int take(int64_t work, int64_t nbytes) except -1:
    return 0 if tokdfa_account is NULL else (<spending>tokdfa_account).count(work, nbytes)


cdef int64_t clipped(object amount) except? -1:
    """A number, of any size, as one that no budget has."""
    cdef int overflow = 0
    cdef int64_t found = PyLong_AsLongLongAndOverflow(int(amount), &overflow)
    return MOST if overflow > 0 or found > MOST else found


def spend(work, nbytes=0):
    """See account.pyi."""
    if tokdfa_account is not NULL:
        (<spending>tokdfa_account).count(clipped(work), clipped(nbytes))


def ruling():
    """See account.pyi."""
    return None if tokdfa_account is NULL else <object>tokdfa_account

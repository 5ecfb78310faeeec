from libc.stdint cimport int32_t, int64_t


cdef class Matcher:
    cdef public object vocab
    cdef public object counters
    cdef public object origin
    cdef public object refusals
    cdef public list _tokens
    cdef object __weakref__
    cdef int64_t size      # of the vocabulary
    cdef object checked    # the mask that was checked last
    cdef object view       # its buffer, held so that `words` stays valid
    cdef int32_t* words

    cdef int bind(self, object vocab) except -1
    cdef object check(self, object out)
    cdef bint in_range(self, object token) except -1
    cdef object out_of_range(self, object token)
    cdef object limited(self, str step, object token, object do, object argument)
    cdef int note_refusal(self, str step, object token, object error) except -1
    cdef int check_refusals(self, str step, object token) except -1
    cdef object unwritten(self, str name)

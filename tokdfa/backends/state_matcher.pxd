from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.matcher cimport Matcher
from tokdfa.vocabulary.mask_store cimport MaskStore


cdef class StateMatcher(Matcher):
    cdef object current            # `state`, unless a subclass keeps it in another form
    cdef list before               # `_history`
    cdef readonly MaskStore store  # of masks, if they are kept
    cdef object steps

    # Write the mask of the state, if it is kept, into as many words as a mask has; whether it is.
    cdef bint write_kept(self, int32_t* out) except -1
    # Write a mask that is not kept into the array that was checked last; the text has not ended.
    cdef int write_new(self) except -1
    # Take an int where the memo of steps has it; whether it has.
    cdef bint take_known(self, object token) except -1
    # Where an int leads, as far as that is known without Python: DEAD if it may not come, UNKNOWN if not.
    cdef int64_t after(self, object token) except? -3
    # Go on to a state.
    cdef int enter(self, object state) except -1
    cdef bint has_ended(self) except -1
    # Go to the state and the history of another matcher of the same compiled constraint.
    cdef int follow(self, StateMatcher other) except -1

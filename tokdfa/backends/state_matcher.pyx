# cython: auto_pickle=False
"""Matchers whose whole state is one value: rollback and fork are free.

A mask or a step that was seen before is served from the strategy's `MaskStore` and its memo of steps, without a call of
the strategy.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Size
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.matcher cimport Matcher
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN
from tokdfa.vocabulary.mask_store cimport MaskStore

from types import GenericAlias

from tokdfa.core.arguments import as_token
from tokdfa.errors import LimitExceeded, TokenRefused

cdef object AFTER_END = object()
cdef object NOTHING = {}

#: So many steps are kept for a constraint, about 100 bytes each.
KEPT_STEPS = 200_000


class StepMemo(dict):
    """(state, token) -> state: steps that were made before, emptied when there are KEPT_STEPS."""

    def keep(self, state, token, following):
        """Remember where a token led."""
        if len(self) >= KEPT_STEPS:
            self.clear()
        self[state, token] = following


cdef class StateMatcher(Matcher):
    """A matcher whose whole state is one value. Subclasses write `_step`, `_accepts`, `_fill` and `_fork_empty`.

    `_step` returns None for a token that is not allowed; end tokens never reach it. The history holds the state before
    each token that was taken; `FINISHED` stands for the state after an end token.

    `_serve_from` names where masks and steps that were seen before are kept; strategies keep them there themselves,
    and their states are integers.
    """

    FINISHED = AFTER_END

    def __cinit__(self):
        self.before = []
        self.steps = NOTHING

    def __init__(self, vocab, start):
        self.bind(vocab)
        self.current = start

    @property
    def state(self):
        return self.current

    @state.setter
    def state(self, state):
        self.current = state

    @property
    def _history(self):
        """The state before each token that was taken."""
        return self.before

    @_history.setter
    def _history(self, list states not None):
        self.before = states

    @classmethod
    def __class_getitem__(cls, state):
        return GenericAlias(cls, state)

    def _serve_from(self, MaskStore store not None, steps=NOTHING):
        """Serve masks from a store, and steps that are allowed from a memo: (state, token) -> state."""
        if store.words != (self.size + 31) // 32:
            raise ValueError("masks of another vocabulary are kept")
        self.store, self.steps = store, steps

    def _step(self, state, token):
        """The state after `token`, which spells something; None if it is not allowed."""
        raise self.unwritten("_step")

    def _accepts(self, state):
        """Whether the text may end in `state`."""
        raise self.unwritten("_accepts")

    def _fill(self, state, out):
        """Write the mask of `state`, end tokens included."""
        raise self.unwritten("_fill")

    def _fork_empty(self):
        """A new matcher of the same compiled constraint, in any state."""
        raise self.unwritten("_fork_empty")

    def fill_mask(self, out):
        if out is not self.checked:
            out = self.check(out)
        self.check_refusals("mask", -1)
        if not self.write_kept(self.words):
            if self.has_ended():
                self._fill_after_end(out)
                return
            try:
                self.write_new()
            except LimitExceeded as error:
                self.note_refusal("mask", -1, error)
                raise

    cdef bint write_kept(self, int32_t* out) except -1:
        return self.store is not None and self.current is not AFTER_END and self.store.write(self.current, out)

    cdef int write_new(self) except -1:
        self._fill_mask(self.checked)
        return 0

    def _fill_mask(self, out):
        self._fill(self.state, out)

    def advance(self, token):
        if type(token) is not int:
            token = as_token(token)
        self.check_refusals("advance", token)
        if not self.take_known(token):
            if not self.in_range(token):
                raise self.out_of_range(token)
            if self.has_ended():
                self._refuse_after_end(token)
                return
            following = self.limited("advance", token, self._next, token)
            if following is None:
                raise TokenRefused(token, self._why_refused(token))
            self.enter(following)
        self._tokens.append(token)

    cdef bint take_known(self, object token) except -1:
        cdef PyObject* found
        if not self.steps:
            return False
        found = PyDict_GetItemWithError(self.steps, (self.current, token))
        if found is NULL:
            return False
        self.enter(<object>found)
        return True

    cdef int64_t after(self, object token) except? -3:
        return UNKNOWN

    def allows(self, token):
        cdef int64_t after
        if type(token) is not int:
            token = as_token(token)
        if self.refusals is None or not PyDict_Size(self.refusals):
            after = self.after(token)
            if after >= 0:
                return True
            if after == DEAD and token not in self.vocab.end_token_set:
                return False
        return Matcher.allows(self, token)

    cdef int enter(self, object state) except -1:
        self.before.append(self.current)
        self.current = state
        return 0

    cdef bint has_ended(self) except -1:
        return self.current is AFTER_END

    def _next(self, token):
        """The state after an id of the vocabulary, None if it is not allowed; the text has not ended."""
        if token in self.vocab.end_token_set:
            return AFTER_END if self._accepts(self.state) else None
        return self._step(self.state, token)

    def _why_refused(self, token):
        if token in self.vocab.end_token_set:
            return "it is an end token and the text is not complete here"
        spelled = self.vocab.token_bytes(token)
        return f"its bytes {spelled!r} cannot come next" if spelled else "it spells no text"

    def _allows(self, token):
        return self._next(token) is not None

    def can_end(self):
        return self.has_ended() or self._accepts(self.state)

    def is_finished(self):
        return self.has_ended()

    @cython.boundscheck(True)  # subclasses may change the history
    def _rollback(self, count):
        cdef Py_ssize_t kept = len(self.before) - <Py_ssize_t>count
        self.current = self.before[kept]
        del self.before[kept:]

    def _fork(self):
        cdef StateMatcher twin = self._fork_empty()
        twin.follow(self)
        return twin

    cdef int follow(self, StateMatcher other) except -1:
        self.current, self.before = other.current, other.before.copy()
        return 0

    def whereabouts(self):
        return self.state

    def situation_source(self):
        return None

    def _count(self, **work):
        """Add to the counters."""
        for name, amount in work.items():
            self.counters[name] = self.counters.get(name, 0) + int(amount)


def fill_kept(matchers, int32_t[:, ::1] rows not None):
    """Write the masks that are kept into the rows of `matchers`; the numbers of those that are left. None has no mask.

    Calls no Python for a matcher whose mask is kept.
    """
    cdef Py_ssize_t k = 0
    cdef StateMatcher one
    cdef list given = list(matchers), left = []  # a copy: looking up a state may run Python
    if len(given) > rows.shape[0]:
        raise ValueError(f"{len(given)} matchers have {rows.shape[0]} rows")
    for matcher in given:
        if isinstance(matcher, StateMatcher):
            one = matcher
            if not one.refusals and (one.size + 31) // 32 == rows.shape[1] and one.write_kept(&rows[k, 0]):
                matcher = None
        if matcher is not None:
            left.append(k)
        k += 1
    return left

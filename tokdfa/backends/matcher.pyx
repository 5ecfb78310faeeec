# cython: auto_pickle=False
"""Matchers: the state of one generated sequence, and what all of them do alike.

`Matcher` checks what it is given, once for all strategies. `tokdfa.backends.state_matcher.StateMatcher` is for
strategies whose whole state is one value, which are all of ours.
"""

from cpython.dict cimport PyDict_Size
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t, int64_t

import numpy as np

from tokdfa.core.arguments import as_integer, as_token
from tokdfa.errors import ArgumentError, LimitExceeded, TokdfaError, TokenRefused, UnsupportedConstraint
from tokdfa.mask import INT32, check_mask, mask_from_ids

cdef object ARRAY = np.ndarray
cdef object NO_MASK = object()  # stands for the last mask before there is one; nobody else has it


cdef class Matcher:
    """The state of one generated sequence. Not to be shared between threads; `fork` gives each its own.

    The methods here check what they are given, once for all strategies: token ids may be integers of any kind (numpy's,
    a tensor of one), anything else raises ArgumentError; masks may be torch tensors on the CPU. A strategy writes the
    methods of the same names with an underscore, which get plain ints and checked arrays. A copy is a fork; a pickle
    holds the compiled constraint and the tokens, which are taken again.
    """

    _UNCOUNTED = (
        "the engine does not show its states, so nobody can count the tokens to an end; take one of our own backends"
    )

    #: What it was started with, besides the context.
    _max_tokens = None

    def __cinit__(self):
        self.counters, self._tokens = {}, []
        self.checked = NO_MASK

    def __init__(self, vocab):
        self.bind(vocab)

    cdef int bind(self, object vocab) except -1:
        self.vocab, self.size = vocab, vocab.size
        return 0

    def __repr__(self):
        condition = "finished" if self.is_finished() else "may end" if self.can_end() else "must go on"
        return f"<{type(self).__name__}: {condition}>"

    @property
    def tokens(self):
        """The tokens taken so far, an end token included, without the context."""
        return tuple(self._tokens)

    def fill_mask(self, out):
        """Write the set of allowed next tokens into `out`: int32, shape (ceil(V/32),), overwritten in full.

        `out` is C-contiguous and writable: a numpy array, or a torch tensor on the CPU.
        """
        if out is not self.checked:
            out = self.check(out)
        if self.is_finished():
            self._fill_after_end(out)
        else:
            self.limited("mask", -1, self._fill_mask, out)

    def _fill_after_end(self, out):
        """Write the mask of a finished matcher: the end tokens, so that some logit is finite."""
        out[:] = mask_from_ids(self.vocab.end_tokens, self.size)

    cdef object check(self, object out):
        """`out` as an array that fits. It is noted: it still fits the next time, as its buffer is held till then."""
        cdef object view = None
        if type(out) is ARRAY and out.dtype is INT32:
            view = PyMemoryView_FromObject(out)
            buffer = PyMemoryView_GET_BUFFER(view)
            if (
                buffer.readonly
                or buffer.ndim != 1
                or buffer.shape[0] != (self.size + 31) // 32
                or buffer.strides[0] != sizeof(int32_t)
                or <size_t>buffer.buf % sizeof(int32_t)
            ):
                view = None
        if view is None:
            out = check_mask(out, self.size, name="out")
            view = PyMemoryView_FromObject(out)
        self.checked, self.view, self.words = out, view, <int32_t*>PyMemoryView_GET_BUFFER(view).buf
        return out

    cdef object limited(self, str step, object token, object do, object argument):
        """What `do` returns of its argument; what it refuses is refused again (`tokdfa.core.refusals`)."""
        self.check_refusals(step, token)
        try:
            return do(argument)
        except LimitExceeded as error:
            self.note_refusal(step, token, error)
            raise

    cdef int note_refusal(self, str step, object token, object error) except -1:
        """Note a step that was refused, for `check_refusals`."""
        if self.refusals is not None and self.origin is not None:
            compiled, _ = self.origin
            self.refusals.note(self._place(step, token), error, compiled.working.budget)
        return 0

    cdef int check_refusals(self, str step, object token) except -1:
        """Refuse a step that was refused before."""
        if self.refusals is not None and PyDict_Size(self.refusals):
            compiled, _ = self.origin
            self.refusals.check(self._place(step, token), compiled.working.budget)
        return 0

    def _place(self, step, token):
        """A step and the tokens before it, for `refusals`."""
        _, context = self.origin
        return type(self), step, token, context, self.tokens

    def advance(self, token):
        """Append one token. A token whose bit is not set raises TokenRefused and leaves the matcher unchanged.

        So does an end token of a matcher that is finished, which is allowed, and is none of its `tokens`.
        """
        if type(token) is not int:
            token = as_token(token)
        if not self.in_range(token):
            raise self.out_of_range(token)
        if self.is_finished():
            self._refuse_after_end(token)
            return
        self.limited("advance", token, self._advance, token)
        self._tokens.append(token)

    def _refuse_after_end(self, token):
        """Raise TokenRefused for all but an end token."""
        if token not in self.vocab.end_token_set:
            raise TokenRefused(token, "the text has ended, and only end tokens may follow; rollback(1) reopens it")

    cdef bint in_range(self, object token) except -1:
        """Whether an int, of any size, is an id of the vocabulary."""
        cdef int overflow = 0
        cdef int64_t number = PyLong_AsLongLongAndOverflow(token, &overflow)  # -1 if it overflows
        return 0 <= number < self.size

    cdef object out_of_range(self, object token):
        return TokenRefused(token, f"the vocabulary has the ids 0 to {self.size - 1}")

    def allows(self, token):
        """Whether `token`'s bit is set, without filling a mask where the strategy can."""
        if type(token) is not int:
            token = as_token(token)
        if self.is_finished():
            return token in self.vocab.end_token_set
        return self.in_range(token) and self.limited("advance", token, self._allows, token)

    def can_end(self):
        """Whether the text so far is complete, so that an end token is allowed; true of a finished one, too."""
        raise self.unwritten("can_end")

    def is_finished(self):
        """Whether an end token has been taken."""
        raise self.unwritten("is_finished")

    def rollback(self, count):
        """Take back the last `count` tokens, an end token included. More than there are raises ArgumentError."""
        cdef Py_ssize_t taken = len(self._tokens)
        count = as_integer(count, "count", 0)
        if count > taken:
            raise ArgumentError(f"count: cannot take back {count} tokens, {taken} were taken")
        if count:
            self._rollback(count)
            del self._tokens[taken - <Py_ssize_t>count:]

    def fork(self):
        """An independent matcher in the same state."""
        cdef Matcher twin = self._fork()
        twin._tokens = self._tokens.copy()
        twin.origin, twin.refusals = self.origin, self.refusals
        return twin

    cdef object unwritten(self, str name):
        return NotImplementedError(f"{type(self).__name__} does not write `{name}`")

    def _fill_mask(self, out):
        """Write the mask into a checked array; the text has not ended."""
        raise self.unwritten("_fill_mask")

    def _advance(self, token):
        """Take an id of the vocabulary, or raise TokenRefused and change nothing; unused where `advance` does all.

        The text has not ended, here and in `_allows`.
        """
        raise self.unwritten("_advance")

    def _allows(self, token):
        """Whether an id of the vocabulary may come next."""
        raise self.unwritten("_allows")

    def _rollback(self, count):
        """Take back the last `count` tokens; there are as many, and at least one. `_tokens` holds them still."""
        raise self.unwritten("_rollback")

    def _fork(self):
        """A matcher of its own in the same state. `_tokens` is the caller's business."""
        raise self.unwritten("_fork")

    def whereabouts(self):
        """What two matchers of one compiled constraint have in common that go on alike, as far as is known."""
        return self

    @property
    def plain(self):
        """The matcher whose states `situation_source` knows: itself, or the one beside which it remembers something."""
        return self

    def counted(self):
        """What `SituationSource.number` of `situation_source` takes: where `plain` is."""
        return self.plain.whereabouts()

    def memory(self):
        """What it remembers beside the states of `plain`, None for nothing: see `tokdfa.backends.remembered_ends`."""
        return None

    def situation_source(self):
        """Where all tokens lead at once; equal ones know the same states. None: the strategy has no way of its own.

        Raises UnsupportedConstraint for an engine that does not show its states.
        """
        raise UnsupportedConstraint(self._UNCOUNTED)

    def __copy__(self):
        return self.fork()

    def __deepcopy__(self, memo):
        return self.fork()

    def __reduce__(self):
        if self.origin is None:
            raise TokdfaError(f"{self!r} was not made by `CompiledConstraint.start`, so a pickle cannot make it again")
        return _restore, (*self.origin, self._max_tokens, self.tokens)

    def forced_tokens(self, limit=64):
        """The tokens that must come next, one after another, up to `limit`.

        First, each that is the only bit of its mask. Where the next bytes are forced and can be cut in several ways,
        then the tokenizer's own tokens for them, up to the last border that no continuation moves (see
        `tokdfa.backends.forced`): to append them in place of asking the model is to have it write as its tokenizer
        does. All of them are allowed. Costs the masks of `forced_bytes`, and an encoding or a few.
        """
        from tokdfa.backends.forced import find_forced_tokens

        return find_forced_tokens(self, as_integer(limit, "limit", 0))

    def shortest_completion(self):
        """The fewest tokens after which the text may end, an end token not among them; [] where it may end now.

        Exact, by a breadth-first search over the states of the constraint, which remembers what it found: see
        `tokdfa.backends.shortest_ends`. Raises LimitExceeded past the budget of a step, and UnsupportedConstraint for
        an engine that does not show its states.
        """
        if self.is_finished():
            return []
        if self.origin is None:
            raise TokdfaError(f"{self!r} was not made by `CompiledConstraint.start`, so its ends are not known")
        compiled, _ = self.origin
        return compiled.shortest_completion(self)

    def forced_bytes(self, limit=256):
        """The bytes with which every text that tokens can still spell goes on, up to `limit`; b"" where it may end.

        From masks alone: every way of cutting those bytes into tokens is followed from token to token, and the answer
        is what all ways have in common. Ways that meet in one state are one. At most `limit` masks are made; if more
        ways than that turn up, which happens to matchers that do not know their states, only what is proved by then is
        returned. Where nothing is forced, that is one mask.
        """
        return self._forced_bytes(as_integer(limit, "limit", 0))

    def _forced_bytes(self, limit):
        from tokdfa.backends.forced import find_forced_bytes

        return find_forced_bytes(self, limit)


def _restore(compiled, context, max_tokens, tokens):
    matcher = compiled.start(context, max_tokens)
    for token in tokens:
        matcher.advance(token)
    return matcher

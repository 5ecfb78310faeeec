# cython: auto_pickle=False
"""The matcher of a peer: the peer takes the text's tokens, end tokens stay here.

Compiled, so that what stands between a loop and the peer's own calls costs less than a tenth of them: the fastest peers
take some microseconds for a token.
"""

from libc.stdint cimport int32_t, uint32_t

from tokdfa.backends.matcher cimport Matcher

from tokdfa.core.arguments import as_token
from tokdfa.errors import TokenRefused


cdef class PeerMatcher(Matcher):
    """A matcher whose text tokens a peer takes; end tokens stay here.

    Subclasses write `_fill`, `_take`, `_would_take`, `_accepts`, `_fork_peer`, and `_go_back` or `_restart`.
    """

    cdef bint finished
    cdef tuple ends
    cdef frozenset end_set

    def __init__(self, vocab):
        self.bind(vocab)
        self.ends, self.end_set = tuple(vocab.end_tokens), frozenset(vocab.end_token_set)

    @property
    def taken(self):
        """The tokens that the peer has taken, without an end token."""
        return self._tokens[: len(self._tokens) - 1] if self.finished else self._tokens

    def _fill(self, out):
        """Write the mask of the peer's state, end tokens included, into a checked buffer."""
        raise self.unwritten("_fill")

    def _take(self, token):
        """Let the peer take `token`, an id of the vocabulary that ends nothing. False: refused, and nothing changed."""
        raise self.unwritten("_take")

    def _would_take(self, token):
        """Whether `_take` would succeed."""
        raise self.unwritten("_would_take")

    def _accepts(self):
        """Whether the peer's text is complete."""
        raise self.unwritten("_accepts")

    def _go_back(self, count):
        """Let the peer forget its last `count` tokens, at least one; `taken` has them still."""
        self.start_anew(self.taken[:-count])

    def _restart(self, tokens):
        """Let the peer begin anew and take `tokens`, which it has taken before."""
        raise self.unwritten("_restart")

    def _fork_peer(self):
        """A new matcher whose peer is in this one's state. What was taken is the caller's business."""
        raise self.unwritten("_fork_peer")

    def address(self, out):
        """Where `out` lies in memory."""
        return <size_t>self.words if out is self.checked else out.ctypes.data

    def set_end_bits(self, int32_t[::1] out not None):
        """Allow all end tokens."""
        cdef uint32_t end
        for end in self.ends:
            out[end >> 5] |= <int32_t>(<uint32_t>1 << (end & 31))

    def clear_padding(self, int32_t[::1] out not None):
        """Refuse what lies past the vocabulary."""
        if self.size & 31:
            out[self.size >> 5] &= <int32_t>((<uint32_t>1 << (self.size & 31)) - 1)

    def fill_mask(self, out):
        if out is not self.checked:
            out = self.check(out)
        if self.finished:
            self._fill_after_end(out)
        else:
            self.limited("mask", -1, self._fill, out)

    def _fill_mask(self, out):
        self._fill(out)

    def advance(self, token):
        cdef bint ends
        if type(token) is not int:
            token = as_token(token)
        if not self.in_range(token):
            raise self.out_of_range(token)
        if self.finished:
            self._refuse_after_end(token)
            return
        ends = token in self.end_set
        if ends and not self._accepts():
            raise TokenRefused(token, "it is an end token and the text is not complete here")
        if not ends and not self.limited("advance", token, self._take, token):
            raise TokenRefused(token)
        self._tokens.append(token)
        self.finished = ends

    def _allows(self, token):
        return self._accepts() if token in self.end_set else self._would_take(token)

    def can_end(self):
        return self.finished or self._accepts()

    def is_finished(self):
        return self.finished

    def _rollback(self, count):
        cdef Py_ssize_t of_text = count - self.finished
        if of_text > 0:
            self._go_back(of_text)
        self.finished = False

    def _fork(self):
        cdef PeerMatcher twin = self._fork_peer()
        twin.finished = self.finished
        return twin

    def start_anew(self, tokens):
        """`_restart`, counted."""
        self._restart(tokens)
        self.counters["tokens_replayed"] = self.counters.get("tokens_replayed", 0) + len(tokens)

"""A guide as outlines_core has it: one generated text on its way through an index; and the masks of 001, section E."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, overload

import tokdfa
from tokdfa.guide.arguments import GuideError, GuideTypeError, as_count, as_integer
from tokdfa.guide.buffers import words_at, words_of_buffer
from tokdfa.guide.index import START, Index, start_in
from tokdfa.mask import allocate_mask, mask_to_ids, mask_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from tokdfa.mask import Mask


class Guide:
    """The state of one text. Not to be shared between threads.

    It keeps the states before the last `max_rollback` tokens, to go back to.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # it moves

    def __init__(self, index: Index, max_rollback: int = 32) -> None:
        if not isinstance(index, Index):
            raise GuideTypeError(f"a guide takes an Index of tokdfa.guide, not {type(index).__name__}")
        self._index = index
        self._size = index.vocabulary.size
        self._matcher = start_in(index.compiled, START)  # only to make masks: the guide itself keeps the states
        self._state = START
        self._earlier: deque[int] = deque(maxlen=as_count(max_rollback, "max_rollback"))

    def get_state(self) -> int:
        """The current state."""
        return self._state

    def is_finished(self) -> bool:
        """Whether the text may end here; it may go on as well."""
        return self._index.is_final_state(self._state)

    @overload
    def get_tokens(self, mask: None = None) -> list[int]: ...
    @overload
    def get_tokens(self, mask: Buffer) -> None: ...
    def get_tokens(self, mask: Buffer | None = None) -> list[int] | None:
        """The allowed tokens as an ascending list, end tokens included; or as the bits of `mask`, and no list.

        `mask`: a writable buffer of 4- or 8-byte integers, such as `create_mask` gives, an ``array.array("I")`` or an
        int32 array of shape (ceil(V/32),) or (1, ceil(V/32)). It may be longer; all of it is overwritten.
        Raises GuideTypeError or GuideError for any other. O(V) for a list; for a mask what the backend takes, and 1 us.
        """
        if mask is not None:
            self._fill(words_of_buffer(mask, self._size))
            return None
        words = allocate_mask(self._size)
        self._fill(words)
        return mask_to_ids(words).tolist()

    def advance(
        self, token_id: int, return_tokens: bool | Buffer | None = None, mask: Buffer | None = None
    ) -> list[int] | None:
        """Take a token, then do as `get_tokens` does. ``return_tokens=False`` gives no list, True gives it in any case.

        The mask may also be the second argument, as in 001. A token that is not allowed, an end token, and a mask that
        `get_tokens` refuses raise GuideError or GuideTypeError and change nothing.
        """
        if return_tokens is not None and not isinstance(return_tokens, bool):
            if mask is not None:
                raise GuideTypeError("advance takes one mask; return_tokens is True or False")
            return_tokens, mask = None, return_tokens
        words = None if mask is None else words_of_buffer(mask, self._size)
        target = self._index.get_next_state(self._state, token_id)
        if target is None:
            raise self._refusal(as_integer(token_id, "a token id"))
        self._earlier.append(self._state)
        self._state = target
        if words is not None:
            self._fill(words)
        listed = words is None if return_tokens is None else return_tokens
        return self.get_tokens() if listed else None

    def accepts_tokens(self, sequence: Sequence[int]) -> bool:
        """Whether these tokens may come next, one after another. End tokens may not."""
        state = self._state
        for token in sequence:
            target = self._index.get_next_state(state, token)
            if target is None:
                return False
            state = target
        return True

    def get_allowed_rollback(self) -> int:
        """How many tokens can be taken back."""
        return len(self._earlier)

    def rollback_state(self, n: int) -> None:
        """Take back the last `n` tokens. GuideError if there are fewer or they lie more than `max_rollback` back."""
        count = as_count(n, "n")
        if count > len(self._earlier):
            raise GuideError(
                f"cannot take back {count} tokens: {len(self._earlier)} are kept (max_rollback={self._earlier.maxlen})"
            )
        for _ in range(count):
            self._state = self._earlier.pop()

    def reset(self) -> None:
        """Begin a new text. The tokens of the old one can no longer be taken back."""
        self._state = START
        self._earlier.clear()

    def write_mask_into(self, data_ptr: int, numel: int, element_size: int) -> None:
        """Write the mask as `numel` int32 words from the address `data_ptr` on. Words that no token needs become 0.

        The caller vouches for the memory: ``mask.data_ptr(), mask.numel(), mask.element_size()`` of a contiguous torch
        tensor on the CPU; ``mask.ctypes.data, mask.size, mask.itemsize`` of a contiguous numpy array. GuideError if
        `element_size` is not 4, the address is 0 or unaligned, or `numel` is less than ceil(V/32).
        """
        self._fill(words_at(data_ptr, numel, element_size, self._size))

    def _fill(self, words: Mask) -> None:
        """Write the mask into int32 words, at least ceil(V/32) of them."""
        needed = mask_words(self._size)
        if len(words) > needed:
            words[needed:] = 0
            words = words[:needed]
        self._matcher.state = self._state
        self._matcher.fill_mask(words)

    def _refusal(self, token: int) -> GuideError:
        vocab = self._index.vocabulary
        if token in vocab.end_token_set:
            reason = "it ends the text, and no guide takes it; stop when it is sampled"
        elif not 0 <= token < vocab.size:
            reason = f"the vocabulary has the ids 0 to {vocab.size - 1}"
        else:
            spelled = vocab.token_bytes(token)
            reason = f"its bytes {spelled!r} cannot come next" if spelled else "it spells no text"
        return GuideError(f"token {token} is not allowed in state {self._state}: {reason}")

    def __eq__(self, other: object) -> bool:
        """Equal indices, states, and states to go back to."""
        if not isinstance(other, Guide):
            return NotImplemented
        return (self._state, self._earlier) == (other._state, other._earlier) and self._index == other._index

    def __repr__(self) -> str:
        return f"Guide(state={self._state}, allowed_rollback={len(self._earlier)}, {self._index!r})"

    def __reduce__(self) -> tuple[Callable[..., Guide], tuple[Any, ...]]:
        state, earlier, limit = self._state, tuple(self._earlier), self._earlier.maxlen
        return _restore, (tokdfa.__version__, self._index, state, earlier, limit)


def _restore(version: str, index: Index, state: int, earlier: Sequence[int], max_rollback: int) -> Guide:
    """Unpickle a guide. Its index has been compiled again, and numbers states alike only in the same version."""
    if version != tokdfa.__version__:
        raise GuideError(f"a guide of tokdfa {version} cannot be unpickled by {tokdfa.__version__}: states may differ")
    guide = Guide(index, max_rollback)
    guide._state = state
    guide._earlier.extend(earlier)
    return guide

"""Constraints for generate() of the package transformers: a LogitsProcessor made of any compiled constraint.

At each step generate() hands over the tokens so far, one row for each sequence of the batch, and their scores. The
processor keeps one matcher for each row, found again by the row's own tokens, so that it does not matter where in the
batch a row stands: beam search, which drops, doubles and re-orders rows, needs no special care. A row that goes on
from one that others go on from too gets a fork of its matcher. Everything in the first call is the prompt, padding on
the left included.

*Width.* Models often have more logits than their tokenizer has tokens, for the sake of round numbers. Logits past the
vocabulary are refused; a model that is wider by more than a part of `PADDING_SHARE` is taken for another one. One that
is narrower fits if all tokens past its logits spell nothing.

*The end.* generate() stops a sequence at the model's own EOS tokens, so of the vocabulary's end tokens only those are
let through. Whatever comes after the end is padding: only EOS and the padding token keep their scores.

*Dead rows.* A beam search that looks for more sequences than the constraint has goes on with refused tokens of score
minus infinity. Such a row is dead and left alone, as long as another row of its prompt lives.

The scores that come in are not changed: generate() may keep them as the model's own (``output_logits=True``).
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.core.arguments import as_integer, as_tokens
from tokdfa.core.packages import derived
from tokdfa.decoding.torch_masks import apply_masks
from tokdfa.errors import EmptyMask, ModelError, TokenRefused
from tokdfa.models.gguf_weights import PURPOSE, import_lm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.mask import Mask


#: Logits may outnumber tokens by a part of so many: padding to a multiple of 128, reserved ids.
PADDING_SHARE = 16


class ConstraintLogitsProcessor:
    """Lets generate() choose only what a constraint allows. An object serves one call of generate().

    ``model.generate(**inputs, logits_processor=[ConstraintLogitsProcessor(compiled, eos_token_id=2)])``

    `eos_token_id`: the ids that end a sequence for the model, as in ``model.generation_config.eos_token_id``; one of
    them at least must be an end token of the vocabulary. `pad_token_id`: what finished rows are padded with, if it is
    another token. `contexts`: for each prompt of the batch, in order, the tokens that the constrained text goes on
    from; by default the prompt without the special tokens that it begins with. It matters to backends with proper
    tokenization. `max_tokens`: with it every text is whole within so many tokens, end token not counted; give
    generate() the same `max_new_tokens`, or one more. `steps` and `seconds`: how often and how long the processor was
    at work.

    Its instances are LogitsProcessors of transformers, which is imported when the first is made. Raises ModelError for
    an EOS that the vocabulary lacks. Calls raise ModelError (other widths, rows that do not go on from those of the
    last call, one prompt with two contexts), VocabularyError for a prompt with ids that the vocabulary lacks,
    EmptyMask, and TokenRefused if each row of a prompt has taken a token that was masked out.
    """

    def __new__(cls, *_arguments: Any, **_options: Any) -> ConstraintLogitsProcessor:
        kind: Any = cls
        made: ConstraintLogitsProcessor = object.__new__(derived(kind, "transformers", PURPOSE, "LogitsProcessor"))
        return made

    def __init__(
        self,
        compiled: CompiledConstraint,
        *,
        eos_token_id: int | Sequence[int],
        pad_token_id: int | None = None,
        contexts: Sequence[Sequence[int]] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        vocabulary = compiled.vocab
        if max_tokens is not None:
            max_tokens = as_integer(max_tokens, "max_tokens", 0)
        if pad_token_id is not None:
            pad_token_id = as_integer(pad_token_id, "pad_token_id", 0, vocabulary.size - 1)
        self._compiled, self._contexts, self._max_tokens = compiled, contexts, max_tokens
        wanted = np.atleast_1d(np.asarray(eos_token_id, dtype=np.int64)).tolist()
        ends = sorted(vocabulary.end_token_set.intersection(wanted))
        if not ends:
            raise ModelError(
                f"the model ends a text with {wanted}, but the end tokens of the vocabulary are "
                f"{list(vocabulary.end_tokens)}; load the tokenizer with ?end=... or set the model's eos_token_id"
            )
        self._other_ends = masks.mask_from_ids(sorted(vocabulary.end_token_set.difference(ends)), vocabulary.size)
        self._after_end = masks.mask_from_ids(ends if pad_token_id is None else [*ends, pad_token_id], vocabulary.size)
        self._prompt = 0
        #: Bytes of a row of tokens -> its matcher; None for a dead row.
        self._matchers: dict[bytes, Matcher | None] | None = None
        self.steps, self.seconds = 0, 0.0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """`scores` with minus infinity for what is not allowed. Both of shape (rows, ...), see transformers.

        Costs what the matchers cost, and about 20 us a row for 50,000 tokens.
        """
        started = time.perf_counter_ns()
        self._check_width(scores.shape[-1])
        tokens = np.ascontiguousarray(input_ids.cpu().numpy(), dtype=np.int64)
        if self._matchers is None:
            self._prompt = tokens.shape[1]
            found = self._start(tokens)
        else:
            found = self._advance(tokens, self._matchers)
        self._matchers = dict(zip((row.tobytes() for row in tokens), found, strict=True))
        masked = _masked(scores, self._masks(found))
        self.steps += 1
        self.seconds += (time.perf_counter_ns() - started) * 1e-9
        return masked

    def _check_width(self, width: int) -> None:
        """Raise ModelError for logits that cannot be those of the vocabulary's tokens."""
        vocabulary = self._compiled.vocab
        if width > vocabulary.size + vocabulary.size // PADDING_SHARE:
            raise ModelError(
                f"the model has {width} logits and the vocabulary {vocabulary.size} tokens; "
                f"load the tokenizer with size={width} if it is the model's"
            )
        if width < vocabulary.size and vocabulary.lengths[width:].any():
            raise ModelError(
                f"the model has {width} logits and the vocabulary {vocabulary.size} tokens, and those past the logits "
                "spell text: it is another model's tokenizer, or the model needs "
                f"model.resize_token_embeddings({vocabulary.size})"
            )

    def _start(self, tokens: npt.NDArray[np.int64]) -> list[Matcher | None]:
        """A matcher for each prompt. Rows with the same prompt share one, which is forked when they go on."""
        contexts: Iterable[Sequence[int]] = map(self._without_specials, tokens)
        if self._contexts is not None:
            if not self._contexts or len(tokens) % len(self._contexts):
                raise ModelError(f"{len(self._contexts)} contexts were given for {len(tokens)} rows")
            # generate() repeats each prompt for its beams or its samples, one after another
            repeats = len(tokens) // len(self._contexts)
            contexts = [context for context in self._contexts for _ in range(repeats)]
        started: dict[bytes, Matcher | None] = {}
        known: dict[bytes, tuple[int, ...]] = {}
        for row, context in zip(tokens, contexts, strict=True):
            key = row.tobytes()
            if key not in started:
                started[key], known[key] = self._compiled.start(context, self._max_tokens), tuple(context)
            elif tuple(context) != known[key]:
                raise ModelError("contexts: two rows with the same prompt have different ones, and go on alike")
        return [started[row.tobytes()] for row in tokens]

    def _without_specials(self, row: npt.NDArray[np.int64]) -> list[int]:
        """A prompt from its first token that spells something."""
        as_tokens(row, self._compiled.vocab.size, "the prompt")
        spelled = np.flatnonzero(self._compiled.vocab.lengths[row])
        return [int(token) for token in row[spelled[0] if len(spelled) else len(row) :]]

    def _advance(self, tokens: npt.NDArray[np.int64], before: dict[bytes, Matcher | None]) -> list[Matcher | None]:
        """The matcher of each row, one token on from that of the row it extends."""
        parents = [row[:-1].tobytes() for row in tokens]
        if tokens.shape[1] <= self._prompt or not before.keys() >= set(parents):
            raise ModelError(
                "these sequences do not go on, token by token, from those of the last call; "
                "make a ConstraintLogitsProcessor for each call of generate()"
            )
        children = Counter(parents)
        found = []
        alive: dict[bytes, TokenRefused | None] = {}  # prompt -> why it has no live row, None if it has one
        for row, parent in zip(tokens, parents, strict=True):
            matcher, prompt = before[parent], row[: self._prompt].tobytes()
            alive.setdefault(prompt, TokenRefused(int(row[-1]), "all rows of its prompt are dead"))
            if matcher is not None and not matcher.is_finished():
                matcher = matcher if children[parent] == 1 else matcher.fork()
                try:
                    matcher.advance(int(row[-1]))
                except TokenRefused as error:
                    matcher = None
                    alive[prompt] = alive[prompt] and error
            if matcher is not None:
                alive[prompt] = None
            found.append(matcher)
        for refusal in alive.values():
            if refusal is not None:
                raise refusal
        return found

    def _masks(self, found: Sequence[Matcher | None]) -> Mask:
        """The mask of each row: int32, shape (rows, ceil(V/32))."""
        packed = masks.allocate_mask(self._compiled.vocab.size, len(found))
        for row, matcher in zip(packed, found, strict=True):
            if matcher is None:
                row.fill(-1)  # a dead row keeps its scores
            elif matcher.is_finished():
                row[:] = self._after_end
            else:
                matcher.fill_mask(row)
                row &= ~self._other_ends
                if not row.any():
                    raise EmptyMask(
                        f"no token is allowed after step {self.steps} by {self._compiled.backend_name} for "
                        f"{self._compiled.constraint.name!r}: a dead end, or an end token that is not the model's EOS"
                    )
        return packed


def _masked(scores: Any, packed: Mask) -> Any:
    """A copy of `scores` with minus infinity for what a mask refuses or has no bit for.

    On the CPU by numpy, which takes one thread and 20 us a row: torch would wake all of its threads for a row of this
    length, and where they share their cores with other processes, waiting for them took 30 ms.
    """
    torch = import_lm("torch")
    if scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64):
        plain = scores.detach().numpy()
        little = packed.astype("<i4", copy=False).view(np.uint8)
        allowed = np.unpackbits(little, axis=1, count=plain.shape[1], bitorder="little").view(np.bool_)
        return torch.from_numpy(np.where(allowed, plain, plain.dtype.type(-np.inf)))
    masked = scores.clone()
    apply_masks(masked, packed)
    return masked

"""Constraints for generate() of the package transformers: a LogitsProcessor made of any compiled constraint.

At each step generate() hands over the tokens so far, one row for each sequence of the batch, and their scores. The
processor keeps one matcher for each row (`tokdfa.decoding.generated_rows` says how rows are found again). Everything in
the first call is the prompt, padding on the left included.

*Width.* Models often have more logits than their tokenizer has tokens, for the sake of round numbers. Logits past the
vocabulary are refused; a model that is wider by more than a part of `PADDING_SHARE` is taken for another one. One that
is narrower fits if all tokens past its logits spell nothing.

*The end.* generate() stops a sequence at the model's own EOS tokens, so of the vocabulary's end tokens only those are
let through. Whatever comes after the end is padding: only EOS and the padding token keep their scores.

*Other processors.* Those of generate()'s own options come first. Where they have masked all that the constraint allows,
EmptyMask names them. A beam dies of that, as it does of a refused token, and is left alone as long as another beam of
its prompt lives; beams that died have the score minus infinity if they are returned.

The scores that come in are not changed: generate() may keep them as the model's own (``output_logits=True``).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.core.arguments import as_integer, as_sequence, as_tokens
from tokdfa.core.packages import derived
from tokdfa.decoding.answered import as_answered, count_answered, start_answered
from tokdfa.decoding.generate_call import is_beam_search, who_masks
from tokdfa.decoding.generated_rows import GeneratedRows
from tokdfa.decoding.torch_masks import apply_masks, shown
from tokdfa.errors import ArgumentError, EmptyMask, ModelError, TokenRefused, a_type, counted
from tokdfa.models.gguf_weights import PURPOSE, import_lm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.generated_rows import Row, Tokens
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


#: Logits may outnumber tokens by a part of so many: padding to a multiple of 128, reserved ids.
PADDING_SHARE = 16


class ConstraintLogitsProcessor:
    """Lets generate() choose only what a constraint allows.

    ``model.generate(**inputs, logits_processor=[ConstraintLogitsProcessor(compiled)])``

    `compiled`: what `tokdfa.compile` or `tokdfa.constrain` returns; or a list with one for each prompt of the batch, in
    order, None for a prompt without a constraint. `eos_token_id`: the ids that end a sequence for the model, as in
    ``model.generation_config.eos_token_id``; one of them at least must be an end token of the vocabulary. By default
    the ends that `constrain` was given, or all of the vocabulary. `pad_token_id`: what finished rows are padded with,
    if it is another token. `answered`: how much of the answer the prompt holds already, as a number of tokens at its
    end or as the text they spell, the same for all prompts or one for each. `contexts`: for each prompt of the batch,
    in order, the tokens that the constrained text goes on from; by default the prompt without the special tokens that
    it begins with, and without what is answered. It matters to backends with proper tokenization. `max_tokens`: with it
    every text is whole within so many new tokens, end token not counted; give generate() the same `max_new_tokens`, or
    one more. `steps` and `seconds`: how often and how long the processor was at work.

    A processor may be used again: a call that does not go on from the last one begins anew. A pickle holds what it was
    made of, not what it is at. Its instances are LogitsProcessors of transformers, which is imported when the first is
    made. Raises ModelError for an EOS that the vocabulary lacks, ArgumentError for what is no compiled constraint and
    for several vocabularies. Calls raise ModelError for other widths and numbers of prompts, ArgumentError for what are
    no tensors of as many rows, ArgumentError or ParseError for a prompt that does not end with what is answered,
    VocabularyError for a prompt with ids that the vocabulary lacks, EmptyMask, and TokenRefused if each row of a prompt
    has taken a token that was masked out.
    """

    def __new__(cls, *_arguments: Any, **_options: Any) -> ConstraintLogitsProcessor:
        kind: Any = cls
        made: ConstraintLogitsProcessor = object.__new__(derived(kind, "transformers", PURPOSE, "LogitsProcessor"))
        return made

    def __init__(
        self,
        compiled: Any,
        *,
        eos_token_id: int | Sequence[int] | None = None,
        pad_token_id: int | None = None,
        answered: int | str | Sequence[int | str] = 0,
        contexts: Sequence[Sequence[int]] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._made_of = compiled, eos_token_id, pad_token_id, answered, contexts, max_tokens
        given = list(compiled) if isinstance(compiled, list | tuple) else [compiled]
        self._constraints: list[CompiledConstraint | None] = [getattr(one, "compiled", one) for one in given]
        self._vocabulary = vocabulary = _shared_vocabulary(self._constraints)
        self._max_tokens = None if max_tokens is None else as_integer(max_tokens, "max_tokens", 0)
        if pad_token_id is not None:
            pad_token_id = as_integer(pad_token_id, "pad_token_id", 0, vocabulary.size - 1)
        if eos_token_id is None:
            known = [getattr(one, "end_tokens", None) or vocabulary.end_tokens for one in given]
            eos_token_id = sorted(set(known[0]).union(*known[1:]))
        wanted = np.atleast_1d(np.asarray(eos_token_id, dtype=np.int64)).tolist()
        ends = sorted(vocabulary.end_token_set.intersection(wanted))
        if not ends:
            raise ModelError(
                f"the model ends a text with {wanted}, but the end tokens of the vocabulary are "
                f"{list(vocabulary.end_tokens)}; load the tokenizer with ?end=... or set the model's eos_token_id"
            )
        self._other_ends = masks.mask_from_ids(sorted(vocabulary.end_token_set.difference(ends)), vocabulary.size)
        after_end = ends if pad_token_id is None else [*ends, pad_token_id]
        self._after_end, self._first_end = masks.mask_from_ids(after_end, vocabulary.size), ends[0]
        self._contexts = None if contexts is None else list(as_sequence(contexts, "contexts", "contexts"))
        self._answered = as_answered(answered)
        listed = (
            (len(self._constraints) if isinstance(compiled, list | tuple) else None, "constraints"),
            (None if self._contexts is None else len(self._contexts), "contexts"),
            (len(self._answered) if isinstance(self._answered, list) else None, "answered"),
        )
        #: How many prompts lists were given for, by the name of the list.
        self._listed = {name: count for count, name in listed if count is not None}
        self._rows = GeneratedRows(self._start, set(after_end))
        self.steps, self.seconds = 0, 0.0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """`scores` with minus infinity for what is not allowed. Both of shape (rows, ...), see transformers.

        Costs what the matchers cost, and about 20 us a row for 50,000 tokens.
        """
        started = time.perf_counter_ns()
        _check_shapes(input_ids, scores)
        self._check_width(scores.shape[-1])
        tokens = np.ascontiguousarray(input_ids.cpu().numpy(), dtype=np.int64)
        rows = self._rows.find(tokens, self._places(len(tokens)))
        packed = self._masks(rows)
        masked, has_some = _masked(scores, packed)
        self._check_rows(rows, has_some, input_ids, masked, packed)
        self.steps += 1
        self.seconds += (time.perf_counter_ns() - started) * 1e-9
        return masked

    def _check_width(self, width: int) -> None:
        """Raise ModelError for logits that cannot be those of the vocabulary's tokens."""
        vocabulary = self._vocabulary
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

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, self._made_of

    def _places(self, rows: int) -> list[int]:
        """By row, the place of its prompt: generate() repeats each for its beams or samples, one after another."""
        for name, count in self._listed.items():
            if not count or rows % count or count != next(iter(self._listed.values())):
                listed = ", ".join(f"{name}: {count}" for name, count in self._listed.items())
                said = "give one for each prompt of the batch, in order"
                raise ModelError(f"{listed}, for {counted(rows, 'row')}; {said}")
        prompts = next(iter(self._listed.values()), 1)
        return [row * prompts // rows for row in range(rows)] if prompts > 1 else [0] * rows

    def _start(self, place: int, tokens: Tokens) -> Matcher | None:
        """The matcher of a prompt, after what it holds of the answer."""
        constraint = self._constraints[place if "constraints" in self._listed else 0]
        prompt = self._without_specials(tokens)
        if constraint is None:
            return None
        answered = self._answered[place] if isinstance(self._answered, list) else self._answered
        count = count_answered(self._vocabulary, prompt, answered)
        before = len(prompt) - count
        context = prompt[:before] if self._contexts is None else self._contexts[place]
        return start_answered(constraint, context, prompt[before:], self._max_tokens)

    def _without_specials(self, row: npt.NDArray[np.int64]) -> list[int]:
        """A prompt from its first token that spells something."""
        as_tokens(row, self._vocabulary.size, "the prompt")
        spelled = np.flatnonzero(self._vocabulary.lengths[row])
        return [int(token) for token in row[spelled[0] if len(spelled) else len(row) :]]

    def _masks(self, rows: Sequence[Row]) -> Mask:
        """The mask of each row: int32, shape (rows, ceil(V/32))."""
        packed = masks.allocate_mask(self._vocabulary.size, len(rows))
        for out, row in zip(packed, rows, strict=True):
            if row.matcher is None or row.refusal is not None:
                out.fill(-1)  # free, or dead, which keeps its scores
            elif row.is_finished:
                out[:] = self._after_end
            else:
                row.matcher.fill_mask(out)
                out &= ~self._other_ends
                if not out.any():
                    compiled = row.matcher.origin and row.matcher.origin[0]
                    raise EmptyMask(
                        f"no token is allowed after step {self.steps} by {getattr(compiled, 'backend_name', '?')} for "
                        f"{getattr(getattr(compiled, 'constraint', None), 'name', '?')!r}: a dead end, or an end token "
                        "that is not the model's EOS"
                    )
        return packed

    def _check_rows(
        self, rows: Sequence[Row], has_some: npt.NDArray[np.bool_], input_ids: Any, masked: Any, packed: Mask
    ) -> None:
        """Raise if a prompt has no row left, or a row that is no beam has no token left."""
        if has_some.all() and not any(row.refusal for row in rows):
            return
        starved = [k for k, row in enumerate(rows) if not has_some[k] and not row.refusal]
        for k in starved:
            if rows[k].is_finished:  # something to sample, which is then replaced by padding
                masked[k, self._first_end] = 0.0
        starved = [k for k in starved if not rows[k].is_finished and rows[k].matcher is not None]
        alive = {row.prompt for k, row in enumerate(rows) if not row.refusal and k not in starved}
        lost = [k for k in starved if rows[k].prompt not in alive] or starved
        if lost and (rows[lost[0]].prompt not in alive or not is_beam_search()):
            raise self._starvation(lost[0], input_ids, masked, packed)
        for row in rows:
            if row.refusal and row.prompt not in alive:
                raise TokenRefused(row.refusal.token, f"all rows of its prompt are dead: {row.refusal.reason}")

    def _starvation(self, k: int, input_ids: Any, masked: Any, packed: Mask) -> EmptyMask:
        """What to raise where other processors have masked all that is allowed in row `k`."""
        torch = import_lm("torch")
        ids = masks.mask_to_ids(packed[k])
        ids = ids[ids < masked.shape[-1]]
        allowed = torch.zeros(masked.shape[-1], dtype=torch.bool, device=masked.device)
        allowed[torch.from_numpy(ids.astype(np.int64)).to(masked.device)] = True
        order = [k, *(other for other in range(len(input_ids)) if other != k)]
        shown = ", ".join(self._shown(token) for token in ids[:4].tolist()) + (", ..." if len(ids) > 4 else "")
        return EmptyMask(
            f"row {k}: the constraint allows {shown} here, and another processor has masked all of that: "
            f"{who_masks(self, input_ids[order], allowed)}. Leave it out, or ask for a constraint whose texts it lets "
            "through (for a least length: a pattern or schema of that length)"
        )

    def _shown(self, token: int) -> str:
        spelled = self._vocabulary.token_bytes(token)
        return repr(spelled.decode(errors="replace")) if spelled else f"the end token {token}"


def _restore(
    compiled: Any, eos_token_id: Any, pad_token_id: Any, answered: Any, contexts: Any, max_tokens: Any
) -> ConstraintLogitsProcessor:
    return ConstraintLogitsProcessor(
        compiled, eos_token_id=eos_token_id, pad_token_id=pad_token_id, answered=answered, contexts=contexts,
        max_tokens=max_tokens,
    )  # fmt: skip


def _shared_vocabulary(constraints: Sequence[Any]) -> Vocabulary:
    """The vocabulary of all constraints."""
    found: list[Vocabulary] = []
    for constraint in constraints:
        if constraint is None:
            continue
        if not (hasattr(constraint, "vocab") and hasattr(constraint, "start")):
            raise ArgumentError(
                f"compiled is what tokdfa.compile or constrain returns, not {a_type(constraint)}; write "
                "tokdfa.constrain(what, tokenizer, model).logits_processor()"
            )
        found.append(constraint.vocab)
    if not found:
        raise ArgumentError("compiled: there is no constraint in the list; one at least is needed")
    if any(other.fingerprint != found[0].fingerprint for other in found[1:]):
        raise ArgumentError("compiled: the constraints of a batch have different vocabularies; compile them for one")
    return found[0]


def _check_shapes(input_ids: Any, scores: Any) -> None:
    """Raise ArgumentError unless both are tensors of as many rows."""
    torch = import_lm("torch")
    for name, given, width in (("input_ids", input_ids, "tokens"), ("scores", scores, "V")):
        if not isinstance(given, torch.Tensor) or given.dim() != 2:
            raise ArgumentError(f"{name} is a tensor of shape (rows, {width}), not {shown(given)}")
    if len(input_ids) != len(scores):
        raise ArgumentError(f"input_ids has {counted(len(input_ids), 'row')} and scores {len(scores)}; give as many")


def _masked(scores: Any, packed: Mask) -> tuple[Any, npt.NDArray[np.bool_]]:
    """A copy of `scores` with minus infinity for what a mask refuses or has no bit for; by row, whether any are left.

    A score that another processor has set to the least number of its type counts as minus infinity.

    On the CPU by numpy, which takes one thread and 20 us a row: torch would wake all of its threads for a row of this
    length, and where they share their cores with other processes, waiting for them took 30 ms.
    """
    torch = import_lm("torch")
    if scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64):
        plain = scores.detach().numpy()
        little = packed.astype("<i4", copy=False).view(np.uint8)
        allowed = np.unpackbits(little, axis=1, count=plain.shape[1], bitorder="little").view(np.bool_)
        masked = np.where(allowed, plain, plain.dtype.type(-np.inf))
        return torch.from_numpy(masked), masked.max(axis=1) > np.finfo(plain.dtype).min
    masked = scores.clone()
    apply_masks(masked, packed)
    return masked, (masked.amax(dim=1) > torch.finfo(masked.dtype).min).cpu().numpy()

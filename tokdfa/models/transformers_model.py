"""Any causal language model of the package transformers, asked for the next token after many prefixes at once.

A causal network reads a sequence once and tells the next-token distribution after each of its beginnings. It also
leaves, per layer, the *key/value states* of every token, with which later tokens can be run alone. Both are used here:

- A prefix that begins another prefix of the same call needs no run of its own. Only *maximal* prefixes are run, and
  the rows of the others are read out on the way.
- States are kept after each call, up to a number of bytes, least recently used first to go. A maximal prefix goes on
  from the longest beginning that any kept sequence shares with it. So the context of a question is run once, and a
  generated sequence costs one token a step, alone or in a batch.
- Where the maximal prefixes share a beginning that is not kept, it is run once, before them.
- The last matrix of a network, from the width of its layers to V logits, is applied only where a row was asked for.

*Slots.* The states of a batch are tensors with one slot for each token of the longest sequence; a shorter one leaves
slots empty, and so does one that shares only a part of its kept sequence. `places` says which position of its sequence
a slot holds, or -1. Empty slots are masked out, and positions are given to the network by name, so that where a token
stands in the tensor does not matter. A network with another memory than full attention (a sliding window, a recurrent
state) or that cannot be told positions keeps no states; its maximal prefixes are run whole.

Batching and kept states change results by float32 noise only, about 1e-5 in log-probability.
"""

from __future__ import annotations

import hashlib
import inspect
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.locks import cached_property
from tokdfa.errors import ModelError
from tokdfa.models.base import LanguageModel
from tokdfa.models.gguf_weights import import_lm
from tokdfa.vocabulary.given_tokenizer import logit_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tokdfa.models.base import LogProbabilities
    from tokdfa.vocabulary.vocabulary import Vocabulary

    #: A sequence of tokens -> at which of its lengths a row is wanted, ascending, and the number of that row.
    Wanted = dict[tuple[int, ...], list[tuple[int, int]]]

#: How many rows of logits are made at a time: 64 rows of 128,256 float64 take 66 MB.
LOGIT_ROWS = 64
#: About how many numbers of the width of its layers a network holds for each token that it runs.
ACTIVATIONS = 32
#: A run by itself costs about as much as this many tokens more in another one (SmolLM2 on two cores: 55 ms and 1.6 ms).
RUN_TOKENS = 32
#: How many weights of each tensor the fingerprint reads.
FINGERPRINT_WEIGHTS = 1024


@dataclass(eq=False)
class _States:
    """The key/value states of some sequences. See the module for *slots*.

    `sequences`: ascending; `rows`: the tensors' row of each; `places`: int64 tensor (rows, slots); `layers`: keys and
    values of each layer, (rows, heads, slots, width).
    """

    sequences: list[tuple[int, ...]]
    rows: list[int]
    places: Any
    layers: list[tuple[Any, Any]]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum(part.numel() * part.element_size() for layer in self.layers for part in layer)

    def longest_shared(self, sequence: tuple[int, ...]) -> tuple[int, int]:
        """(length, row) of the longest beginning of `sequence` that is here. O(log(sequences) * length)."""
        # among sorted sequences the one that shares most stands next to where `sequence` would
        at = bisect_left(self.sequences, sequence)
        near = range(max(0, at - 1), min(at + 1, len(self.sequences)))
        return max((_shared(sequence, self.sequences[index]), self.rows[index]) for index in near)


@dataclass(frozen=True)
class _Run:
    """One sequence to be run: its first `used` tokens are in row `row` of some states."""

    sequence: tuple[int, ...]
    used: int
    row: int


class TransformersModel(LanguageModel):
    """A network of transformers as a LanguageModel; `tokdfa.models.transformers_loader` makes it from a name or file.

    `network`: a PreTrainedModel with a language-modeling head, put into evaluation mode and run where it is.
    `start_tokens`: what its own tokenizer puts before a text. `batch_mb`: about how much memory one run may take;
    larger batches are split. `states_mb`: how many key/value states are kept between calls.
    Raises ModelError unless the network's logits and embeddings fit the vocabulary.
    """

    def __init__(
        self,
        name: str,
        network: Any,
        vocabulary: Vocabulary,
        *,
        start_tokens: Sequence[int] = (),
        batch_mb: int = 1024,
        states_mb: int = 1024,
    ) -> None:
        super().__init__(name, vocabulary)
        self._torch = import_lm("torch")
        self.network = network.eval()
        _check_widths(name, network, vocabulary.size)
        self.start_tokens = tuple(start_tokens)
        config = network.config.get_text_config()
        self.context_limit = getattr(config, "max_position_embeddings", None)
        self._batch_bytes, self._states_bytes = batch_mb << 20, states_mb << 20
        self._token_bytes = ACTIVATIONS * int(getattr(config, "hidden_size", 4096)) * 4
        taken = inspect.signature(network.base_model.forward).parameters
        self._takes_positions = "position_ids" in taken
        self._cache_name = "cache" if "cache" in taken else "past_key_values"  # as transformers called it before 5.24
        self._keeps_states = self._takes_positions and self._has_full_attention()
        self._head = self._plain_head()
        self._kept: list[_States] = []

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the vocabulary, the configuration, and every tensor's name, shape, type and some of its weights.

        FINGERPRINT_WEIGHTS weights of each tensor, evenly spread, are read: 0.1 s where a hash of everything takes as
        long as reading the file. An edit that leaves all of them as they are is not noticed.
        """
        torch = self._torch
        config = {key: value for key, value in self.network.config.to_dict().items() if not key.startswith("_")}
        digest = hashlib.sha256(f"{self.vocabulary.fingerprint}{sorted(config.items(), key=str)}".encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            flat = tensor.detach().reshape(-1)
            sample = flat[:: max(1, len(flat) // FINGERPRINT_WEIGHTS)]
            digest.update(sample.to("cpu", torch.float64).numpy().tobytes())
        return digest.hexdigest()[:32]

    @property
    def kept_bytes(self) -> int:
        """The bytes of key/value states that are kept now."""
        return sum(states.size for states in self._kept)

    def forget(self) -> None:
        """Drop all kept states. Nothing but speed changes."""
        self._kept.clear()

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        if () in prefixes:
            raise ModelError(
                f"{self.name} has no row for the empty prefix: it needs at least one token; begin the context with "
                f"text or with a special token"
            )
        row_of: dict[tuple[int, ...], int] = {}
        for row, prefix in enumerate(prefixes):
            row_of.setdefault(prefix, row)
        wanted = _maximal(row_of)
        rows = np.empty((len(prefixes), self.vocabulary.size))
        with self._torch.inference_mode():
            self._run_shared_beginning(wanted)
            for states, runs in self._assign(wanted):
                for batch in self._split(states, runs):
                    self._run(states, batch, wanted, rows)
        for row, prefix in enumerate(prefixes):
            if row_of[prefix] != row:
                rows[row] = rows[row_of[prefix]]
        return rows

    def _run_shared_beginning(self, wanted: Wanted) -> None:
        """Run what all sequences begin with by itself, if that saves tokens."""
        if not self._keeps_states or len(wanted) < 2:
            return
        shared = _shared(min(wanted), max(wanted))
        limits = {sequence: lengths[0][0] - 1 for sequence, lengths in wanted.items()}
        beginning = min(wanted)[:shared]
        states, used, row = self._best(beginning, shared)
        direct = sum(len(sequence) - self._best(sequence, limit)[1] for sequence, limit in limits.items())
        after = sum(len(sequence) - min(shared, limit) for sequence, limit in limits.items())
        if shared - used + after < direct:
            self._run(states, [_Run(beginning, used, row)], {beginning: []}, np.empty((0, self.vocabulary.size)))

    def _best(self, sequence: tuple[int, ...], limit: int) -> tuple[_States | None, int, int]:
        """(states, length, row) of the longest kept beginning of `sequence`, at most `limit` tokens of it."""
        best: tuple[_States | None, int, int] = (None, 0, 0)
        for states in self._kept:
            length, row = states.longest_shared(sequence)
            if min(length, limit) > best[1]:
                best = (states, min(length, limit), row)
        return best

    def _assign(self, wanted: Wanted) -> list[tuple[_States | None, list[_Run]]]:
        """For each of the kept states that are used (None: no states), the sequences that go on from them.

        States that save less than a run of their own costs are not used, lest the batch fall to pieces.
        """
        groups: dict[int, tuple[_States | None, list[_Run]]] = {}
        for sequence, lengths in wanted.items():
            # the token before a row must be run, since only states are kept, not outputs
            states, used, row = self._best(sequence, lengths[0][0] - 1)
            groups.setdefault(id(states), (states, []))[1].append(_Run(sequence, used, row))
        few = [key for key, (_, runs) in groups.items() if 0 < sum(run.used for run in runs) < RUN_TOKENS]
        if len(groups) > 1:
            for key in few:
                whole = [_Run(run.sequence, 0, 0) for run in groups.pop(key)[1]]
                groups.setdefault(id(None), (None, []))[1].extend(whole)
        for states, _ in groups.values():
            if states is not None:  # most recently used last
                self._kept.remove(states)
                self._kept.append(states)
        return list(groups.values())

    def _split(self, states: _States | None, runs: list[_Run]) -> Iterator[list[_Run]]:
        """`runs` in batches of at most about `batch_mb`, long tails first so that little is padded."""
        old = 0 if states is None else states.size // max(1, states.places.numel())  # bytes of a slot
        token = self._token_bytes + (8 * self.vocabulary.size if self._head is None else 0)
        batch: list[_Run] = []
        for run in sorted(runs, key=lambda run: (run.used - len(run.sequence), run.sequence)):
            longest = batch[0] if batch else run
            tail = len(longest.sequence) - longest.used
            slots = tail + (0 if states is None else states.places.shape[1])
            if batch and (len(batch) + 1) * (tail * token + 2 * slots * old) > self._batch_bytes:
                yield batch
                batch = []
            batch.append(run)
        yield batch

    def _run(self, states: _States | None, runs: list[_Run], wanted: Wanted, out: LogProbabilities) -> None:
        """Run the tails of `runs`, keep the new states, and write the wanted rows into `out`."""
        torch, device = self._torch, self.network.device
        longest = max(len(run.sequence) - run.used for run in runs)
        tokens = np.zeros((len(runs), longest), dtype=np.int64)
        new_places = np.full((len(runs), longest), -1, dtype=np.int64)
        for index, run in enumerate(runs):
            tail = run.sequence[run.used :]
            tokens[index, : len(tail)] = tail
            new_places[index, : len(tail)] = np.arange(run.used, len(run.sequence))
            self.counts.tokens += len(tail)
        places = torch.from_numpy(new_places).to(device)
        arguments = {"input_ids": torch.from_numpy(tokens).to(device), "use_cache": self._keeps_states}
        if self._takes_positions:
            arguments["position_ids"] = places.clamp(min=0)
        cache: Any = None
        if self._keeps_states:
            cache, old_places = self._take_states(states, runs)
            places = torch.cat([old_places, places], dim=1)
            arguments[self._cache_name] = cache
        arguments["attention_mask"] = (places >= 0).long()
        if self._head is None:
            outputs = self.network(**arguments).logits
        else:
            outputs = self.network.base_model(**arguments).last_hidden_state
        if self._keeps_states:
            self._keep([run.sequence for run in runs], places, cache)
        picked = [
            (row, length - run.used - 1, number)
            for row, run in enumerate(runs)
            for length, number in wanted[run.sequence]
        ]
        for begin in range(0, len(picked), LOGIT_ROWS):
            rows, positions, numbers = (list(part) for part in zip(*picked[begin : begin + LOGIT_ROWS], strict=True))
            chosen = outputs[rows, positions]
            logits = chosen if self._head is None else self._head(chosen)
            out[numbers] = torch.log_softmax(logits.double(), dim=-1).cpu().numpy()

    def _take_states(self, states: _States | None, runs: list[_Run]) -> tuple[Any, Any]:
        """(a cache, its places) with the used states of each run: rows repeated, slots that nobody uses left out."""
        torch, device = self._torch, self.network.device
        cache = import_lm("transformers").DynamicCache()
        if states is None:
            return cache, torch.empty((len(runs), 0), dtype=torch.int64, device=device)
        rows = torch.tensor([run.row for run in runs], device=device)
        used = torch.tensor([[run.used] for run in runs], device=device)
        places = states.places[rows]
        places = torch.where(places < used, places, -1)
        taken = (places >= 0).any(dim=0)
        same_rows = [run.row for run in runs] == list(range(len(states.places)))
        for number, layer in enumerate(states.layers):
            keys, values = (part if bool(taken.all()) else part[:, :, taken] for part in layer)
            if len(states.places) == 1:
                keys, values = (part.expand(len(runs), -1, -1, -1) for part in (keys, values))
            elif not same_rows:
                keys, values = keys[rows], values[rows]
            cache.update(keys, values, number)
        return cache, places[:, taken]

    def _keep(self, sequences: list[tuple[int, ...]], places: Any, cache: Any) -> None:
        """Keep the states that a run has left, and drop the least recently used ones."""
        order = sorted(range(len(sequences)), key=sequences.__getitem__)
        layers = [(layer.keys, layer.values) for layer in cache.layers]
        states = _States([sequences[index] for index in order], order, places, layers)
        self._kept.append(states)
        while self._kept and self.kept_bytes > self._states_bytes:
            del self._kept[0]

    def _has_full_attention(self) -> bool:
        """Whether all that the network remembers of a token are keys and values that any later token sees."""
        cache_utils = import_lm("transformers.cache_utils")
        layers: Any = cache_utils.DynamicCache(config=self.network.config).layers
        if any(type(layer) is not cache_utils.DynamicLayer for layer in layers):
            return False
        config = self.network.config.get_text_config()
        if getattr(config, "use_sliding_window", True) and getattr(config, "sliding_window", None) is not None:
            return False
        cache: Any = cache_utils.DynamicCache()
        with self._torch.inference_mode():
            left = self.network.base_model(**self._two_tokens(), **{self._cache_name: cache}, use_cache=True)
        returned: Any = getattr(left, self._cache_name, None)
        filled = returned is cache and len(cache.layers) > 0
        return filled and all(
            type(layer) is cache_utils.DynamicLayer and layer.keys is not None and layer.keys.shape[2] == 2
            for layer in cache.layers
        )

    def _plain_head(self) -> Any:
        """The network's last layer if its logits are just that layer's output, else None.

        Some networks scale or squash the logits afterwards; so two tokens are run both ways and compared.
        """
        head = self.network.get_output_embeddings()
        if head is None:
            return None
        torch = self._torch
        with torch.inference_mode():
            whole = self.network(**self._two_tokens(), use_cache=False).logits
            output = getattr(self.network.base_model(**self._two_tokens(), use_cache=False), "last_hidden_state", None)
            if output is None or output.shape[-1] != head.weight.shape[1]:
                return None
            apart = head(output)
        same = apart.shape == whole.shape and torch.allclose(apart, whole, rtol=1e-4, atol=1e-6, equal_nan=True)
        return head if same else None

    def _two_tokens(self) -> dict[str, Any]:
        torch = self._torch
        tokens = torch.tensor([[0, self.vocabulary.size - 1]], device=self.network.device)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def _check_widths(name: str, network: Any, size: int) -> None:
    """Raise ModelError unless the network's logits have the width `size` and every token an embedding."""
    width, embedded = logit_width(network), int(network.get_input_embeddings().weight.shape[0])
    if width != size:
        remedy = f"load it with size={width}" if width > size else "load the one that belongs to the model"
        raise ModelError(f"{name} has {width} logits and the tokenizer {size} tokens; {remedy}")
    if embedded < size:
        raise ModelError(f"{name} has embeddings for {embedded} tokens and the tokenizer {size} tokens")


def _maximal(row_of: Mapping[tuple[int, ...], int]) -> Wanted:
    """The prefixes that begin no other, each with the lengths and rows of those that begin it, its own included.

    O(n log n) comparisons.
    """
    wanted: Wanted = {}
    covering: tuple[int, ...] = ()
    # in descending order a sequence stands after all that it begins, the last of them right before it
    for prefix in sorted(row_of, reverse=True):
        if covering[: len(prefix)] != prefix:
            covering = prefix
            wanted[covering] = []
        wanted[covering].append((len(prefix), row_of[prefix]))
    for lengths in wanted.values():
        lengths.reverse()
    return wanted


def _shared(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """The length of the longest common beginning."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next(index for index in range(shorter) if first[index] != second[index])

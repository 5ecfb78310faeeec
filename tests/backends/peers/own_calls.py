"""Each peer by the calls that its makers document, without our adapter: what the adapter is held against.

`test_own_calls` compares masks and counts calls. ``python -m tests.backends.peers.own_calls [PEER ...]`` times the two
beside each other, in turns, and prints how many times as long the adapter takes to compile and make a first mask, and
for a token (its mask and its advance). More than `LARGEST` needs a cause, which stands in `CAUSES`. On a busy machine
the figures are of no use: it says what else was at work.

GRID is not here: below its processors for model servers it documents no calls, and the adapter makes those that these
make (`grid.guide.GridGuide`). SynCode, which takes minutes to compile for such vocabularies, is beside its own calls in
`test_syncode`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Constraint, Grammar, JsonSchema, Regex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: An adapter that takes more than this many times its peer's own calls needs a cause.
LARGEST = 1.05


class OwnCalls:
    """A peer by its own calls. `options`: those of the adapter that stand for them; `kinds`: what it is tried on."""

    backend: str
    options: ClassVar[dict[str, Any]] = {}
    kinds: tuple[type[Constraint], ...] = (Regex, Grammar, JsonSchema)

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.vocab: Vocabulary = tokenizer.vocabulary
        self.tokens = [self.vocab.token_bytes(token) for token in range(self.vocab.size)]
        self.ends = list(self.vocab.end_tokens)
        self.prepare(tokenizer)

    def prepare(self, tokenizer: Tokenizer) -> None:
        """Make what belongs to the vocabulary."""

    def compile(self, constraint: Constraint) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def fill(self) -> masks.Mask:
        """The words of the mask; they may change with the next call. What end tokens have there does not matter."""
        raise NotImplementedError

    def take(self, token: int) -> None:
        raise NotImplementedError


class Llguidance(OwnCalls):
    """README.md and docs/syntax.md: LLMatcher on a grammar, with ``no_forcing`` for full masks."""

    backend = "llguidance"

    def prepare(self, tokenizer: Tokenizer) -> None:
        from llguidance import LLTokenizer, TokenizerWrapper

        class Source:
            eos_token_id, bos_token_id, tokens = self.ends[0], None, self.tokens
            special_token_ids = tuple(token for token, spelled in enumerate(self.tokens) if not spelled)

            def __call__(self, text: str) -> list[int]:
                return tokenizer.encode(text)

        self.tokenizer = LLTokenizer(TokenizerWrapper(Source()), eos_token=self.ends)
        self._allocate()

    def _allocate(self) -> None:
        from llguidance.numpy import allocate_token_bitmask

        self.words = allocate_token_bitmask(1, self.vocab.size)

    def grammar(self, constraint: Constraint) -> str:
        head = '%llguidance {"no_forcing": true}\n'
        if isinstance(constraint, JsonSchema):
            return f"{head}start: %json {constraint.text}\n"
        return head + (constraint.text if isinstance(constraint, Grammar) else f"start: /{constraint.pattern}/\n")  # type: ignore[attr-defined]

    def compile(self, constraint: Constraint) -> None:
        from llguidance import LLMatcher

        self.compiled = LLMatcher(self.tokenizer, self.grammar(constraint), log_level=0)
        if self.compiled.is_error():
            raise ValueError(self.compiled.get_error())

    def start(self) -> None:
        self.matcher = self.compiled.deep_copy()

    def fill(self) -> masks.Mask:
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self.matcher, self.words, 0)
        return self.words[0]

    def take(self, token: int) -> None:
        self.matcher.consume_token(token)


class LlguidanceForcing(Llguidance):
    """Its JSON route and its encoder of tiktoken's ranks."""

    options: ClassVar[dict[str, Any]] = {"forcing": True}
    kinds = (JsonSchema,)

    def prepare(self, tokenizer: Tokenizer) -> None:
        import tiktoken
        from llguidance.tiktoken import lltokenizer_from_encoding

        source = tokenizer.merges.pre_tokenizer
        assert source is not None
        assert source.dialect == "tiktoken"
        encoding = tiktoken.Encoding(
            "own",
            pat_str=source.pattern,
            mergeable_ranks={spelled: token for token, spelled in enumerate(self.tokens) if spelled},
            special_tokens={f"<|{token}|>": token for token, spelled in enumerate(self.tokens) if not spelled},
        )
        self.tokenizer = lltokenizer_from_encoding(encoding, n_vocab=self.vocab.size, eos_token=self.ends)
        self._allocate()

    def grammar(self, constraint: Constraint) -> str:
        assert isinstance(constraint, JsonSchema)
        return json.dumps({"grammars": [{"json_schema": json.loads(constraint.text)}]})


class Glrmask(OwnCalls):
    """The docstring of the package."""

    backend = "glrmask"

    def prepare(self, tokenizer: Tokenizer) -> None:
        import glrmask

        self.module = glrmask
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(
            {t: spelled for t, spelled in enumerate(self.tokens) if spelled}
        )
        self.words = masks.allocate_mask(self.vocab.size)

    def compile(self, constraint: Constraint) -> None:
        if isinstance(constraint, JsonSchema):
            grammar = self.module.Grammar.from_json_schema(constraint.text)
        else:
            text = constraint.text if isinstance(constraint, Grammar) else f"start: /{constraint.pattern}/\n"  # type: ignore[attr-defined]
            grammar = self.module.Grammar.from_lark(text)
        self.compiled = grammar.compile(self.vocabulary)

    def start(self) -> None:
        self.state = self.compiled.start()

    def fill(self) -> masks.Mask:
        self.state.fill_mask(self.words)
        return self.words

    def take(self, token: int) -> None:
        self.state.commit_token(token)


class Xgrammar(OwnCalls):
    """docs/tutorials: a compiler with ``enable_dynamic_compilation`` for a tokenizer of raw bytes."""

    backend = "xgrammar"
    dynamic = True

    def prepare(self, tokenizer: Tokenizer) -> None:
        import xgrammar

        self.module = xgrammar
        info = xgrammar.TokenizerInfo(
            self.tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=self.vocab.size, stop_token_ids=self.ends
        )
        self.compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=self.dynamic
        )
        self.words = xgrammar.allocate_token_bitmask(1, self.vocab.size)

    def compile(self, constraint: Constraint) -> None:
        if isinstance(constraint, JsonSchema):
            self.compiled = self.compiler.compile_json_schema(constraint.text, any_whitespace=True, strict_mode=False)
        elif isinstance(constraint, Grammar):
            self.compiled = self.compiler.compile_lark(constraint.text)
        else:
            self.compiled = self.compiler.compile_regex(constraint.pattern)  # type: ignore[attr-defined]

    def start(self) -> None:
        self.matcher = self.module.GrammarMatcher(self.compiled)

    def fill(self) -> masks.Mask:
        self.matcher.fill_next_token_bitmask(self.words, 0)
        return self.words.numpy()[0]

    def take(self, token: int) -> None:
        self.matcher.accept_token(token)


class XgrammarEager(Xgrammar):
    """Its own default: all masks of states while compiling."""

    options: ClassVar[dict[str, Any]] = {"on_demand": False}
    dynamic = False


class XgrammarCfgzip(OwnCalls):
    """README.md and the docstrings of MaskTranslator: class masks of xgrammar, spread over logits."""

    backend = "xgrammar_cfgzip"
    kinds = (Regex,)

    def prepare(self, tokenizer: Tokenizer) -> None:
        import torch

        self.logits = torch.zeros((1, self.vocab.size))

    def compile(self, constraint: Constraint) -> None:
        import xgrammar

        grammar = str(xgrammar.Grammar.from_regex(constraint.pattern))  # type: ignore[attr-defined]
        found = create_backend("xgrammar_cfgzip", self.vocab).classes(grammar)  # type: ignore[attr-defined]
        self.end_class = int(found.token_classes[self.ends[0]])
        info = xgrammar.TokenizerInfo(found.class_representatives, stop_token_ids=[self.end_class])
        self.compiled = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_grammar(grammar)
        self.found = found

    def start(self) -> None:
        import cfgzip
        import xgrammar

        self.matcher = xgrammar.GrammarMatcher(self.compiled)
        self.translator = cfgzip.MaskTranslator(self.found, device="cpu")
        self.words = xgrammar.allocate_token_bitmask(1, self.translator.n_classes)

    def fill(self) -> masks.Mask:
        import xgrammar

        self.matcher.fill_next_token_bitmask(self.words, 0)
        xgrammar.apply_token_bitmask_inplace(self.translator.class_mask, self.words)
        self.logits[:] = 0
        self.translator.mask_logits_inplace(self.logits)
        allowed = np.isfinite(self.logits.numpy()[0])
        allowed[self.found.token_classes.numpy() < 0] = False  # control tokens, which it was not given
        padded = np.zeros(32 * masks.mask_words(self.vocab.size), dtype=bool)
        padded[: len(allowed)] = allowed
        return np.packbits(padded, bitorder="little").view("<i4")

    def take(self, token: int) -> None:
        self.matcher.accept_token(int(self.found.token_classes[token]))


class OutlinesCore(OwnCalls):
    """README.md: an Index of a pattern, a Guide, and its mask by reference."""

    backend = "outlines_core"
    options: ClassVar[dict[str, Any]] = {"dialect": "own"}
    kinds = (Regex, JsonSchema)

    def prepare(self, tokenizer: Tokenizer) -> None:
        import outlines_core

        self.module = outlines_core
        ids: dict[bytes, list[int]] = {}
        for token, spelled in enumerate(self.tokens):
            if spelled:
                ids.setdefault(spelled, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(self.ends[0], ids)
        self.words = masks.allocate_mask(self.vocab.size)

    def compile(self, constraint: Constraint) -> None:
        if isinstance(constraint, JsonSchema):
            pattern = self.module.json_schema.build_regex_from_schema(constraint.text)
        else:
            pattern = constraint.pattern  # type: ignore[attr-defined]
        self.index = self.module.Index(pattern, self.vocabulary)

    def start(self) -> None:
        self.guide = self.module.Guide(self.index)

    def fill(self) -> masks.Mask:
        self.guide.write_mask_into(self.words.ctypes.data, self.words.size, self.words.itemsize)
        return self.words

    def take(self, token: int) -> None:
        self.guide.advance(token, return_tokens=False)


class Maskforge(OwnCalls):
    """README.md, "To drive masks yourself"."""

    backend = "maskforge"
    kinds = (JsonSchema,)

    def prepare(self, tokenizer: Tokenizer) -> None:
        import maskforge

        tokens = [spelled or None for spelled in self.tokens]
        self.vocabulary = maskforge.Vocabulary.from_id_ordered_tokens(tokens, eos_token_id=self.ends[0])
        self.compiler = maskforge.Compiler(0)  # no executables are kept, or else a second compile is a look-up

    def compile(self, constraint: Constraint) -> None:
        assert isinstance(constraint, JsonSchema)
        self.bound = self.compiler.compile(constraint.text).bind(self.vocabulary)

    def start(self) -> None:
        self.session, self.buffer = self.bound.start_session(), bytearray(4 * self.bound.mask_word_count)

    def fill(self) -> masks.Mask:
        self.session.write_mask(self.buffer)
        return np.frombuffer(self.buffer, dtype="<i4")

    def take(self, token: int) -> None:
        self.session.advance(token)


class LmFormatEnforcer(OwnCalls):
    """README.md, "TokenEnforcer"."""

    backend = "lm_format_enforcer"
    kinds = (JsonSchema,)

    def prepare(self, tokenizer: Tokenizer) -> None:
        from lmformatenforcer import CharacterLevelParserConfig
        from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

        def decode(tokens: Sequence[int]) -> str:
            return b"".join(self.tokens[token] for token in tokens).decode(errors="replace").rstrip("\ufffd")

        # a token of whole characters adds the same text wherever it comes: it may count as the beginning of a word
        regular = [
            (token, spelled.decode(errors="replace"), spelled.decode(errors="replace").encode() == spelled)
            for token, spelled in enumerate(self.tokens)
            if spelled
        ]
        self.data = TokenEnforcerTokenizerData(regular, decode, self.ends, False, self.vocab.size)
        self.config = CharacterLevelParserConfig(
            alphabet=self.data.tokenizer_alphabet, max_json_array_length=0, force_json_field_order=False
        )

    def compile(self, constraint: Constraint) -> None:
        self.schema = json.loads(constraint.text)  # type: ignore[attr-defined]

    def start(self) -> None:
        from lmformatenforcer import JsonSchemaParser, TokenEnforcer

        self.taken: list[int] = []
        parser = JsonSchemaParser(self.schema, self.config)
        self.enforcer = TokenEnforcer(self.data, parser)
        parser.config = self.config

    def fill(self) -> masks.Mask:
        allowed = self.enforcer.get_allowed_tokens(self.taken).allowed_tokens
        return masks.mask_from_ids(allowed, self.vocab.size)

    def take(self, token: int) -> None:
        self.taken.append(token)


OWN: dict[str, type[OwnCalls]] = {
    "llguidance": Llguidance,
    "llguidance, forcing": LlguidanceForcing,
    "glrmask": Glrmask,
    "xgrammar": Xgrammar,
    "xgrammar, eager": XgrammarEager,
    "xgrammar_cfgzip": XgrammarCfgzip,
    "outlines_core": OutlinesCore,
    "maskforge": Maskforge,
    "lm_format_enforcer": LmFormatEnforcer,
}

#: Constraints that all peers read alike, and a text of each.
WORK: dict[str, tuple[Constraint, str]] = {
    "regex": (Regex("[0-9]{4}-[0-9]{2}T[0-9]{2}"), "2024-07T12"),
    "grammar": (
        Grammar('start: "let " NAME " = " sum ";"\nsum: NUMBER ("+" NUMBER)*\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n'),
        "let total = 12+345+6;",
    ),
    "schema": (
        JsonSchema(
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"enum": ["circle", "square"]},
                    "sizes": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["name", "kind", "sizes"],
                "additionalProperties": False,
            }
        ),
        '{"name": "The first one", "kind": "circle", "sizes": [1, 20, 300]}',
    ),
}

#: Why an adapter takes longer than `LARGEST` times its peer's own calls: peer -> (phase -> cause).
CAUSES: dict[str, dict[str, str]] = {
    "llguidance": {"token": "a token is tried before it is taken, so that a refused one leaves the state as it was"},
    "llguidance, forcing": {
        "token": "a token is tried before it is taken, so that a refused one leaves the state as it was"
    },
    "xgrammar_cfgzip": {
        "compile": "`supports` reads the grammar once more, to refuse what cfgzip cannot read",
    },
}
#: What our interface takes in Python: phase -> (µs, why).
INTERFACE: dict[str, tuple[float, str]] = {
    "compile": (60.0, "our interface in Python: whether the kind is supported, the pattern's exact form, a matcher"),
    "token": (3.0, "our interface in Python: the buffer and the token are checked, end tokens are ours"),
}


def cause_of(label: str, phase: str, own: float, adapter: float) -> str:
    """Why an adapter takes longer; empty if it does not by more than `LARGEST`."""
    if adapter <= LARGEST * own:
        return ""
    most, why = INTERFACE[phase]
    return CAUSES.get(label, {}).get(phase, why if adapter - own <= most else "NO CAUSE IS KNOWN")


def work_of(own: type[OwnCalls]) -> list[str]:
    """The names in `WORK` that a peer is tried on."""
    return [name for name, (constraint, _) in WORK.items() if type(constraint) in own.kinds]


def time_both(own: OwnCalls, name: str, tokenizer: Tokenizer, rounds: int, seed: int) -> dict[str, tuple[float, float]]:
    """Phase -> medians in µs of the peer's own calls and of the adapter, in turns whose order is drawn."""
    constraint, text = WORK[name]
    tokens, mask = tokenizer.encode(text), masks.allocate_mask(own.vocab.size)
    backend = create_backend(own.backend, own.vocab, **own.options)
    samples: dict[tuple[str, str], list[float]] = {}
    #: What was compiled last lives until its successor does, as in a server; so does `own.compiled`.
    held: list[Any] = []

    def new() -> Constraint:
        """The constraint as a user brings it: nothing is kept with it yet."""
        return type(constraint)(constraint.text) if isinstance(constraint, JsonSchema | Grammar) else constraint

    def by_own_calls() -> tuple[float, float]:
        one = new()
        began = time.perf_counter_ns()
        own.compile(one)
        own.start()
        own.fill()
        compiled = time.perf_counter_ns()
        own.start()
        for token in tokens:
            own.fill()
            own.take(token)
        return compiled - began, (time.perf_counter_ns() - compiled) / len(tokens)

    def by_adapter() -> tuple[float, float]:
        one = new()
        began = time.perf_counter_ns()
        made = backend.compile(one)
        matcher = made.start()
        matcher.fill_mask(mask)
        compiled = time.perf_counter_ns()
        held[:] = [made, matcher]
        matcher = made.start()
        for token in tokens:
            matcher.fill_mask(mask)
            matcher.advance(token)
        return compiled - began, (time.perf_counter_ns() - compiled) / len(tokens)

    ways = [("own", by_own_calls), ("adapter", by_adapter)]
    for _, way in ways:
        way()
    drawn = random.Random(seed)
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for label, way in drawn.sample(ways, 2):
            for phase, taken in zip(("compile", "token"), way(), strict=True):
                samples.setdefault((phase, label), []).append(taken / 1e3)
    gc.enable()
    median = {key: statistics.median(values) for key, values in samples.items()}
    return {phase: (median[phase, "own"], median[phase, "adapter"]) for phase in ("compile", "token")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(OWN)}; default: all")
    parser.add_argument("--tokenizer", default="llama3")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(given.tokenizer)
    load = os.getloadavg()[0]
    print(f"{given.tokenizer}; load of the machine {load:.2f} on {os.cpu_count()} cores; µs, medians of {given.rounds}")
    print(f"{'peer':22} {'work':8} {'phase':8} {'own':>10} {'adapter':>10} {'ratio':>6}  cause, where above {LARGEST}")
    for label in given.peers or OWN:
        own = OWN[label](tokenizer)
        for name in work_of(OWN[label]):
            for phase, (one, other) in time_both(own, name, tokenizer, given.rounds, given.seed).items():
                cause = cause_of(label, phase, one, other)
                print(f"{label:22} {name:8} {phase:8} {one:10.2f} {other:10.2f} {other / one:6.2f}  {cause}")


if __name__ == "__main__":
    main()

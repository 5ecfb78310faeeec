"""The examples for vLLM and SGLang with fakes of their interfaces, driven as the engines drive them.

The fakes have the abstract methods and signatures of the interfaces, nothing of what the engines do besides.
"""

from __future__ import annotations

import enum
import json
import runpy
import sys
import types
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tokdfa.errors import SchemaError, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")
EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SIZE, END = 300, 256  # the model has more logits than its tokenizer tokens
ANSWER = '{"a": 1}'
SCHEMA = json.dumps(
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
)


def install(monkeypatch: pytest.MonkeyPatch, module: str, **names: Any) -> None:
    """A fake module, and the packages above it."""
    parts = module.split(".")
    for k in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:k]), types.ModuleType(".".join(parts[:k])))
    vars(sys.modules[module]).update(names)


class RequestTypes(enum.Enum):
    JSON = enum.auto()
    JSON_OBJECT = enum.auto()
    REGEX = enum.auto()
    GRAMMAR = enum.auto()
    CHOICE = enum.auto()
    STRUCTURAL_TAG = enum.auto()


class VllmGrammar(ABC):
    @abstractmethod
    def find_jump_string(self) -> str | None: ...

    @abstractmethod
    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool: ...

    @abstractmethod
    def validate_tokens(self, tokens: list[int]) -> list[int]: ...

    @abstractmethod
    def rollback(self, num_tokens: int) -> None: ...

    @abstractmethod
    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None: ...

    @abstractmethod
    def is_terminated(self) -> bool: ...

    @abstractmethod
    def reset(self) -> None: ...


@dataclass
class VllmBackend(ABC):
    vllm_config: Any
    tokenizer: Any
    vocab_size: int

    @abstractmethod
    def compile_grammar(self, request_type: RequestTypes, grammar_spec: str) -> VllmGrammar: ...

    @abstractmethod
    def allocate_token_bitmask(self, max_num_seqs: int) -> Any: ...

    @abstractmethod
    def destroy(self) -> None: ...


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = {"StructuredOutputGrammar": VllmGrammar, "StructuredOutputBackend": VllmBackend}
    install(monkeypatch, "vllm.v1.structured_output.backend_types", **names)
    page = runpy.run_path(str(EXAMPLES / "vllm_backend.py"))
    return page["Backend"]("config", tokdfa.load_tokenizer("bytes"), SIZE)


def allowed(row: Any) -> list[int]:
    return tokdfa.mask_to_ids(row.numpy()).tolist()


def test_vllm_generates_with_drafts(vllm: Any) -> None:
    """As vLLM's manager does: a mask for each drafted token, which are then taken back; then what was sampled."""
    assert isinstance(vllm, VllmBackend)
    assert (vllm.vllm_config, vllm.vocab_size) == ("config", SIZE)
    grammar = vllm.compile_grammar(RequestTypes.JSON, SCHEMA)
    assert isinstance(grammar, VllmGrammar)
    bitmask = vllm.allocate_token_bitmask(4)
    assert (bitmask.shape, bitmask.dtype) == ((4, 10), torch.int32)
    twin = tokdfa.constrain(SCHEMA, tokdfa.load_tokenizer("bytes"), size=SIZE).start()
    text, position = [*ANSWER.encode(), END], 0
    while not grammar.is_terminated():
        drafted = [*text[position : position + 2], ord("}")][:3]
        good = grammar.validate_tokens(drafted)
        assert good == drafted[: len(good)]
        taken = 0
        for row, token in enumerate([*good, None]):
            grammar.fill_bitmask(bitmask, row)
            ahead = twin.fork()
            for before in good[:row]:
                ahead.advance(before)
            assert allowed(bitmask[row]) == tokdfa.mask_to_ids(mask_of(ahead)).tolist()
            if token is None or grammar.is_terminated():
                break
            assert grammar.accept_tokens("id", [token])
            taken += 1
        grammar.rollback(taken)
        step = text[position : position + 2]
        assert grammar.accept_tokens("id", step)
        for token in step:
            twin.advance(token)
        position += len(step)
    assert position == len(text)
    assert grammar.accept_tokens("id", [7])  # after its end
    assert grammar.find_jump_string() is None
    grammar.reset()
    assert not grammar.accept_tokens("id", [ord("{"), ord("{")])
    assert grammar.validate_tokens([ord("{"), ord('"')]) == [ord("{"), ord('"')]  # nothing was taken
    vllm.destroy()


def mask_of(matcher: Any) -> Any:
    out = tokdfa.allocate_mask(matcher.vocab.size)
    matcher.fill_mask(out)
    return out


def test_vllm_compiles_every_kind_on_its_threads_and_keeps_it(vllm: Any) -> None:
    tags = {"structures": [{"begin": "<a>", "schema": {"type": "null"}, "end": "</a>"}], "triggers": ["<a"]}
    specs = {
        RequestTypes.JSON: (SCHEMA, ANSWER),
        RequestTypes.JSON_OBJECT: ("", "{}"),
        RequestTypes.REGEX: ("a+", "aa"),
        RequestTypes.GRAMMAR: ('root ::= "x" root | "y"', "xy"),
        RequestTypes.CHOICE: ('["no", "yes"]', "no"),
        RequestTypes.STRUCTURAL_TAG: (json.dumps(tags), "I say <a>null</a>"),
    }
    with ThreadPoolExecutor(3) as threads:
        jobs = {kind: threads.submit(vllm.compile_grammar, kind, spec) for kind, (spec, _) in specs.items()}
    for kind, (spec, text) in specs.items():
        grammar = jobs[kind].result()
        assert grammar.accept_tokens("id", [*text.encode(), END]), kind
        assert grammar.is_terminated()
        again = vllm.compile_grammar(kind, spec)
        assert again.compiled is grammar.compiled
        assert not again.is_terminated()
    with pytest.raises(SchemaError, match="type at #"):
        vllm.compile_grammar(RequestTypes.JSON, '{"type": "integr"}')


class SglangGrammar:
    def __init__(self) -> None:
        self._finished, self.grammar_stats, self.current_token = False, None, None

    @property
    def finished(self) -> bool:
        return self._finished

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished


class SglangBackend:
    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(2)
        self.cache: dict[tuple[str, str], Any] = {}

    def get_cached_or_future_value(self, key: tuple[str, str]) -> Any:
        if key in self.cache:
            return self.cache[key].copy(), True
        return self.executor.submit(getattr(self, f"dispatch_{key[0]}"), key[1]), False


class SglangInvalid(SglangGrammar):
    def __init__(self, error_message: str = "Unknown grammar error", grammar_stats: Any = None) -> None:
        super().__init__()
        self.error_message, self.grammar_stats = error_message, grammar_stats


@pytest.fixture
def sglang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    known: dict[str, Any] = {}
    install(
        monkeypatch,
        "sglang.srt.constrained.base_grammar_backend",
        BaseGrammarObject=SglangGrammar,
        BaseGrammarBackend=SglangBackend,
        InvalidGrammarObject=SglangInvalid,
        register_grammar_backend=known.__setitem__,
    )
    runpy.run_path(str(EXAMPLES / "sglang_backend.py"))
    made = known["tokdfa"]("server args", tokdfa.load_tokenizer("bytes"), SIZE, {END})
    yield made
    made.executor.shutdown()


def test_sglang_generates(sglang: Any) -> None:
    assert isinstance(sglang, SglangBackend)
    future, is_kept = sglang.get_cached_or_future_value(("json", SCHEMA))
    assert not is_kept
    sglang.cache["json", SCHEMA] = first = future.result()
    grammar, is_kept = sglang.get_cached_or_future_value(("json", SCHEMA))
    assert is_kept
    assert isinstance(grammar, SglangGrammar)
    assert grammar is not first
    twin = tokdfa.constrain(SCHEMA, tokdfa.load_tokenizer("bytes"), size=SIZE).start()
    for token in [*ANSWER.encode(), END]:
        rows = grammar.allocate_vocab_mask(SIZE, 2, "cpu")
        grammar.fill_vocab_mask(rows, 1)
        assert allowed(rows[1]) == tokdfa.mask_to_ids(mask_of(twin)).tolist()
        logits = torch.zeros(2, SIZE)
        grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(rows, "cpu"))
        assert torch.isfinite(logits[0]).all()  # a request without a grammar
        assert torch.isfinite(logits[1]).nonzero().flatten().tolist() == allowed(rows[1])
        grammar.accept_token(token)
        twin.advance(token)
    assert grammar.is_terminated()
    grammar.accept_token(7)
    grammar.rollback(2)
    assert not grammar.is_terminated()
    with pytest.raises(TokenRefused):
        grammar.accept_token(ord("{"))


def test_sglang_jumps_forward(sglang: Any) -> None:
    grammar = sglang.dispatch_json(SCHEMA)
    forced, text = grammar.try_jump_forward(None)
    assert bytes(forced) == b'{"a": '
    assert grammar.jump_forward_str_state((forced, text)) == ("", -1)
    for token in forced[:3]:
        grammar.accept_token(token)
    grammar.jump_and_retokenize(forced[:3], [*forced, ord("1")], -1)
    assert grammar.matcher.tokens == (*forced, ord("1"))
    grammar.accept_token(ord("}"))
    assert grammar.try_jump_forward(None) is None  # an end token is the model's


def test_sglang_dispatches_every_kind(sglang: Any) -> None:
    tags = {"structures": [{"begin": "<a>", "schema": {"type": "null"}, "end": "</a>"}], "triggers": ["<a"]}
    for kind, text, answer in (
        ("json", "$$ANY$$", '{"x": []}'),
        ("regex", "a+", "aa"),
        ("ebnf", 'root ::= "x" root | "y"', "xy"),
        ("structural_tag", json.dumps(tags), "<a>null</a>"),
    ):
        grammar = getattr(sglang, f"dispatch_{kind}")(text)
        for token in [*answer.encode(), END]:
            grammar.accept_token(token)
        assert grammar.is_terminated()
    refused = sglang.dispatch_regex("(a")
    assert isinstance(refused, SglangInvalid)
    assert "position 0" in refused.error_message

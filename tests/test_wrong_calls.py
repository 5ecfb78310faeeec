"""Wrong calls of the public functions: each raises an error of ours that names the argument. And calls that work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic
import pytest

import tokdfa
from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import backend_names, create_backend
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.decoding.loop import generate, generate_batch
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.sampling import Sampler
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.errors import TokdfaError, TokenRefused
from tokdfa.models.table import TableModel
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENIZER = tokdfa.load_tokenizer("bytes")
VOCAB = TOKENIZER.vocabulary
SIZE = VOCAB.size
MODEL = TableModel(VOCAB, lambda prefix: np.full(SIZE, 1 / SIZE))
#: A model whose vocabulary has no tokenizer.
BARE = TableModel(Vocabulary([b"a", b""], [1]), lambda prefix: np.full(2, 0.5))
EVERY: tuple[Any, ...] = tuple(
    pytest.param(
        name, marks=pytest.mark.skipif(not tokdfa.backends()[name].installed, reason=f"{name}'s package is missing")
    )
    for name in backend_names()
    if name in tokdfa.backends()
)


def compiled(backend: str = "pushdown_trie") -> CompiledConstraint:
    return tokdfa.compile(Regex("[0-9]+"), VOCAB, backend)


def matcher(backend: str = "pushdown_trie") -> Matcher:
    return compiled(backend).start()


def number(backend: str) -> Matcher:
    """A matcher of any backend, for a text that may begin with "12"."""
    if tokdfa.backends()[backend].kinds == ("json_schema",):
        return tokdfa.compile(JsonSchema({"type": "integer"}), VOCAB, backend).start()
    return tokdfa.compile(Choice(["1" * 12, "12", "13"]), VOCAB, backend).start()


def mask(**changes: Any) -> Any:
    made = tokdfa.allocate_mask(SIZE)
    made.flags.writeable = changes.get("writeable", True)
    return made


def unaligned() -> Any:
    return np.zeros(4 * len(mask()) + 1, dtype=np.uint8)[1:].view(np.int32)


def wider() -> Matcher:
    """One of another vocabulary."""
    return tokdfa.compile(Regex("a"), Vocabulary([b"a"] + [b""] * 900, [1])).start()


class Point(pydantic.BaseModel):
    x: int


class Network:
    """Stands for a model of transformers that does not know where its tokenizer is."""

    config: Any = None
    weight = np.zeros((257, 1))
    name_or_path = ""

    def get_output_embeddings(self) -> Any:
        return self


class Recursive(list[Any]):
    """A list that holds itself."""

    def __init__(self) -> None:
        super().__init__([self])


#: A word that the message must hold (the argument's name, or the remedy), what is called, and wrong values.
WRONG: list[tuple[str, Callable[[Any], Any], tuple[Any, ...]]] = [
    # compile
    ("constraint", lambda value: tokdfa.compile(value, VOCAB), (None, Regex, tokdfa.Constraint())),
    ("tokdfa.Regex", lambda value: tokdfa.compile(value, VOCAB), ("[0-9]+",)),
    ("tokdfa.JsonSchema", lambda value: tokdfa.compile(value, VOCAB), ({"type": "string"},)),
    ("tokdfa.Choice", lambda value: tokdfa.compile(value, VOCAB), (["a"],)),
    ("tokdfa.Grammar", lambda value: create_backend("cfg_fsm", VOCAB).compile(value), ("a",)),
    ("constraint", lambda value: create_backend("token_index", VOCAB).supports(value), ("a",)),
    ("path or folder", lambda value: tokdfa.compile(Regex("a"), value), (None, Regex("a"))),
    ("did you mean 'llama3'", lambda value: tokdfa.compile(Regex("a"), value), ("lama3",)),
    ("from_dict", lambda value: tokdfa.compile(Regex("a"), value), ({"a": 0},)),
    ("backend", lambda value: tokdfa.compile(Regex("a"), VOCAB, value), (5, Backend)),
    ("pushdown_trie", lambda value: tokdfa.compile(Grammar('start: "a"'), VOCAB, value), ("token_index", "tokens_dfa")),
    ("token_index", lambda value: tokdfa.compile(Regex("a"), VOCAB, value), ("token_idnex",)),
    ("lazy", lambda value: tokdfa.compile(Regex("a"), VOCAB, **value), ({"lasy": True}, {"lazy": 1})),
    ("max_states", lambda value: tokdfa.compile(Regex("a"), VOCAB, max_states=value), (True, "9", 0)),
    ("walk", lambda value: tokdfa.compile(Regex("a"), VOCAB, walk=value), (None, "fast")),
    # constraints
    ("pattern", Regex, (None, b"a", re.compile("a"))),
    ("flag", lambda value: Regex("a", flags=value), (None, 2, "q")),
    ("search", lambda value: Regex("a", search=value), ("yes",)),
    ("ascii_classes", lambda value: Regex("a", ascii_classes=value), (None,)),
    ("label", lambda value: Regex("a", label=value), (1,)),
    ("choices", Choice, (None, 5, "ab", [], [1, 2])),
    ("label", lambda value: Choice(["a"], label=value), (b"a",)),
    ("text", Grammar, (None, b'start: "a"', Path("grammar.lark"))),
    ("start", lambda value: Grammar('start: "a"', start=value), (None,)),
    ("schema", JsonSchema, (None, [], 5, b"{}", "{", {"enum": {1, 2}}, {"enum": Recursive()})),
    ("schema", JsonSchema, ({"default": object()}, {"minimum": float("nan")})),
    ("order", lambda value: JsonSchema({}, order=value), (5, "alphabet")),
    ("profile", lambda value: JsonSchema({}, profile=value), (None, 5, "generate", ["all"])),
    ("blanks", lambda value: JsonSchema({}, blanks=value), (True, "none")),
    ("numbers", lambda value: JsonSchema({}, numbers=value), (15, "plain")),
    ("number_digits", lambda value: JsonSchema({}, number_digits=value), ("3", 2.5, True, -1, 10**6)),
    ("whitespace", lambda value: JsonSchema({}, whitespace=value), (True,)),
    ("whitespace_pattern", lambda value: JsonSchema({}, whitespace_pattern=value), (5,)),
    ("item_separator", lambda value: JsonSchema({}, item_separator=value), (5,)),
    ("key_separator", lambda value: JsonSchema({}, key_separator=value), ("=",)),
    ("escapes", lambda value: JsonSchema({}, escapes=value), (["all"],)),
    ("max_nesting", lambda value: JsonSchema({}, max_nesting=value), ("3", 2.5, True, -1)),
    ("lenient", lambda value: JsonSchema({}, lenient=value), ("yes",)),
    # start
    ("context", lambda value: compiled().start(value), ("text", 5, ["a"], np.ones(2), [True], [10**6], np.array([-1]))),
    # masks
    ("out", lambda value: matcher().fill_mask(value), ([0] * 1000, None, bytearray(4 * len(mask())), np.ndarray)),
    ("out", lambda value: matcher().fill_mask(value), (mask().astype(np.int64), mask().view(np.uint32), mask()[:-1])),
    ("out", lambda value: matcher().fill_mask(value), (tokdfa.allocate_mask(SIZE + 32), tokdfa.allocate_mask(SIZE, 1))),
    (
        "out",
        lambda value: matcher().fill_mask(value),
        (mask(writeable=False), np.zeros(2 * len(mask()), np.int32)[::2], unaligned()),
    ),
    ("out", lambda value: fill_masks([matcher()], value), (mask(), [[0]])),
    ("matchers", lambda make: fill_masks(make(), tokdfa.allocate_mask(SIZE, 1)), (lambda: [compiled()], matcher)),
    ("matchers", lambda make: fill_masks([matcher(), make()], tokdfa.allocate_mask(SIZE, 2)), (wider,)),
    ("threads", lambda value: fill_masks([matcher()], tokdfa.allocate_mask(SIZE, 1), threads=value), (0,)),
    ("size", tokdfa.allocate_mask, (-1, 100.0, None, VOCAB, 10**30)),
    ("batch", lambda value: tokdfa.allocate_mask(1 << 40, batch=value), (-1, 1 << 40)),
    ("mask", tokdfa.mask_to_ids, (np.ones(5), [1, 2], tokdfa.allocate_mask(8, 2), None)),
    ("size", lambda value: tokdfa.mask_to_bool(mask(), value), (10**6, -1, "8")),
    ("mask", lambda value: tokdfa.mask_to_bool(value, 8), (np.ones(8, bool),)),
    ("ids", lambda value: masks.mask_from_ids(value, 8), ([9], [-1], [1.5], "1", [1 << 70])),
    ("allowed", masks.mask_from_bool, ([True], np.ones(3, np.int32))),
    ("token", lambda value: masks.set_token(mask(), value), (10**6,)),
    ("token", lambda value: masks.clear_token(mask(), value), (-1,)),
    ("token", lambda value: masks.contains(mask(), value), ("1",)),
    # matchers
    ("count", lambda value: matcher().rollback(value), (-1, "1", True, 1.0, 1)),
    ("limit", lambda value: matcher().forced_tokens(value), ("3",)),
    ("limit", lambda value: matcher().forced_bytes(value), (-1,)),
    ("token", lambda value: matcher().allows(value), ("2", None)),
    # files
    ("folder", lambda value: compiled().save(value), ("/no/such/folder/x",)),
    ("path", lambda value: compiled().save(value), (None, "a\0b")),
    ("path", lambda value: CompiledPushdown.load(value, VOCAB), (None, 0)),
    ("path or folder", lambda value: CompiledPushdown.load("/", value), (None,)),
    ("/", lambda value: CompiledPushdown.load(value, VOCAB), ("/",)),
    ("/no/such/file", lambda value: CompiledPushdown.load(value, VOCAB), ("/no/such/file",)),
    # tokenizers and vocabularies
    ("name", tokdfa.load_tokenizer, (None,)),
    ("llama3", tokdfa.load_tokenizer, ("lama3",)),
    ("size", lambda value: tokdfa.load_tokenizer("bytes", size=value), ("9", True)),
    ("text", TOKENIZER.encode, (None, b"a")),
    ("tokens", TOKENIZER.decode, ("abc", 5, [1.5], [10**9])),
    ("tokens", VOCAB.spell, ("ab",)),
    ("token", VOCAB.token_bytes, ("a", True, -1)),
    ("tokens", lambda value: Vocabulary(value, [0]), ("abc", {b"a": 0}, None)),
    ("bytes", lambda value: Vocabulary(value, [1]), (["a", ""],)),
    ("end_tokens", lambda value: Vocabulary([b"a", b""], value), (1, ["</s>"], [])),
    ("special_tokens", lambda value: Vocabulary([b"a", b""], [1], value), ([1],)),
    ("size", lambda value: Vocabulary([b"a", b""], [1], None, value), ("5",)),
    ("name", lambda value: Vocabulary([b"a", b""], [1], name=value), (None,)),
    ("tokens", lambda value: Vocabulary.from_dict(value, 0), (["a"],)),
    ("end_tokens", lambda value: Vocabulary.from_dict({"a": 0}, value), ("1",)),
    # what people have instead of a constraint
    ("pydantic class", lambda value: tokdfa.constrain(value, TOKENIZER), (None, 5, b"[0-9]+", 2.5)),
    ("pydantic has no JSON schema", lambda value: tokdfa.constrain(value, TOKENIZER), (Recursive, TableModel)),
    ("its class", lambda value: tokdfa.constrain(value, TOKENIZER), (Point(x=1),)),
    ("tokdfa.Regex", lambda value: tokdfa.constrain(value, TOKENIZER), (re.compile("a"), "", "{}", '{"a": 1}')),
    ("tokdfa.JsonSchema", lambda value: tokdfa.constrain(value, TOKENIZER), ('{"type": "object",}', '["a", "b"]', "{")),
    ("tokdfa.Grammar", lambda value: tokdfa.constrain(value, TOKENIZER), ('start: "a"', "root ::= a", "a: B\nB: /b/")),
    ("read_text", lambda value: tokdfa.constrain(value, TOKENIZER), (Path("a.lark"), "a.lark", "../schema.json")),
    ("choices", lambda value: tokdfa.constrain(value, TOKENIZER), ([], [1, 2], [["a"]], [None])),
    ("pattern", lambda value: tokdfa.constrain(value, TOKENIZER), ("(", "[a", "a{3,2}")),
    ("type", lambda value: tokdfa.constrain({"type": value}, TOKENIZER), ("strin", 5)),
    # ... and their options
    ("when it is made", lambda value: tokdfa.constrain(Regex("a"), TOKENIZER, flags=value), ("i",)),
    ("order", lambda value: tokdfa.constrain({"type": "object"}, TOKENIZER, order=value), ("alphabet", 1)),
    ("'ordr'", lambda value: tokdfa.constrain({"type": "object"}, TOKENIZER, ordr=value), ("any",)),
    ("'order'", lambda value: tokdfa.constrain({"type": "object"}, TOKENIZER, oder=value), ("any",)),
    ("did you mean", lambda value: tokdfa.constrain("a", TOKENIZER, backend=value), ("token_idx",)),
    ("earley_trie", lambda value: tokdfa.constrain(Grammar("start: A"), TOKENIZER, backend=value), ("token_index",)),
    # ... instead of a tokenizer
    ("model's tokenizer", lambda value: tokdfa.constrain("a", value), (None,)),
    ("path or folder", lambda value: tokdfa.constrain("a", value), (5, ["a"], b"llama3", tokdfa.Tokenizer, object())),
    ("from_dict", lambda value: tokdfa.constrain("a", value), ({"a": 0},)),
    ("llama3", lambda value: tokdfa.constrain("a", value), ("lama3",)),
    ("hf download", lambda value: tokdfa.constrain("a", value), ("somebody/some-model",)),
    ("no such file", lambda value: tokdfa.constrain("a", value), ("./tokenizer.json", "/no/such/tokenizer.json")),
    ("tokenizer.json", lambda value: tokdfa.constrain("a", value), ("/",)),
    ("end_tokens", lambda value: tokdfa.constrain("a", TOKENIZER, end_tokens=value), ([1.5], 2.5)),
    ("end token", lambda value: tokdfa.constrain("a", TOKENIZER, end_tokens=value), (97_000, "</s>")),
    ("size", lambda value: tokdfa.constrain("a", TOKENIZER, size=value), ("9", 0, True)),
    ("logit width", lambda value: tokdfa.constrain("a", TOKENIZER, size=value), (100,)),
    ("model of transformers", lambda value: tokdfa.constrain("a", TOKENIZER, value), (MODEL, TOKENIZER, "smollm2")),
    ("constrain(what, tokenizer, model)", lambda value: tokdfa.constrain("a", value), (Network(),)),
    ("tokdfa.constrain", lambda value: Vocabulary.from_dict(value, 9), ({"\u0120the": 0, "a": 1}, {0: "\u2581the"})),
    ("from_dict", tokdfa.load_tokenizer, ({"a": 0},)),
    # ... and of an answer
    ("answer", lambda value: tokdfa.constrain("a", TOKENIZER).parse(value), (None, [1.5], [[1, 2]])),
    ("not a text of", lambda value: tokdfa.constrain("a", TOKENIZER).parse(value), ([1, 2],)),
    ("max_new_tokens", lambda value: tokdfa.constrain("ab", TOKENIZER).parse(value), ("a", "")),
    ("not allowed", lambda value: tokdfa.constrain("ab", TOKENIZER).parse(value), ("abc", b"a\xff", "x", "\ud800")),
    ("max_new_tokens", lambda value: tokdfa.constrain({}, TOKENIZER).parse(value), ('{"a"', "")),
    ("skip_special_tokens", lambda value: tokdfa.constrain({}, TOKENIZER).parse(value), ("[1]<|im_end|>", "a: 1")),
    # decoding
    ("model", lambda value: generate(value, compiled()), (None,)),
    ("compiled", lambda make: generate(MODEL, make()), (matcher, lambda: Regex("a"))),
    ("context", lambda value: generate(MODEL, compiled(), value), (3,)),
    ("tokenizer", lambda value: generate(BARE, value, "prompt"), (tokdfa.compile(Regex("a"), BARE.vocabulary),)),
    ("tokdfa.load_model", lambda value: tokdfa.generate(value, compiled(), [1]), ("smollm2", None)),
    ("logits_processor", lambda value: tokdfa.generate(value, compiled(), [1]), (Network(),)),
    ("sampler", lambda value: generate(MODEL, compiled(), sampler=value), ("greedy",)),
    ("max_tokens", lambda value: generate(MODEL, compiled(), max_tokens=value), (0,)),
    ("contexts", lambda value: generate_batch(MODEL, compiled(), value), (3,)),
    ("temperature", lambda value: Sampler(temperature=value), ("1", 0)),
    ("top_p", lambda value: Sampler(top_p=value), (None,)),
    ("greedy", lambda value: Sampler(greedy=value), ("yes",)),
    ("seed", lambda value: Sampler(seed=value), (None,)),
    ("mask", lambda value: Sampler().choose(np.zeros(SIZE), value), ([1],)),
    ("samples", lambda value: draw_by_rejection(MODEL, compiled(), samples=value, max_drafts=1), (0,)),
    ("eos", lambda value: draw_by_rejection(MODEL, compiled(), samples=1, max_drafts=1, eos=value), (None,)),
    ("threshold", lambda value: draw_by_smc(MODEL, compiled(), particles=1, threshold=value), ("a",)),
]


@pytest.mark.parametrize(("named", "call", "wrong"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_calls_are_named(named: str, call: Callable[[Any], Any], wrong: tuple[Any, ...]) -> None:
    for value in wrong:
        with pytest.raises(TokdfaError) as caught:
            call(value)
        assert named in str(caught.value)


#: No token ids; all strategies say so alike.
NO_TOKENS = ("2", b"2", 2.0, True, np.True_, np.float32(2), None, [2], 1j)


@pytest.mark.parametrize("backend", EVERY)
def test_what_is_no_token_id_changes_nothing(backend: str) -> None:
    asked = number(backend)
    asked.advance(ord("1"))
    for wrong in NO_TOKENS:
        for do in (asked.advance, asked.allows):
            with pytest.raises(TokdfaError, match="token"):
                do(wrong)
    for outside in (-1, SIZE, 1 << 70, -(1 << 70), np.int64(SIZE), np.uint64(1 << 63)):
        assert not asked.allows(outside)
        with pytest.raises(TokenRefused, match="ids"):
            asked.advance(outside)
    assert asked.tokens == (ord("1"),)
    with pytest.raises(TokdfaError, match="count"):
        asked.rollback(2)
    with pytest.raises(TokdfaError, match="out"):
        asked.fill_mask([0] * 9)
    assert asked.allows(ord("2"))


class Tensor:
    """Stands for a tensor of another library: an array of numpy shares its memory."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def numpy(self) -> Any:
        return self._array


class ArrayLike:
    """Stands for what numpy's protocol offers."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array


class OnGpu:
    def numpy(self) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


@pytest.mark.parametrize("kind", [Tensor, ArrayLike])
@pytest.mark.parametrize("backend", EVERY)
def test_tensors_are_written_in_place(backend: str, kind: Any) -> None:
    asked = number(backend)
    array, wanted = mask(), mask()
    asked.fill_mask(wanted)
    for _ in range(2):
        array[:] = -1
        asked.fill_mask(kind(array))
        assert array.tolist() == wanted.tolist()
    asked.advance(ord("1"))
    asked.fill_mask(wanted)
    asked.fill_mask(kind(array))
    assert array.tolist() == wanted.tolist()
    assert tokdfa.mask_to_ids(kind(array)).tolist() == tokdfa.mask_to_ids(wanted).tolist()
    assert tokdfa.mask_to_bool(kind(array), SIZE).tolist() == tokdfa.mask_to_bool(wanted, SIZE).tolist()
    batch = tokdfa.allocate_mask(SIZE, 2)
    fill_masks([asked, asked], kind(batch))
    assert batch.tolist() == [wanted.tolist()] * 2


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(TokdfaError, match=r"out .*cuda"):
        matcher().fill_mask(OnGpu())  # type: ignore[arg-type]
    for wrong in (Tensor(mask().astype(np.int64)), Tensor([0]), ArrayLike(mask()[:-1])):
        with pytest.raises(TokdfaError, match="out"):
            matcher().fill_mask(wrong)  # type: ignore[arg-type]


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor, wanted, asked = torch.zeros(len(mask()), dtype=torch.int32), mask(), matcher()
    asked.advance(torch.tensor(ord("1")))
    asked.fill_mask(wanted)
    asked.fill_mask(tensor)
    assert tensor.tolist() == wanted.tolist()
    assert tokdfa.mask_to_ids(tensor).tolist() == tokdfa.mask_to_ids(wanted).tolist()
    for wrong in (tensor.long(), tensor[::2], tensor.reshape(1, -1)):
        with pytest.raises(TokdfaError, match="out"):
            asked.fill_mask(wrong)


#: Kinds of integers that token ids come in.
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.intp, np.array)


@pytest.mark.parametrize("backend", EVERY)
def test_token_ids_may_be_integers_of_any_kind(backend: str) -> None:
    asked = number(backend)
    if backend == "pushdown_trie":  # the number of a row and a token no longer fit in 32 bits
        asked = tokdfa.compile(Regex("[0-9]{1,1600}"), VOCAB, backend).start()
        for _ in range(1500):
            asked.advance(ord("1"))
    for kind in INTEGERS:
        token = kind(ord("1"))  # type: ignore[operator]
        assert asked.allows(token)
        asked.advance(token)
        assert type(asked.tokens[-1]) is int
    asked.rollback(np.uint8(3))
    assert asked.tokens[-7:] == (ord("1"),) * 7


#: Calls that are right, though they look unusual.
RIGHT: dict[str, Callable[[], Any]] = {
    "tokenizer for vocabulary": lambda: tokdfa.compile(Regex("a"), TOKENIZER),
    "tokenizer for a backend": lambda: create_backend("pushdown_trie", TOKENIZER).compile(Regex("a")),
    "option of numpy": lambda: tokdfa.compile(Regex("a"), VOCAB, max_states=np.int64(9)),
    "choices generated": lambda: Choice(text for text in ("a", b"b")),
    "choices of a set": lambda: Choice({"a", "b"}),
    "choices of a dict": lambda: Choice({"a": 1}),
    "schema bool": lambda: JsonSchema(True),
    "max_nesting of numpy": lambda: JsonSchema({}, max_nesting=np.int8(3)),
    "context of numpy": lambda: compiled().start(np.array([1, 2], dtype=np.uint16)),
    "context list": lambda: compiled().start([np.int32(1), 2]),
    "context range": lambda: compiled().start(range(3)),
    "mask subclass": lambda: matcher().fill_mask(mask().view(np.recarray)),
    "mask of a batch": lambda: matcher().fill_mask(tokdfa.allocate_mask(SIZE, 3)[1]),
    "mask read-only": lambda: tokdfa.mask_to_ids(mask(writeable=False)),
    "mask scattered": lambda: tokdfa.mask_to_ids(np.zeros(8, np.int32)[::2]),
    "size of numpy": lambda: tokdfa.allocate_mask(np.int64(100), batch=np.int32(2)),
    "empty mask": lambda: tokdfa.allocate_mask(0, batch=0),
    "no ids": lambda: masks.mask_from_ids([], 8),
    "ids of a set": lambda: masks.mask_from_ids({1, 2}, 8),
    "rollback nothing": lambda: matcher().rollback(0),
    "end_tokens of numpy": lambda: Vocabulary([b"a", b""], np.array([1])),
    "token of numpy": lambda: VOCAB.token_bytes(np.uint8(3)),
    "decode of numpy": lambda: TOKENIZER.decode(np.array([97, 98])),
    "spell generated": lambda: VOCAB.spell(token for token in (97, 98)),
    "temperature of numpy": lambda: Sampler(temperature=np.float32(0.5), seed=np.int64(3)),
    "no masks": lambda: fill_masks([], np.zeros((0, 0), np.int32)),
}


@pytest.mark.parametrize("call", RIGHT)
def test_right_calls_work(call: str) -> None:
    RIGHT[call]()


def test_a_tokenizer_stands_for_its_vocabulary() -> None:
    assert tokdfa.compile(Regex("a"), TOKENIZER).vocab is VOCAB

"""Wrong calls of the public functions: each raises an error of ours that names the argument. And calls that work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tokdfa
from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
from tokdfa.backends.batch import fill_masks
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import backend_names, create_backend
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.decoding.loop import generate, generate_batch
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.sampling import Sampler
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.errors import TokdfaError, TokenRefused
from tokdfa.guide import Guide, Index
from tokdfa.models.table import TableModel
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENIZER = tokdfa.load_tokenizer("bytes")
VOCAB = TOKENIZER.vocabulary
SIZE = VOCAB.size
MODEL = TableModel(VOCAB, lambda prefix: np.full(SIZE, 1 / SIZE))
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
    if backend == "lm_format_enforcer":
        return tokdfa.compile(JsonSchema({"type": "integer"}), VOCAB, backend).start()
    return tokdfa.compile(Choice(["1" * 12, "12", "13"]), VOCAB, backend).start()


def mask(**changes: Any) -> Any:
    made = tokdfa.allocate_mask(SIZE)
    made.flags.writeable = changes.get("writeable", True)
    return made


def unaligned() -> Any:
    return np.zeros(4 * len(mask()) + 1, dtype=np.uint8)[1:].view(np.int32)


class Recursive(list[Any]):
    """A list that holds itself."""

    def __init__(self) -> None:
        super().__init__([self])


#: What is called, and a word that the message must hold: the argument's name, or the remedy.
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    # compile
    "constraint str": (lambda: tokdfa.compile("[0-9]+", VOCAB), "tokdfa.Regex"),
    "constraint dict": (lambda: tokdfa.compile({"type": "string"}, VOCAB), "tokdfa.JsonSchema"),
    "constraint list": (lambda: tokdfa.compile(["a"], VOCAB), "tokdfa.Choice"),
    "constraint None": (lambda: tokdfa.compile(None, VOCAB), "constraint"),
    "constraint class": (lambda: tokdfa.compile(Regex, VOCAB), "constraint"),
    "constraint base": (lambda: tokdfa.compile(tokdfa.Constraint(), VOCAB), "constraint"),
    "constraint of backend": (lambda: create_backend("cfg_fsm", VOCAB).compile("a"), "tokdfa.Grammar"),
    "supports str": (lambda: create_backend("token_index", VOCAB).supports("a"), "constraint"),
    "vocab None": (lambda: tokdfa.compile(Regex("a"), None), "vocab"),
    "vocab name": (lambda: tokdfa.compile(Regex("a"), "llama3"), "load_tokenizer"),
    "vocab dict": (lambda: tokdfa.compile(Regex("a"), {"a": 0}), "from_dict"),
    "swapped": (lambda: tokdfa.compile(VOCAB, Regex("a")), "vocab"),
    "backend None": (lambda: tokdfa.compile(Regex("a"), VOCAB, None), "backend"),
    "backend class": (lambda: tokdfa.compile(Regex("a"), VOCAB, Backend), "backend"),
    "backend unknown": (lambda: tokdfa.compile(Regex("a"), VOCAB, "token_idnex"), "token_index"),
    "option unknown": (lambda: tokdfa.compile(Regex("a"), VOCAB, lasy=True), "lazy"),
    "option bool for int": (lambda: tokdfa.compile(Regex("a"), VOCAB, max_states=True), "max_states"),
    "option int for bool": (lambda: tokdfa.compile(Regex("a"), VOCAB, lazy=1), "lazy"),
    "option str for int": (lambda: tokdfa.compile(Regex("a"), VOCAB, max_states="9"), "max_states"),
    "option None": (lambda: tokdfa.compile(Regex("a"), VOCAB, walk=None), "walk"),
    "option choice": (lambda: tokdfa.compile(Regex("a"), VOCAB, walk="fast"), "walk"),
    "option range": (lambda: tokdfa.compile(Regex("a"), VOCAB, max_states=0), "max_states"),
    # constraints
    "pattern None": (lambda: Regex(None), "pattern"),
    "pattern bytes": (lambda: Regex(b"a"), "pattern"),
    "pattern compiled": (lambda: Regex(__import__("re").compile("a")), "pattern"),
    "flags None": (lambda: Regex("a", flags=None), "flags"),
    "flags number": (lambda: Regex("a", flags=2), "flags"),
    "flags unknown": (lambda: Regex("a", flags="q"), "flag"),
    "search str": (lambda: Regex("a", search="yes"), "search"),
    "ascii_classes None": (lambda: Regex("a", ascii_classes=None), "ascii_classes"),
    "label number": (lambda: Regex("a", label=1), "label"),
    "choices None": (lambda: Choice(None), "choices"),
    "choices number": (lambda: Choice(5), "choices"),
    "choices text": (lambda: Choice("ab"), "choices"),
    "choices empty": (lambda: Choice([]), "choices"),
    "choices of numbers": (lambda: Choice([1, 2]), "choices"),
    "choices label": (lambda: Choice(["a"], label=b"a"), "label"),
    "grammar None": (lambda: Grammar(None), "text"),
    "grammar bytes": (lambda: Grammar(b'start: "a"'), "text"),
    "grammar path": (lambda: Grammar(Path("grammar.lark")), "text"),
    "grammar start": (lambda: Grammar('start: "a"', start=None), "start"),
    "schema None": (lambda: JsonSchema(None), "schema"),
    "schema list": (lambda: JsonSchema([]), "schema"),
    "schema number": (lambda: JsonSchema(5), "schema"),
    "schema bytes": (lambda: JsonSchema(b"{}"), "schema"),
    "schema of sets": (lambda: JsonSchema({"enum": {1, 2}}), "schema"),
    "schema of objects": (lambda: JsonSchema({"default": object()}), "schema"),
    "schema not a number": (lambda: JsonSchema({"minimum": float("nan")}), "schema"),
    "schema endless": (lambda: JsonSchema({"enum": Recursive()}), "schema"),
    "schema no JSON": (lambda: JsonSchema("{"), "schema"),
    "order None": (lambda: JsonSchema({}, order=None), "order"),
    "order unknown": (lambda: JsonSchema({}, order="alphabet"), "order"),
    "whitespace bool": (lambda: JsonSchema({}, whitespace=True), "whitespace"),
    "whitespace_pattern None": (lambda: JsonSchema({}, whitespace_pattern=None), "whitespace_pattern"),
    "item_separator None": (lambda: JsonSchema({}, item_separator=None), "item_separator"),
    "key_separator": (lambda: JsonSchema({}, key_separator="="), "key_separator"),
    "escapes list": (lambda: JsonSchema({}, escapes=["all"]), "escapes"),
    "max_nesting str": (lambda: JsonSchema({}, max_nesting="3"), "max_nesting"),
    "max_nesting float": (lambda: JsonSchema({}, max_nesting=2.5), "max_nesting"),
    "max_nesting bool": (lambda: JsonSchema({}, max_nesting=True), "max_nesting"),
    "max_nesting range": (lambda: JsonSchema({}, max_nesting=-1), "max_nesting"),
    "lenient str": (lambda: JsonSchema({}, lenient="yes"), "lenient"),
    # start
    "context text": (lambda: compiled().start(context="text"), "context"),
    "context number": (lambda: compiled().start(context=5), "context"),
    "context texts": (lambda: compiled().start(context=["a"]), "context"),
    "context floats": (lambda: compiled().start(context=np.ones(2)), "context"),
    "context bools": (lambda: compiled().start(context=[True]), "context"),
    "context range": (lambda: compiled().start(context=[10**6]), "context"),
    "context negative": (lambda: compiled().start(context=np.array([-1])), "context"),
    # masks
    "out list": (lambda: matcher().fill_mask([0] * 1000), "out"),
    "out None": (lambda: matcher().fill_mask(None), "out"),
    "out bytes": (lambda: matcher().fill_mask(bytearray(4 * len(mask()))), "out"),
    "out dtype": (lambda: matcher().fill_mask(mask().astype(np.int64)), "out"),
    "out unsigned": (lambda: matcher().fill_mask(mask().view(np.uint32)), "out"),
    "out short": (lambda: matcher().fill_mask(mask()[:-1]), "out"),
    "out long": (lambda: matcher().fill_mask(tokdfa.allocate_mask(SIZE + 32)), "out"),
    "out batch": (lambda: matcher().fill_mask(tokdfa.allocate_mask(SIZE, 1)), "out"),
    "out read-only": (lambda: matcher().fill_mask(mask(writeable=False)), "out"),
    "out scattered": (lambda: matcher().fill_mask(np.zeros(2 * len(mask()), np.int32)[::2]), "out"),
    "out unaligned": (lambda: matcher().fill_mask(unaligned()), "out"),
    "out class": (lambda: matcher().fill_mask(np.ndarray), "out"),
    "fill_masks out": (lambda: fill_masks([matcher()], mask()), "out"),
    "fill_masks list": (lambda: fill_masks([matcher()], [[0]]), "out"),
    "fill_masks matchers": (lambda: fill_masks([compiled()], tokdfa.allocate_mask(SIZE, 1)), "matchers"),
    "fill_masks matcher": (lambda: fill_masks(matcher(), tokdfa.allocate_mask(SIZE, 1)), "matchers"),
    "fill_masks sizes": (
        lambda: fill_masks(
            [matcher(), tokdfa.compile(Regex("a"), Vocabulary([b"a"] + [b""] * 900, [1])).start()],
            tokdfa.allocate_mask(SIZE, 2),
        ),
        "matchers",
    ),
    "fill_masks threads": (lambda: fill_masks([matcher()], tokdfa.allocate_mask(SIZE, 1), threads=0), "threads"),
    "size negative": (lambda: tokdfa.allocate_mask(-1), "size"),
    "size float": (lambda: tokdfa.allocate_mask(100.0), "size"),
    "size None": (lambda: tokdfa.allocate_mask(None), "size"),
    "size vocabulary": (lambda: tokdfa.allocate_mask(VOCAB), "size"),
    "size huge": (lambda: tokdfa.allocate_mask(10**30), "size"),
    "batch negative": (lambda: tokdfa.allocate_mask(8, batch=-1), "batch"),
    "batch huge": (lambda: tokdfa.allocate_mask(1 << 40, batch=1 << 40), "batch"),
    "ids of floats": (lambda: tokdfa.mask_to_ids(np.ones(5)), "mask"),
    "ids of list": (lambda: tokdfa.mask_to_ids([1, 2]), "mask"),
    "ids of batch": (lambda: tokdfa.mask_to_ids(tokdfa.allocate_mask(8, 2)), "mask"),
    "ids of None": (lambda: tokdfa.mask_to_ids(None), "mask"),
    "bool size large": (lambda: tokdfa.mask_to_bool(mask(), 10**6), "size"),
    "bool size negative": (lambda: tokdfa.mask_to_bool(mask(), -1), "size"),
    "bool size str": (lambda: tokdfa.mask_to_bool(mask(), "8"), "size"),
    "bool of bools": (lambda: tokdfa.mask_to_bool(np.ones(8, bool)), "mask"),
    "from ids range": (lambda: masks.mask_from_ids([9], 8), "ids"),
    "from ids negative": (lambda: masks.mask_from_ids([-1], 8), "ids"),
    "from ids floats": (lambda: masks.mask_from_ids([1.5], 8), "ids"),
    "from ids text": (lambda: masks.mask_from_ids("1", 8), "ids"),
    "from ids huge": (lambda: masks.mask_from_ids([1 << 70], 8), "ids"),
    "from bool list": (lambda: masks.mask_from_bool([True]), "allowed"),
    "from bool ints": (lambda: masks.mask_from_bool(np.ones(3, np.int32)), "allowed"),
    "set outside": (lambda: masks.set_token(mask(), 10**6), "token"),
    "clear negative": (lambda: masks.clear_token(mask(), -1), "token"),
    "contains text": (lambda: masks.contains(mask(), "1"), "token"),
    "logits ints": (lambda: masks.apply_to_logits(mask(), np.zeros(SIZE, int)), "logits"),
    "logits longer": (lambda: masks.apply_to_logits(mask(), np.zeros(10**5)), "size"),
    # matchers
    "rollback negative": (lambda: matcher().rollback(-1), "count"),
    "rollback text": (lambda: matcher().rollback("1"), "count"),
    "rollback bool": (lambda: matcher().rollback(True), "count"),
    "rollback float": (lambda: matcher().rollback(1.0), "count"),
    "rollback too many": (lambda: matcher().rollback(1), "count"),
    "forced_tokens limit": (lambda: matcher().forced_tokens("3"), "limit"),
    "forced_bytes limit": (lambda: matcher().forced_bytes(-1), "limit"),
    "allows text": (lambda: matcher().allows("2"), "token"),
    "allows None": (lambda: matcher().allows(None), "token"),
    # files
    "save nowhere": (lambda: compiled().save("/no/such/folder/x"), "folder"),
    "save tokens_dfa nowhere": (lambda: compiled("tokens_dfa").save("/no/such/folder/x"), "folder"),
    "save None": (lambda: compiled().save(None), "path"),
    "save NUL": (lambda: compiled().save("a\0b"), "path"),
    "load None": (lambda: CompiledPushdown.load(None, VOCAB), "path"),
    "load number": (lambda: CompiledPushdown.load(0, VOCAB), "path"),
    "load vocabulary": (lambda: CompiledTokensDfa.load("/", None), "vocab"),
    "load form vocabulary": (lambda: CompiledPushdown.load("/", "bytes"), "vocab"),
    "load folder": (lambda: CompiledTokensDfa.load("/", VOCAB), "/"),
    "load nothing": (lambda: CompiledTokensDfa.load("/no/such/file", VOCAB), "/no/such/file"),
    # tokenizers and vocabularies
    "tokenizer None": (lambda: tokdfa.load_tokenizer(None), "name"),
    "tokenizer unknown": (lambda: tokdfa.load_tokenizer("lama3"), "llama3"),
    "tokenizer size": (lambda: tokdfa.load_tokenizer("bytes", size="9"), "size"),
    "tokenizer size bool": (lambda: tokdfa.load_tokenizer("bytes", size=True), "size"),
    "encode None": (lambda: TOKENIZER.encode(None), "text"),
    "encode bytes": (lambda: TOKENIZER.encode(b"a"), "text"),
    "decode text": (lambda: TOKENIZER.decode("abc"), "tokens"),
    "decode number": (lambda: TOKENIZER.decode(5), "tokens"),
    "decode floats": (lambda: TOKENIZER.decode([1.5]), "tokens"),
    "decode range": (lambda: TOKENIZER.decode([10**9]), "tokens"),
    "spell text": (lambda: VOCAB.spell("ab"), "tokens"),
    "token_bytes text": (lambda: VOCAB.token_bytes("a"), "token"),
    "token_bytes bool": (lambda: VOCAB.token_bytes(True), "token"),
    "token_bytes range": (lambda: VOCAB.token_bytes(-1), "token"),
    "tokens text": (lambda: Vocabulary("abc", [0]), "tokens"),
    "tokens dict": (lambda: Vocabulary({b"a": 0}, [0]), "tokens"),
    "tokens None": (lambda: Vocabulary(None, [0]), "tokens"),
    "tokens of texts": (lambda: Vocabulary(["a", ""], [1]), "bytes"),
    "end_tokens number": (lambda: Vocabulary([b"a", b""], 1), "end_tokens"),
    "end_tokens text": (lambda: Vocabulary([b"a", b""], ["</s>"]), "end_tokens"),
    "end_tokens none": (lambda: Vocabulary([b"a", b""], []), "end_tokens"),
    "special_tokens list": (lambda: Vocabulary([b"a", b""], [1], [1]), "special_tokens"),
    "vocabulary size": (lambda: Vocabulary([b"a", b""], [1], None, "5"), "size"),
    "vocabulary name": (lambda: Vocabulary([b"a", b""], [1], name=None), "name"),
    "from_dict list": (lambda: Vocabulary.from_dict(["a"], 0), "tokens"),
    "from_dict end": (lambda: Vocabulary.from_dict({"a": 0}, "1"), "end_tokens"),
    # guides
    "index number": (lambda: Index(5, VOCAB), "pattern"),
    "index vocabulary": (lambda: Index("a", None), "Vocabulary"),
    "index backend": (lambda: Index("a", VOCAB, backend=None), "backend"),
    "guide": (lambda: Guide("a"), "Index"),
    "guide advance": (lambda: Guide(Index("a", VOCAB)).advance("a"), "token"),
    # decoding
    "model None": (lambda: generate(None, compiled()), "model"),
    "compiled matcher": (lambda: generate(MODEL, matcher()), "compiled"),
    "compiled constraint": (lambda: generate(MODEL, Regex("a")), "compiled"),
    "generate context": (lambda: generate(MODEL, compiled(), "prompt"), "context"),
    "generate sampler": (lambda: generate(MODEL, compiled(), sampler="greedy"), "sampler"),
    "generate max_tokens": (lambda: generate(MODEL, compiled(), max_tokens=0), "max_tokens"),
    "contexts": (lambda: generate_batch(MODEL, compiled(), 3), "contexts"),
    "temperature text": (lambda: Sampler(temperature="1"), "temperature"),
    "temperature zero": (lambda: Sampler(temperature=0), "temperature"),
    "top_p None": (lambda: Sampler(top_p=None), "top_p"),
    "greedy": (lambda: Sampler(greedy="yes"), "greedy"),
    "seed": (lambda: Sampler(seed=None), "seed"),
    "choose": (lambda: Sampler().choose(np.zeros(SIZE), [1]), "mask"),
    "samples": (lambda: draw_by_rejection(MODEL, compiled(), samples=0, max_drafts=1), "samples"),
    "eos": (lambda: draw_by_rejection(MODEL, compiled(), samples=1, max_drafts=1, eos=None), "eos"),
    "threshold": (lambda: draw_by_smc(MODEL, compiled(), particles=1, threshold="a"), "threshold"),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls_are_named(call: str) -> None:
    do, named = WRONG[call]
    with pytest.raises(TokdfaError) as caught:
        do()
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
    logits = np.zeros(SIZE)
    masks.apply_to_logits(kind(array), kind(logits))
    assert np.isinf(logits).sum() == SIZE - masks.count(wanted)
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


def test_no_kernel_is_compiled_for_other_integers() -> None:
    from tokdfa.backends.pushdown_trie import matcher as pushdown_matcher

    kernels = [
        value for module in (pushdown_matcher, masks) for value in vars(module).values() if hasattr(value, "signatures")
    ]
    assert kernels
    asked = matcher()
    asked.advance(ord("1"))
    asked.allows(ord("2"))
    asked.fill_mask(mask())
    before = [len(one.signatures) for one in kernels]
    for kind in INTEGERS:
        for digit in b"0123456789":
            again = matcher()
            assert again.allows(kind(digit))  # type: ignore[operator]
            again.advance(kind(digit))  # type: ignore[operator]
            again.fill_mask(mask())
            again.fill_mask(mask().view(np.recarray))
            again.fill_mask(Tensor(mask()))  # type: ignore[arg-type]
    assert [len(one.signatures) for one in kernels] == before


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

"""The first calls of a new user: every public function with the wrong kind of thing, shape, or order of arguments.

Each raises an error of ours that names the remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic
import pytest

import tokdfa
from tests.packages import needs, needs_torch
from tokdfa.errors import TokdfaError
from tokdfa.models.table import TableModel

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENIZER = tokdfa.load_tokenizer("bytes")
VOCAB = TOKENIZER.vocabulary
SIZE = VOCAB.size
MODEL = TableModel(VOCAB, lambda prefix: np.full(SIZE, 1 / SIZE))
REGEX = tokdfa.Regex("[0-9]+")
CONSTRAINED = tokdfa.constrain(REGEX, TOKENIZER)
TOOLS = [{"name": "f"}]


class Animal(pydantic.BaseModel):
    legs: int


def matcher() -> Any:
    return CONSTRAINED.start()


def masks(rows: int | None = None) -> Any:
    return tokdfa.allocate_mask(SIZE) if rows is None else tokdfa.allocate_mask(SIZE, rows)


def batch() -> tokdfa.BatchMatcher:
    return tokdfa.BatchMatcher(TOKENIZER, 2)


CONSTRAINTS = "tokdfa.Regex(pattern)"
PARTS = "json(schema) or regex(pattern)"
TOKENIZERS = "pass a tokenizer of transformers"
#: What the message says to do, and the call.
CALLS: list[tuple[str, Callable[[], Any]]] = [
    # what a model is constrained to
    ("pass a pydantic class", lambda: tokdfa.constrain(TOKENIZER, "[0-9]+")),
    ("pass a pydantic class", lambda: tokdfa.constrain(None, TOKENIZER)),
    ("pass its class", lambda: tokdfa.constrain(Animal(legs=8), TOKENIZER)),
    ("pass the model's tokenizer", lambda: tokdfa.constrain(Animal)),
    (TOKENIZERS, lambda: tokdfa.constrain(Animal, 5)),
    ("Vocabulary.from_dict", lambda: tokdfa.constrain(Animal, {"a": 1})),
    ("is passed as tokenizer", lambda: tokdfa.constrain(Animal, TOKENIZER, MODEL)),
    (CONSTRAINTS, lambda: tokdfa.compile("[0-9]+", TOKENIZER)),  # type: ignore[arg-type]
    ("tokdfa.constrain takes types", lambda: tokdfa.compile(Animal, TOKENIZER)),  # type: ignore[arg-type]
    (CONSTRAINTS, lambda: tokdfa.compile(TOKENIZER, REGEX)),  # type: ignore[arg-type]
    (TOKENIZERS, lambda: tokdfa.compile(REGEX, 5)),  # type: ignore[arg-type]
    ("did you mean 'token_index'", lambda: tokdfa.compile(REGEX, TOKENIZER, "tokenindex")),
    ("backend takes a str", lambda: tokdfa.compile(REGEX, TOKENIZER, tokdfa.backends)),  # type: ignore[arg-type]
    ("pattern takes a str", lambda: tokdfa.Regex(b"a")),  # type: ignore[arg-type]
    ("choices takes a sequence of texts", lambda: tokdfa.Choice("yes")),
    ("a choice is a str", lambda: tokdfa.Choice([1, 2])),  # type: ignore[list-item]
    ("for a class take tokdfa.constrain", lambda: tokdfa.JsonSchema(Animal)),  # type: ignore[arg-type]
    ("Grammar(path.read_text())", lambda: tokdfa.Grammar(Path("a.lark"))),  # type: ignore[arg-type]
    # tokenizers, models, vocabularies
    (TOKENIZERS, lambda: tokdfa.load_tokenizer(None)),
    ("did you mean 'llama3'", lambda: tokdfa.load_tokenizer("lama3")),
    ("take a model of transformers as it is", lambda: tokdfa.load_model(None)),  # type: ignore[arg-type]
    ("known: hf:", lambda: tokdfa.load_model("gpt2")),
    ("pass end_tokens=[id]", lambda: tokdfa.Vocabulary([b"a"], [])),
    # masks
    ("size takes a whole number", lambda: tokdfa.allocate_mask(VOCAB)),  # type: ignore[call-overload]
    ("mask is a numpy array or a torch tensor", lambda: tokdfa.mask_to_ids([1, 2])),  # type: ignore[arg-type]
    ("an int32 array of one dimension", lambda: tokdfa.mask_to_bool(np.zeros(3))),  # type: ignore[arg-type]
    ("use allocate_mask(257)", lambda: matcher().fill_mask([0] * 9)),
    ("takes a sequence of matchers", lambda: tokdfa.fill_masks(matcher(), masks())),
    ("`CompiledConstraint.start` makes", lambda: tokdfa.fill_masks([CONSTRAINED], masks(1))),  # type: ignore[list-item]
    ("compiled.start() gives", lambda: tokdfa.fill_tree(CONSTRAINED, [1], [-1], masks(1))),  # type: ignore[arg-type]
    ("compiled.start() gives", lambda: tokdfa.fill_tree([1], [-1], matcher(), masks(1))),  # type: ignore[arg-type]
    ("use allocate_mask(257, 1)", lambda: tokdfa.fill_tree(matcher(), [1], [-1], masks())),
    ("takes a sequence of token ids", lambda: CONSTRAINED.start("abc")),  # type: ignore[arg-type]
    ("takes a whole number", lambda: matcher().advance("1")),
    # prompts, thoughts, tools
    ("tokdfa.compile or constrain returns", lambda: tokdfa.heal([1], CONSTRAINED)),  # type: ignore[arg-type]
    ("tokdfa.compile or constrain returns", lambda: tokdfa.heal(REGEX, [1])),
    ("takes a sequence of token ids", lambda: tokdfa.heal(CONSTRAINED, 5)),  # type: ignore[arg-type]
    (PARTS, lambda: tokdfa.think_first(Animal, TOKENIZER, 50)),  # type: ignore[arg-type]
    (PARTS, lambda: tokdfa.think_first(REGEX, TOKENIZER, 50)),  # type: ignore[arg-type]
    (TOKENIZERS, lambda: tokdfa.think_first("a", 50, TOKENIZER)),  # type: ignore[arg-type]
    ("format takes a str", lambda: tokdfa.tools(TOOLS, "hermes", TOKENIZER)),  # type: ignore[arg-type]
    ("did you mean 'hermes'", lambda: tokdfa.tools("hermess", TOOLS, TOKENIZER)),
    ("a tool is {'name': ...", lambda: tokdfa.tools("hermes", [print], TOKENIZER)),  # type: ignore[list-item]
    (TOKENIZERS, lambda: tokdfa.tools("hermes", TOOLS, 5)),  # type: ignore[arg-type]
    # batches and servers
    (TOKENIZERS, lambda: tokdfa.BatchMatcher(4, TOKENIZER)),  # type: ignore[arg-type]
    ("`CompiledConstraint.start` gives", lambda: batch().put(0, CONSTRAINED)),  # type: ignore[arg-type]
    ("row takes a whole number", lambda: batch().put(matcher(), 0)),  # type: ignore[arg-type]
    ("row must be at least 0 and at most 1", lambda: batch().put(2, matcher())),
    ("takes a sequence of token ids", lambda: batch().advance(5)),  # type: ignore[arg-type]
    ("use allocate_mask(257, 2)", lambda: batch().fill(masks())),
    ("max_count takes a whole number", lambda: tokdfa.ConstraintCache("256")),  # type: ignore[arg-type]
    (CONSTRAINTS, lambda: tokdfa.ConstraintCache().compile("a", TOKENIZER)),  # type: ignore[arg-type]
    (CONSTRAINTS, lambda: tokdfa.compile_async(TOKENIZER, REGEX)),  # type: ignore[arg-type]
    ("tokdfa.ConstraintCache", lambda: tokdfa.compile_async(REGEX, TOKENIZER, cache={})),  # type: ignore[arg-type]
    # answers
    ("tokdfa.load_model loads", lambda: tokdfa.generate(TOKENIZER, MODEL, "x", Animal)),
    ("generate(model, tokenizer, prompt, what)", lambda: tokdfa.generate(MODEL, TOKENIZER, "x")),
    ("pass a pydantic class", lambda: tokdfa.generate(MODEL, Animal, "x", TOKENIZER)),
    ("tokdfa.load_model loads", lambda: tokdfa.generate("gpt2", TOKENIZER, "x", Animal)),
    ("parse each row", lambda: CONSTRAINED.parse([[1, 2]])),
    ("raise max_new_tokens", lambda: CONSTRAINED.parse("")),
    ("show takes a mask and its vocabulary", lambda: tokdfa.show(5)),  # type: ignore[call-overload]
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_first_calls_name_the_remedy(number: int) -> None:
    remedy, call = CALLS[number]
    with pytest.raises(TokdfaError) as caught:
        call()
    assert remedy in str(caught.value)


def test_there_are_enough_and_every_public_function_has_one() -> None:
    assert len(CALLS) >= 40
    named = {name for _, call in CALLS for name in call.__code__.co_names} | {
        "apply_masks",
        "ConstraintLogitsProcessor",
    }
    named |= {name for helper in (matcher, batch, masks) for name in helper.__code__.co_names}
    kinds = {"Constrained", "Constraint", "TokdfaError", "TokenRefused", "Tokenizer"}  # never called by users
    assert set(tokdfa.__all__) - kinds - named - {"backends"} == set()


@needs_torch
def test_first_calls_with_torch() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.zeros(3, SIZE)
    for remedy, call in (
        ("logits is a floating tensor", lambda: tokdfa.apply_masks(np.zeros((1, SIZE)), masks(1))),
        ("logits is a floating tensor", lambda: tokdfa.apply_masks(torch.from_numpy(masks(1)), logits)),
        ("give a mask for each row", lambda: tokdfa.apply_masks(logits, masks(2))),
        ("tokdfa.constrain(what, tokenizer, model)", lambda: tokdfa.ConstraintLogitsProcessor(REGEX)),
        ("takes a sequence of contexts", lambda: CONSTRAINED.logits_processor(contexts="abc")),
        ("max_tokens takes a whole number", lambda: CONSTRAINED.logits_processor(max_tokens="5")),
        ("answered takes a whole number", lambda: CONSTRAINED.logits_processor(answered=2.5)),
    ):
        with pytest.raises(TokdfaError) as caught:
            call()
        assert remedy in str(caught.value)


@needs("pyarrow", "pandas")
def test_first_calls_of_the_lab(tmp_path: Path) -> None:
    from tokdfa import lab

    for remedy, call in (
        ("open_run gives", lambda: lab.compare(3, 4)),
        ("is not a run folder", lambda: lab.open_run(tmp_path)),
        ("no such file", lambda: lab.run_experiment(tmp_path / "nowhere.yaml")),
    ):
        with pytest.raises(TokdfaError) as caught:
            call()  # type: ignore[no-untyped-call]
        assert remedy in str(caught.value)


def test_dir_shows_public_names_only() -> None:
    assert dir(tokdfa) == sorted([*tokdfa.__all__, "__version__"])

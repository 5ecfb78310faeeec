"""The front door with tokenizers and models of transformers: what generate() writes is what was asked for."""

from __future__ import annotations

import gc
import re
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import pytest

import tokdfa
from tests.packages import needs_smollm2, needs_torch
from tests.vocabulary.tokenizer_files import gpt2_like
from tokdfa.errors import ArgumentError, ModelError, VocabularyError
from tokdfa.vocabulary.loading import package_file

torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
# Test workers share the cores; threads that wait for each other make small networks ten times slower.
torch.set_num_threads(1)
pytestmark = needs_torch

END = "<|endoftext|>"


class Animal(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(pattern="^[a-z]{3,8}$")]
    legs: Literal["six", "eight"]
    kind: Literal["insect", "spider"] = "spider"


class Spider(pydantic.BaseModel):
    name: str
    legs: Annotated[int, pydantic.Field(ge=0, le=8)]


def network_of(size: int, **settings: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.4, bos_token_id=None, **{"eos_token_id": 0, **settings},
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def fast(*special: str, **names: str) -> Any:
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=gpt2_like(END, *special), eos_token=END, pad_token=END, padding_side="left", **names
    )
    return made


def answers(network: Any, tokenizer: Any, constrained: Any, prompts: list[str], **ways: Any) -> list[str]:
    """What generate() writes with one new logits processor."""
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    output = network.generate(
        **inputs, logits_processor=[constrained.logits_processor()], max_new_tokens=80, pad_token_id=0, **ways
    )
    return tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


@pytest.mark.parametrize("padding", [0, 12], ids=["as wide as the tokenizer", "wider"])
@pytest.mark.parametrize("with_model", [True, False])
def test_a_tokenizer_made_on_the_spot(padding: int, with_model: bool) -> None:
    tokenizer = fast()
    network = network_of(len(tokenizer) + padding)
    constrained = tokdfa.constrain(Animal, tokenizer, network if with_model else None)
    assert constrained.vocabulary.size == len(tokenizer) + (padding if with_model else 0)
    torch.manual_seed(0)
    for way in ({"do_sample": False}, {"do_sample": True}, {"do_sample": False, "num_beams": 2}):
        for text in answers(network, tokenizer, constrained, ["a bee:", "and a spider"], **way):
            assert isinstance(constrained.parse(text), Animal)


def test_a_slow_tokenizer_with_a_sentencepiece_model() -> None:
    page: Any = pytest.importorskip("transformers.tokenization_utils_sentencepiece")
    source = str(package_file("mistral_common", "data/tokenizer.model.v1", "a test"))
    slow = page.SentencePieceBackend(
        vocab_file=source, eos_token="</s>", unk_token="<unk>", pad_token="</s>", padding_side="left"
    )
    network = network_of(32_000, eos_token_id=2)
    constrained = tokdfa.constrain(["red", "green", "blue and white"], slow, network)
    inputs = slow(["The flag is", "Or is it"], return_tensors="pt", padding=True, return_token_type_ids=False)
    processor = constrained.logits_processor()
    output = network.generate(**inputs, logits_processor=[processor], max_new_tokens=20, pad_token_id=2)
    for row in output[:, inputs["input_ids"].shape[1] :].tolist():
        assert constrained.parse(slow.sp_model.decode(row)) in ("red", "green", "blue and white")


def test_the_ends_of_the_model_are_the_only_ones() -> None:
    tokenizer = fast("<|im_end|>", "<|stop|>")
    network = network_of(len(tokenizer), eos_token_id=[1, 2])
    network.generation_config.eos_token_id = [2]
    assert tokdfa.constrain("ab", tokenizer).vocabulary.end_tokens == (0,)
    assert tokdfa.constrain("ab", tokenizer, network).vocabulary.end_tokens == (2,)
    assert tokdfa.constrain("ab", tokenizer, network, end_tokens=[1]).vocabulary.end_tokens == (1,)
    assert tokdfa.constrain("ab", tokenizer, end_tokens="<|im_end|>").vocabulary.end_tokens == (1,)
    network.generation_config.eos_token_id = None
    assert tokdfa.constrain("ab", tokenizer, network).vocabulary.end_tokens == (1, 2)


def test_a_named_tokenizer_has_more_ends_than_the_model() -> None:
    both = tokdfa.Vocabulary([*(bytes([byte]) for byte in range(256)), b"", b""], [256, 257])
    constrained = tokdfa.constrain("x", both, network_of(258, eos_token_id=257))
    assert constrained.end_tokens == (257,)
    made = constrained.logits_processor()
    made(torch.tensor([[1]]), torch.zeros((1, 258)))
    masked = made(torch.tensor([[1, ord("x")]]), torch.zeros((1, 258)))
    assert np.flatnonzero(masked[0].numpy() == 0).tolist() == [257]


def test_a_model_that_knows_where_it_came_from(tmp_path: Any) -> None:
    tokenizer = fast()
    tokenizer.save_pretrained(tmp_path)
    network_of(len(tokenizer) + 3).save_pretrained(tmp_path)
    network = transformers.AutoModelForCausalLM.from_pretrained(str(tmp_path))
    constrained = tokdfa.constrain(["yes", "no"], network)
    assert constrained.vocabulary.size == len(tokenizer) + 3
    (text,) = answers(network, tokenizer, constrained, ["well"], do_sample=False)
    assert constrained.parse(text) in ("yes", "no")
    with pytest.raises(ArgumentError, match="does not say where its tokenizer is"):
        tokdfa.constrain("a", network_of(300))
    network.config._name_or_path = network.name_or_path = "somebody/some-model"
    with pytest.raises(ModelError, match=r"hf download somebody/some-model.*constrain\(what, tokenizer, model\)"):
        tokdfa.constrain("a", network)


def test_what_does_not_fit() -> None:
    tokenizer = fast()
    with pytest.raises(VocabularyError, match="do not fit a logit width of 300"):
        tokdfa.constrain("a", tokenizer, network_of(300))
    network = network_of(len(tokenizer) + 100)
    with pytest.raises(ModelError, match="600 logits and the vocabulary 500 tokens"):
        answers(network, tokenizer, tokdfa.constrain("a", tokenizer), ["x"])
    with pytest.raises(ArgumentError, match="model is a model of transformers, not a Tokenizer"):
        tokdfa.constrain("a", tokenizer, tokdfa.load_tokenizer("bytes"))


def test_many_processors_of_one_constraint_leave_nothing_behind() -> None:
    tokenizer = fast()
    network = network_of(len(tokenizer))
    constrained = tokdfa.constrain("[a-z]{3}", tokenizer, network)
    made = [constrained.logits_processor() for _ in range(3)]
    for processor in made:
        output = network.generate(torch.tensor([[5]]), logits_processor=[processor], max_new_tokens=9)
        assert re.fullmatch("[a-z]{3}", tokenizer.decode(output[0, 1:], skip_special_tokens=True))
    del made, processor
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one).__name__ == "ConstraintLogitsProcessor"]


@needs_smollm2
def test_smollm2_writes_what_a_class_says() -> None:
    """As a user has them: the network, and a tokenizer object of transformers."""
    import tokenizers

    model = tokdfa.load_model("smollm2")
    network: Any = model.network  # type: ignore[attr-defined]
    content = tokdfa.load_tokenizer("smollm2")._loaded.identity.decode()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(content), eos_token="<|im_end|>", pad_token="<|im_end|>",
        padding_side="left",
    )  # fmt: skip
    constrained = tokdfa.constrain(Spider, tokenizer, network)
    assert constrained.vocabulary.end_tokens == (2,)
    for text in answers(network, tokenizer, constrained, ["A spider as JSON:\n", "A bee:\n"], do_sample=False):
        assert isinstance(constrained.parse(text), Spider)
    named = tokdfa.constrain(Animal, "smollm2", network)
    (text,) = answers(network, tokenizer, named, ["A spider as JSON:\n"], do_sample=False)
    assert isinstance(named.parse(text), Animal)
    written = tokdfa.generate(model, tokdfa.constrain(Animal, model), "A spider as JSON:\n", max_tokens=80)
    assert isinstance(named.parse(written.text), Animal)


def test_one_call_gives_a_value() -> None:
    """The network is asked token by token; what comes out is what generate() of transformers writes."""
    tokenizer = fast()
    network = network_of(len(tokenizer))
    animal = tokdfa.generate(network, tokenizer, "an animal: ", Animal, 80)
    assert isinstance(animal, Animal)
    (text,) = answers(
        network, tokenizer, tokdfa.constrain(Animal, tokenizer, network), ["an animal: "], do_sample=False
    )
    assert animal == Animal.model_validate_json(text)


def test_one_constraint_for_each_row_and_a_pipeline() -> None:
    tokenizer = fast()
    network = network_of(len(tokenizer))
    asked: list[Any] = [Animal, ["yes", "no"], "[0-9]{3}"]
    made = [tokdfa.constrain(what, tokenizer, network) for what in asked]
    inputs = tokenizer(["a", "bb", "ccc"], return_tensors="pt", padding=True, return_token_type_ids=False)
    output = network.generate(
        **inputs, logits_processor=[tokdfa.ConstraintLogitsProcessor(made)], max_new_tokens=80, pad_token_id=0
    )
    values = [one.parse(row[inputs["input_ids"].shape[1] :]) for one, row in zip(made, output, strict=True)]
    assert isinstance(values[0], Animal)
    assert values[1] in ("yes", "no")
    assert re.fullmatch("[0-9]{3}", values[2])
    pipe = transformers.pipeline("text-generation", model=network, tokenizer=tokenizer)
    found = pipe(
        ["say: ", "tell me", "say: "], logits_processor=[made[1].logits_processor()], max_new_tokens=9,
        return_full_text=False,
    )  # fmt: skip
    assert all(one[0]["generated_text"] in ("yes", "no") for one in found)

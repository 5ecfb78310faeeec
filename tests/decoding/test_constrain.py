"""The front door: constraints as people write them, and what becomes of their options and answers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pydantic
import pytest

import tokdfa
from tests.vocabulary.tokenizer_files import gpt2_like
from tokdfa.backends.registry import DEFAULT_BACKENDS, backend_class, backend_names
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.decoding.given_constraint import options_of
from tokdfa.decoding.loop import generate_batch
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import ArgumentError, ParseError, TokdfaError, UnsupportedConstraint
from tokdfa.models.table import TableModel

if TYPE_CHECKING:
    from pathlib import Path

END = "<|endoftext|>"
BYTES = tokdfa.load_tokenizer("bytes")


class Animal(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(pattern="^[a-z]{3,8}$")]
    legs: Literal["six", "eight"]
    kind: Literal["insect", "spider"] = "spider"


class Zoo(pydantic.BaseModel):
    model_config = {"extra": "allow"}
    animals: list[Animal]
    boxes: dict[str, int] = {"properties": 1}


ANIMAL = '{"name": "bee", "legs": "six"}'


@pytest.mark.parametrize(
    ("what", "kind", "text", "value"),
    [
        (Animal, "json_schema", ANIMAL, Animal(name="bee", legs="six")),
        (pydantic.TypeAdapter(list[Animal]), "json_schema", f"[{ANIMAL}]", [Animal(name="bee", legs="six")]),
        (Animal.model_json_schema(), "json_schema", ANIMAL, {"name": "bee", "legs": "six"}),
        (json.dumps(Animal.model_json_schema()), "json_schema", ANIMAL, {"name": "bee", "legs": "six"}),
        (JsonSchema({"type": "integer"}), "json_schema", "12", 12),
        ("[0-9]{2}", "regex", "12", "12"),
        (r"\{[a-z]\}", "regex", "{a}", "{a}"),
        (Regex("a|b", label="x"), "regex", "a", "a"),
        (["yes", "no"], "choice", "no", "no"),
        ({"yes", "no"}, "choice", "yes", "yes"),
        (Choice(["a", "b"]), "choice", "b", "b"),
        (Grammar('start: "(" start? ")"'), "grammar", "(())", "(())"),
    ],
)
def test_what_constraints_are_written_as(what: Any, kind: str, text: str, value: Any) -> None:
    constrained = tokdfa.constrain(what, BYTES)
    assert constrained.constraint.kind == kind
    assert constrained.compiled.backend_name == DEFAULT_BACKENDS[kind]
    assert constrained.parse(text) == constrained.parse(text.encode()) == value
    matcher = constrained.start()
    for token in BYTES.encode(text):
        matcher.advance(token)
    assert matcher.can_end()
    if text == "12":
        return
    with pytest.raises(ParseError, match="raise max_new_tokens") as caught:
        constrained.parse(text[:-1])
    assert caught.value.text == text[:-1]


def test_objects_of_pydantic_are_closed_unless_they_are_open() -> None:
    schema = tokdfa.constrain(Zoo, BYTES).constraint.schema  # type: ignore[attr-defined]
    assert schema["additionalProperties"] is True
    assert schema["$defs"]["Animal"]["additionalProperties"] is False
    assert schema["properties"]["boxes"]["default"] == {"properties": 1}
    assert schema["properties"]["boxes"]["additionalProperties"] == {"type": "integer"}
    schema = tokdfa.constrain({"properties": {}}, BYTES).constraint.schema  # type: ignore[attr-defined]
    assert schema == {"properties": {}}, "a schema means what it says"


def test_what_a_class_asks_beyond_its_schema_is_its_own_matter() -> None:
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def is_even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    constrained = tokdfa.constrain(Even, BYTES)
    assert constrained.parse('{"number": 2}') == Even(number=2)
    with pytest.raises(pydantic.ValidationError, match="odd"):
        constrained.parse('{"number": 1}')


def test_options_go_where_they_belong() -> None:
    made = tokdfa.constrain(Animal, BYTES, order="any", label="animal", step_seconds=2.5)
    assert (made.constraint.order, made.constraint.name) == ("any", "animal")  # type: ignore[attr-defined]
    assert made.compiled.made_by is not None
    assert made.compiled.made_by[1]["step_seconds"] == 2.5
    found = tokdfa.constrain("A+", BYTES, flags="i", lazy=False)
    assert found.parse("aA") == "aA"
    assert found.compiled.made_by is not None
    assert found.compiled.made_by[1]["lazy"] is False
    assert tokdfa.constrain("a+", BYTES, backend="pushdown_trie").compiled.backend_name == "pushdown_trie"


def test_no_option_belongs_to_both_a_constraint_and_a_backend() -> None:
    own = options_of({}) | options_of("a") | options_of(["a"])
    for name in backend_names():
        assert not own.intersection(option.name for option in backend_class(name).options)


def test_large_patterns_are_not_built_in_advance() -> None:
    made = tokdfa.constrain(r"(\w+ ){0,200}\w{100,4000}", BYTES)
    matcher = made.start()
    matcher.advance(ord("a"))
    assert matcher.allows(ord(" "))


def test_every_kind_has_a_backend_and_others_are_named() -> None:
    with pytest.raises(UnsupportedConstraint, match="backends that take a grammar: earley_trie, pushdown_trie"):
        tokdfa.constrain(Grammar('start: "a"'), BYTES, backend="token_index")
    assert tokdfa.compile(JsonSchema({}), BYTES).backend_name == "pushdown_trie"


def test_prompts_with_special_tokens_and_conversations(tmp_path: Path) -> None:
    made = gpt2_like("<|end|>", "<|turn|>")
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(
        "<|turn|>{% for m in messages %}{{ m.role }}: {{ m.content }}<|turn|>{% endfor %}"
    )
    tokenizer = tokdfa.load_tokenizer(tmp_path, end_tokens="<|end|>")
    size, seen = tokenizer.vocabulary.size, set()

    def row(prefix: tuple[int, ...]) -> Any:
        seen.add(prefix)
        return np.full(size, 1 / size)

    model = TableModel(tokenizer.vocabulary, row)
    turn = made.token_to_id("<|turn|>")
    plain = made.encode("user: hi", add_special_tokens=False).ids
    constrained = tokdfa.constrain("[ab]{3}", made, end_tokens="<|end|>", proper=True)
    for context in ("<|turn|>user: hi<|turn|>", [{"role": "user", "content": "hi"}], [turn, *plain, turn]):
        for start_tokens in ((), (turn,)):
            seen.clear()
            model.start_tokens = start_tokens
            given = context[1:] if isinstance(context[0], int) and start_tokens else context
            written = tokdfa.generate(model, constrained, given)
            assert min(seen, key=len) == (turn, *plain, turn), "a begin token is there once"
            assert list(written.tokens) == made.encode(tokenizer.spell(written.tokens).decode()).ids
    tools = [{"role": "user", "content": "hi"}], [{"role": "user", "content": "bye"}]
    assert len(generate_batch(model, constrained, tools)) == 2


def test_generation_with_a_model_of_ours() -> None:
    model = TableModel(BYTES.vocabulary, lambda prefix: np.full(257, 1 / 257))
    written = tokdfa.generate(model, tokdfa.constrain("[ab]{3}", model), "say: ")
    assert re.fullmatch("[ab]{3}", written.text)
    plain = tokdfa.generate(model, tokdfa.constrain("[ab]{3}", BYTES).compiled, BYTES.encode("say: "))
    assert plain.tokens == written.tokens


FLAT = TableModel(BYTES.vocabulary, lambda prefix: np.full(257, 1 / 257))


def test_one_call_gives_a_value() -> None:
    animal = tokdfa.generate(FLAT, None, "An animal: ", Animal, 60)
    assert isinstance(animal, Animal)
    assert re.fullmatch("[a-z]{3,8}", animal.name)
    assert tokdfa.generate(FLAT, BYTES, "say: ", ["yes", "no"]) in ("yes", "no")
    assert tokdfa.generate(FLAT, BYTES, BYTES.encode("say: "), int, 3) in range(-10, 1000)
    drawn = {tokdfa.generate(FLAT, BYTES, "say: ", ["yes", "no"], sampler=Sampler(seed=seed)) for seed in range(9)}
    assert drawn == {"yes", "no"}
    assert tokdfa.generate(FLAT, BYTES, "say: ye", ["yes", "no"], answered="ye") == "yes"
    assert tokdfa.generate(FLAT, BYTES, "say: ye", ["yes", "no"], answered=2) == "yes"
    assert tokdfa.generate(FLAT, BYTES, "say:", ["yes"], leading=" ") == "yes"


def test_an_answer_that_is_cut_off_is_none() -> None:
    with pytest.raises(ParseError, match="not whole after max_tokens, 3"):
        tokdfa.generate(FLAT, BYTES, "say: ", "[a]{9}", 3, always_ends=False)
    with pytest.raises(ArgumentError, match=r"3 is not enough for any text .* has 10, the end token included$"):
        tokdfa.generate(FLAT, BYTES, "say: ", "[a]{9}", 3)
    assert tokdfa.generate(FLAT, BYTES, "say: ", "[a]{9}", 10) == "a" * 9


@pytest.mark.parametrize("pattern", ["a{9}", "b|a{9}"])
def test_a_limit_that_is_too_low_is_told_of_what_follows_the_prompt(pattern: str) -> None:
    with pytest.raises(ArgumentError, match=r"3 is not enough .* has 8, the end token included after what is answered"):
        tokdfa.generate(FLAT, BYTES, "say: aa", pattern, 3, answered="aa")
    assert tokdfa.generate(FLAT, BYTES, "say: aa", pattern, 8, answered="aa") == "a" * 9
    with pytest.raises(ArgumentError, match=r"1 is not enough for any text .* has 9$"):
        tokdfa.constrain("a{9}", BYTES).start(max_tokens=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tokdfa.generate(FLAT, BYTES, "x"), "what is missing"),
        (lambda: tokdfa.generate(FLAT, None, "x"), "what is missing"),
        (lambda: tokdfa.generate(FLAT, tokdfa.constrain("a", BYTES), "x", "a"), "what is given twice"),
        (lambda: tokdfa.generate(FLAT, tokdfa.constrain("a", BYTES), "x", order="any"), "there is no option"),
        (lambda: tokdfa.generate("smollm2", None, "x", "a"), "tokdfa.load_model"),
        (lambda: tokdfa.generate(object(), tokdfa.constrain("a", BYTES), "x"), r"generate\(model, tokenizer, prompt"),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", max_new_tokens=20), "write max_tokens"),
        (lambda: tokdfa.generate(FLAT, tokdfa.constrain("a", BYTES), "x", max_new_tokens=20), "write max_tokens"),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", temperature=2), r"write sampler=.*Sampler\("),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", do_sample=True), r"write sampler=.*Sampler\("),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", answer="b"), "of generate, of this .* you mean 'answered'"),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", colour="b"), "known: always_ends, answered, .*max_tokens"),
        (lambda: tokdfa.constrain("a", BYTES, kind="regex"), "there is no option"),
        (lambda: tokdfa.constrain({}, BYTES, kind="regex"), "there is no option"),
        (lambda: tokdfa.constrain("a", BYTES, order="any"), "it is an option of JsonSchema, which"),
        (lambda: tokdfa.constrain({}, BYTES, flags="i"), "it is an option of Regex, which"),
        (lambda: tokdfa.constrain("a", BYTES, backend="nope"), "known: brute_force"),
        (lambda: tokdfa.generate(FLAT, Animal, "x"), "tokdfa.compile or tokdfa.constrain"),
        (lambda: tokdfa.generate(FLAT, BYTES, Animal, "x"), "context takes a sequence of token ids"),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", "b"), "max_tokens"),
        (lambda: tokdfa.generate(FLAT, BYTES, "x", "a", answered="b"), "the prompt does not end with 'b'"),
        (lambda: tokdfa.generate(FLAT, BYTES, "xb", "a", answered="b"), "does not begin with"),
    ],
)
def test_wrong_calls_of_generate(call: Any, said: str) -> None:
    with pytest.raises(TokdfaError, match=said):
        call()

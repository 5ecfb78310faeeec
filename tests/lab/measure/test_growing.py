"""What grows: templates and parts of vocabularies are what they claim."""

from __future__ import annotations

import json
import re

import lark
import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.measure import growing
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

SMALL = Vocabulary([b"ab", b"", b"a", b"abc", b"b", b"ab", b"bc", b"abcd"], end_tokens=[1])


def spelled(vocab: Vocabulary) -> list[bytes]:
    return [vocab.token_bytes(token) for token in range(vocab.size)]


def test_templates_are_filled() -> None:
    assert growing.fill_template("a{n}b{1,n}c{2}{n}", 7, seed=0) == "a{7}b{1,7}c{2}{7}"
    few, many = (growing.fill_template("x(<words>)y", n, seed=1) for n in (3, 5))
    assert many.startswith(few[:-2])
    assert re.fullmatch(r"x\([a-z]{4,10}(\|[a-z]{4,10}){4}\)y", many)
    with pytest.raises(OptionError, match="no template"):
        growing.fill_template("a{1,2}n", 3, seed=0)
    with pytest.raises(OptionError, match="hardly 20 distinct words of 1 letters"):
        growing.random_words(20, 0, (1, 1))


def test_members_are_those_of_json() -> None:
    few, many = (growing.fill_template(r"\{<members>\}", count, seed=1) for count in (3, 5))
    assert many.startswith(few[:-2])
    names = re.findall('"([a-z]{4,10})": ', many)
    members = dict(zip(names, [True, "red", -12, "any, text", False], strict=True))
    assert re.fullmatch(many, json.dumps(members))
    assert not re.fullmatch(many, json.dumps(members | {names[1]: "pink"}))


def test_what_has_a_number_is_copied() -> None:
    template = {"properties": {"t": {}, "a{k}": {"const": "{k}"}}, "oneOf": [{"required": ["a{k}"]}, {"type": "null"}]}
    assert growing.fill_schema(template, 2) == {
        "properties": {"t": {}, "a0": {"const": "0"}, "a1": {"const": "1"}},
        "oneOf": [{"required": ["a0"]}, {"required": ["a1"]}, {"type": "null"}],
    }
    with pytest.raises(OptionError, match="no template"):
        growing.fill_schema({"required": ["a"]}, 2)


@pytest.mark.parametrize("template", ["start: (<alternatives>)+\n", "start: <sequence>"])
@pytest.mark.parametrize("count", [2, growing.MOST])
def test_lark_reads_the_texts_of_grammars(template: str, count: int) -> None:
    grammar, text = growing.fill_grammar(template, count)
    tree = lark.Lark(grammar, parser="lalr", keep_all_tokens=True).parse(text)
    assert [token.type for token in tree.children] == [f"T{number}" for number in range(count)]


def test_samples_hold_short_tokens_and_share_them() -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    samples = {longest: growing.sample_by_length(vocab, longest, 1500, seed=2) for longest in (1, 2, 3, 8)}
    assert {longest: sample.size - 1 for longest, sample in samples.items()} == {1: 256, 2: 1500, 3: 1500, 8: 1500}
    for longest, sample in samples.items():
        assert sample.lengths.max() == longest
        assert {*spelled(sample)} <= {*spelled(vocab)}
    long, short = ({token for token in spelled(samples[longest]) if len(token) == 3} for longest in (8, 3))
    assert long < short  # the shuffled list is one: what the wider sample takes of length 3, the narrower does too


def test_a_part_of_a_vocabulary_has_a_name_and_encodes_bytes() -> None:
    first = growing.load_subset("mistral-v1?first=300")
    assert (first.vocabulary.size, first.name) == (300 + 1, "mistral-v1?first=300")
    assert first.vocabulary.spell(first.encode("né")) == "né".encode()
    assert growing.load_subset("mistral-v1?longest=2&tokens=400").vocabulary.lengths.max() == 2
    assert growing.load_subset("bytes") is load_tokenizer("bytes")

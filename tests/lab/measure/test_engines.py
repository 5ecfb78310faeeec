"""Engines of experiments on language models: settings that are refused, failures that become values."""

import pytest
from pydantic import TypeAdapter

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.measure.engines import Engine, Engines, EngineSet
from tokdfa.vocabulary.tokenizers import load_tokenizer


@pytest.mark.parametrize(
    ("engines", "error", "words"),
    [
        ([{"backend": "tokenindex"}], UnknownNameError, "token_index"),
        ([{"backend": "token_index", "options": {"lazi": True}}], UnknownNameError, "lazy"),
        ([{"backend": "token_index", "options": {"lazy": 3}}], OptionError, "lazy"),
        ([{"backend": "token_index"}, {"backend": "token_index"}], OptionError, "same label"),
    ],
)
def test_faults_are_named(engines, error, words):
    with pytest.raises(error, match=words):
        TypeAdapter(Engines).validate_python(engines)


def test_a_backend_that_cannot_compile_leaves_the_others_alone():
    engines = [Engine(backend="token_index"), Engine(backend="token_index", options={"max_states": 2}, label="small")]
    engine_set = EngineSet(engines, load_tokenizer("bytes").vocabulary)
    assert engine_set.compile("token_index", Regex("a{9}")).start().allows(97)
    assert engine_set.compile("small", Regex("a{9}")).kind == "memory"
    assert engine_set.backend("small").settings["max_states"] == 2

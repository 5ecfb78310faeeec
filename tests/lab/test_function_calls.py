"""Function calls drawn from a seed: schemas that their texts meet, of the shape that is wanted."""

import json
import re

import jsonschema

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.lab.measure.function_calls import draw_calls
from tokdfa.vocabulary.tokenizers import load_tokenizer


def test_texts_meet_their_schemas_and_seeds_decide():
    calls = draw_calls(300, 7)
    assert calls == draw_calls(300, 7) != draw_calls(300, 8)
    assert calls[:10] == draw_calls(10, 7)
    assert len({label for label, _, _ in calls}) == 300
    for _, schema, texts in calls:
        for text in texts:
            value = json.loads(text)
            jsonschema.validate(value, schema)
            assert json.dumps(value, ensure_ascii=False) == text
            assert list(value) == ["name", "arguments"]
    assert len({text for _, _, texts in calls for text in texts}) > 850
    free = [schema for _, schema, _ in calls if '{"type": "string"}' in json.dumps(schema)]
    assert len(free) > 200
    assert all(re.search("[A-Za-z]", text) for _, _, texts in calls for text in texts)


def test_their_texts_are_accepted_as_the_tokenizer_writes_them():
    tokenizer = load_tokenizer("mistral-v1")
    backend = create_backend("cartesian_merge", tokenizer.vocabulary)
    spelling = {"whitespace": "compact", "item_separator": ", ", "key_separator": ": ", "escapes": "needed"}
    for _, schema, texts in draw_calls(8, 0):
        compiled = backend.compile(JsonSchema(json.dumps(schema), max_nesting=4, **spelling))
        for text in texts:
            matcher = compiled.start()
            for token in tokenizer.encode(text):
                matcher.advance(token)
            assert matcher.can_end()

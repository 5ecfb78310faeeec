"""Function calls drawn from a seed: schemas that their texts meet, of the shape that is wanted."""

import json
import re

import jsonschema

from tokdfa.lab.measure.function_calls import draw_calls


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

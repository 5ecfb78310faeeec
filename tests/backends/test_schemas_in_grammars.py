"""%json, %regex and imports of one's own in grammars, by every engine that takes them."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from tests.backends.grammar_walks import SPECIAL, compile_with, tokenizer_of
from tests.packages import needs
from tests.walks import accepts, advance_all, mask_of, walk_along
from tokdfa.constraint import Choice, Grammar, JsonSchema
from tokdfa.errors import EmptyLanguageError, LimitExceeded, SchemaError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.grammar.tool_formats import tools
from tokdfa.program.program_file import describe_constraint, rebuild_constraint
from tokdfa.vocabulary.vocabulary import Vocabulary

ENGINES = ("pushdown_trie", "earley_trie")
COMPACT = {"whitespace": "compact", "escapes": "needed", "numbers": "natural"}
#: The characters of the texts below, some longer tokens that cross borders, and an end token.
SMALL = Vocabulary(
    [*(bytes([byte]) for byte in b'<>,[]{}":ab012'), b'<{"', b'"a":', b'"}>', b"1>", b"],", b'a"', b"12", b">", b""],
    end_tokens=[22],
)
ITEM = {"anyOf": [{"enum": ["a", "ab", 12]}, {"type": "array", "items": {"enum": [0, "b"]}, "maxItems": 2}]}
PAIR = {"type": "object", "properties": {"a": {"enum": [1, 2, "b"]}, "b": ITEM}, "required": ["a"]}
PAIR["additionalProperties"] = False


def values(schema):
    """All values of the schemas above, members in order."""
    if "enum" in schema:
        return schema["enum"]
    if "anyOf" in schema:
        return [value for option in schema["anyOf"] for value in values(option)]
    if schema["type"] == "array":
        items = values(schema["items"])
        return [list(chosen) for count in range(3) for chosen in itertools.product(items, repeat=count)]
    first, second = (values(schema["properties"][name]) for name in "ab")
    return [{"a": one} for one in first] + [{"a": one, "b": two} for one in first for two in second]


def texts(schema):
    return [json.dumps(value, separators=(",", ":")) for value in values(schema)]


def walk_with_forks(compiled, seed, steps=14):
    """Equal masks of all along one random walk; forks that are left behind, and steps taken back, know theirs again."""
    rng, matchers, left = random.Random(seed), [one.start() for one in compiled], []
    for step in range(steps):
        found = [mask_of(matcher) for matcher in matchers]
        assert all(other == found[0] for other in found[1:]), step
        left.append(([matcher.fork() for matcher in matchers], found[0]))
        tokens = [token for token in found[0] if token not in compiled[0].vocab.end_token_set]
        if not tokens:
            break
        chosen = rng.choice(tokens)
        for matcher in matchers:
            matcher.advance(chosen)
    back = rng.randint(1, len(left) - 1)
    for matcher in matchers:
        matcher.rollback(len(left) - 1 - back if len(left) <= step + 1 and not tokens else step + 1 - back)
        assert mask_of(matcher) == left[back][1]
    for forks, before in left:
        assert [mask_of(fork) for fork in forks] == [before] * len(forks)


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_are_those_of_all_texts_in_a_list(engine):
    """Of a grammar whose texts can be listed, against the brute force on the list."""
    options = {"json_options": COMPACT}
    grammar = Grammar(f'start: "<" (%json {json.dumps(PAIR)} "," ?)? %json {json.dumps(ITEM)} ">"', **options)
    listed = [
        f"<{first}{item}>" for item in texts(ITEM) for first in ("", *(t + c for t in texts(PAIR) for c in ("", ",")))
    ]
    every = [compile_with(grammar, SMALL, engine), compile_with(Choice(listed), SMALL, "brute_force")]
    for seed in range(25):
        walk_with_forks(every, seed)


@pytest.mark.parametrize("engine", ENGINES)
def test_ignored_text_stands_around_schemas_not_in_them(engine):
    vocab = tokenizer_of("bytes").vocabulary
    text = f'start: "<" call* ">"\ncall: NAME %json {json.dumps(PAIR)}\nNAME: /[a-z]+/\n%ignore "#"\n'
    start = compile_with(Grammar(text, json_options=COMPACT), vocab, engine).start
    for text in ("<>", '#<#f#{"a":1}#g{"a":2}#>#', '<f{"a":"b","b":[0,"b"]}>'):
        assert accepts(start(), text), text
    for text in ("<f>", '<f{#"a":1}>', '<f{"a":#1}>', '<f{"a":1#}>', '<f{"a":3}>', '<{"a":1}>'):
        assert not accepts(start(), text), text


@pytest.mark.parametrize("engine", ENGINES)
def test_special_tokens_around_a_schema(engine):
    grammar = Grammar("start: <|tool|> NAME ' ' %json {} <|end|>".replace("' '", '" "') + "\nNAME: /[a-z]+/\n")
    matcher = compile_with(grammar, SPECIAL, engine).start()
    assert mask_of(matcher) == [128]
    advance_all(matcher, (128, *b'run {"a": [1, 2'))
    assert 129 not in mask_of(matcher)
    advance_all(matcher, b"]}")
    assert mask_of(matcher) == [129]
    matcher.advance(129)
    assert mask_of(matcher) == [130]


LARGE = {
    "type": "object",
    "properties": {
        f"name{k}": {"type": "array", "items": {"enum": [f"value{n}" for n in range(20)]}, "uniqueItems": k % 2 == 0}
        for k in range(40)
    },
    "required": ["name3"],
}


def test_what_is_written_later_is_written_in_every_program():
    """A schema whose code is written as it is read, alone and twice in each of two grammars, all at once."""
    vocab, rng = tokenizer_of("bytes").vocabulary, random.Random(5)
    alone = compile_with(JsonSchema(LARGE, max_nesting=3), vocab)
    assert alone.program.source is not None
    text = f"start: %json {json.dumps(LARGE)} | %json {json.dumps({**LARGE, 'x-tokdfa': {'escapes': 'needed'}})}"
    twice = [compile_with(Grammar(text, json_options={"max_nesting": 3}), vocab) for _ in range(2)]
    planned = json.dumps({f"name{k}": [f"value{n}" for n in range(k % 5)] for k in (1, 3, 4, 8, 31, 39)}).encode()
    for _ in range(2):
        walk_along([one.start() for one in (alone, *twice)], vocab, planned, 120, rng, stray=0.02)


@needs("llguidance")
@pytest.mark.parametrize(
    "way",
    [
        '"substring_words": "The quick  (brown) fox"',
        '"substring_chars": "abcabd"',
        '"substring_chunks": ["ab", "c", "ab"]',
    ],
)
def test_runs_of_chunks_are_those_of_llguidance(way):
    text = f'start: "x" W "y"\nW: %regex {{{way}}}\n'
    engines = (*ENGINES, "llguidance")
    every = [compile_with(text, tokenizer_of("bytes").vocabulary, name) for name in engines]
    for seed in range(10):
        walk_along([one.start() for one in every], every[0].vocab, (), 30, random.Random(seed))


def test_tools_share_their_programs():
    """Many tools, linked as they are read: each call is taken with its own arguments, in two grammars at once."""
    vocab = tokenizer_of("bytes").vocabulary
    described = [
        {
            "name": f"tool{k}",
            "parameters": {"type": "object", "properties": {f"a{k}": {"const": k}}, "required": [f"a{k}"]},
        }
        for k in range(20)
    ]
    part = tools("llama3_function", described, vocab)
    compiled = [compile_with(Grammar(part, json_options=COMPACT), vocab) for _ in range(2)]
    for k in (3, 17, 3, 0, 19):
        for one in compiled:
            assert accepts(one.start(), f'x<function=tool{k}>{{"a{k}":{k}}}</function>y')
            assert not accepts(one.start(), f'x<function=tool{k}>{{"a{k}":{k + 1}}}</function>y')
    planned = b'<function=tool4>{"a4":4}</function><function=tool11>{"a11":11,"b":"c"}</function>'
    every = [*compiled, compile_with(Grammar(part, json_options=COMPACT), vocab, "earley_trie")]
    for seed in range(3):
        walk_along([one.start() for one in every], vocab, planned, 100, random.Random(seed), stray=0.02)


# What is refused.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("schema", "kind", "message"),
    [
        ('{"type": "nothing"}', SchemaError, "type at #.*line 1, column 12"),
        ('{"properties": {"a": {"$ref": "#/x"}}}', SchemaError, "#/properties/a.*line 1"),
        ("false", EmptyLanguageError, "line 1, column 12"),
        ('{"type": "array", "contains": {"type": "string"}, "uniqueItems": true}', SchemaUnsupported, "line 1"),
    ],
)
def test_a_schema_that_is_refused_says_where_it_stands(engine, schema, kind, message):
    with pytest.raises(kind, match=message):
        compile_with(f'start: "a" %json {schema}', tokenizer_of("bytes").vocabulary, engine)


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("pushdown_trie", {"lexer": "longest"}, "lexer=any"),
        ("earley_trie", {"ignore": "between"}, "ignore=anywhere"),
        ("cfg_fsm", {}, "earley_trie and pushdown_trie"),
    ],
)
def test_who_cannot_take_a_schema_names_who_can(engine, options, message):
    with pytest.raises(UnsupportedConstraint, match=message):
        compile_with(
            'start: %json {"type": "null"}\n%ignore " "\n', tokenizer_of("bytes").vocabulary, engine, **options
        )


def test_a_schema_too_large_for_rules_names_its_place():
    text = 'start: %json {"type": "array", "items": true, "minItems": 200}'
    with pytest.raises(LimitExceeded, match="max_instructions"):
        compile_with(text, tokenizer_of("bytes").vocabulary, "earley_trie", max_instructions=50)


def test_a_grammar_with_all_its_parts_can_be_saved(tmp_path):
    vocab = tokenizer_of("bytes").vocabulary
    grammar = Grammar("%import a.b\nstart: b", sources={"a": f"b: %json {json.dumps(PAIR)}"}, json_options=COMPACT)
    assert rebuild_constraint(describe_constraint(grammar)) == grammar
    compiled = compile_with(grammar, vocab)
    compiled.save(tmp_path / "saved")
    loaded = type(compiled).load(tmp_path / "saved", vocab)
    walk_along([compiled.start(), loaded.start()], vocab, b'{"a":1,"b":[0]}', 20, random.Random(1))

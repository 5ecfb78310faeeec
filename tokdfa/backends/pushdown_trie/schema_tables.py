"""Tables of a vocabulary that most JSON schemas need, made in advance where `PushdownTrie.prepare` is called.

What a mask needs of a vocabulary does not depend on the schema: the automata of strings, numbers and formats, and the
divisions of the vocabulary by their states. They are made by reading one document under one schema that has all of
them, and are then there for every schema.

Where nobody calls it, each table is made when a mask first needs it. That takes less in all, for a hundred schemas
still, but masks may then wait for some milliseconds.

Cost: some tenths of a second for a vocabulary of 128,000 tokens.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokdfa.backends.pushdown_trie.items import OWN
from tokdfa.backends.pushdown_trie.state_table import LOOPS, WIDE
from tokdfa.constraint import JsonSchema
from tokdfa.program.program import OPERATION, TERMINAL

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.filler import Filler
    from tokdfa.backends.pushdown_trie.pool import Pool

#: States to come whose memory is taken in advance: 4 MB.
TOUCHED_STATES = 4_096
#: Name -> (schema, a value of it): types and bounds that schemas often have.
COMMON: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"type": "string"}, 'One "two" \u00e9'),
    "some": ({"type": "string", "minLength": 1}, "word"),
    "short": ({"type": "string", "minLength": 1, "maxLength": 100}, "a few words"),
    "long": ({"type": "string", "maxLength": 255}, "a few more words"),
    "whole": ({"type": "integer"}, 120),
    "count": ({"type": "integer", "minimum": 0}, 7),
    "positive": ({"type": "integer", "minimum": 1}, 12),
    "amount": ({"type": "number"}, -1.25e10),
    "price": ({"type": "number", "minimum": 0}, 12.5),
    "flag": ({"type": "boolean"}, True),
    "none": ({"type": ["string", "null"]}, None),
    # an identifier inside has the library loaded that resolves references
    "named": ({"$id": "urn:example:named", "type": "string", "pattern": "^\\w+\\s\\S"}, "two words"),
    "list": ({"type": "array"}, [1, "two", [], {"three": None}]),
    # what few schemas need: complements, counted terminals, several sets of numbers at once, texts of a pattern that
    # are tried in a format
    "other": ({"type": "string", "not": {"pattern": "^x"}}, "y"),
    "tight": ({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4}, "abc"),
    "path": ({"type": "string", "pattern": "^/[a-z]", "format": "uri-reference"}, "/a/b"),
    "sets": ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": -0.5}]}, 5),
}
#: Asserted format -> a text of it.
FORMATS = {
    "date-time": "2024-02-29T12:30:00.5+01:00",
    "date": "2024-02-29",
    "time": "12:30:00Z",
    "duration": "P1DT2H",
    "email": "some.one@mail.example",
    "hostname": "www.example",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uri": "https://www.example/a/b?c=d#e",
    "uri-reference": "/a/b?c",
}


def prepare_tables(pool: Pool, filler: Filler) -> None:
    """Make what schemas need in a pool: read a document that has everything under a schema that has everything,
    and fill all masks on the way. The pool's lock must be held.
    """
    from tokdfa.backends.pushdown_trie.machine import Machine
    from tokdfa.json_schema.sets.patterns import parse_pattern
    from tokdfa.json_schema.sets.string_body import spelling_program
    from tokdfa.json_schema.sets.string_set import StringSet
    from tokdfa.json_schema.write.lower import lower_schema
    from tokdfa.regex.syntax_tree import CharSet
    from tokdfa.regex.utf8 import utf8_program

    properties = {name: schema for name, (schema, _) in COMMON.items()}
    properties |= {name: {"type": "string", "format": name} for name in FORMATS}
    value = {name: sample for name, (_, sample) in COMMON.items()} | FORMATS | {"another": "member"}
    program, _ = lower_schema(JsonSchema({"type": "object", "properties": properties}))
    first = pool.automata.state_count
    machine = Machine(program, pool)
    text = json.dumps(value, ensure_ascii=False).encode()
    row, read = 0, set[int]()
    for place in range(len(text)):
        filler.fill(machine, row)
        read.update(state for at, state, _ in machine.items(row) if machine.code[at, OPERATION] == TERMINAL)
        row = machine.run_text(text[place : place + 1], row)
        machine.representative(row)
    pool.masks.slices.make_all()
    # blanks and digits, which every schema comes to; other constraints may have left any number of states in the pool
    for state in sorted(read.union(range(first, pool.automata.state_count))):
        if pool.automata.flags[state] & (LOOPS | WIDE) == LOOPS:
            pool.masks.divide_now(state | OWN)
    pool.lengths.make_all()
    words = parse_pattern("\\w", wide=True)  # the one large class that patterns have, where they are forbidden
    assert isinstance(words, CharSet)
    spelling_program(words.ranges, "all")
    utf8_program(words.ranges)
    for name, sample in FORMATS.items():  # what is asked of texts that have another demand beside
        StringSet(formats=(name,)).holds(sample)
    pool.automata.touch(TOUCHED_STATES)

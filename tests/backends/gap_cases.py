"""Random constraints of every kind, and random vocabularies that lack bytes which these need."""

from __future__ import annotations

import json

import tokdfa
from tokdfa.vocabulary.vocabulary import Vocabulary

#: A character with two bytes, and one with four.
ACUTE, PLANE = "é", "\U00050000"
PATTERNS = (
    *("a", "b", "ab", "aa", "a+", "a+b", "a|a+b", "(ab)+", "ab|abab", "a(bb)*", "b?ab", "[ab]+", "c", "ca|a"),
    *(ACUTE, f"[{ACUTE}{PLANE}]", "c{1,300}", "a{2}(b{3})?"),
)
#: The strategies that take each kind, with the options that make a difference.
WAYS = {
    "regex": [
        *(("token_index", {}), ("token_index", {"lazy": True}), ("tokens_dfa", {}), ("cfg_fsm", {})),
        *(("earley_trie", {}), ("pushdown_trie", {})),
    ],
    "grammar": [
        *(("earley_trie", {"lexer": "longest"}), ("earley_trie", {"lexer": "one_byte"})),
        *(("pushdown_trie", {"lexer": "longest"}), ("pushdown_trie", {"lexer": "any"})),
        ("cfg_fsm", {"conflicts": "shift"}),
    ],
    "schema": [("pushdown_trie", {}), ("earley_trie", {}), ("token_index", {})],
}


def constraint_of(kind, rng):
    """A random constraint."""
    if kind == "regex":
        return tokdfa.Regex(regex(rng))
    if kind == "grammar":
        return tokdfa.Grammar(grammar(rng))
    return tokdfa.JsonSchema(json.dumps(schema(rng)), escapes=rng.choice(["all", "needed"]))


def regex(rng, depth=3):
    """A pattern over a, b, c and two larger characters."""
    choice = rng.random()
    if depth == 0 or choice < 0.3:
        return rng.choice(["a", "b", "c", "[ab]", "[abc]", ACUTE, PLANE, f"[{ACUTE}-{PLANE}]", "."])
    if choice < 0.55:
        return regex(rng, depth - 1) + regex(rng, depth - 1)
    if choice < 0.75:
        return f"({regex(rng, depth - 1)}|{regex(rng, depth - 1)})"
    return f"({regex(rng, depth - 1)})" + rng.choice(["*", "+", "?", "{2,3}", "{0,5}"])


def grammar(rng):
    """One to three rules over two to four terminals that overlap; one terminal may be ignored."""
    terminals, count = rng.sample(PATTERNS, rng.randint(2, 4)), rng.randint(1, 3)
    names, lines = ["start", "n1", "n2"][:count], []
    for number in range(count):
        ways = []
        for way in range(rng.randint(1, 3)):
            symbols = []
            for _ in range(rng.randint(0 if way else 1, 3)):
                later = names[number + 1 :] if way == 0 else names  # the first way comes to an end
                is_terminal = rng.random() < 0.6 or not later
                symbols.append(f"T{rng.randrange(len(terminals))}" if is_terminal else rng.choice(later))
            ways.append(" ".join(symbols))
        lines.append(f"{names[number]}: " + " | ".join(ways))
    lines += [f"T{number}: /{pattern}/" for number, pattern in enumerate(terminals)]
    if rng.random() < 0.3:
        lines.append(f"%ignore /{rng.choice(['c', 'c+', 'b+'])}/")
    return "\n".join(lines) + "\n"


def schema(rng, depth=2):
    """A schema with patterns, lengths, listed values and names beyond ASCII."""
    choice = rng.randrange(10 if depth else 6)
    if choice == 0:
        patterns = ["^a+$", "^[a-c]{2,4}$", PLANE, "^[^b]*$", f"^(ab|{ACUTE})+$", "b$", f"^[{PLANE}a]$"]
        return {"type": "string", "pattern": rng.choice(patterns)}
    if choice == 1:
        return {"enum": rng.sample(["a", "ab", ACUTE, "b" + PLANE, 1, True, None, "c", "{"], 3)}
    if choice == 2:
        return {"type": "string", "minLength": rng.randint(0, 3), "maxLength": rng.randint(3, 9)}
    if choice == 3:
        return {"type": "string", "pattern": "a", "minLength": 2, "maxLength": rng.randint(3, 5)}
    if choice == 4:
        return {"type": "integer", "minimum": 0, "maximum": 30}
    if choice == 5:
        return {"type": "string", "format": rng.choice(["date", "ipv4"])}
    if choice == 6:
        return {"anyOf": [schema(rng, depth - 1), schema(rng, depth - 1)]}
    if choice == 7:
        least, most = rng.randint(0, 4), rng.randint(4, 9)
        return {"type": "array", "items": schema(rng, depth - 1), "minItems": least, "maxItems": most}
    names = rng.sample(["a", "b", "ab", ACUTE, "c", PLANE], rng.randint(1, 4))
    return {
        "type": "object",
        "properties": {name: schema(rng, depth - 1) for name in names},
        "required": rng.sample(names, rng.randint(0, len(names))),
        "additionalProperties": rng.choice([False, True, {"type": "null"}]),
        **({"minProperties": 2} if rng.random() < 0.2 else {}),
    }


def vocabulary_of(kind, rng):
    """Some bytes are no tokens; some tokens hold these, whole characters, parts of them, or several lexemes."""
    larger = {*ACUTE.encode(), *PLANE.encode()}
    if kind == "schema":
        spellable = {*b'{}[]":, \n\\u0123456789abcdeftrueflsn-.E+'} | larger
        if rng.random() < 0.2:
            spellable.discard(ord(rng.choice('"]}:')))
        parts = ["{", "}", "[", "]", '"', ":", ",", "a", "b", "c", ACUTE, PLANE, "0", "1", "true", '"a"', '":', "\\u00"]
    else:
        spellable, parts = {*b"abc"} | larger, ["a", "b", "c", ACUTE, PLANE]
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        spellable.discard(rng.choice(sorted(spellable)))
    if rng.random() < 0.5:
        spellable.discard(PLANE.encode()[0])
    tokens = [bytes([byte]) for byte in spellable]
    for _ in range(rng.randint(0, 10)):
        text = "".join(rng.choice(parts) for _ in range(rng.randint(2, 4))).encode()
        tokens.append(text[rng.choice([0, 0, 1]) : len(text) - rng.choice([0, 0, 1])])
    rng.shuffle(tokens)
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])

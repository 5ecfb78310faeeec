"""Cases of what stands around a strategy's matchers: items that must differ, prompts to be healed, regions, limits.

Their vocabulary has tokens that cross every border (of items, of a prompt and a text, of thoughts and an answer), some
with equal bytes, and once it lacks bytes. Where the language is one that the brute force can read, that judges.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.laws.cases import Case, in_python
from tokdfa.backends.region_budget import think_first
from tokdfa.backends.token_healing import HealedConstraint
from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.grammar.parts import choice, seq, tag
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.base import Backend
    from tokdfa.backends.matcher import Matcher

#: Bytes of the texts below, tokens across their borders, and some of them twice.
BORDERS = Vocabulary(
    [
        *(b"a", b"b", b"c", b'"', b"[", b"]", b",", b"1", b"2", b"0", b"{", b"}", b":", b"n", b"u", b"l", b"<", b">"),
        *(b"/", b"", b'"a"', b'","', b'["', b'"]', b"1,", b",1", b"[1", b"1]", b'["a","a"', b'","b"', b"],", b'{"a":1'),
        *(
            b'":',
            b'null,"',
            b'c"',
            b'"b',
            b"ab",
            b"<b",
            b"b>a<",
            b"</",
            b"/b>",
            b"a</b>ab",
            b"</b>",
            b"<b></b>a",
            b">a",
        ),
        *(b'"', b"]", b",", b"a", b"1", b"ab", b'","', b"1]", b"</b>", b'"a"', b"a</b>ab", b'"b', b"}", b"1"),
    ],
    end_tokens=[19],
    name="borders",
)
#: No quotation mark alone.
UNQUOTED = Vocabulary(
    [b"a", b"b", b"c", b"", b'a"', b'"b', b'a"b', b"bc", b'"a', b"b", b'a"b', b'"a'], [3], name="unquoted"
)
COMPACT = {"whitespace": "compact", "escapes": "needed", "numbers": "natural"}


class Limited(CompiledConstraint):
    """A compiled constraint whose texts end within so many tokens."""

    def __init__(self, inner: CompiledConstraint, most: int) -> None:
        super().__init__(inner.constraint, inner.vocab, inner.backend_name)
        self.inner, self.most = inner, most

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return self.inner.start(context, self.most)


def service_cases(engine: str) -> list[Case]:
    """What an engine of our own can take: one that shows its states, and allows all sequences of tokens."""
    found = [*_healed_cases(), *_limited_cases()]
    if engine in ("earley_trie", "pushdown_trie"):
        found += [*_region_cases(), _undeclared_names()]
    if engine == "pushdown_trie":
        found += _unique_cases()
    return found


def _healed_cases() -> list[Case]:
    texts, head = ("bc", "c", "ba", "bc,1"), b'a"'

    def heal(backend: Backend, constraint: Constraint) -> CompiledConstraint:
        return HealedConstraint(backend.compile(constraint), head)

    found = []
    for vocab, kept in ((BORDERS, texts), (UNQUOTED, texts[:3])):
        whole = [head + text.encode() for text in kept]
        found.append(
            Case(
                f"a healed prompt on {vocab.name}",
                vocab,
                Choice(kept),
                () if vocab is UNQUOTED else tuple(whole),
                frozenset(whole).__contains__,
                gaps=vocab is UNQUOTED,
                service=heal,
                judge=Choice(whole),
            )
        )
    return found


def _limited_cases() -> list[Case]:
    pattern = Regex('(ab|a|"a"){1,3}(c|b{2,4})')

    def limit(most: int) -> Callable[[Backend, Constraint], CompiledConstraint]:
        return lambda backend, constraint: Limited(backend.compile(constraint), most)

    return [
        Case(
            f"at most {most} tokens on borders",
            BORDERS,
            pattern,
            (b"abc", b'"a"abbbb') if most == 30 else (),
            in_python(pattern),
            service=limit(most),
            judge=pattern if most == 30 else None,  # which binds no short text
        )
        for most in (2, 3, 5, 30)
    ]


def _region_cases() -> list[Case]:
    answer = choice("ab", "a")
    grammar = Grammar(str(seq(tag("<b>", end="</b>"), answer)), label="thoughts and an answer")
    pattern = Regex("<b>((?!</b>)(?s:.))*</b>(ab|a)")

    def within(tokens: int) -> Callable[[Backend, Constraint], CompiledConstraint]:
        return lambda backend, _: think_first(
            answer, backend.vocab, tokens, begin="<b>", end="</b>", backend=backend.name, **backend.settings
        )

    texts = (b"<b></b>a", b"<b>a<</b>ab")
    return [
        Case(
            f"a region of {tokens} tokens on borders",
            BORDERS,
            grammar,
            texts if tokens > 20 else (),
            in_python(pattern),
            gaps=True,  # thoughts may have any byte
            service=within(tokens),
            judge=pattern if tokens > 20 else None,  # `tests/backends/test_region_borders.py` judges the others
        )
        for tokens in (1, 2, 3, 5, 40)
    ]


def _undeclared_names() -> Case:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "ab": {"const": 0}},
        "patternProperties": {"^[bc]{1,2}$": {"type": "null"}},
        "additionalProperties": False,
        "required": ["a"],
    }
    constraint = JsonSchema(schema, **COMPACT, label="declared and other names")  # type: ignore[arg-type]
    texts = (b'{"a":1}', b'{"a":2,"ab":0,"c":null,"bc":null}')
    return Case(f"{constraint.name} on borders", BORDERS, constraint, texts, gaps=True)


def _unique_cases() -> list[Case]:
    def case(name: str, items: dict[str, object], values: list[object]) -> Case:
        schema = {"type": "array", "uniqueItems": True, "maxItems": 3}

        def member(text: bytes) -> bool:
            try:
                read = json.loads(text)
            except ValueError:
                return False
            is_list = isinstance(read, list) and len(read) <= 3 and all(item in values for item in read)
            return is_list and len(set(read)) == len(read)

        return Case(
            f"{name} that differ on borders",
            BORDERS,
            JsonSchema({**schema, "items": items}, **COMPACT, label=name),  # type: ignore[arg-type]
            tuple(json.dumps(values[:count], separators=(",", ":")).encode() for count in range(4)),
            member,
            service=lambda backend, constraint: backend.compile(constraint),
            judge=JsonSchema({**schema, "items": {"enum": values}}, **COMPACT),  # type: ignore[arg-type]
        )

    return [
        case("strings", {"type": "string", "pattern": "^[ab]{1,2}$"}, ["a", "b", "ab", "ba", "aa", "bb"]),
        case("integers", {"type": "integer", "minimum": 0, "maximum": 21, "multipleOf": 1}, list(range(22))),
    ]

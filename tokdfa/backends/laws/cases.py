"""What the contract laws are tried on: a vocabulary, a constraint, and what is known of its texts.

A case says by hand what must come out, so that no code of a backend is asked about itself: texts of the language, a
test of membership (Python's `re`, set membership), whether compiling must fail, and whether the vocabulary has *gaps*:
some byte of the language is no token by itself, so that a text may end up where no token goes on.

`toy_cases` are small and odd: duplicates, tokens that split characters, padding, several end tokens, gaps.
`real_cases` are a few constraints on the vocabularies of real tokenizers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.errors import EmptyLanguageError, RegexSyntaxError, TokdfaError, VocabularyCannotSpell
from tokdfa.vocabulary.loading import LoadedTokenizer
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.tokenizers import Tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.backends.base import Backend, CompiledConstraint


@dataclass(frozen=True)
class Case:
    """One constraint on one vocabulary.

    `texts`: some texts of the language. `member`: is a byte string in the language? `encode`: the tokenizer's encoder,
    if the vocabulary has one. `gaps`: see the module's docstring. `error`: what compiling must raise, if anything.
    `seed`: of all random walks and samples. `service`: what makes the compiled constraint, if the backend alone does
    not, as for a prompt to be healed; then the brute force on `judge` says what masks are right, if that is given.
    """

    name: str
    vocab: Vocabulary
    constraint: Constraint
    texts: tuple[bytes, ...] = ()
    member: Callable[[bytes], bool] | None = None
    encode: Callable[[str], list[int]] | None = None
    gaps: bool = False
    error: type[TokdfaError] | None = None
    seed: int = 0
    service: Callable[[Backend, Constraint], CompiledConstraint] | None = None
    judge: Constraint | None = None

    def compile(self, backend: Backend) -> CompiledConstraint:
        """The compiled constraint that is on trial. Raises what compiling raises."""
        return backend.compile(self.constraint) if self.service is None else self.service(backend, self.constraint)


def in_python(regex: Regex) -> Callable[[bytes], bool]:
    r"""Membership by Python's `re`. For patterns that both dialects read alike: no ``$`` before a last newline, and
    ``\d \w \s`` with ``ascii_classes=True`` only.
    """
    flags = re.ASCII if regex.ascii_classes and "i" not in regex.flags else re.NOFLAG
    for letter in regex.flags:
        flags |= re.RegexFlag[letter.upper()]
    compiled = re.compile(regex.pattern, flags)
    matches = compiled.search if regex.search else compiled.fullmatch

    def member(text: bytes) -> bool:
        try:
            return matches(text.decode()) is not None
        except UnicodeDecodeError:
            return False

    return member


#: Tokens: all bytes of the texts below, prefixes of each other, duplicates, parts of characters, several at once.
SMALL = Vocabulary(
    [
        *(b"a", b"b", b"c", b"0", b"1", b"2", b"-", b" ", b'"', b"\\", b"(", b")", b"\xc3", b"\xa9", b"\xe2"),
        *(b"\x82", b"\xac", b"", b"ab", b"abc", b"bc", b"ab", b"a", "é".encode(), b"\xa9a", b"1\xc3", b'" ', b"00"),
        *(b"-2", b"\xe2\x82", b"\xacab", b"cab", b"()", b"((", b"", b""),
    ],
    end_tokens=[17, 35],
    special_tokens={34: "<s>"},
    size=70,
    name="small",
)
#: All 256 bytes, some of them twice, and a few longer tokens, so that any text can be spelled in several ways.
COMPLETE = Vocabulary(
    [
        *(bytes([byte]) for byte in range(256)),
        *(b"a", b"ab", b"bc", b"\n\n", "é".encode(), b"\xc3", b"\xa9\xc3", b'{"', b'":', b"1-", b"", b" k"),
    ],
    end_tokens=[266],
    name="complete",
)
#: No b and no d alone; all others twice.
GAPS = Vocabulary([b"a", b"ab", b"c", b"", b"ab", b"c", b"a"], end_tokens=[3], name="gaps")


@cache
def toy_cases() -> tuple[Case, ...]:
    """Cases on small vocabularies; all of them on one backend take a few seconds."""
    return (
        *(*_small_cases(), *_complete_cases(), *_gap_cases(), *_wrong_cases(), *_grammar_cases()),
        *_merging_cases(),
    )


def _regex_case(vocab: Vocabulary, regex: Regex, *texts: str, gaps: bool = False) -> Case:
    name = f"{'search ' if regex.search else ''}{regex.name} on {vocab.name}"
    return Case(name, vocab, regex, tuple(map(str.encode, texts)), in_python(regex), gaps=gaps)


def _choice_case(vocab: Vocabulary, *choices: str) -> Case:
    choice = Choice(choices)
    texts = choice.as_bytes()
    return Case(f"choice {choice.name} on {vocab.name}", vocab, choice, tuple(texts), frozenset(texts).__contains__)


def _small_cases() -> list[Case]:
    return [
        _regex_case(SMALL, Regex("abc"), "abc"),
        _regex_case(SMALL, Regex("a|ab|abc"), "a", "ab", "abc"),
        _regex_case(SMALL, Regex("(ab|c)*"), "", "ab", "cabc"),
        _regex_case(SMALL, Regex("[abc]{2,4}"), "ab", "abca"),
        _regex_case(SMALL, Regex("(a|b)*abb"), "abb", "babababb"),
        _regex_case(SMALL, Regex("[0-2]{1,3}-[0-2]{2}"), "0-00", "210-21"),
        _regex_case(SMALL, Regex("(é|1é)+|€a?(bc)?"), "éé", "1é", "€", "€abc", "€bc"),
        _regex_case(SMALL, Regex(r'"([abc ]|\\["\\])*"'), '""', r'"a\"b"', r'"\\ "'),
        _regex_case(SMALL, Regex("((ab)?c)+"), "c", "abcc"),
        _regex_case(SMALL, Regex("(a(b(c(a(b)?)?)?)?)?"), "", "abca"),
        _regex_case(SMALL, Regex("a{0,40}b?"), "", "aab", "a" * 40),
        _choice_case(SMALL, "a", "ab", "abc 0", "é", "cab"),
        _choice_case(SMALL, "", "bc", "b"),
    ]


def _complete_cases() -> list[Case]:
    return [
        _regex_case(COMPLETE, Regex(".{1,3}"), "a", "é\t€", "\U00010348x"),
        _regex_case(COMPLETE, Regex("[^a]*"), "", "b\n", "é"),
        _regex_case(COMPLETE, Regex(r"\w+\s?\d{2}", ascii_classes=True), "x12", "a_b 99"),
        _regex_case(COMPLETE, Regex("k[à-ÿ]?", flags="i"), "K", "kÉ", "\u212a"),
        _regex_case(COMPLETE, Regex("ab?c", search=True), "ac", "é abc\n"),
        _regex_case(COMPLETE, Regex("^ab|c$", search=True), "abx", "éc"),
        _choice_case(COMPLETE, "yes", "no", "no way", "\u00e9\u20ac\U00010348"),
    ]


def _gap_cases() -> list[Case]:
    circle = Vocabulary([b"a", b"c", b"", b"c", b"a"], end_tokens=[2], name="circle")
    unspellable = Regex("ad|(ab)*d")
    return [
        _regex_case(GAPS, Regex("abd|ac"), "ac", gaps=True),
        _regex_case(GAPS, Regex("a(b|c)*"), "a", "ab", "acc", gaps=True),
        _regex_case(GAPS, Regex("(ab|a)*(bd|c)"), "c", "aabc", gaps=True),
        _regex_case(circle, Regex("c|a+b"), "c", gaps=True),
        Case(f"{unspellable.name} on gaps", GAPS, unspellable, gaps=True, error=VocabularyCannotSpell),
    ]


@cache
def toy_tokenizer() -> Tokenizer:
    """Byte-pair encoding over all bytes, with merges in an order in which ranks do not rise along every derivation.

    Some tokens have the bytes of others, as those of byte fallback have: no text is encoded by them.
    """
    from tokdfa.proper.replay import replay_merges

    pairs = [
        ("a", "b"),
        ("b", "c"),
        ("ab", "c"),
        ("a", "a"),
        ("aa", "ab"),
        (" ", "a"),
        ("bc", "bc"),
        ("1", "0"),
        ("10", "10"),
    ]
    pairs += [("ab", "ab"), ("\n", "\n"), (" a", "b"), ("x", "1")]
    texts = [bytes([byte]) for byte in range(256)] + [(left + right).encode() for left, right in pairs]
    number = {text: token for token, text in enumerate(texts)}
    triples = [
        (number[left.encode()], number[right.encode()], number[(left + right).encode()]) for left, right in pairs
    ]
    order = [4, 0, 1, 2, 3, 6, 5, 8, 7, 9, 10, 12, 11]
    rules = [(*triples[place], rank) for rank, place in enumerate(order)]
    twins = [b"ab", b"a", b"\n", b"1010", b"abc"]
    vocabulary = Vocabulary([*texts, b"", *twins], end_tokens=[len(texts)], name="toy merges")

    def encode_piece(piece: bytes) -> list[int]:
        return replay_merges(piece, rules)

    merges = MergeSource(
        "pairs",
        "byte",
        np.arange(256, dtype=np.int32),
        encode_piece,
        read_pairs=lambda: np.array([rule[:3] for rule in rules], dtype=np.int32),
    )
    loaded = LoadedTokenizer(
        vocabulary,
        lambda text: encode_piece(text.encode()),
        lambda tokens: vocabulary.spell(tokens).decode(errors="replace"),
        b"toy",
        lambda: merges,
    )
    return Tokenizer("toy merges", loaded)


def _merging_cases() -> list[Case]:
    """On a vocabulary with a tokenizer, so that proper sequences can be told from others."""
    tokenizer = toy_tokenizer()
    vocab = tokenizer.vocabulary
    plain = [
        _choice_case(vocab, "abc", "abcbc", "aab", "aaab", "bcbc"),
        _choice_case(vocab, "", "a", " ab", "ab ab", "aaaaaa"),
        _choice_case(vocab, "yes", "no"),
        _regex_case(vocab, Regex("[ab]{1,5}"), "ababa", "aabb", "b"),
        _regex_case(vocab, Regex("a{0,9}bc?"), "b", "aaaabc", "aaaaaaaaabc"),
        _regex_case(vocab, Regex("(ab|c){2,4}x1?"), "abcx", "cccabx1"),
        _regex_case(vocab, Regex("1(0|10){0,4}"), "1", "1101010", "1000"),
        _regex_case(vocab, Regex("é\n{1,4}|€a"), "é\n\n\n", "€a"),
        _regex_case(vocab, Regex("(a|b|c)*"), "", "abcabcaab"),
        _regex_case(vocab, Regex("a*b*"), "aaab", "abbb", ""),
        _regex_case(vocab, Regex("( ?ab)*c?"), " ab ababc", "c"),
        _regex_case(vocab, Regex("[^b]{1,3}"), "acc", " a€"),
    ]
    return [replace(case, encode=tokenizer.encode) for case in plain]


def _wrong_cases() -> list[Case]:
    return [
        Case("empty language", SMALL, Regex(r"a[^\s\S]|[^\x00-\U0010FFFF]b"), error=EmptyLanguageError),
        Case("syntax error", SMALL, Regex("(ab"), error=RegexSyntaxError),
    ]


def _grammar_cases() -> list[Case]:
    nested = Grammar('start: "(" start ")" | "a" | "()"\n', label="nested brackets")
    sums = Grammar('start: start "-" start | /[0-2]+/ | "(" start ")"\n', label="ambiguous sums")
    balanced = Grammar('start: (r "c")*\nr: "(" r ")" r |\n', label="balanced brackets")
    counted = Grammar('start: e start "a" | "b"\ne: "c"?\n', label="no more c than a")
    words = Grammar('start: word | start word\nword: KEY "(" | ID "-"\nKEY: "ab"\nID: /[abc]+/\n', label="words")
    schema = JsonSchema(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        label="object with an integer",
    )
    return [
        Case("nested brackets on small", SMALL, nested, (b"a", b"(a)", b"((()))"), _is_nested),
        Case("ambiguous sums on small", SMALL, sums, (b"0", b"1-20-(2)", b"((0-1)-2)-00"), _is_sum),
        Case("balanced brackets on small", SMALL, balanced, (b"", b"c", b"()(())c()c"), _is_balanced),
        Case("no more c than a on small", SMALL, counted, (b"b", b"cbaaa", b"ccbaa"), _has_enough_a),
        Case("words and a keyword on small", SMALL, words, (b"ab(", b"ab-", b"abc-b-", b"ab(c-ab("), _is_words),
        Case("JSON object on complete", COMPLETE, schema, (b'{"a": 0}', b'{"a": -12}'), _is_object_with_integer),
        *_schema_cases(),
    ]


def _schema_cases() -> list[Case]:
    """Schemas that every reader of JSON Schema can take, with texts in the layout of `json.dumps`."""
    strings = JsonSchema({"type": "string"}, label="JSON string schema")
    names = ["a", "ab", "b c"]
    lists = JsonSchema(
        {"type": "array", "items": {"enum": names}, "minItems": 1, "maxItems": 2}, label="JSON list of names"
    )
    parts = {"n": {"type": "number"}, "s": {"type": "string"}}
    objects = JsonSchema(
        {"type": "object", "properties": parts, "required": ["n"], "additionalProperties": False},
        label="JSON object of two",
    )

    def is_list(value: object) -> bool:
        return isinstance(value, list) and 1 <= len(value) <= 2 and all(item in names for item in value)

    def is_object(value: object) -> bool:
        return (
            isinstance(value, dict)
            and "n" in value
            and value.keys() <= parts.keys()
            and type(value["n"]) in (int, float)
            and type(value.get("s", "")) is str
        )

    tried: list[tuple[JsonSchema, tuple[str, ...], Callable[[object], bool]]] = [
        (strings, ('""', '"ab"', '"é1 \\\\"'), lambda value: isinstance(value, str)),
        (lists, ('["a"]', '["ab", "b c"]'), is_list),
        (objects, ('{"n": 0}', '{"n": -1.5, "s": "é k"}'), is_object),
    ]
    return [
        Case(f"{schema.name} on complete", COMPLETE, schema, tuple(map(str.encode, texts)), _in_json(holds))
        for schema, texts, holds in tried
    ]


def _in_json(holds: Callable[[object], bool]) -> Callable[[bytes], bool]:
    """Membership of a text that Python reads as JSON in UTF-8, and whose value is as it should be."""

    def member(text: bytes) -> bool:
        try:
            return holds(json.loads(text.decode()))
        except ValueError:
            return False

    return member


def _is_sum(text: bytes) -> bool:
    """Brackets are read from inside out: what stands between two is a sum, and becomes a number."""
    sum_ = re.compile(rb"[0-2]+(-[0-2]+)*")
    while (shorter := re.sub(rb"\((%s)\)" % sum_.pattern, b"0", text)) != text:
        # a bracket beside a digit would make one number of both
        if re.search(rb"[0-2]\(|\)[0-2(]", text):
            return False
        text = shorter
    return sum_.fullmatch(text) is not None


def _is_balanced(text: bytes) -> bool:
    """Whether brackets are balanced before each c, and nothing is behind the last."""
    if text and not text.endswith(b"c"):
        return False
    for part in text.split(b"c"):
        while b"()" in part:
            part = part.replace(b"()", b"")
        if part:
            return False
    return True


def _has_enough_a(text: bytes) -> bool:
    found = re.fullmatch(rb"(c*)b(a*)", text)
    return found is not None and len(found[1]) <= len(found[2])


def _is_words(text: bytes) -> bool:
    return re.fullmatch(rb"([abc]+-|ab\()+", text) is not None


def _is_nested(text: bytes) -> bool:
    depth = (len(text) - 1) // 2
    return (
        text in (b"(" * depth + b"a" + b")" * depth, b"(" * (len(text) // 2) + b")" * (len(text) // 2)) and text != b""
    )


def _is_object_with_integer(text: bytes) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    if not isinstance(value, dict) or list(value) != ["a"]:
        return False
    number = value["a"]  # 1.0 and 1e2 are integers, too
    return type(number) is int or (type(number) is float and number.is_integer())


def real_cases(tokenizers: Iterable[str]) -> list[Case]:
    """Four constraints on each tokenizer's vocabulary; a few seconds each for 32,000 tokens."""
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    cases = []
    for name in tokenizers:
        tokenizer = load_tokenizer(name)
        for constraint, member, texts in _real_constraints():
            cases.append(
                Case(
                    f"{constraint.name} on {name}",
                    tokenizer.vocabulary,
                    constraint,
                    tuple(map(str.encode, texts)),
                    member,
                    tokenizer.encode,
                )
            )
    return cases


def _real_constraints() -> list[tuple[Constraint, Callable[[bytes], bool], tuple[str, ...]]]:
    date = Regex("[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]", label="date")
    string = Regex(r'"([^"\\\x00-\x1f]|\\["\\n])*"', label="JSON string")
    names = Regex(r"[A-ZÄÖÜ][a-zäöüß]+( [A-ZÄÖÜ][a-zäöüß]+){0,3}", label="names")
    answers = Choice(["yes", "no", "not sure", "I do not know", "¿qué?", "その他"], label="answers")
    return [
        (date, in_python(date), ("2024-02-29", "1999-12-31")),
        (string, in_python(string), ('""', '"a \\"quoted\\" word, naïve"', '"日本語"')),
        (names, in_python(names), ("Ada Lovelace", "Jürgen Groß")),
        (answers, frozenset(answers.as_bytes()).__contains__, ("yes", "not sure", "その他")),
    ]

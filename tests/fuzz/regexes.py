"""``regex``: patterns, compiled by every strategy of ours that takes them, and walked along.

The head is ``BACKEND VOCABULARY FLAGS``, flags being those of `Regex`, ``a`` for ASCII classes and ``S`` for a search.
"""

from __future__ import annotations

from hypothesis import strategies as st

import tokdfa
from tests.fuzz.case import Case
from tests.fuzz.mutations import mutated_texts
from tests.fuzz.walk import NEED_A_TOKENIZER, VOCABULARIES, bounded, vocabulary, walk
from tests.strategies import regex_patterns

BACKENDS = (
    *("pushdown_trie", "pushdown_trie", "token_index", "token_index lazy", "tokens_dfa", "earley_trie"),
    *("cartesian_merge", "direct_merge", "brute_force", "encoded_texts"),
)

SEEDS = (
    r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]",
    r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)",
    r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9-]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}",
    r'\{"name": "([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,20}", "n": -?(0|[1-9]\d*)(\.\d+)?\}',
    r"(?=.*[A-Z])(?=.*\d)(?!.*\s)\w{8,16}",
    r"(?i:straße|ΣΊΣΥΦΟΣ)|\p{Lu}\p{Ll}*[[:alpha:]]",
    r"^\s*(?P<key>[^=\n]+)=(?P<value>.*)$",
    r"(a|b)*a(a|b){12}",
    r"\bword\b.*\Bx\B",
    r"((a{1,3}b){1,3}c){1,3}",
    "日本語?|[а-я]+|\\uD83D\\uDE00",
    r"(?x) a b c # a comment",
)
_PLAIN_WORDS = r"""
( ) [ ] { } | * + ? . ^ $ \ - , : = ! < > & ~ # (?: (?= (?! (?i) (?-i: (?<= (?P<n> (?P=n) (?> (?x) \d \D \w \W \s \S
\b \B \A \Z \z \1 \0 \x \x41 \u0041 \u{1F600} \uD83D \p{L} \P{Nd} \p{Script=Greek} \pN \p{ \cA \N{DASH} [^ [] [^] [a-
z-a] [[:alpha:]] [[:^digit:]] && -- ~~ {,} {0} {0,0} {1,} {2,1} {1000} {99999} {1000000000} {0,4000} (a*)* (a?){50}
(((( )))) ||| *? ++ .* .{1,300} (?!a). (?=a) (?s:.) \Q..\E é İ ſ K
"""
#: What is put in, renamed to, and made into texts.
WORDS = (*_PLAIN_WORDS.split(), "\U0010ffff", "\u0000", "\ud800")


class RegexEntry:
    """See the module's docstring."""

    name = "regex"

    def prepare(self) -> None:
        for backend in BACKENDS:
            self.run(Case(f"{backend.replace(' ', '+')} words s", "a[bc]{1,3}d?"))

    def cases(self) -> st.SearchStrategy[Case]:
        patterns = st.one_of(
            mutated_texts(SEEDS, WORDS),
            mutated_texts(SEEDS, WORDS),
            st.lists(st.sampled_from(WORDS), max_size=8).map("".join),
            regex_patterns(),
            st.text(max_size=12),
        )
        backends = st.sampled_from([backend.replace(" ", "+") for backend in BACKENDS])
        flags = st.lists(st.sampled_from("ismxaS"), unique=True, max_size=3).map("".join)
        head = st.tuples(backends, st.sampled_from(VOCABULARIES), flags).map(" ".join)
        return st.builds(Case, head, patterns)

    def run(self, case: Case) -> str:
        backend, words, flags = case.head.split(" ")
        name, _, lazy = backend.partition("+")
        words = "bytes" if name in NEED_A_TOKENIZER else words
        pattern = tokdfa.Regex(
            str(case.body),
            flags="".join(sorted(set(flags) - set("aS"))),
            ascii_classes="a" in flags,
            search="S" in flags,
        )
        walk(tokdfa.compile(pattern, vocabulary(words), backend=name, **bounded(name, lazy)))
        return "accepted"


ENTRY = RegexEntry()

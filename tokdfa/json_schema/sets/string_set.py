r"""Sets of strings: conjunctions of patterns, formats, lengths and listed values, and their automata over JSON text.

Theory. Each demand is a regular language of decoded texts: a pattern is a search, a format a few patterns with a length
(`tokdfa.json_schema.sets.formats`), a length a repeat of any code point, listed values are a literal tree. A
conjunction is an intersection, and what is forbidden a complement within all texts. Lowered to bodies of JSON strings
(`tokdfa.json_schema.sets.string_body`), where each code point has all its spellings, it is again regular, and equal
decoded texts are treated alike.

Negation. Where our language of a format is smaller than what the common checker accepts, ``not format`` takes the
complement of a language that is larger; then a text may be neither in the format nor in its negation, but whatever is
accepted is right under both readings. So it is with patterns that ECMA-262 and Python read differently. A format
without such a language cannot be negated (UnsupportedConstraint).

Automata are derived over classes of code points and then spelled (`tokdfa.json_schema.sets.spelled_automaton`). Those
that stay lazy, because they are large, are derived over bytes.

Cost. From a pattern to its automaton: 0.2 to 0.5 ms. Lengths are mostly counted beside the automaton of all else
(`StringSet.apart`, `tokdfa.backends.pushdown_trie.items`). Intersections with them are avoided where a pattern implies
them or can take them over (`tokdfa.json_schema.sets.string_lengths`). Otherwise their states, pairs of a state of the
pattern and a count, are made on demand only, so a bound of 1,000,000 costs what is read of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.automata.minimize import minimize
from tokdfa.automata.words import words
from tokdfa.core.budget import is_spent, spend
from tokdfa.core.locks import new_lock
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.json_schema.sets.formats import find_format
from tokdfa.json_schema.sets.listed_patterns import listed_texts
from tokdfa.json_schema.sets.patterns import begin_apart, finds_everywhere, parse_pattern
from tokdfa.json_schema.sets.spelled_automaton import CLOSING, Classes
from tokdfa.json_schema.sets.string_body import BODY, CLOSED_BODY
from tokdfa.json_schema.sets.string_demands import read_demands
from tokdfa.regex import boundaries
from tokdfa.regex.char_sets import ALL, NEWLINE, Ranges
from tokdfa.regex.expression import NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.lower import lower
from tokdfa.regex.program import Program
from tokdfa.regex.syntax_tree import NEVER, CharSet, walk
from tokdfa.regex.tree_writer import UTF8, Encoding

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.program.program import Escapes

#: An automaton of more states than about so many stays lazy; the states made in vain cost about 0.5 ms.
EXPLICIT_STATES = 400
#: The same for what is built once and shared: strings without a demand, and formats.
SHARED_STATES = 10_000
#: Sets of characters of a pattern that is easy (`StringSet.is_easy`) and characters of the shortest text, at most.
EASY_SIZE = 1_000
#: States that a proof of emptiness may make, about 20 us each; those that it makes of a set that is easy, at most.
PROOF_STATES, EASY_STATES = 20_000, 500
#: Texts of a pattern of which it is asked, before that, whether they are in the set.
TRIED_TEXTS = 4
#: The same for a list of the texts of a set, and the bytes that these may have together.
LISTED_STATES, LISTED_BYTES = 5_000, 100_000
#: Work (`tokdfa.core.budget`) of asking whether a text is in a set, and of a character.
MATCH_WORK, NS_PER_CHARACTER = 2_000, 100
#: So many fields of a set are what is demanded beside listed values.
DEMANDS = 6
#: States of an automaton of JSON texts for one of decoded texts, about; it is lazy with 10 times `explicit_states`.
STATES_OF_A_TEXT, SPELLED_STATES = 4, 10
#: Patterns with so many sets of characters for each state that there may be are not tried.
SIZE_OF_STATES = 2
#: Why there is no automaton.
NO_TEXTS = "no string meets these demands; nothing could be generated"
#: How many scalar values there are.
SCALAR_VALUES = 0x110000 - 0x800
#: The automata of `holds` are shared and grow.
_matching = new_lock()


class StringSet(NamedTuple):
    """A conjunction of demands on a string; what is left out demands nothing. Immutable, hashable, cheap to make.

    `patterns`, `not_patterns`: ECMA-262 (`tokdfa.json_schema.sets.patterns`), each found (not found) somewhere in the
    text. `formats`, `not_formats`: names of `tokdfa.json_schema.sets.formats.FORMATS`. `min_length`, `max_length`: in
    code points. `values`: the text is one of these; `not_values`: it is none of these. A pattern is first read when a
    question needs it: every question may raise RegexSyntaxError, UnsupportedConstraint, UnknownNameError or
    LimitExceeded.
    """

    patterns: tuple[str, ...] = ()
    not_patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    not_formats: tuple[str, ...] = ()
    min_length: int = 0
    max_length: int | None = None
    values: frozenset[str] | None = None
    not_values: frozenset[str] = frozenset()

    def intersect(self, other: StringSet) -> StringSet:
        """What is in both sets. O(demands)."""
        lengths = [length for length in (self.max_length, other.max_length) if length is not None]
        spend(NS_PER_CHARACTER * (len(self.not_values) + len(other.not_values)))
        values = other.values if self.values is None else self.values
        if self.values is not None and other.values is not None:
            values = self.values & other.values
        return StringSet(
            _merge(self.patterns, other.patterns),
            _merge(self.not_patterns, other.not_patterns),
            _merge(self.formats, other.formats),
            _merge(self.not_formats, other.not_formats),
            max(self.min_length, other.min_length),
            min(lengths, default=None),
            values,
            self.not_values | other.not_values,
        )

    def complement(self) -> list[StringSet]:
        """Sets whose union is every string that is not in this one (of negated formats see the module's docstring)."""
        parts = [StringSet(not_patterns=(pattern,)) for pattern in self.patterns]
        parts += [StringSet(patterns=(pattern,)) for pattern in self.not_patterns]
        parts += [StringSet(not_formats=(name,)) for name in self.formats]
        parts += [StringSet(formats=(name,)) for name in self.not_formats]
        if self.min_length > 0:
            parts.append(StringSet(max_length=self.min_length - 1))
        if self.max_length is not None:
            parts.append(StringSet(min_length=self.max_length + 1))
        if self.values is not None:
            parts.append(StringSet(not_values=self.values))
        if self.not_values:
            parts.append(StringSet(values=self.not_values))
        return parts

    def is_empty(self) -> bool:
        """Whether no text is in the set. Exact; LimitExceeded if a proof would need more than `PROOF_STATES` states."""
        return _is_empty(self)

    @property
    def is_easy(self) -> bool:
        """Whether it is plain to see that some text is in the set and that no limit refuses its automaton, which then
        can wait until it is needed.

        That takes small patterns and formats, without assertions but ``^`` and ``$`` at their ends. That they have a
        text is seen by the lengths of one's texts; if they are several, by a text or a short proof.
        """
        return _is_easy(self)

    def listed(self, most: int) -> frozenset[str] | None:
        """All texts of the set; None if they are more than `most`, or too long to be worth a list (`LISTED_BYTES`)."""
        return _listed(self, most)

    def holds(self, text: str) -> bool:
        """Whether a decoded text is in the set; one with a lone surrogate is in none. O(length) for each demand."""
        left = self.spelled_out
        if (left.values is not None and text not in left.values) or text in left.not_values:
            return False
        if len(text) < self.min_length or (self.max_length is not None and len(text) > self.max_length):
            return False
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            return False
        if not (left.patterns or left.not_patterns or left.formats or left.not_formats):
            return True
        spend(MATCH_WORK + NS_PER_CHARACTER * len(text))
        with _matching:
            return all(_matcher(part).accepts(encoded) for part in left._parts())

    def _parts(self) -> list[StringSet]:
        """Every pattern and every format as a set of its own."""
        parts = [StringSet(patterns=(pattern,)) for pattern in self.patterns]
        parts += [StringSet(not_patterns=(pattern,)) for pattern in self.not_patterns]
        parts += [StringSet(formats=(name,)) for name in self.formats]
        parts += [StringSet(not_formats=(name,)) for name in self.not_formats]
        return parts

    @property
    def key(self) -> bytes:
        """16 bytes that sets of the same demands have in common, in whatever order these were given."""
        spend(NS_PER_CHARACTER * 3 * (1 + len(self.values or ()) + len(self.not_values)))
        listed = (
            *(sorted(set(names)) for names in (self.patterns, self.not_patterns, self.formats, self.not_formats)),
            (self.min_length, self.max_length),
            None if self.values is None else sorted(self.values),
            sorted(self.not_values),
        )
        return hashlib.blake2b(repr(listed).encode(errors="surrogatepass"), digest_size=16).digest()

    @property
    def spelled_out(self) -> StringSet:
        """The same set, patterns that only list texts (`tokdfa.json_schema.sets.listed_patterns`) being values."""
        return _spelled_out(self) if self.patterns or self.not_patterns else self

    @property
    def apart(self) -> tuple[StringSet, int, int | None]:
        """(the set without bounds of its length, the bounds that this does not imply): together the same set."""
        return _apart(self)

    @property
    def simple(self) -> bool:
        """Whether lengths are all that is demanded. (A pattern such as ``.*`` demands nothing.)"""
        if self.values is not None or self.not_values or self.formats or self.not_formats or self.not_patterns:
            return False
        return all(finds_everywhere(parse_pattern(pattern)) for pattern in self.patterns)


def string_expression(strings: StringSet, store: ExpressionStore, escapes: Escapes = "all") -> int:
    """The expression of the JSON texts of `strings`, quotes included. It may denote nothing without being NOTHING."""
    quote = store.literal(b'"')
    body = lower_set(strings, store, BODY[escapes])
    if store.has_assertions(body):
        return store.concat(quote, lower_set(strings, store, CLOSED_BODY[escapes]))
    return store.concat(quote, body, quote)


def string_automaton(
    strings: StringSet, escapes: Escapes = "all", explicit_states: int = EXPLICIT_STATES
) -> Dfa | LazyDfa:
    """The automaton of the JSON texts of `strings`, quotes included: minimal if it is small, else lazy and fresh.

    Small are those of about `explicit_states`, as decoded texts have them. What has no demand, or one format only, is
    built once and shared. Raises EmptyLanguageError if there is no such text.
    """
    if any(find_format(name).large for name in strings.formats):
        return _build(strings, escapes, 0)
    if strings == StringSet(formats=strings.formats[:1]):
        return _shared_automaton(strings, escapes)
    return _build(strings, escapes, explicit_states)


@lru_cache(maxsize=64)
def _shared_automaton(strings: StringSet, escapes: Escapes) -> Dfa | LazyDfa:
    """The automaton of no demand, or of one format that is not large: minimal, so that it can be shared."""
    return _build(strings, escapes, SHARED_STATES)


def _build(strings: StringSet, escapes: Escapes, explicit_states: int) -> Dfa | LazyDfa:
    texts = _explicit_texts(strings, escapes, explicit_states) if explicit_states else None
    if texts is not None:
        return texts
    store = ExpressionStore()
    lazy = LazyDfa(store, string_expression(strings, store, escapes))
    if lazy.is_empty:
        raise EmptyLanguageError(NO_TEXTS)
    return lazy


def _explicit_texts(strings: StringSet, escapes: Escapes, explicit_states: int) -> Dfa | None:
    """The automaton of the JSON texts of a set; None if it is not small, or that of the decoded ones is not."""
    most_states = explicit_states // STATES_OF_A_TEXT
    size = None if strings.values else read_demands(*strings[:DEMANDS]).size
    if size is not None and size > SIZE_OF_STATES * most_states:
        return None
    sets = _character_sets(strings)
    for closed in (False, True):
        classes = Classes(sets, escapes, closed)
        if classes.count >= CLOSING:
            return None
        store = ExpressionStore()
        body = lower_set(strings, store, classes)
        if closed or not store.has_assertions(body):
            break
    lazy = LazyDfa(store, body)
    if lazy.is_empty:
        raise EmptyLanguageError(NO_TEXTS)
    try:
        return classes.spell(minimize(lazy.to_dfa(most_states)), SPELLED_STATES * explicit_states)
    except LimitExceeded as error:
        if error.limit != "max_states":
            raise
        return None


def _character_sets(strings: StringSet) -> set[Ranges]:
    """All sets of code points that `lower_set` writes, or such that these are unions of them."""
    strings = strings.spelled_out
    if strings.values is not None:
        return _single_characters(strings.values)
    demands = read_demands(*strings[:DEMANDS])
    sets = _single_characters(strings.not_values)
    nodes = *demands.whole, *demands.found, *demands.absent
    sets.update(node.ranges for tree in nodes for node in walk(tree) if isinstance(node, CharSet))
    if not demands.whole or demands.found:
        sets.add(ALL)
    kinds = frozenset[str]().union(*(node.assertions for node in nodes))
    if kinds - {"text_start", "text_end"}:
        sets.add(NEWLINE)
    if any(map(boundaries.is_agreed, kinds)):
        sets.update(boundaries.zones().values())
    return sets


def _single_characters(texts: frozenset[str]) -> set[Ranges]:
    """Each character of some texts as a set."""
    return {((ord(one), ord(one)),) for one in {*chain.from_iterable(texts)}}


def lower_set(strings: StringSet, store: ExpressionStore, encoding: Encoding) -> int:
    """The expression of a set in an encoding."""
    strings = strings.spelled_out
    if strings.values is not None:
        return _literals(frozenset(filter(strings.holds, strings.values)), store, encoding)
    demands = read_demands(*strings[:DEMANDS])
    if demands.impossible:
        return NOTHING
    parts = [lower(body, store, encoding=encoding) for body in demands.whole]
    parts += [lower(node, store, search=True, encoding=encoding) for node in demands.found]
    if demands.low or demands.high is not None or not parts:
        program = Program()
        value = program.repeat(encoding.char_set(ALL, program), demands.low, demands.high)
        store.run(program)
        parts.append(store.concat(program.expression(value), store.literal(encoding.end)))
    parts += [store.complement(lower(node, store, search=True, encoding=encoding)) for node in demands.absent]
    if strings.not_values:
        parts.append(store.complement(_literals(strings.not_values, store, encoding)))
    return store.intersection(parts)


def _literals(texts: frozenset[str], store: ExpressionStore, encoding: Encoding) -> int:
    """The expression of listed texts; those with a lone surrogate are left out."""
    spend(NS_PER_CHARACTER * (10 * len(texts) + sum(map(len, texts))))
    encoded = [text.encode(errors="ignore") for text in texts if not any("\ud800" <= c <= "\udfff" for c in text)]
    program = Program()
    value = encoding.literals(encoded, program)
    store.run(program)
    return store.concat(program.expression(value), store.literal(encoding.end))


@lru_cache(maxsize=4096)
def _apart(strings: StringSet) -> tuple[StringSet, int, int | None]:
    if not strings.min_length and strings.max_length is None:
        return strings, 0, None
    plain = strings._replace(min_length=0, max_length=None)
    demands = read_demands(*plain[:DEMANDS])
    high = strings.max_length
    if demands.high is not None and high is not None and demands.high <= high:  # a format has a length of its own
        high = None
    bounds = replace(demands, low=strings.min_length, high=high)
    bounds.drop_implied_lengths()
    return plain, bounds.low, bounds.high


@lru_cache(maxsize=512)
def _matcher(part: StringSet) -> LazyDfa:
    """The automaton of the decoded texts of a set, as UTF-8."""
    store = ExpressionStore()
    return LazyDfa(store, lower_set(part, store, UTF8))


@lru_cache(maxsize=4096)
def _spelled_out(strings: StringSet) -> StringSet:
    listed = {pattern: listed_texts(pattern) for pattern in (*strings.patterns, *strings.not_patterns)}
    if not any(listed.values()):
        return strings
    values, not_values = strings.values, strings.not_values
    for pattern in strings.patterns:
        if texts := listed[pattern]:
            values = texts[0] if values is None else values & texts[0]
    for pattern in strings.not_patterns:
        if texts := listed[pattern]:
            not_values |= texts[1]
    return strings._replace(
        patterns=tuple(pattern for pattern in strings.patterns if not listed[pattern]),
        not_patterns=tuple(pattern for pattern in strings.not_patterns if not listed[pattern]),
        values=values,
        not_values=not_values,
    )


@lru_cache(maxsize=4096)
def _is_easy(strings: StringSet) -> bool:
    strings = strings.spelled_out
    if strings.values is not None:
        return False
    demands = read_demands(*strings[:DEMANDS])
    is_plain = not (demands.whole or demands.found or demands.absent or strings.not_values)
    if demands.impossible or demands.low > EASY_SIZE or is_plain:
        return False
    size = demands.size
    if size is None or size > EASY_SIZE:
        return False
    if demands.have_more_texts(len(strings.not_values)) or _finds_text(strings):
        return True
    try:
        is_empty, states = _prove(strings)
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return False
    return not is_empty and states <= EASY_STATES


@lru_cache(maxsize=4096)
def _is_empty(strings: StringSet) -> bool:
    strings = strings.spelled_out
    if strings.values is not None:
        return not any(map(strings.holds, strings.values))
    if len(strings.patterns) > 1 and begin_apart(strings.patterns):
        return True
    demands = read_demands(*strings[:DEMANDS])
    if demands.impossible:
        return True
    positive = [*demands.whole, *demands.found]
    if not positive and not demands.absent and len(strings.not_values) < SCALAR_VALUES:
        return demands.high == 0 and "" in strings.not_values
    if demands.have_more_texts(len(strings.not_values)):
        return False
    has_more = demands.absent or strings.not_values or demands.low or demands.high is not None
    if len(positive) == 1 and not has_more and not positive[0].assertions:
        return positive[0] == NEVER
    if len(positive) > 1 and _finds_text(strings):
        return False
    return _prove(strings)[0]


@lru_cache(maxsize=4096)
def _prove(strings: StringSet) -> tuple[bool, int]:
    """(whether no text is in the set, the states that were made to find out)."""
    store = ExpressionStore()
    automaton = LazyDfa(store, lower_set(strings, store, UTF8), PROOF_STATES)
    return automaton.is_empty, automaton.state_count


@lru_cache(maxsize=4096)
def _finds_text(strings: StringSet) -> bool:
    """Whether one of the shortest texts of the only pattern is in all formats, whose automata are shared."""
    if len(strings.patterns) != 1 or not strings.formats or strings.min_length:
        return False
    try:
        with _matching:
            automaton = _matcher(StringSet(patterns=strings.patterns)).to_dfa(EXPLICIT_STATES)
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return False
    return any(strings.holds(word.decode()) for word in words(automaton, TRIED_TEXTS, LISTED_BYTES))


@lru_cache(maxsize=512)
def _listed(strings: StringSet, most: int) -> frozenset[str] | None:
    strings = strings.spelled_out
    if strings.values is not None:
        kept = frozenset(filter(strings.holds, strings.values))
        return kept if len(kept) <= most else None
    if strings.simple and strings.max_length != 0:
        return None  # a single character is one of a million
    store = ExpressionStore()
    try:
        automaton = LazyDfa(store, lower_set(strings, store, UTF8), LISTED_STATES).to_dfa()
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return None
    found = words(automaton, most + 1, LISTED_BYTES)
    if len(found) > most or sum(map(len, found)) > LISTED_BYTES:
        return None
    return frozenset(word.decode() for word in found)


def _merge(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Both without repeats, sorted."""
    return tuple(sorted({*one, *other})) if other else one

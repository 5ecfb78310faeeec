r"""From syntax trees and choices to expressions over bytes, with assertions resolved wherever that is possible.

Words. A *context* is what assertions can ask of the past: nothing read yet, or the last byte is a newline, a word byte
or another byte; for boundaries on which several dialects must agree (`tokdfa.regex.boundaries`), the zone of the last
character. A *rest* is what follows a node up to the end of the text: one expression for each context in which it may
begin. Look-ahead and ``$`` speak about the whole rest, so a node is lowered together with its rest: `resolve` takes a
node and the rest K behind it and returns the rest that begins with the node. Its laws, for each context c:

- no assertion in the node:  node · K[d], the node's matches being split by the context d in which they end, where K
  differs by context; an empty match stays in c;
- node₁ node₂:               resolve(node₁, resolve(node₂, K));
- node₁ | node₂:             union; the options without assertions stay together and share one K;
- ``^``:                     K[c] if c is the start of the text, else nothing; likewise for lines (flag m);
- ``$``:                     K[c] ∩ {empty}; with flag m, K[c] ∩ (empty | newline · any bytes);
- ``\b``, ``\B``:            K[c] ∩ (the next byte is a word byte) or ∩ (it is not), as c and the assertion demand;
                            if dialects must agree, K[c] ∩ (the next character is of a zone that fits);
- ``(?=x)``, ``(?!x)``:      K[c] ∩ X[c], K[c] ∩ ¬X[c], where X = resolve(x, any bytes);
- ``node?``:                 K ∪ resolve(node, K).

A look-behind stands outside groups (the parser sees to that): P (?<=x) R is (P ∩ any·x) · R, with ¬ for (?<!x).

So `` ^(?!foo)[a-z]+$ `` is ``[a-z]+ ∩ ¬(foo · any)`` and ``^a|b$``, searched for, is ``a · any | any · b``.

Loops. ``^`` is false once something has been read and ``$`` while something is left. Let e₀ be the loop's body e with
both taken for false. Behind the start of the text,

    e{m,n} K  =  e₀{m,n} K  |  e₀{m',n-1} resolve(e, K ∩ {empty})

where m' is m - 1, or 0 if e matches the empty rest there: only the last round that reads something may use ``$``. At
the start, the first round that reads something may use ``^``; what follows it is as above. A loop around other
assertions (look-ahead, word boundaries, lines) or nested loops around both ``^`` and ``$`` (where each level would
double the work) keep them as nodes, for `tokdfa.regex.assertions` to decide while reading.

Full match starts from the rest {empty}, search from any text before and behind. An `Encoding` with an *end* has bytes
that stand behind each text and nowhere inside (a closing quote); then {end} stands for {empty} above.

Cost: each node is visited once, a shared one too, and in a loop with ``^`` or ``$`` a few times. What has no assertion
is written down as a program (`tokdfa.regex.tree_writer`) and built as a whole: about 2 us a node. Recursion
runs on a list (`_run`), so that no nesting of a pattern exhausts the Python stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias

from tokdfa.regex import boundaries
from tokdfa.regex.assertions import AFTER_NEWLINE, AFTER_OTHER, AFTER_WORD, AT_START
from tokdfa.regex.char_sets import (
    ALL,
    NEWLINE,
    Ranges,
    complement,
    intersection,
    union,
    word_characters,
)
from tokdfa.regex.expression import ANY_BYTES, EMPTY, NOTHING
from tokdfa.regex.literals import literal_tree
from tokdfa.regex.program import known
from tokdfa.regex.syntax_tree import (
    EMPTY_NODE,
    LOOK_BEHIND,
    NEVER,
    Alternation,
    Assertion,
    CharSet,
    Concat,
    LookAhead,
    LookBehind,
    Node,
    Repeat,
    alternation,
    concat,
    repeat,
    walk,
)
from tokdfa.regex.tree_writer import UTF8, Encoding, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from tokdfa.constraint import Choice, Regex
    from tokdfa.regex.expression import ExpressionStore

CONTEXTS = (AT_START, AFTER_NEWLINE, AFTER_WORD, AFTER_OTHER)
_ASCII_WORD = word_characters(ascii_only=True)
#: The characters that leave each context behind.
_LEAVING: dict[int, Ranges] = {
    AFTER_NEWLINE: NEWLINE,
    AFTER_WORD: _ASCII_WORD,
    AFTER_OTHER: complement(union(NEWLINE, _ASCII_WORD)),
}
_TEXT_ANCHORS = frozenset({"text_start", "text_end"})
_ANY_TEXT = Repeat(CharSet(ALL), 0, None)

ByContext: TypeAlias = tuple[int, ...]


def lower(node: Node, store: ExpressionStore, search: bool = False, encoding: Encoding = UTF8) -> int:
    """The expression in `store` for the texts that `node` matches whole, or (`search`) somewhere inside, as bytes.

    It may be an expression of the empty language without being NOTHING; whoever derives it finds out.
    Raises LimitExceeded if the expression outgrows the store, and what the encoding raises.
    """
    lowerer = _Lowerer(store, encoding, node.assertions)
    if LOOK_BEHIND in node.assertions:
        alternatives = node.options if isinstance(node, Alternation) else (node,)
        return store.union(
            [
                _run(lowerer.behind(one, search))
                if LOOK_BEHIND in one.assertions
                else lower(one, store, search, encoding)
                for one in alternatives
            ]
        )
    if search and (texts := _texts_with(node)) is not None:
        node, search = texts, False
    if not (search or node.assertions or encoding.end):
        return lowerer.plain(node)
    if not search:
        return _run(lowerer.resolve(node, lowerer.rest(lowerer.end))).expressions[AT_START]
    any_text = lowerer.plain(_ANY_TEXT)
    options = node.options if isinstance(node, Alternation) else (node,)
    free = alternation(option for option in options if not option.assertions)
    found = []
    for option in (free, *(option for option in options if option.assertions)):
        rest = _run(lowerer.resolve(option, lowerer.rest(store.concat(any_text, lowerer.end))))
        found.append(_run(lowerer.resolve(_ANY_TEXT, rest)).expressions[AT_START])
    return store.union(found)


def _texts_with(node: Node) -> Node | None:
    """The texts in which `node` is found, if it has no assertions but ``^`` before and ``$`` behind its options."""
    bodies: dict[tuple[bool, bool], list[Node]] = {}  # by whether there is an assertion before and behind
    for option in node.options if isinstance(node, Alternation) else (node,):
        parts = option.parts if isinstance(option, Concat) else (option,)
        begins, ends = parts[0] == Assertion("text_start"), parts[-1] == Assertion("text_end")
        body = parts[begins : len(parts) - ends]
        if any(part.assertions for part in body):
            return None
        bodies.setdefault((begins, ends), []).append(concat(body))
    return alternation(
        concat([*(() if begins else (_ANY_TEXT,)), alternation(group), *(() if ends else (_ANY_TEXT,))])
        for (begins, ends), group in bodies.items()
    )


def lower_regex(constraint: Regex, store: ExpressionStore) -> int:
    """The expression of a Regex constraint. Raises what `tokdfa.regex.parse.parse` and `lower` raise."""
    from tokdfa.regex.parse import parse

    node = parse(constraint.pattern, constraint.flags, constraint.ascii_classes)
    return lower(node, store, constraint.search)


def lower_choice(constraint: Choice, store: ExpressionStore) -> int:
    """The expression of a Choice constraint: a tree with shared prefixes; equal subtrees are one expression.

    O(bytes) constructor work after sorting.
    """
    return literal_tree(constraint.as_bytes(), store)


@dataclass(frozen=True)
class _Rest:
    """What follows, up to the end of the text: an expression by context. It is `node` and behind it `parent`."""

    expressions: ByContext
    node: Node | None = None
    parent: _Rest | None = None

    @property
    def is_uniform(self) -> bool:
        return len(set(self.expressions)) == 1


class _Lowerer(Writer):
    """The recursive functions, as generators that yield their recursive calls to `_run`. All make expressions."""

    def __init__(self, store: ExpressionStore, encoding: Encoding, kinds: frozenset[str]) -> None:
        """`kinds`: of the assertions that there are."""
        super().__init__(store, encoding)
        self.end = store.literal(encoding.end)
        by_zones = any(map(boundaries.is_agreed, kinds))
        to_python = any(kind.endswith(boundaries.TO_PYTHON) for kind in kinds)
        self.leaving = boundaries.leaving(to_python) if by_zones else _LEAVING
        # by the node's identity (hashing a tree would walk it); the node is kept, so that its id stays its own
        self._anchored: dict[tuple[int, bool, bool], tuple[Node, Node]] = {}

    def everywhere(self, expression: int) -> ByContext:
        """The same in each context."""
        return (expression,) * (1 + len(self.leaving))

    def rest(self, expression: int) -> _Rest:
        """The rest that is `expression` in each context."""
        return _Rest(self.everywhere(expression))

    def resolve(self, node: Node, rest: _Rest) -> Task:
        """The rest that begins with `node`; see the laws in the module's docstring."""
        match node:
            case _ if not node.assertions:
                expressions = yield self.prepend(node, rest)
            case Concat(parts=parts):
                for part in reversed(_join_free_parts(parts)):
                    rest = yield self.resolve(part, rest)
                return rest
            case Alternation(options=options):
                free = alternation(option for option in options if not option.assertions)
                resolved = []
                for option in (free, *(option for option in options if option.assertions)):
                    resolved.append((yield self.resolve(option, rest)))
                expressions = self.unite(*(one.expressions for one in resolved))
            case Repeat(body=body, low=0, high=1):
                expressions = self.unite((yield self.resolve(body, rest)).expressions, rest.expressions)
            case Repeat(body=body) if body.assertions <= _TEXT_ANCHORS and not _doubles(body):
                expressions = yield self.resolve_anchored_repeat(node, rest)
            case Repeat():
                expressions = self.everywhere(self.store.concat(self.plain(node), self.unresolved(rest)))
            case Assertion(kind=kind):
                expressions = self.assert_here(kind, rest)
            case LookAhead(body=body, negative=negative):
                ahead = (yield self.resolve(body, self.rest(ANY_BYTES))).expressions
                if negative:
                    ahead = self.each(self.store.complement, ahead)
                expressions = self.each(self.both, rest.expressions, ahead)
            case _:
                raise AssertionError(node)
        return _Rest(expressions, node, rest)

    def behind(self, node: Node, search: bool) -> Task:
        """The texts of a concatenation with look-behinds, none of them inside a group.

        What stands before one is all of the text up to there, so it is intersected with what it must end with.
        """
        store, parts = self.store, node.parts if isinstance(node, Concat) else (node,)
        any_text = self.plain(_ANY_TEXT)
        before = any_text if search else EMPTY
        if parts[0] == Assertion("text_start"):
            before, parts = EMPTY, parts[1:]
        last = max(k for k, part in enumerate(parts) if isinstance(part, LookBehind))
        for part in parts[: last + 1]:
            if isinstance(part, LookBehind):
                ending = store.concat(ANY_BYTES, self.plain(part.body))
                before = self.both(before, store.complement(ending) if part.negative else ending)
            else:
                before = store.concat(before, self.plain(part))
        end = store.concat(any_text, self.end) if search else self.end
        rest = yield self.resolve(concat(parts[last + 1 :]), self.rest(end))
        return store.concat(before, rest.expressions[AFTER_OTHER])

    def prepend(self, node: Node, rest: _Rest) -> Task:
        """`node`, which has no assertion, before `rest`."""
        store, after = self.store, rest.expressions
        if rest.is_uniform:
            return self.everywhere(self.expression(self.program.concat((self.write(node), known(after[0])))))
        by_rest: dict[int, list[int]] = {}  # expression -> the contexts in which it follows
        for context in self.leaving:
            by_rest.setdefault(after[context], []).append(context)
        consumed = []
        for expression, contexts in by_rest.items():
            allowed = union(*(self.leaving[context] for context in contexts))
            if expression != NOTHING:
                consumed.append(store.concat((yield self.ending_in(node, allowed)), expression))
        read = self.everywhere(store.union(consumed))
        return self.unite(read, after) if node.nullable else read

    def ending_in(self, node: Node, last: Ranges) -> Task:
        """The matches of `node`, which has no assertion, that are not empty and whose last character is in `last`."""
        store = self.store
        match node:
            case CharSet(ranges=ranges):
                return self.char_set(intersection(ranges, last))
            case Concat(parts=parts):
                result, is_last = NOTHING, True  # of the parts seen; whether the part before them can be the last
                for part in reversed(parts):
                    result = store.concat(self.plain(part), result)
                    if is_last:
                        result = store.union([result, (yield self.ending_in(part, last))])
                        is_last = part.nullable
                return result
            case Alternation(options=nodes):
                options = []
                for option in nodes:
                    options.append((yield self.ending_in(option, last)))
                return store.union(options)
            case Repeat(body=body, low=low, high=high):
                ending, whole = (yield self.ending_in(body, last)), self.plain(body)
                if ending == whole:  # so does every match of the loop
                    return store.repeat(whole, max(low, 1), high)
                before = store.repeat(whole, max(low - 1, 0), None if high is None else high - 1)
                return store.concat(before, ending)
        return NOTHING

    def resolve_anchored_repeat(self, node: Repeat, rest: _Rest) -> Task:
        """A loop whose only assertions are ``^`` and ``$``."""
        body, low, high = node.body, node.low, node.high
        if "text_start" not in body.assertions:
            return (yield self.resolve_later_rounds(body, low, high, rest))
        later = yield self.resolve_later_rounds(body, low, high, rest)
        empty_at_start = (yield self.with_anchors(body, start=True, end=False)).nullable
        empty_in_empty_text = (yield self.with_anchors(body, start=True, end=True)).nullable
        fewer = 0 if empty_at_start else max(low - 1, 0)
        behind = later
        if (fewer, high) != (low, None):
            behind = yield self.resolve_later_rounds(body, fewer, None if high is None else high - 1, rest)
        first = yield self.resolve(body, _Rest((NOTHING, *behind[1:])))
        options = [first.expressions[AT_START]]
        if low == 0 or empty_at_start:
            options.append(rest.expressions[AT_START])
        elif empty_in_empty_text:
            options.append(self.both(rest.expressions[AT_START], self.end))
        return (self.store.union(options), *later[1:])

    def resolve_later_rounds(self, body: Node, low: int, high: int | None, rest: _Rest) -> Task:
        """The same loop with ``^`` taken for false."""
        free = yield self.with_anchors(body, start=False, end=False)
        through = (yield self.resolve(repeat(free, low, high), rest)).expressions
        if "text_end" not in body.assertions:
            return through
        last = yield self.resolve(body, _Rest(self.each(self.both, rest.expressions, self.everywhere(self.end))))
        empty_at_end = (yield self.with_anchors(body, start=False, end=True)).nullable
        fewer = 0 if empty_at_end else max(low - 1, 0)
        before_last = repeat(free, fewer, None if high is None else high - 1)
        return self.unite(through, (yield self.resolve(before_last, last)).expressions)

    def with_anchors(self, node: Node, *, start: bool, end: bool) -> Task:
        """`node` with ``^`` and ``$`` replaced by what they are here: true (empty) or false."""
        if not node.assertions:
            return node
        key = id(node), start, end
        if key not in self._anchored:
            self._anchored[key] = node, (yield self.make_with_anchors(node, start, end))
        return self._anchored[key][1]

    def make_with_anchors(self, node: Node, start: bool, end: bool) -> Task:
        match node:
            case Assertion(kind=kind):
                return EMPTY_NODE if (start if kind == "text_start" else end) else NEVER
            case Concat(parts=children) | Alternation(options=children):
                replaced = []
                for child in children:
                    replaced.append((yield self.with_anchors(child, start=start, end=end)))
                return concat(replaced) if isinstance(node, Concat) else alternation(replaced)
            case Repeat(body=body, low=low, high=high):
                return repeat((yield self.with_anchors(body, start=start, end=end)), low, high)
        raise AssertionError(node)

    def unresolved(self, rest: _Rest) -> int:
        """`rest` as one expression for all contexts, with zero-width nodes where contexts matter."""
        pieces = []
        while not rest.is_uniform:
            # only the loops of resolve_anchored_repeat make rests without a node, and nothing inside them asks
            assert rest.node is not None
            assert rest.parent is not None
            pieces.append(self.plain(rest.node))
            rest = rest.parent
        return self.store.concat(*pieces, rest.expressions[0])

    def assert_here(self, kind: str, rest: _Rest) -> ByContext:
        """`rest` where an assertion holds."""
        store, after = self.store, rest.expressions
        if kind == "text_start":
            return (after[AT_START], *self.everywhere(NOTHING)[1:])
        if kind == "line_start":
            return (after[AT_START], after[AFTER_NEWLINE], *self.everywhere(NOTHING)[2:])
        if kind == "text_end":
            return self.each(self.both, after, self.everywhere(self.end))
        if kind == "line_end":
            newline = store.union([self.end, store.concat(self.char_set(NEWLINE), ANY_BYTES)])
            return self.each(self.both, after, self.everywhere(newline))
        if boundaries.is_agreed(kind):
            wanted = tuple(self.next_of(boundaries.zones_that_fit(kind, context)) for context in range(len(after)))
            return self.each(self.both, after, wanted)
        next_is_word = store.concat(self.char_set(_ASCII_WORD), ANY_BYTES)
        next_is_no_word = store.complement(next_is_word)
        inside_word = next_is_no_word if kind == "word_boundary" else next_is_word
        outside_word = next_is_word if kind == "word_boundary" else next_is_no_word
        wanted = tuple(inside_word if context == AFTER_WORD else outside_word for context in CONTEXTS)
        return self.each(self.both, after, wanted)

    def next_of(self, zones: frozenset[str]) -> int:
        """All rests that begin with a character of some zones, or the end if it is among these."""
        store, ranges = self.store, union(*(boundaries.zones()[zone] for zone in zones - {"end"}))
        begun = store.concat(self.char_set(ranges), ANY_BYTES) if ranges else NOTHING
        return store.union([begun, self.end]) if "end" in zones else begun

    def both(self, left: int, right: int) -> int:
        return self.store.intersection([left, right])

    def each(self, function: Callable[..., int], *operands: ByContext) -> ByContext:
        return tuple(map(function, *operands))

    def unite(self, *operands: ByContext) -> ByContext:
        return tuple(self.store.union(expressions) for expressions in zip(*operands, strict=True))


#: A recursive function under way: it yields the calls it makes, or their results if known, and is sent their results.
Task: TypeAlias = "Generator[Any, Any, Any]"


def _run(task: Task) -> Any:
    """The result of `task`, whose recursive calls wait on a list instead of the Python stack."""
    waiting, result = [task], None
    while waiting:
        try:
            call = waiting[-1].send(result)
        except StopIteration as done:
            waiting.pop()
            result = done.value
        else:
            if isinstance(call, GeneratorType):
                waiting.append(call)
                result = None
            else:
                result = call
    return result


def _doubles(body: Node) -> bool:
    """True if resolving a loop around `body` would resolve a loop inside more than once."""
    loops = (inner for inner in walk(body) if isinstance(inner, Repeat) and inner.assertions)
    return body.assertions == _TEXT_ANCHORS and any(inner.high != 1 for inner in loops)


def _join_free_parts(parts: Iterable[Node]) -> list[Node]:
    """`parts` with neighbours that have no assertion made one."""
    joined: list[Node] = []
    for asserting, group in groupby(parts, key=lambda part: bool(part.assertions)):
        neighbours = list(group)
        joined.extend(neighbours if asserting else [concat(neighbours)])
    return joined

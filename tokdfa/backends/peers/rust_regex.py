r"""From our regexes to those of the Rust crate ``regex-syntax``, on which llguidance, outlines-core and glrmask build.

The *exact* form. Our parser resolves everything in which dialects differ (flags, escapes, named classes and their
Unicode version, case folding, laziness) into a syntax tree of sets, sequences, alternatives and repeats. That tree is
printed with nothing but letters, digits, ``\x{..}``, classes of ``\x{..}-\x{..}``, ``(?:..|..)`` and ``{m,n}``, which
every version of that crate reads alike (and xgrammar, once ``\x{..}`` is written as ``\u{..}``). A surrogate is no Rust
character and occurs in no UTF-8 text; sets lose them.

Anchors. A full match begins at the start and stops at the end, so ``^`` at the left edge and ``$`` at the right edge
say nothing new and go away, also inside alternatives: ``(^|x)y($|z)`` has four branches. In a search, a branch gets
``(any character)*`` on each side that is not anchored. Other assertions (``^`` after something that may be empty,
line anchors, word boundaries, look-ahead) have no counterpart in the peers, and are refused by name.

The *own* form is the pattern as written; only flags and search, which are not part of it, are put around it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.regex.char_sets import ALL, SURROGATES, Ranges, difference
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import (
    EMPTY_NODE,
    Alternation,
    Assertion,
    CharSet,
    Concat,
    Empty,
    Node,
    Repeat,
    alternation,
    concat,
)

if TYPE_CHECKING:
    from tokdfa.constraint import Choice, Grammar, Regex

#: More branches than this come from no pattern that a person wrote.
MAX_BRANCHES = 1000
_ANY_TEXT = Repeat(CharSet(ALL), 0, None)
_TEXT_ANCHORS = frozenset({"text_start", "text_end"})
_SAID = {
    "line_start": "a line anchor (^ with flag m)",
    "line_end": "a line anchor ($ with flag m)",
    "word_boundary": r"a word boundary (\b)",
    "not_word_boundary": r"a word boundary (\B)",
    "look_ahead": "a look-ahead",
    "look_behind": "a look-behind",
}


@lru_cache(maxsize=256)
def exact_pattern(constraint: Regex) -> str:
    """A Rust regex whose full matches are exactly the texts of `constraint`. Linear in the size of the syntax tree.

    Raises RegexSyntaxError (a pattern that is wrong), EmptyLanguageError, and UnsupportedConstraint for an assertion
    that only an engine with look-around can express.
    """
    node = parse(constraint.pattern, constraint.flags, constraint.ascii_classes)
    beyond = sorted(node.assertions - _TEXT_ANCHORS)
    if beyond:
        raise UnsupportedConstraint(
            f"{_SAID[beyond[0]]} in {constraint.name!r} cannot be told to this engine; token_index can take it"
        )
    printed = _print_node(_resolve_anchors(node, constraint))
    if printed is None:
        raise EmptyLanguageError(f"no text matches {constraint.name!r}; nothing could be generated")
    return printed


def own_pattern(constraint: Regex) -> str:
    """The pattern as written, with its flags and with search put around it. The peer reads it by its own rules.

    Raises UnsupportedConstraint for `ascii_classes`, which Rust's syntax has no flag for that keeps text UTF-8.
    """
    if constraint.ascii_classes:
        raise UnsupportedConstraint("ascii_classes cannot be told to this engine; use dialect='tokdfa'")
    pattern = constraint.pattern
    if constraint.flags:
        # the line end closes a comment that flag x may have opened
        closing = "\n)" if "x" in constraint.flags else ")"
        pattern = f"(?{constraint.flags}:{pattern}{closing}"
    return f"(?s:.*)(?:{pattern})(?s:.*)" if constraint.search else pattern


def choice_pattern(choice: Choice) -> str:
    """A Rust regex for exactly these texts, each longer text before its prefixes.

    An engine that prefers the first alternative then still finds them all. Raises UnsupportedConstraint for bytes that
    are no UTF-8.
    """
    try:
        texts = [text.decode() for text in reversed(choice.as_bytes())]
    except UnicodeDecodeError as error:
        raise UnsupportedConstraint(
            f"the choice {error.object!r} is no UTF-8, and this engine's regexes match UTF-8 only; "
            "token_index takes any bytes"
        ) from None
    return f"(?:{'|'.join(''.join(map(_print_character, map(ord, text))) for text in texts)})"


def escape_slashes(pattern: str) -> str:
    """`pattern` as it may stand between two slashes in a Lark grammar."""
    escaped, backslash = [], False
    for character in pattern:
        escaped.append(r"\/" if character == "/" and not backslash else character)
        backslash = character == "\\" and not backslash
    return "".join(escaped)


def with_start_rule(grammar: Grammar) -> str:
    """The text of a grammar, with a rule ``start`` if its start symbol has another name."""
    if grammar.start == "start":
        return grammar.text
    return f"{grammar.text}\nstart: {grammar.start}\n"


# Anchors.


def _resolve_anchors(node: Node, constraint: Regex) -> Node:
    """A node without assertions for the texts of `constraint`."""
    if not constraint.search:
        return alternation(body for _, body, _ in _branches(node, constraint)) if node.assertions else node
    return alternation(
        concat([EMPTY_NODE if left else _ANY_TEXT, body, EMPTY_NODE if right else _ANY_TEXT])
        for left, body, right in _branches(node, constraint)
    )


def _branches(node: Node, constraint: Regex) -> list[tuple[bool, Node, bool]]:
    """(anchored left, body without assertions, anchored right) for alternatives that together are `node`."""
    found: list[tuple[bool, Node, bool]] = []
    pending = [(False, node, False)]
    while pending:
        left, current, right = pending.pop()
        if not current.assertions:
            found.append((left, current, right))
        elif isinstance(current, Assertion):
            found.append((left or current.kind == "text_start", EMPTY_NODE, right or current.kind == "text_end"))
        elif (options := _options(current)) is not None:
            pending.extend((left, option, right) for option in reversed(options))
        elif isinstance(current, Concat) and "text_start" in (first := current.parts[0]).assertions:
            rest = current.parts[1:]
            if isinstance(first, Assertion):
                pending.append((True, concat(rest), right))
            else:
                pending.extend((left, concat([o, *rest]), right) for o in reversed(_edge(first, constraint)))
        elif isinstance(current, Concat) and "text_end" in (last := current.parts[-1]).assertions:
            rest = current.parts[:-1]
            if isinstance(last, Assertion):
                pending.append((left, concat(rest), True))
            else:
                pending.extend((left, concat([*rest, o]), right) for o in reversed(_edge(last, constraint)))
        else:
            raise _misplaced(constraint)
        if len(found) + len(pending) > MAX_BRANCHES:
            raise UnsupportedConstraint(
                f"the anchors in {constraint.name!r} make more than {MAX_BRANCHES} cases; token_index can take it"
            )
    return found


def _options(node: Node) -> tuple[Node, ...] | None:
    """The alternatives of a node that is nothing but a choice between them."""
    if isinstance(node, Alternation):
        return node.options
    if isinstance(node, Repeat) and (node.low, node.high) == (0, 1):
        return node.body, EMPTY_NODE
    return None


def _edge(node: Node, constraint: Regex) -> tuple[Node, ...]:
    options = _options(node)
    if options is None:
        raise _misplaced(constraint)
    return options


def _misplaced(constraint: Regex) -> UnsupportedConstraint:
    return UnsupportedConstraint(
        f"an anchor inside {constraint.name!r}, away from its edges, cannot be told to this engine; "
        "token_index can take it"
    )


# Printing. One Python frame a node and no more, so that the deepest pattern the parser reads can be printed.


def _print_node(node: Node) -> str | None:
    """The Rust regex of `node`, or None if it matches no UTF-8 text."""
    match node:
        case CharSet(ranges=ranges):
            return _print_set(difference(ranges, SURROGATES))
        case Concat(parts=parts):
            printed = []
            for part in parts:
                piece = _print_node(part)
                if piece is None:
                    return None
                printed.append(f"(?:{piece})" if isinstance(part, Alternation) else piece)
            return "".join(printed)
        case Alternation(options=options):
            possible = []
            for option in options:
                piece = _print_node(option)
                if piece is not None:
                    possible.append(piece)
            return "|".join(possible) if possible else None
        case Repeat(body=body, low=low, high=high):
            piece = _print_node(body)
            if piece is None:
                return "" if low == 0 else None
            return (piece if isinstance(body, CharSet) else f"(?:{piece})") + _print_counts(low, high)
        case Empty():
            return ""
    raise AssertionError(f"an assertion is left in the tree: {node!r}")


def _print_counts(low: int, high: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    if short:
        return short
    if high is None:
        return f"{{{low},}}"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _print_set(ranges: Ranges) -> str | None:
    if not ranges:
        return None
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _print_character(ranges[0][0])
    printed = (
        _print_character(first) + ("" if first == last else f"-{_print_character(last)}") for first, last in ranges
    )
    return f"[{''.join(printed)}]"


def _print_character(code_point: int) -> str:
    character = chr(code_point)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code_point:x}}}"

r"""Muting: the literal words of a constraint, each spelled by one fixed sequence of tokens.

Why. Every letter of a literal is a byte that the automaton must tell apart from the others, so each literal splits byte
classes and with them token classes, and every token that overlaps it needs transitions of its own. Muting takes the
literals out of the byte language before the automaton is built.

Words. A *literal* is a maximal run of neighbouring alphanumeric characters (`str.isalnum`) in a sequence, each written
as one character: a class of several characters is none of them, and nothing inside a counted repeat is. The body of
``? * +`` is looked at by itself: ``https?`` is ``http`` and ``s``, ``abc+`` is ``ab`` and ``c``. To the parsed tree a
class of one character is that character, and so are a group and its contents. The *spelling* of a literal is the one
of `tokdfa.backends.tokens_dfa.fewest_tokens`. A *bound token* is a symbol outside the 256 bytes, bound to one token;
each token that occurs in a spelling has one. A *muted* literal is replaced by the bound tokens of its spelling. A
literal that the vocabulary cannot spell stays as it is.

The language. A word of the muted expression is a string of bytes and bound tokens. Its token sequences are those that
one gets by cutting it into pieces, each a single bound token (which stands for its token) or a non-empty run of bytes
(which stands for any token with these bytes). So a muted literal has one spelling, and no token runs across its edges:
the texts stay the same (if the vocabulary spells what is left in bytes), the token sequences become fewer.

Codes. The functions that make automata read bytes. Until the automaton is complete a bound token is therefore written
as a *code*: a byte string whose first byte, its *lead*, occurs in no text of the constraint. All codes have one length,
so none is a prefix of another, and an automaton over texts with codes is one over bytes and bound tokens in disguise.
`tokdfa.backends.tokens_dfa.contraction.contract` takes the disguise off.

Source: 001, part 5. Departures: it rewrites the pattern's text, with 0x1C and a number for a bound token, which may
occur in texts and which it calls unfinished for tricky patterns; here the parsed tree is rewritten, and leads occur in
no text.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, islice, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tokdfa.backends.tokens_dfa.fewest_tokens import spell_in_fewest_tokens
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, UnsupportedConstraint
from tokdfa.regex.char_sets import ALL
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.literals import literal_tree
from tokdfa.regex.lower import lower
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import (
    Alternation,
    Assertion,
    CharSet,
    Concat,
    Node,
    Repeat,
    Symbol,
    concat,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: The bytes that occur in no UTF-8 text (Unicode, section 3.9, table 3-7), ascending.
NOT_IN_UTF8 = bytes([0xC0, 0xC1, *range(0xF5, 0x100)])
#: The repeats whose body is searched for literals: ``? * +``.
_LOOPS = ((0, 1), (0, None), (1, None))
_ANY_TEXT = Repeat(CharSet(ALL), 0, None)
# Runs of alphanumeric characters; the group makes `split` keep them, at the odd places of its result.
_RUN = re.compile(r"([^\W_]+)")
_ASCII_RUN = re.compile(rb"([0-9A-Za-z]+)")


class MutedLiteral(NamedTuple):
    """A literal as UTF-8 `text`, the `tokens` of its spelling, and at how many places of the constraint it stands."""

    text: bytes
    tokens: tuple[int, ...]
    occurrences: int


class Muting(NamedTuple):
    """What was muted.

    `literals`: the distinct muted literals, in order of first occurrence (in a regex: outer groups before inner ones);
    `unspelled`: the distinct literals that the vocabulary cannot spell; `bound_token_ids`: int32, shape (G,),
    read-only, the token of each bound token, bound tokens being numbered by their first use in `literals`; `codes`: the
    code of each bound token.
    """

    literals: tuple[MutedLiteral, ...]
    unspelled: tuple[bytes, ...]
    bound_token_ids: npt.NDArray[np.int32]
    codes: tuple[bytes, ...]

    def codes_by_literal(self) -> dict[bytes, list[bytes]]:
        """For each muted literal the codes of the bound tokens that replace it."""
        code_of = dict(zip(self.bound_token_ids.tolist(), self.codes, strict=True))
        return {literal.text: [code_of[token] for token in literal.tokens] for literal in self.literals}


def compile_muted(constraint: Constraint, vocab: Vocabulary, *, max_states: int = 1_000_000) -> tuple[LazyDfa, Muting]:
    """The lazy DFA of a Regex or a Choice with its literals muted, over bytes and codes, and what was muted.

    Make it explicit and minimal as usual, then `contract` it. Its `bytes_read` include those of the codes. Raises what
    `tokdfa.regex.compile.compile_lazy` raises, and UnsupportedConstraint where muting is impossible (see `mute_regex`
    and `mute_choice`). Beyond parsing and lowering: some microseconds a literal.
    """
    store = ExpressionStore()
    if isinstance(constraint, Regex):
        tree, muting = mute_regex(constraint, vocab)
        root = lower(tree, store)
    elif isinstance(constraint, Choice):
        texts, muting = mute_choice(constraint, vocab)
        root = literal_tree(texts, store)
    else:
        raise UnsupportedConstraint(f"literals are muted in a regex or a choice, not in a {constraint.kind}")
    dfa = LazyDfa(store, root, max_states)
    if dfa.is_empty:
        raise EmptyLanguageError(f"no text matches {constraint.name!r}; nothing could be generated")
    return dfa, muting


def mute_regex(constraint: Regex, vocab: Vocabulary) -> tuple[Node, Muting]:
    """The muted syntax tree, to be matched whole even for a search: then the free text around it is part of the tree.

    ``^`` at the very start and ``$`` at the very end are resolved. UnsupportedConstraint for any other assertion or
    look-ahead, which could look into a literal. Raises what `tokdfa.regex.parse.parse` raises.
    """
    tree = _resolve_outer_anchors(parse(constraint.pattern, constraint.flags, constraint.ascii_classes), constraint)
    searched = _searched_nodes(tree)
    occurrences = Counter(text for _, pieces in searched for text, _ in pieces if text)
    muting = _mute_literals(occurrences, NOT_IN_UTF8, vocab, constraint)
    symbols = {text: [Symbol(code) for code in codes] for text, codes in muting.codes_by_literal().items()}
    return _replace_literals(searched, symbols), muting


def mute_choice(constraint: Choice, vocab: Vocabulary) -> tuple[list[bytes], Muting]:
    """The texts with codes for their literals, distinct and sorted. O(bytes) beyond the spelling.

    A literal is a maximal alphanumeric run of a text; in a text that is not UTF-8, an ASCII one. UnsupportedConstraint
    if the texts contain every byte that could be a lead.
    """
    texts = constraint.as_bytes()
    split_texts = [_split_text(text) for text in texts]
    occurrences = Counter(run for pieces in split_texts for run in pieces[1::2])
    contained = set().union(*texts)
    leads = bytes(byte for byte in NOT_IN_UTF8 if byte not in contained)
    muting = _mute_literals(occurrences, leads, vocab, constraint)
    coded = {text: b"".join(codes) for text, codes in muting.codes_by_literal().items()}
    return sorted(b"".join(coded.get(piece, piece) for piece in pieces) for pieces in split_texts), muting


def _mute_literals(occurrences: Mapping[bytes, int], leads: bytes, vocab: Vocabulary, constraint: Constraint) -> Muting:
    """Spell the literals, number the bound tokens and give them codes."""
    literals, unspelled = [], []
    for (text, count), tokens in zip(
        occurrences.items(), spell_in_fewest_tokens(list(occurrences), vocab), strict=True
    ):
        if tokens is None:
            unspelled.append(text)
        else:
            literals.append(MutedLiteral(text, tokens, count))
    bound_tokens = list(dict.fromkeys(token for literal in literals for token in literal.tokens))
    if bound_tokens and not leads:
        raise UnsupportedConstraint(
            f"the texts of {constraint.name!r} contain all bytes that UTF-8 leaves free, so none can stand for the "
            "tokens of muted literals; set mute_literals=False"
        )
    bound_token_ids = np.array(bound_tokens, dtype=np.int32)
    bound_token_ids.flags.writeable = False
    return Muting(tuple(literals), tuple(unspelled), bound_token_ids, _make_codes(len(bound_tokens), leads))


def _make_codes(count: int, leads: bytes) -> tuple[bytes, ...]:
    """`count` byte strings of one length, the shortest that will do, ascending.

    The bytes after the lead are leads again, so that codes do not split the byte classes of texts: codes add at most 13
    classes. Only if there is a single lead they are any bytes.
    """
    following = leads if len(leads) > 1 else bytes(range(256))
    length = 1
    while count > len(leads) * len(following) ** (length - 1):
        length += 1
    return tuple(bytes(code) for code in islice(product(leads, *[following] * (length - 1)), count))


# Regexes.

#: A part of a sequence: (its text, its characters) of a literal, (b"", nodes) of what lies between literals.
Piece: TypeAlias = tuple[bytes, list[Node]]


def _resolve_outer_anchors(tree: Node, constraint: Regex) -> Node:
    """`tree` without ``^`` at its start and ``$`` at its end; with any text where a search leaves it free."""
    parts = list(tree.parts) if isinstance(tree, Concat) else [tree]
    free_before = free_behind = constraint.search
    while parts and parts[0] == Assertion("text_start"):
        del parts[0]
        free_before = False
    while parts and parts[-1] == Assertion("text_end"):
        del parts[-1]
        free_behind = False
    tree = concat([_ANY_TEXT] * free_before + parts + [_ANY_TEXT] * free_behind)
    if tree.assertions:
        raise UnsupportedConstraint(
            f"{constraint.name!r} has {', '.join(sorted(tree.assertions))} inside, which could look into a literal; "
            "literals are muted only in patterns with no assertion but ^ at the start and $ at the end: "
            "set mute_literals=False"
        )
    return tree


def _searched_nodes(tree: Node) -> list[tuple[Node, list[Piece]]]:
    """The nodes that may hold literals, each with its pieces if it is a sequence; parents first.

    Characters are among them only where they stand alone, as sequences of one.
    """
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        pieces: list[Piece] = []
        match node:
            case Concat(parts=parts):
                pieces = _cut(parts)
                pending.extend(part for part in reversed(parts) if not isinstance(part, CharSet))
            case CharSet():
                pieces = _cut([node])
            case Alternation(options=options):
                pending.extend(reversed(options))
            case Repeat(body=body) if (node.low, node.high) in _LOOPS:
                pending.append(body)
        found.append((node, pieces))
    return found


def _cut(parts: Iterable[Node]) -> list[Piece]:
    """A sequence in pieces."""
    pieces = []
    for is_run, group in groupby(parts, key=_is_alphanumeric):
        nodes = list(group)
        text = "".join(chr(part.ranges[0][0]) for part in nodes if isinstance(part, CharSet)) if is_run else ""
        pieces.append((text.encode(), nodes))
    return pieces


def _is_alphanumeric(node: Node) -> bool:
    if not isinstance(node, CharSet) or len(node.ranges) != 1:
        return False
    first, last = node.ranges[0]
    return first == last and chr(first).isalnum()  # a surrogate is not, so all literals can be encoded


def _replace_literals(searched: list[tuple[Node, list[Piece]]], symbols: Mapping[bytes, list[Symbol]]) -> Node:
    """The tree with the muted literals replaced. Children come before parents, so no nesting exhausts the stack."""
    replaced: dict[int, Node] = {}  # changed nodes by identity: hashing a node would walk the tree below it
    for node, pieces in reversed(searched):
        match node:
            case Concat() | CharSet():
                # a character may be the same object wherever it stands, so those of a run are not looked up by identity
                gaps = (part for text, nodes in pieces for part in nodes if not text)
                if not any(text in symbols for text, _ in pieces) and not any(id(part) in replaced for part in gaps):
                    continue
                parts: list[Node] = []
                for text, nodes in pieces:
                    parts.extend(symbols.get(text, nodes) if text else (replaced.get(id(part), part) for part in nodes))
                replaced[id(node)] = Concat(tuple(parts)) if len(parts) > 1 else parts[0]
            case Alternation(options=options):
                if any(id(option) in replaced for option in options):
                    replaced[id(node)] = Alternation(tuple(replaced.get(id(option), option) for option in options))
            case Repeat(body=body) if (node.low, node.high) in _LOOPS and id(body) in replaced:
                replaced[id(node)] = Repeat(replaced[id(body)], node.low, node.high)
    tree = searched[0][0]
    return replaced.get(id(tree), tree)


# Choices.


def _split_text(text: bytes) -> list[bytes]:
    """What stands between literals and the literals of a text, in turn; what is between may be empty."""
    try:
        return [piece.encode() for piece in _RUN.split(text.decode())]
    except UnicodeDecodeError:
        return _ASCII_RUN.split(text)

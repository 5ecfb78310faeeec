"""From merged pieces to tokens: whole pieces, markers, and what the tokens before the constraint leave open.

*Whole pieces.* Some tokenizers make a piece that is a token into that token at once. For the few tokens that merging
would not make (improper ones), the encoding that merging gives is improper as a whole piece, and the token itself is
proper as a whole piece only. `use_whole_pieces` runs the automaton beside the tokens of the piece so far, as long as
they begin such an encoding.

*Markers* are erased by the subset construction: what may follow a marker may follow at once. A text has one marking
only, so a sequence has one path at most, and sets stay small.

*Context.* Tokens before the constrained text matter in three ways. The last of them may merge with the first token to
come, unless a border stands between them. The pre-tokenizer has read them, and is in one of several states, as borders
near the end may depend on what follows. And the piece that they have begun may become a whole piece. A *hypothesis*
is a state of the pre-tokenizer with the piece so far. `read_context` follows all hypotheses in which the context is
proper; where there is none (the context is improper whatever follows), its pairs are not held against it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.errors import UnsupportedConstraint
from tokdfa.token_automata.direct_merge_state import too_large
from tokdfa.token_automata.letter_automaton import marker_letter
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.bpe.canonical import Canonicity
    from tokdfa.bpe.pretokenizer_dfa import MarkedDfa

#: The tokens of a piece so far, as long as they begin the encoding of a whole piece; else None.
Piece = tuple[int, ...] | None
#: Where a pre-tokenizer may be after the tokens so far (state 0 if there is none), and with which piece.
Hypotheses = frozenset[tuple[int, Piece]]
#: In place of a piece: a whole piece has been read, and nothing may follow in it.
_COMPLETE: Piece = (-1,)


@dataclass(frozen=True)
class Context:
    """What the tokens before the constrained text leave open.

    `last`: the token that the next one may merge with, -1 if the text begins here. `inside`: the state of the byte
    fallback.
    """

    last: int
    inside: int
    hypotheses: Hypotheses


def encoding_prefixes(canonicity: Canonicity) -> frozenset[tuple[int, ...]]:
    """Every beginning of an encoding that a whole piece replaces, the empty one included."""
    encodings = canonicity.whole_piece_of
    return frozenset({(), *(tokens[:size] for tokens in encodings for size in range(len(tokens) + 1))})


def since_last_cut(canonicity: Canonicity, context: Sequence[int]) -> Sequence[int]:
    """The tokens after the last special or isolated one: there the text begins. VocabularyError for a bad id."""
    isolated = canonicity.source.isolated
    cuts = [
        place
        for place, token in enumerate(context)
        if token in isolated or not canonicity.vocabulary.token_bytes(token)
    ]
    return context[cuts[-1] + 1 :] if cuts else context


def read_context(canonicity: Canonicity, marked: MarkedDfa | None, context: Sequence[int]) -> Context:
    """Follow `context` (token ids). O(bytes of the context x hypotheses), a few us a token.

    The text begins anew after what is no text to the pre-tokenizer. Raises VocabularyError for an id outside the
    vocabulary.
    """
    prefixes = encoding_prefixes(canonicity)
    begin = 0 if marked is None else marked.start
    beginning = Context(-1, 0, frozenset({(begin, ())}))
    here = beginning
    for token in since_last_cut(canonicity, context):
        spelled = canonicity.vocabulary.token_bytes(token)
        proper: set[tuple[int, Piece]] = set()
        improper: set[tuple[int, Piece]] = set()
        joins = here.last < 0 or canonicity.pair_is_canonical(here.last, token)
        for state, piece in here.hypotheses:
            for before, so_far, fits in _ways_on(marked, state, piece, here.last, joins):
                after = 0 if marked is None else marked.run(spelled, before)
                if after >= 0:
                    (proper if fits else improper).add((after, _longer(so_far, token, prefixes)))
        alive = proper or improper
        here = Context(token, _inside(canonicity, here.inside, token), frozenset(alive)) if alive else beginning
    return here


def _ways_on(
    marked: MarkedDfa | None, state: int, piece: Piece, last: int, joins: bool
) -> list[tuple[int, Piece, bool]]:
    """(state, piece so far, whether it is proper) for going on with the piece and, at a border, with a new one."""
    ways = [(state, piece, joins)]
    if marked is not None and last >= 0 and marked.after_marker(state) >= 0:
        ways.append((marked.after_marker(state), (), True))
    return ways


def _longer(piece: Piece, token: int, prefixes: frozenset[tuple[int, ...]]) -> Piece:
    """`piece` and `token`, as long as they begin an encoding; without any encodings, pieces need not be told apart."""
    if len(prefixes) == 1:
        return piece
    longer = None if piece is None else (*piece, token)
    return longer if longer in prefixes else None


def _inside(canonicity: Canonicity, inside: int, token: int) -> int:
    """The state of the byte fallback after `token`; between two characters if the bytes make no sense."""
    fallback = canonicity.fallback
    byte = -1 if fallback is None else int(fallback.byte_of[token])
    return 0 if fallback is None or byte < 0 else max(0, int(fallback.table[inside, byte]))


def refuse_isolated(marked: MarkedDfa, canonicity: Canonicity, before: bytes = b"") -> None:
    """UnsupportedConstraint if a text of `marked`, with `before` in front of it, holds the text of an isolated token.

    O(states x bytes of isolated tokens).
    """
    for token in canonicity.source.isolated:
        text = canonicity.vocabulary.token_bytes(token)
        begun = [size for size in range(1, len(text)) if before.endswith(text[:size])]
        found = _spells(marked, text, range(marked.state_count)) or any(
            _spells(marked, text[size:], [marked.start]) for size in begun
        )
        if found:
            raise UnsupportedConstraint(
                f"a text of the constraint may hold {text!r}, the text of the isolated token {token}, which is cut out "
                "before anything merges; exclude it from the constraint"
            )


def _spells(marked: MarkedDfa, text: bytes, states: Iterable[int]) -> bool:
    """Whether `text` can be read from one of `states`, with markers anywhere."""
    alive = {state for state in states if state >= 0}
    for byte in text:
        alive |= {marked.after_marker(state) for state in alive}
        alive = {marked.step(state, byte) for state in alive} - {-1}
    return bool(alive)


def use_whole_pieces(rows: TokenRows, canonicity: Canonicity, begun: Piece = ()) -> TokenRows:
    """`rows`, with whole pieces in place of their encodings; `begun`: the piece so far at the start."""
    replaced = canonicity.whole_piece_of
    marker = marker_letter(canonicity)
    begins = [rows.start] if begun == () else []
    begins += [row[marker] for row in rows.rows if marker in row]
    if not begun and all(_read_whole(rows, *way, marker) < 0 for way in itertools.product(set(begins), replaced)):
        return rows
    prefixes = encoding_prefixes(canonicity)
    number: dict[tuple[int, Piece], int] = {(rows.start, begun): 0}
    found: list[tuple[int, Piece]] = [(rows.start, begun)]
    made: list[dict[int, int]] = []

    def number_of(state: int, piece: Piece) -> int:
        if (state, piece) not in number:
            number[state, piece] = len(found)
            found.append((state, piece))
        return number[state, piece]

    for state, piece in found:  # the loop sees what it appends
        row = {}
        for token, target in rows.rows[state].items():
            if token == marker:
                if piece not in replaced:
                    row[token] = number_of(target, ())
            elif piece != _COMPLETE:
                row[token] = number_of(target, _longer(piece, token, prefixes))
        if piece == ():
            for encoding, token in replaced.items():
                end = _read_whole(rows, state, encoding, marker)
                if end >= 0:
                    row[token] = number_of(end, _COMPLETE)
        made.append(row)
    accepting = [rows.accepting[state] and piece not in replaced for state, piece in found]
    return TokenRows(made, accepting, 0).trimmed()


def _read_whole(rows: TokenRows, state: int, encoding: tuple[int, ...], marker: int) -> int:
    """The state after `encoding`, read from `state`, if a piece may end there, else -1."""
    for token in encoding:
        state = rows.rows[state].get(token, -1)
        if state < 0:
            return -1
    return state if rows.accepting[state] or marker in rows.rows[state] else -1


def join_pieces(
    parts: Sequence[tuple[TokenRows, Piece]],
    canonicity: Canonicity,
    max_states: int,
    refused: frozenset[int] = frozenset(),
) -> TokenRows:
    """The automaton over tokens alone: whole pieces replaced, markers erased; trimmed.

    `parts`: automata with markers, in any of which the text may stand, with the piece so far; no sequence is in two.
    `refused`: tokens with which the text may not begin, unless a border stands before it. O(transitions) unless sets of
    states multiply; LimitExceeded past `max_states` of them.
    """
    marker = marker_letter(canonicity)
    rows: list[dict[int, int]] = []
    accepting: list[bool] = []
    starts = []
    for merged, begun in parts:
        part = use_whole_pieces(merged, canonicity, begun)
        if part.start < 0:
            continue
        if len(parts) == 1 and not refused and not any(marker in row for row in part.rows):
            return part
        shift = len(rows)
        rows += [{token: target + shift for token, target in row.items()} for row in part.rows]
        accepting += part.accepting
        # A start of its own, because other ways may lead back into the start.
        starts.append(len(rows))
        first = rows[part.start + shift]
        rows.append({token: target for token, target in first.items() if token not in refused})
        accepting.append(part.accepting[part.start])
    return _erase_markers(rows, accepting, starts, marker, max_states).trimmed()


def _erase_markers(
    rows: list[dict[int, int]], accepting: list[bool], starts: Iterable[int], marker: int, max_states: int
) -> TokenRows:
    """The subset construction, a marker being read without a token."""
    number: dict[frozenset[int], int] = {}
    found: list[frozenset[int]] = []

    def number_of(states: Iterable[int]) -> int:
        closed = set(states)
        agenda = list(closed)
        while agenda:
            beyond = rows[agenda.pop()].get(marker, -1)
            if beyond >= 0 and beyond not in closed:
                closed.add(beyond)
                agenda.append(beyond)
        group = frozenset(closed)
        if group not in number:
            if len(found) == max_states:
                raise too_large("states", max_states)
            number[group] = len(found)
            found.append(group)
        return number[group]

    number_of(starts)
    alone: dict[int, int] = {}  # state -> the number of its own set, which nearly all transitions lead to
    made = []
    for group in found:  # the loop sees what it appends
        together: dict[int, set[int]] = {}
        row: dict[int, int] = {}
        for state in group:
            for token, target in rows[state].items():
                if token in row:
                    together.setdefault(token, {row[token]}).add(target)
                elif token != marker:
                    row[token] = target
        for token, target in row.items():
            if token not in together:
                if target not in alone:
                    alone[target] = number_of([target])
                row[token] = alone[target]
        for token, targets in together.items():
            row[token] = number_of(targets)
        made.append(row)
    return TokenRows(made, [any(accepting[state] for state in group) for group in found], 0)

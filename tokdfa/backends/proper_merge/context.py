"""What the tokens before the constrained text leave open, and what no text of it may hold.

Tokens before the constrained text matter in three ways. The last of them may merge with the first token to
come, unless a border stands between them. The pre-tokenizer has read them, and is in one of several states, as borders
near the end may depend on what follows. And the piece that they have begun may become a whole piece. A *hypothesis*
is a state of the pre-tokenizer with what matters of the piece so far. `read_context` follows all hypotheses in which
the context is proper; where there is none (the context is improper whatever follows), its pairs are not held against
it.

*Isolated* tokens (`tokdfa.vocabulary.merge_source`) are cut out of a text before anything else happens, so a constraint
whose texts may hold the text of one is refused by every strategy that knows proper sequences only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.errors import UnsupportedConstraint
from tokdfa.proper.whole_pieces import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa

#: Where a pre-tokenizer may be after the tokens so far (state 0 if there is none), and the node of the whole pieces
#: (`tokdfa.proper.whole_pieces`) after those of the piece so far.
Hypotheses = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class ReadContext:
    """What the tokens before the constrained text leave open.

    `last`: the token that the next one may merge with, -1 if the text begins here. `inside`: the state of the byte
    fallback.
    """

    last: int
    inside: int
    hypotheses: Hypotheses


def begun_text(
    canonicity: Canonicity, marked: MarkedDfa | None, dfa: Dfa, context: Sequence[int]
) -> ReadContext | None:
    """What `context` leaves open for the texts of `dfa`; None if their text begins anew after it.

    Reading costs a few us a token. Raises UnsupportedConstraint if a text goes on with the text of an isolated token,
    VocabularyError for an unknown id.
    """
    tokens = _since_last_cut(canonicity, context)
    if not tokens:
        return None
    if canonicity.source.isolated:
        refuse_isolated(marked_product(dfa, None), canonicity, canonicity.vocabulary.spell(tokens))
    found = read_context(canonicity, marked, tokens)
    return found if found.last >= 0 else None


def no_way_on(name: str) -> UnsupportedConstraint:
    """The error for a context after which no text of the constraint `name` goes on."""
    return UnsupportedConstraint(
        f"after the given context no text of {name!r} goes on with proper tokens: end the context earlier, at a border "
        "of pieces"
    )


def _since_last_cut(canonicity: Canonicity, context: Sequence[int]) -> Sequence[int]:
    """The tokens after the last special or isolated one: there the text begins. VocabularyError for a bad id."""
    isolated = canonicity.source.isolated
    cuts = [
        place
        for place, token in enumerate(context)
        if token in isolated or not canonicity.vocabulary.token_bytes(token)
    ]
    return context[cuts[-1] + 1 :] if cuts else context


def read_context(canonicity: Canonicity, marked: MarkedDfa | None, context: Sequence[int]) -> ReadContext:
    """Follow `context` (token ids). O(bytes of the context x hypotheses), a few us a token.

    The text begins anew after what is no text to the pre-tokenizer. Raises VocabularyError for an id outside the
    vocabulary.
    """
    whole = canonicity.whole_pieces
    begin = 0 if marked is None else marked.start
    beginning = ReadContext(-1, 0, frozenset({(begin, whole.root)}))
    here = beginning
    for token in _since_last_cut(canonicity, context):
        spelled = canonicity.vocabulary.token_bytes(token)
        proper: set[tuple[int, int]] = set()
        improper: set[tuple[int, int]] = set()
        joins = here.last < 0 or canonicity.pair_is_canonical(here.last, token)
        is_whole = token in canonicity.whole_piece_encodings
        for state, node in here.hypotheses:
            ways = [(state, node, joins and node != WHOLE)]
            if marked is not None and here.last >= 0 and (behind := marked.after_marker(state)) >= 0:
                ways.append((behind, whole.root, not whole.terminal[node]))  # a border, and a new piece
            for before, so_far, fits in ways:
                after = 0 if marked is None else marked.run(spelled, before)
                if after >= 0:
                    became = WHOLE if is_whole and so_far == whole.root else whole.after(so_far, token)
                    (proper if fits else improper).add((after, became))
        alive = proper or improper
        here = ReadContext(token, _inside(canonicity, here.inside, token), frozenset(alive)) if alive else beginning
    return here


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

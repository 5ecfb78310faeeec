"""What muting does to token sequences: for given texts, does it take the sequence that the tokenizer would produce?

Words. The *proper* sequence of a text is what the tokenizer makes of it, followed by an end token. A sequence is
followed token by token; a *position* is reached if every token before it was allowed, and *stops* the sequence if its
own token is not. So a sequence has at most one stop, and positions behind it are not reached. The *fewest* tokens are
those of the shortest sequence of any kind that spells the text; the *muted* ones those of the shortest sequence that
the muted constraint takes. Without muting every sequence that spells a text of the language is allowed, so the plain
constraint takes the proper one; that is checked, not assumed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import create_backend
from tokdfa.backends.tokens_dfa.fewest_tokens import spell_in_fewest_tokens
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa
from tokdfa.errors import TokdfaError
from tokdfa.lab.measure.drawn_texts import draw_texts
from tokdfa.lab.measure.limits import failure_of
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.constraint import Regex
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: What becomes of a text: ``changed`` if its proper tokens spell something else, so that it says nothing about muting.
OK, CHANGED = "ok", "changed"


def follow_texts(
    constraint: Regex, tokenizer: Tokenizer, given: Sequence[str], count: int, max_bytes: int, seed: int
) -> list[dict[str, Any]]:
    """A row for each of the `given` texts that is in the language and each of `count` drawn ones; a single row with the
    reason if literals cannot be muted here, or no texts be drawn.
    """
    vocab = tokenizer.vocabulary
    try:
        language = compile_dfa(constraint)
        drawn = draw_texts(constraint, count, max_bytes, seed)
        plain = create_backend("tokens_dfa", vocab).compile(constraint)
        muted = create_backend("tokens_dfa", vocab, mute_literals=True).compile(constraint)
    except TokdfaError as error:
        return [{"source": "", **failure_of(error).columns}]
    assert isinstance(muted, CompiledTokensDfa)
    inside = [text for text in given if language.accepts(text.encode())]
    spellings, literals = MutedSpellings(muted), muted.sizes["literals"]
    return [
        {"source": source, "literals": literals, **follow_text(text, tokenizer, plain, muted, spellings)}
        for source, texts in (("given", inside), ("drawn", drawn))
        for text in texts
    ]


def follow_text(
    text: str, tokenizer: Tokenizer, plain: CompiledConstraint, muted: CompiledTokensDfa, spellings: MutedSpellings
) -> dict[str, Any]:
    """One text of the language: its proper sequence under both constraints, and its shortest muted one.

    `stops_at`: the position that stops the proper sequence, from 0; the number of tokens if it is the end token's; -1
    if there is none. `positions`: how many were reached. `plain_stops_at`: the same for the plain constraint.
    `proper_count`, `fewest_count`, `muted_count`: numbers of tokens, None if no sequence spells the text.
    `proper_tokens`, `muted_tokens`: JSON lists of what the tokens spell.
    """
    vocab, data = tokenizer.vocabulary, text.encode()
    proper = encode_exactly(tokenizer, vocab, text)
    row: dict[str, Any] = {"text": text, "status": OK, "message": "", "proper_count": len(proper or ())}
    row["proper_tokens"] = _spelled_out(proper or (), vocab)
    if proper is None:
        return row | {"status": CHANGED, "message": "the tokenizer's tokens spell another text"}
    shortest = spellings.shortest(data)
    fewest = spell_in_fewest_tokens([data], vocab)[0]
    stop = find_stop(muted, proper)
    return row | {
        "stops_at": stop,
        "positions": len(proper) + 1 if stop < 0 else stop + 1,
        "plain_stops_at": find_stop(plain, proper),
        "fewest_count": None if fewest is None else len(fewest),
        "muted_count": None if shortest is None else len(shortest),
        "muted_tokens": "[]" if shortest is None else _spelled_out(shortest, vocab),
    }


def find_stop(compiled: CompiledConstraint, tokens: Sequence[int]) -> int:
    """The first of `tokens` that is not allowed; their number if the text may not end after them; -1 if it may."""
    matcher = compiled.start()
    for position, token in enumerate(tokens):
        if not matcher.allows(token):
            return position
        matcher.advance(token)
    return -1 if matcher.can_end() else len(tokens)


class MutedSpellings:
    """Shortest sequences of a compiled constraint. O(allowed tokens) to make; see `shortest` for the rest."""

    def __init__(self, compiled: CompiledTokensDfa) -> None:
        self._compiled = compiled
        self._tokens: defaultdict[bytes, list[int]] = defaultdict(list)
        lengths_by_byte: defaultdict[int, set[int]] = defaultdict(set)
        for token in compiled.table.members.tolist():
            spelled = compiled.vocab.token_bytes(token)
            self._tokens[spelled].append(token)
            lengths_by_byte[spelled[0]].add(len(spelled))
        self._lengths = {byte: sorted(lengths) for byte, lengths in lengths_by_byte.items()}

    def shortest(self, text: bytes) -> list[int] | None:
        """A shortest sequence that spells `text` and is accepted, None if there is none.

        Dynamic programming over (position, state), from the front: every token goes forward, so a pair is final when
        its position's turn comes. O(bytes x states at a position x tokens that fit there).
        """
        start: tuple[int, tuple[Any, ...]] = (0, ())
        reached: list[dict[int, tuple[int, tuple[Any, ...]]]] = [{} for _ in range(len(text) + 1)]
        reached[0][0] = start
        for position in range(len(text)):
            here = reached[position]
            if not here:
                continue
            for token, length in self._fitting(text, position):
                ahead = reached[position + length]
                for state, (count, path) in here.items():
                    target = self._compiled.step(state, token)
                    if target >= 0 and (target not in ahead or ahead[target][0] > count + 1):
                        ahead[target] = count + 1, (token, path)
            reached[position] = {}
        ends = [found for state, found in reached[-1].items() if self._compiled.accepts(state)]
        return _unlink(min(ends, key=lambda found: found[0])[1]) if ends else None

    def _fitting(self, text: bytes, position: int) -> Iterable[tuple[int, int]]:
        """The tokens that spell the text at `position` on, and their lengths."""
        for length in self._lengths.get(text[position], ()):
            if position + length > len(text):
                break
            for token in self._tokens.get(text[position : position + length], ()):
                yield token, length


def _unlink(path: tuple[Any, ...]) -> list[int]:
    """The tokens of nested pairs (last token, those before it)."""
    tokens = []
    while path:
        token, path = path
        tokens.append(token)
    return tokens[::-1]


def _spelled_out(tokens: Iterable[int], vocab: Vocabulary) -> str:
    """JSON list of what tokens spell; bytes that are no UTF-8 as ``\\xNN``."""
    return json.dumps([vocab.token_bytes(token).decode(errors="backslashreplace") for token in tokens])

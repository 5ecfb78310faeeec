"""Is a sequence of tokens what the tokenizer makes of its text, and if not, where and why not?

The text is taken as one piece, which is all of it for a tokenizer without pre-tokenizer and isolated tokens. The answer
comes from the pairs (`tokdfa.proper.adjacent_pairs`), byte fallback and whole pieces, not from encoding the text again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tokdfa.proper.bpe import merge_letters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.proper.canonical import Canonicity


@dataclass(frozen=True)
class Fault:
    """Why a sequence is not proper, and where.

    `position`: the index of the token at fault; for a pair that merges, of its second token. `kind`: "token" (never
    produced here), "pair" (a rule merges across the border), "bytes" (byte fallback), "piece" (the piece as a whole is
    a token), "isolated" (the text holds that of an isolated token); in a whole text (`tokdfa.proper.explain_text`) also
    "special" (the token spells nothing), "utf8" (the bytes are no text), "lost" (the encoder does not keep the text as
    it is), "border" (the token runs across a border of pieces). `rule`: for a pair, the index in `MergeRules` of the
    first rule that merges across the border. `reason`: a sentence.
    """

    position: int
    kind: Literal["token", "pair", "bytes", "piece", "isolated", "special", "utf8", "lost", "border"]
    reason: str
    rule: int | None = None


def explain(canonicity: Canonicity, tokens: Sequence[int]) -> Fault | None:
    """The first fault of `tokens` as one piece without isolated tokens, or None if they are proper. 3 us a token.

    Raises VocabularyError for an id outside the vocabulary.
    """
    if len(tokens) == 1 and tokens[0] in canonicity.whole_piece_encodings:
        return None
    fallback = canonicity.fallback
    state = 0
    for index, token in enumerate(map(int, tokens)):
        fault = _fault_of_token(canonicity, token, state, index)
        if fault is None and index > 0:
            fault = _fault_of_pair(canonicity, int(tokens[index - 1]), token, index)
        if fault is not None:
            return fault
        if fallback is not None and fallback.byte_of[token] >= 0:
            state = int(fallback.table[state, fallback.byte_of[token]])
    if state > 0:
        return Fault(len(tokens) - 1, "bytes", "the byte tokens at the end leave a character unfinished")
    whole = canonicity.whole_piece_of.get(tuple(tokens))
    if whole is not None:
        return Fault(0, "piece", f"as a piece of its own this text is the token {show(canonicity, whole)}")
    return None


def _fault_of_token(canonicity: Canonicity, token: int, state: int, index: int) -> Fault | None:
    """What is wrong with `token` by itself; `state` is that of the byte fallback before it."""
    usable = canonicity.state_of(token) >= 0
    shown = show(canonicity, token)
    fallback = canonicity.fallback
    byte = -1 if fallback is None else int(fallback.byte_of[token])
    if fallback is not None and byte >= 0:
        if fallback.table[state, byte] < 0:
            why = (
                "does not go on with a character that is no token" if state else "begins no character that is no token"
            )
            return Fault(index, "bytes", f"byte token {shown} {why}")
    elif state:
        return Fault(index, "bytes", f"token {shown} stands inside a character that byte tokens have begun")
    elif not usable:
        letters = canonicity.rules.letters(token)
        if token in canonicity.improper_tokens:
            made = " ".join(show(canonicity, part) for part in merge_letters(canonicity.rules, letters).tolist())
            return Fault(index, "token", f"token {shown} is not proper: its text is encoded as {made}")
        return Fault(index, "token", f"the encoder produces token {shown} for no text here")
    return None


def _fault_of_pair(canonicity: Canonicity, left: int, right: int, index: int) -> Fault | None:
    """What is wrong with two proper tokens side by side."""
    rules = canonicity.rules
    rule = canonicity.pairs.first_merge(left, right)
    if rule < 0:
        return None
    first, second, result = (show(canonicity, int(part[rule])) for part in (rules.left, rules.right, rules.result))
    reason = (
        f"{show(canonicity, right)} cannot follow {show(canonicity, left)}: "
        f"across their border {first} and {second} merge into {result} (rank {int(rules.rank[rule])})"
    )
    return Fault(index, "pair", reason, rule)


def show(canonicity: Canonicity, token: int) -> str:
    """A token in a message: its id, and what it spells."""
    return f"{token} {canonicity.vocabulary.token_bytes(token)!r}"

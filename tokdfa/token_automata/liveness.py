"""Which automaton states can still be completed with the tokens at hand, and what to say if the start cannot.

An automaton with only live states promises that some *bytes* complete the text. Tokens may not be able to spell them.
If every byte that the automaton reads is a token by itself, they can (`spells_every_byte`), and nothing needs
computing; most tokenizers with byte fallback or byte-level merges are in this case. Otherwise liveness is a property of
the states between tokens, found backwards from the accepting ones (`tokdfa.automata.liveness.coaccessible_states`).
Strategies without a table of all states ask bytes first (`tokdfa.backends.coaccessible`).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from tokdfa.errors import VocabularyCannotSpell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.vocabulary import Vocabulary


def spells_every_byte(vocab: Vocabulary, bytes_read: npt.NDArray[np.bool_]) -> bool:
    """Whether each byte of `bytes_read` (bool, shape (256,)) is a token by itself."""
    return bool(vocab.single_byte_tokens[bytes_read].all())


def cannot_spell(dfa: Dfa, vocab: Vocabulary, name: str) -> VocabularyCannotSpell:
    """The error for a vocabulary that spells no text of the constraint `name`, whose byte automaton is `dfa`."""
    missing = _fewest_missing(dfa, ~vocab.used_bytes)
    if missing:
        return VocabularyCannotSpell(
            f"the vocabulary {vocab.name!r} cannot spell any text of {name!r}: no token contains the "
            f"{_list_bytes(missing)}; add tokens for them or change the constraint",
            missing,
        )
    missing = _fewest_missing(dfa, ~vocab.single_byte_tokens)
    return VocabularyCannotSpell(
        f"the vocabulary {vocab.name!r} cannot spell any text of {name!r}: its bytes occur only inside longer tokens; "
        f"tokens for the {_list_bytes(missing)} alone would do",
        missing,
    )


def cannot_spell_muted(vocab: Vocabulary, name: str) -> VocabularyCannotSpell:
    """The error for a vocabulary that spells no text of the constraint `name` once its literals are muted."""
    return VocabularyCannotSpell(
        f"with its literals muted, the vocabulary {vocab.name!r} cannot spell any text of {name!r}: no token may run "
        "across a literal's edge, and what lies between has no tokens of its own; set mute_literals=False, which also "
        "says which bytes are missing, if any",
        b"",
    )


def _list_bytes(values: bytes) -> str:
    listed = ", ".join(f"0x{value:02X}" + (f" ({chr(value)!r})" if 0x20 <= value < 0x7F else "") for value in values)
    return f"byte{'s' if len(values) > 1 else ''} {listed}"


def _fewest_missing(dfa: Dfa, lacking: npt.NDArray[np.bool_]) -> bytes:
    """The distinct lacking bytes on a path to acceptance that uses as few lacking bytes as possible."""
    best = {dfa.start: 0}
    came_from: dict[int, tuple[int, int]] = {}
    agenda = [(0, dfa.start)]
    state = dfa.start
    while agenda:
        cost, state = heapq.heappop(agenda)
        if dfa.accepting[state]:
            break
        if cost > best[state]:
            continue
        for byte in range(256):
            target = dfa.step(state, byte)
            ahead = cost + int(lacking[byte])
            if target >= 0 and ahead < best.get(target, ahead + 1):
                best[target] = ahead
                came_from[target] = state, byte
                heapq.heappush(agenda, (ahead, target))
    used = set()
    while state != dfa.start:
        state, byte = came_from[state]
        used.add(byte)
    return bytes(sorted(byte for byte in used if lacking[byte]))

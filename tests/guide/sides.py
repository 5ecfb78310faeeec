"""What the tests of the guide share: one small vocabulary on both sides, and a walk through two indices at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import outlines_core

import tokdfa.guide
from tokdfa import mask as masks

#: Both sides: the same program is to run with either.
SIDES = (outlines_core, tokdfa.guide)
#: Backends that keep a table of states.
BACKENDS = ("tokens_dfa", "token_index")
END = 60
#: Text -> ids: letters and digits, longer tokens that share prefixes, texts with several ids, no gap in the ids.
TOKENS: dict[str, list[int]] = {
    text: [place]
    for place, text in enumerate(["0", "1", "2", "7", "a", "b", "c", "d", "g", "o", "s", "t", ":", "-", "é"])
}
TOKENS |= {
    text: [place + 15]
    for place, text in enumerate(
        ["12", "70", "127", "1271", ":0", "0:", "ab", "bb", "bbc", "abc", "do", "dog", "dogs", "cat", "at", "ts", "og-"]
    )
}
TOKENS |= {"cats": [32, 33], "00": [34, 35, 36], "zz": [37], "bbb": [38], "bc": [39], "abb": list(range(40, 60))}


def vocabulary(side: Any) -> Any:
    """The small vocabulary, as one side has it."""
    return side.Vocabulary(END, TOKENS)


def index(pattern: str, backend: str = "token_index") -> tokdfa.guide.Index:
    return tokdfa.guide.Index(pattern, vocabulary(tokdfa.guide), backend=backend)


def mask_tokens(mask: Any) -> list[int]:
    """The tokens whose bits are set in any buffer."""
    return masks.mask_to_ids(np.frombuffer(mask, dtype=np.int32)).tolist()


def walk_both(ours: Any, theirs: Any) -> int:
    """Go through two indices at once, from the start, by every token; returns the number of pairs of states met."""
    agenda = [(ours.get_initial_state(), theirs.get_initial_state())]
    met = set(agenda)
    while agenda:
        here, there = agenda.pop()
        allowed = ours.get_allowed_tokens(here)
        assert sorted(theirs.get_allowed_tokens(there)) == allowed
        assert ours.is_final_state(here) == theirs.is_final_state(there)
        for token in allowed:
            pair = ours.get_next_state(here, token), theirs.get_next_state(there, token)
            assert (pair[0] is None) == (pair[1] is None)
            if pair[0] is not None and pair not in met:
                met.add(pair)
                agenda.append(pair)
    return len(met)

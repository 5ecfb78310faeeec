r"""Random walks: texts that an engine lets itself be led to, judged by the library `jsonschema`.

``python -m tests.json_schema.walks DIR --walks 200`` takes so many on each schema of a folder in MaskBench's form.
Instances tell what an engine does with somebody's texts. A *walk* tells what it would let a model write: it starts with
nothing, and as long as it goes on it takes some token of the mask. It comes to one of these:

- *finished*: it took an end token, and its text is valid under the schema (`tokdfa.lab.measure.schema_judge`);
- *invalid*: it took an end token, and its text is no JSON, or not valid;
- *dead end*: the mask is empty, or its tokens are refused, so no model could go on;
- *unfinished*: after so many tokens there was no end yet, which is no fault;
- *unjudged*: the library broke down over the text, or over the schema, as with a pattern that Python cannot read.

*Which token.* A walk has a first part of 0 to `FREE` tokens, drawn for each walk, in which it takes random ones: of all
that the mask has, of those of a few printable characters, or of those of punctuation alone. After it the walk makes for
the end: it ends if it may, or else closes what is open (``"`` inside of a string, ``}`` and ``]`` outside), or tries a
sign or another token without blanks, backslashes and opening brackets. One token in eight stays random, so that no walk
circles for ever.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import TokenRefused
from tokdfa.lab.measure.limits import Failure, attempt, failure_of
from tokdfa.lab.measure.schema_corpus import read_cases
from tokdfa.lab.measure.schema_judge import Judge
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

FINISHED, UNFINISHED, DEAD_END, INVALID, UNJUDGED = "finished", "unfinished", "dead end", "invalid", "unjudged"
#: Tokens of a walk's first part at most; of a walk at most.
FREE, MOST = 60, 1_200
_NOT_PRINTABLE = frozenset(range(33)) | frozenset(range(127, 256))
_PUNCTUATION = frozenset(b'{}[]",: \n')
#: What closes something, the best first: inside of a string and outside.
_CLOSING = {True: (b'"',), False: (b"}", b"]", b",", b":", b'"')}


class Walker:
    """Takes random walks over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        spelled = {token: text for token in range(len(vocabulary)) if (text := vocabulary.token_bytes(token))}

        def kind(wanted: Callable[[bytes], bool]) -> masks.Mask:
            return masks.mask_from_ids([token for token, text in spelled.items() if wanted(text)], vocabulary.size)

        def is_short(text: bytes) -> bool:
            return len(text) <= 4 and not set(text) & _NOT_PRINTABLE

        #: All tokens, short ones, punctuation; with how often a random token is one of these, of ten.
        self._free = (kind(bool), kind(is_short), kind(_PUNCTUATION.issuperset)), (3, 5, 2)
        self._plain = kind(lambda text: not set(text) & set(b"{[\\ \t\n\r"))
        self._signs = kind(lambda text: is_short(text) and len(text) == 1 and not text.isalnum() and text != b"\\")
        #: The tokens of single bytes.
        self._single = {text: token for token, text in reversed(spelled.items()) if len(text) == 1}

    def walk(self, compiled: CompiledConstraint, draw: random.Random) -> tuple[str, bytes, int]:
        """What became of a walk (not yet whether its text is valid), its text, and its number of tokens."""
        matcher, mask = compiled.start(), masks.allocate_mask(self.vocabulary.size)
        text, inside = bytearray(), False
        free = draw.randint(0, FREE)
        for taken in range(MOST):
            matcher.fill_mask(mask)
            end = next((token for token in self.vocabulary.end_tokens if masks.contains(mask, token)), None)
            token = None
            if end is None or (taken < free and draw.random() > 0.1):
                is_random = taken < free or draw.random() < 0.125
                token = self._random(mask, draw) if is_random else self._home(mask, inside, draw)
            if token is None and end is not None:
                matcher.advance(end)
                return FINISHED, bytes(text), taken
            if token is None:
                return DEAD_END, bytes(text), taken
            spelled = self.vocabulary.token_bytes(token)
            try:
                matcher.advance(token)
            except TokenRefused:
                return DEAD_END, bytes(text + spelled), taken
            inside = _is_inside(spelled, text, inside)
            text += spelled
        return UNFINISHED, bytes(text), MOST

    def _random(self, mask: masks.Mask, draw: random.Random) -> int | None:
        """A random token of the mask, of one kind if it has any of that kind."""
        token = _draw(mask & draw.choices(*self._free)[0], draw)
        return _draw(mask & self._free[0][0], draw) if token is None else token

    def _home(self, mask: masks.Mask, inside: bool, draw: random.Random) -> int | None:
        """A token that closes something, or leads to where something can be closed."""
        for text in _CLOSING[inside]:
            token = self._single.get(text)
            if token is not None and masks.contains(mask, token):
                return token
        if inside and draw.random() < 0.4 and (sign := _draw(mask & self._signs, draw)) is not None:
            return sign
        plain = _draw(mask & self._plain, draw)
        return self._random(mask, draw) if plain is None else plain


def _draw(mask: masks.Mask, draw: random.Random) -> int | None:
    """A token of one of the mask's words, each with the same chance; None of an empty mask."""
    places = np.flatnonzero(mask)
    if not len(places):
        return None
    place = int(places[draw.randrange(len(places))])
    return 32 * place + draw.choice([bit for bit in range(32) if int(mask[place]) >> bit & 1])


def _is_inside(token: bytes, before: bytearray, inside: bool) -> bool:
    """Whether a text is inside of a string after `token`; `inside`: whether it was, after `before`."""
    escaped = inside and (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
    for byte in token:
        if escaped:
            escaped = False
        elif byte == 92 and inside:
            escaped = True
        elif byte == 34:
            inside = not inside
    return inside


def walk_case(
    compiled: CompiledConstraint, walker: Walker, judge: Judge, count: int, seed: str
) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """Take `count` walks: how many came to what, and (outcome, text, message) of each that went wrong.

    An error of the engine is a dead end.
    """
    counts: Counter[str] = Counter()
    faults = []
    for number in range(count):
        outcome, text, message = DEAD_END, b"", ""
        try:
            outcome, text, _ = walker.walk(compiled, random.Random(f"{seed} {number}"))
        except Exception as error:
            message = failure_of(error).message
        if outcome == FINISHED:
            try:
                message = judge.fault(text)
                outcome = INVALID if message else FINISHED
            except Exception as error:
                outcome, message = UNJUDGED, failure_of(error).message
        counts[outcome] += 1
        if outcome in (DEAD_END, INVALID, UNJUDGED):
            faults.append((outcome, text.decode(errors="replace"), message))
    return counts, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--walks", type=int, default=200)
    parser.add_argument("--backend", default="pushdown_trie")
    parser.add_argument("--tokenizer", default="llama3")
    given = parser.parse_args()
    vocabulary = load_tokenizer(given.tokenizer).vocabulary
    backend, walker, total = create_backend(given.backend, vocabulary), Walker(vocabulary), Counter[str]()
    for case in read_cases(given.folder):
        compiled = attempt(backend.compile, JsonSchema(case.schema_text))
        if isinstance(compiled, Failure):
            total["refused schemas"] += 1
            continue
        counts, faults = walk_case(compiled, walker, Judge(case.schema_text), given.walks, case.name)
        total += counts
        for fault in faults[:5]:
            print(case.name, *fault, sep="\t", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()

"""The merge rules of a tokenizer in the order in which DirectMerge applies them: stages.

Words (see `tokdfa.proper.derivations`): the *level* of a token is the greatest rank among the merges that make it, -1
for letters. *Stage* R is the moment at which all merges of rank up to R have been made wherever they can be, those of
rank below R that had to wait included. The tokens that appear in stage R are those of level R. Each stands where its
*parts* stood before: the tokens of lower level that it is made of in this stage. For nearly all tokens these are the
two of its last merge; more if merges of one rank build on each other (runs of spaces in Mistral v1, all of one rank),
or if a merge of lower rank had to wait for this one (*irregular* tokens).

`forbidden` lists the pairs of tokens that stage R parts: they may stand side by side while only merges of rank below R
have been made, but some rule of rank up to R merges across their border. Each rule belongs to one stage: it can act for
the first time when its rank has come and both its sides are there, so at max(rank, level(left), level(right)). A pair
(t, u) is parted by a rule (x, y) of this stage, where x is t or a part of it at its right end that is still there in
this stage, and y likewise at the left end of u. These few pairs are listed, and `tokdfa.proper.adjacent_pairs` decides.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    import numpy.typing as npt

    from tokdfa.proper.canonical import Canonicity


class MergeStages:
    """The stages of one tokenizer. Made once for a tokenizer, in O(V + rules); immutable and shareable."""

    def __init__(self, canonicity: Canonicity) -> None:
        rules, derivations = canonicity.rules, canonicity.derivations
        self._rules, self._derivations = rules, derivations
        self._pairs = canonicity.pairs
        made = np.flatnonzero(derivations.is_proper & (derivations.level >= 0))
        #: int64: the tokens that merging makes, by level.
        self._made: npt.NDArray[np.int64] = made[np.argsort(derivations.level[made], kind="stable")]
        usable = derivations.is_proper[rules.left] & derivations.is_proper[rules.right]
        latest = np.maximum(derivations.level[rules.left], derivations.level[rules.right])
        self._stage_of = np.where(usable, np.maximum(rules.rank, latest), -1)
        self._by_stage = np.argsort(self._stage_of, kind="stable")
        self._sorted_stages = self._stage_of[self._by_stage]

    def spelled_with(self, letters: Iterable[int]) -> Iterator[tuple[int, list[tuple[int, tuple[int, ...]]]]]:
        """(level, [(token, parts), ...]) of the stages in order, of tokens that consist of `letters` only.

        O(total letters of the vocabulary), vectorised, and 0.5 us a token.
        """
        rules, derivations = self._rules, self._derivations
        present = np.zeros(rules.size + 1, dtype=np.bool_)
        present[list(letters)] = True
        absent = np.append(0, np.cumsum(~present[rules.spelling]))
        all_present = absent[rules.spelling_starts[1:]] == absent[rules.spelling_starts[:-1]]
        made = self._made[all_present[self._made]]
        levels = derivations.level[made]
        deep = (derivations.level[derivations.left[made]] == levels) | (
            derivations.level[derivations.right[made]] == levels
        )
        parts: list[tuple[int, ...]] = list(
            zip(derivations.left[made].tolist(), derivations.right[made].tolist(), strict=True)
        )
        for place in np.flatnonzero(deep).tolist():
            parts[place] = tuple(self._parts(int(made[place]), int(levels[place])))
        named = list(zip(made.tolist(), parts, strict=True))
        borders = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), len(made)]
        for begin, end in itertools.pairwise(borders):
            if begin < end:
                yield int(levels[begin]), named[begin:end]

    def _parts(self, token: int, level: int) -> list[int]:
        """The tokens below `level` that `token` is made of in the stage `level`."""
        parts: list[int] = []
        agenda = [token]
        while agenda:
            part = agenda.pop()
            if self._derivations.level[part] < level:
                parts.append(part)
            else:
                agenda += [int(self._derivations.right[part]), int(self._derivations.left[part])]
        return parts

    def forbidden(self, level: int, tokens: Iterable[int], present: Container[int]) -> list[tuple[int, int]]:
        """The pairs of `present` tokens that the stage `level`, which makes `tokens`, parts."""
        ends = _by_outer_part(tokens, level, self._derivations.level, self._derivations.right)
        begins = _by_outer_part(tokens, level, self._derivations.level, self._derivations.left)
        first, last = np.searchsorted(self._sorted_stages, [level, level + 1]).tolist()
        pairs: dict[tuple[int, int], bool] = {}
        for rule in self._by_stage[first:last].tolist():
            left, right = int(self._rules.left[rule]), int(self._rules.right[rule])
            for t in ends.get(left, [left]):
                for u in begins.get(right, [right]):
                    if t in present and u in present and (t, u) not in pairs:
                        parting = self._pairs.first_merge(t, u)
                        pairs[t, u] = parting >= 0 and self._stage_of[parting] == level
        return [pair for pair, parted in pairs.items() if parted]


def _by_outer_part(
    tokens: Iterable[int], level: int, levels: npt.NDArray[np.int32], outer: npt.NDArray[np.int32]
) -> dict[int, list[int]]:
    """Part -> the tokens that have it at the end that `outer` names (and the part itself), for parts of this stage."""
    found: dict[int, list[int]] = {}
    for token in tokens:
        part = token
        while levels[part] == level:
            found.setdefault(part, []).append(token)  # a new part is one of `tokens` itself
            part = int(outer[part])
        found.setdefault(part, [part]).append(token)
    return found

"""Does a model emit improper tokens by itself? The mass it puts on them, position by position, along a real text.

Theory (002 asks whether the improper spellings that a constraint admits are what the model would write anyway). Let a
text be properly tokenized, and take the model's row after its first i tokens. Whether a token v is improper there may
depend on what comes after v: "12" is proper before a letter and not before a third digit that merges with it. So:

    v is improper after t_1 .. t_i  iff  no text whatsoever makes t_1 .. t_i v the beginning of a proper sequence.

That is the exact complement of a mask: of the constraint that any text meets, restricted to proper sequences
(`proper_texts`). The masks of `cartesian_merge` have no dead ends, so nothing is missed and nothing is blamed too
early. A mistake that shows only later is counted where it becomes one: at the first token that cannot be saved.

Tokens that spell nothing (end tokens, special tokens, padding) are neither; their mass is reported apart.

Every total is added up from the improper tokens themselves, in logarithms: 1 - (proper mass) would drown in rounding at
1e-16, and the masses of good models are far smaller than that at many positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper import proper_texts
from tokdfa.decoding.draws import check_vocabulary
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import OptionError, TokdfaError, TokenizerError
from tokdfa.mask import allocate_mask, mask_to_bool

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.tokenizers import Tokenizer

    #: Numbers of positions.
    Counts = npt.NDArray[np.int64]


def proper_tokens(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The one proper sequence of `text`, checked against our own merging. About 15 us a token.

    Raises TokenizerError for a text that the tokenizer changes or has no tokens for, OptionError if it has no UTF-8.
    """
    from tokdfa.proper.explain_text import encode_text, join_pieces

    tokens = join_pieces(encode_text(tokenizer, text))
    if tokens is None:
        raise TokenizerError(f"{tokenizer.name} has no tokens for a character of {text[:60]!r}")
    return tokens


@dataclass(frozen=True, eq=False)
class ImproperMass:
    """The improper mass along one text of n tokens. Natural logarithms, -inf for no mass at all.

    `tokens`: int32, shape (n,), the proper tokens of the text. Of the model's row before each of them: `log_mass`:
    float64, shape (n,), of all improper tokens; `log_chosen`: float64, shape (n,), of the text's own token;
    `top_tokens`: int32, shape (n, k), the most probable improper tokens in falling order, -1 in place of those without
    any probability; `log_top`: float64, shape (n, k), theirs.
    """

    tokens: npt.NDArray[np.int32]
    log_mass: npt.NDArray[np.float64]
    log_chosen: npt.NDArray[np.float64]
    top_tokens: npt.NDArray[np.int32]
    log_top: npt.NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The mean of the mass over positions."""
        return float(np.exp(self.log_mass).mean())

    def histogram(self, per_decade: int = 2, smallest: int = -20) -> tuple[npt.NDArray[np.float64], Counts, int]:
        """(edges, counts, below): how many positions have a mass in ``[edges[k], edges[k + 1])``.

        `edges`: float64, powers of ten from ``10**smallest`` to 1, `per_decade` a decade, the last interval closed;
        `below`: positions with less than the first edge, those without any mass included. All positions are counted
        once. Raises OptionError for numbers that make no edges.
        """
        if per_decade < 1 or smallest >= 0:
            raise OptionError(
                f"a histogram needs per_decade of at least 1 and a negative smallest, not {per_decade}, {smallest}"
            )
        exponents = np.linspace(smallest, 0, -smallest * per_decade + 1)
        decades = np.minimum(self.log_mass / np.log(10), 0.0)
        counts, _ = np.histogram(decades, exponents)
        return 10.0**exponents, counts.astype(np.int64), int((decades < smallest).sum())


def improper_mass(
    model: LanguageModel,
    tokenizer: Tokenizer,
    text: str,
    *,
    before: Sequence[int] | None = None,
    batch: int = 32,
    preferred: int = 1,
) -> ImproperMass:
    """The mass that `model` puts on improper next tokens before each token of `text`, properly tokenized.

    `before`: special tokens that the model sees before the text, by default its `start_tokens`; needed for a model that
    has none and gives no row for an empty prefix. `batch`: rows a call, 8 V bytes each; `preferred`: how many improper
    tokens are named, the most probable ones. One row and one mask a token. Raises OptionError (an empty text, a number
    below 1, tokens before the text that spell something), ModelError (another vocabulary; a text longer than the
    model's context), and what `proper_texts` and `proper_tokens` raise.
    """
    for name, given in (("batch", batch), ("preferred", preferred)):
        if given < 1:
            raise OptionError(f"{name} is at least 1, not {given}")
    check_vocabulary(model, tokenizer.vocabulary, f"the tokenizer {tokenizer.name}")
    tokens = proper_tokens(tokenizer, text)
    if not tokens:
        raise OptionError("the text is empty, so there is no position to look at")
    start = model.start_tokens if before is None else tuple(before)
    if spelled := tokenizer.vocabulary.spell(start):
        raise OptionError(f"the tokens before the text spell {spelled!r}; make it a part of the text")
    spells = tokenizer.vocabulary.lengths > 0
    matcher = proper_texts(tokenizer.vocabulary).start()
    mask = allocate_mask(tokenizer.vocabulary.size)
    log_mass, log_chosen = np.empty(len(tokens)), np.empty(len(tokens))
    top = np.full((len(tokens), preferred), -1, dtype=np.int32)
    log_top = np.full((len(tokens), preferred), -np.inf)
    for begin in range(0, len(tokens), batch):
        places = range(begin, min(begin + batch, len(tokens)))
        rows = model.log_probabilities([(*start, *tokens[:place]) for place in places])
        for place, row in zip(places, rows, strict=True):
            token = tokens[place]
            matcher.fill_mask(mask)
            improper = np.flatnonzero(spells & ~mask_to_bool(mask, len(spells)))
            if not matcher.allows(token):
                raise TokdfaError(
                    f"{tokenizer.name}: internal error: token {token} at position {place} of an encoding is judged"
                    " improper; please report this"
                )
            log_mass[place], log_chosen[place] = log_total(row[improper]), row[token]
            best = improper
            if len(improper) > preferred:
                best = improper[np.argpartition(-row[improper], preferred)[:preferred]]
            best = best[np.argsort(-row[best], kind="stable")]
            best = best[row[best] > -np.inf]
            top[place, : len(best)], log_top[place, : len(best)] = best, row[best]
            matcher.advance(token)
    return ImproperMass(np.array(tokens, dtype=np.int32), log_mass, log_chosen, top, log_top)

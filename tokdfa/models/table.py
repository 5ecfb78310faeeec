"""Models whose distributions are written down, or drawn at random: small, exact, and as strange as a test wants.

A `TableModel` looks a prefix up. `random_table` has a distribution for every prefix whatsoever, drawn from a hash of
the seed and the prefix, so that it is a function of both and of nothing else: neither of the order of the questions
nor of the machine's threads. No other model is as far from a tokenizer's habits, so whatever holds for the skew on
random tables holds for a reason.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import ModelError, OptionError
from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.models.base import LogProbabilities
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Prefix = tuple[int, ...]

#: The concentrations that `random_table` takes: beyond them rows are a single token, or uniform, to float64.
CONCENTRATIONS = (1e-3, 1e6)


class TableModel(LanguageModel):
    """Explicit distributions: `rows` maps a prefix to probabilities (not logarithms), shape (V,), or computes them.

    Rows are taken as they are, without normalising; one that does not sum to 1 within `SUM_TOLERANCE` is refused when
    it is asked for, as is a negative entry, another shape and a prefix without a row (ModelError names the prefix).
    The fingerprint of a mapping is a hash of its rows. Functions have none: `identity` names what a function computes,
    and without it the fingerprint is random, so that nobody takes two functions for one.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rows: Mapping[Prefix, npt.ArrayLike] | Callable[[Prefix], npt.ArrayLike],
        *,
        name: str = "table",
        identity: str = "",
    ) -> None:
        super().__init__(name, vocabulary)
        self._rows: dict[Prefix, Any] | Callable[[Prefix], npt.ArrayLike]
        digest = hashlib.sha256(f"table {vocabulary.fingerprint} {identity}".encode())
        if isinstance(rows, Mapping):
            self._rows = {tuple(prefix): self._checked_row(tuple(prefix), row) for prefix, row in rows.items()}
            for prefix, row in sorted(self._rows.items()):
                digest.update(repr(prefix).encode() + row.tobytes())
        else:
            self._rows = rows
            digest.update(b"" if identity else secrets.token_bytes(16))
        self._fingerprint = digest.hexdigest()[:32]

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def _log_probabilities(self, prefixes: Sequence[Prefix]) -> LogProbabilities:
        found = np.empty((len(prefixes), self.vocabulary.size))
        for index, prefix in enumerate(prefixes):
            found[index] = self._find_row(prefix)
            self.counts.tokens += len(prefix)
        with np.errstate(divide="ignore"):
            return np.log(found, out=found)

    def _find_row(self, prefix: Prefix) -> npt.NDArray[np.float64]:
        if callable(self._rows):
            return self._checked_row(prefix, self._rows(prefix))
        row = self._rows.get(prefix)
        if row is None:
            raise ModelError(f"{self.name} has no row for the prefix {_shown(prefix)}; it has {len(self._rows)} rows")
        return row

    def _checked_row(self, prefix: Prefix, row: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """`row` as an own float64 array of V entries from 0 up."""
        try:
            checked = np.array(row, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self.name}, prefix {_shown(prefix)}: the row holds no numbers: {error}") from None
        if checked.shape != (self.vocabulary.size,):
            raise ModelError(
                f"{self.name}, prefix {_shown(prefix)}: a row has {self.vocabulary.size} probabilities, not the shape"
                f" {checked.shape}"
            )
        if not (checked >= 0).all():
            wrong = int(np.flatnonzero(~(checked >= 0))[0])
            raise ModelError(
                f"{self.name}, prefix {_shown(prefix)}: token {wrong} has {checked[wrong]}; a row holds probabilities,"
                " not logarithms"
            )
        return checked


def random_table(vocabulary: Vocabulary, seed: int, concentration: float = 1.0) -> TableModel:
    """A distribution for every prefix, drawn from a Dirichlet by a hash of (seed, prefix). O(V) a row.

    All tokens that spell something and all end tokens take part, with equal `concentration`: 1 is uniform over all
    distributions, small values give rows with a few likely tokens, large ones nearly uniform rows. Other tokens have
    probability 0. Raises OptionError for a concentration outside `CONCENTRATIONS`.
    """
    low, high = CONCENTRATIONS
    if not low <= concentration <= high:
        raise OptionError(f"the concentration of a random table is from {low:g} to {high:g}, not {concentration}")
    seed, concentration = int(seed), float(concentration)  # so that equal numbers of other types hash alike
    possible = np.flatnonzero(vocabulary.lengths)
    possible = np.concatenate([possible, np.array(vocabulary.end_tokens, dtype=possible.dtype)])
    draw = partial(_draw_row, vocabulary.size, possible, seed, concentration)
    name = f"table?seed={seed}&concentration={concentration:g}"
    return TableModel(vocabulary, draw, name=name, identity=f"dirichlet {seed} {concentration!r}")


def _draw_row(
    size: int, possible: npt.NDArray[np.int64], seed: int, concentration: float, prefix: Prefix
) -> npt.NDArray[np.float64]:
    digest = hashlib.sha256(repr((seed, prefix)).encode()).digest()
    generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
    # log of a gamma variate of shape a, as that of shape a + 1 times U ** (1 / a): with a small the variate itself is 0
    weights = np.log(generator.standard_gamma(concentration + 1, len(possible)))
    weights -= generator.standard_exponential(len(possible)) / concentration
    probabilities = np.exp(weights - weights.max())
    row = np.zeros(size)
    row[possible] = probabilities / probabilities.sum()
    return row


def _shown(prefix: Prefix) -> str:
    """A prefix for a message: its last tokens."""
    return str(list(prefix)) if len(prefix) <= 8 else f"[... {len(prefix) - 8} tokens, {str(list(prefix[-8:]))[1:]}"

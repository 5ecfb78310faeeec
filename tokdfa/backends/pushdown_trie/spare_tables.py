"""Tables of machines that are gone, for those to come.

Memory that was touched before costs a tenth of new memory, and tables that have grown need not grow again.
"""

from __future__ import annotations

from typing import Any

from tokdfa.backends.pushdown_trie.arrays import M_ROWS, SHARED_BYTES, TABLE_FIELDS

#: Keep up to so many sets of tables, each with at most so many rows used, each of which takes 1 kB, and at most so many
#: bytes of everything else.
SPARE_TABLES, SPARE_ROWS, SPARE_BYTES = 4, 16_384, 8 << 20


class SpareTables:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, dict[str, Any]]] = []  # with their bytes
        #: Whether a machine has touched the memory that it, or the next one, will use.
        self.has_touched = False

    def take(self, transitions: int, max_bytes: int) -> dict[str, Any] | None:
        """The largest arrays there are with so many transitions that take a quarter of `max_bytes` at most; or None.

        Transitions and hash tables are empty.
        """
        fitting = [
            (size, place)
            for place, (size, tables) in enumerate(self._kept)
            if len(tables["transitions"]) == transitions and 4 * size <= max_bytes
        ]
        return self._kept.pop(max(fitting)[1])[1] if fitting else None

    def give_back(self, tables: dict[str, Any]) -> None:
        """Keep the arrays of a machine that is gone for others, unless they are large."""
        rows = int(tables["meta"][M_ROWS])
        size: int = tables[SHARED_BYTES]
        if len(self._kept) < SPARE_TABLES and rows <= SPARE_ROWS and size <= SPARE_BYTES:
            tables["transitions"][: rows * 256] = 0
            for name in TABLE_FIELDS:
                tables[name].clear()
            self._kept.append((size, tables))

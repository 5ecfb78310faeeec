"""Which pool the constraints of a vocabulary share, and whether it begins with what is kept on disk."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.core.locks import new_lock
from tokdfa.errors import SavedIndexError

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Past so many bytes of automata and partitions a vocabulary gets a new pool for constraints to come.
POOL_LIMIT = 256 << 20

_pools: WeakKeyDictionary[Vocabulary, Pool] = WeakKeyDictionary()
_pools_lock = new_lock()


def pool_of(vocab: Vocabulary, from_disk: bool = False) -> Pool:
    """The pool that new constraints of a vocabulary share. A full one is left to the constraints that have it.

    `from_disk`: a new pool begins with what `save_pool` wrote, if there is a file; a damaged one is ignored with a
    warning.
    """
    with _pools_lock:
        pool = _pools.get(vocab)
        if pool is None or pool.nbytes > POOL_LIMIT:
            pool = _pools[vocab] = Pool(vocab)
            if from_disk:
                _read_from_disk(pool, vocab)
        return pool


def save_pool(vocab: Vocabulary) -> Path:
    """Write the automata and partitions that constraints of a vocabulary share to disk; the file's path.

    In ``tokdfa/pools`` in the user's cache folder. Raises OSError or SavedIndexError if it cannot be written.
    """
    from tokdfa.backends.pushdown_trie.pool_file import pool_path, write_pool

    path = pool_path(vocab)
    write_pool(path, pool_of(vocab), vocab)
    return path


def _read_from_disk(pool: Pool, vocab: Vocabulary) -> None:
    from tokdfa.backends.pushdown_trie.pool_file import pool_path, read_pool

    path = pool_path(vocab)
    if path.exists():
        try:
            read_pool(path, pool, vocab)
        except SavedIndexError as error:
            warnings.warn(f"{error}; save_pool writes it again", stacklevel=4)

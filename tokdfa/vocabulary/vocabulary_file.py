"""Vocabularies and their tries on disk: a tokenizer of 131,072 tokens takes 0.4 s to load, and a few ms from there.

A stored file (`tokdfa.core.stored_file`) is written when the trie of a loaded vocabulary is first built, so by the
first mask. Its name says which file the tokenizer came from and that file's state, or the content of a tokenizer.json
that came from no file, and the content of the modules that read them. Encoder, decoder and merges are left to the
loader, which is called when one of them is asked for, and must then find the same vocabulary.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.folders import cache_folder
from tokdfa.core.locks import cached_property
from tokdfa.core.stored_file import FileFormat, code_stamp
from tokdfa.errors import StoreError, TokenizerError
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT, TokenTrie
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.loading import LoadedTokenizer
    from tokdfa.vocabulary.merge_source import MergeSource

#: Files kept, of some MB each; those that were not used for the longest time go first.
KEPT_FILES = 32
#: A file that was written so many seconds ago may be written again without a change of its times.
_UNSETTLED_SECONDS = 2.0
_SOURCES = (
    "vocabulary/*_loader.py",
    *(
        f"vocabulary/{name}.py"
        for name in (
            *(
                "gguf_file",
                "huggingface_spelling",
                "loading",
                "sentencepiece_fields",
                "markers",
                "trie",
                "vocabulary",
                "vocabulary_file",
            ),
        )
    ),
)
_FORMAT = FileFormat("tokdfa vocabulary", 1)


def load_kept(
    source: Path | bytes, options: object, load: Callable[[], LoadedTokenizer]
) -> LoadedTokenizer | KeptTokenizer:
    """What `load` makes of `source`, a file or its content, and `options`, or a `KeptTokenizer`.

    What is not kept yet will be with its trie. Trouble with the disk costs the time of `load`, nothing else.
    """
    state: object = _state_of(source) if not isinstance(source, bytes) else hashlib.sha256(source).digest()
    if state is None:
        return load()
    name = hashlib.sha256(repr((state, options)).encode()).hexdigest()[:24]
    path = cache_folder("vocabularies") / f"{name}-{code_stamp(*_SOURCES)}.npz"
    with suppress(StoreError, OSError):
        vocabulary = _FORMAT.read(path, _vocabulary_of)
        os.utime(path)
        return KeptTokenizer(vocabulary, load)
    loaded = load()
    loaded.vocabulary.when_built = partial(_keep, path, loaded.vocabulary)
    return loaded


class KeptTokenizer:
    """A `LoadedTokenizer` whose vocabulary is here, and the rest where it came from."""

    def __init__(self, vocabulary: Vocabulary, load: Callable[[], LoadedTokenizer]) -> None:
        self.vocabulary, self._load = vocabulary, load

    @cached_property
    def _whole(self) -> LoadedTokenizer:
        loaded = self._load()
        if loaded.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise TokenizerError(
                f"the file of {self.vocabulary.name} is not the one that its vocabulary in "
                f"{cache_folder('vocabularies')} was made of; delete that folder"
            )
        return loaded

    def encode(self, text: str) -> list[int]:
        return self._whole.encode(text)

    def decode(self, tokens: list[int]) -> str:
        return self._whole.decode(tokens)

    @property
    def identity(self) -> bytes:
        """As in `LoadedTokenizer`, like the rest."""
        return self._whole.identity

    def merges(self) -> MergeSource:
        return self._whole.merges()

    @property
    def encode_prompt(self) -> Callable[[str], list[int]] | None:
        return self._whole.encode_prompt


def _state_of(path: Path) -> tuple[object, ...] | None:
    """Changes when the file does; None if there is none, or if it may change without."""
    try:
        status, place = path.stat(), str(path.absolute())
    except (OSError, ValueError):
        return None
    times = status.st_mtime_ns, status.st_ctime_ns
    if time.time_ns() - max(times) < _UNSETTLED_SECONDS * 1e9:
        return None
    return place, status.st_dev, status.st_ino, status.st_size, *times


def _keep(path: Path, vocabulary: Vocabulary, trie: TokenTrie) -> None:
    header = {
        "name": vocabulary.name,
        "end_tokens": vocabulary.end_tokens,
        "special_tokens": list(vocabulary.special_tokens.items()),
        "depth_limit": trie.depth_limit,
    }
    arrays: dict[str, Any] = {
        "bytes": vocabulary.byte_data,
        "lengths": vocabulary.lengths.astype(np.uint16),
        "nodes": trie.nodes,
        "order": trie.order,
    }
    with suppress(StoreError, OSError):
        _FORMAT.write(path, header, arrays, make_folder=True)
        files = sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[KEPT_FILES:]:
            file.unlink(missing_ok=True)


def _vocabulary_of(header: Header, arrays: Arrays) -> Vocabulary:
    """The vocabulary with this `_keep`. Raises KeyError or ValueError for anything else."""
    lengths, nodes, order = arrays["lengths"], arrays["nodes"], arrays["order"]
    size, depth_limit = len(lengths), int(header["depth_limit"])
    if [array.dtype.char for array in (lengths, nodes, order, arrays["bytes"])] != list("HLiB"):
        raise ValueError("its arrays are of other types")
    offsets = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    tokens, depths = nodes >> np.uint64(TOKEN_SHIFT), nodes >> np.uint64(DEPTH_SHIFT) & np.uint64((1 << DEPTH_BITS) - 1)
    following = nodes >> np.uint64(NEXT_SHIFT) & np.uint64(MAX_NODES)
    places = np.arange(len(nodes), dtype=np.uint64)
    fits = [
        offsets[-1] == len(arrays["bytes"]) and len(order) == np.count_nonzero(lengths),
        not len(order) or (order.min() >= 0 and order.max() < size),
        not len(nodes) or (tokens.max() <= size and depths.max() < depth_limit),
        bool(((places < following) & (following <= len(nodes))).all()),
    ]
    if not all(fits):
        raise ValueError("its parts do not fit together")
    special = {int(token): str(name) for token, name in header["special_tokens"]}
    made = Vocabulary.from_flat(arrays["bytes"].tobytes(), offsets, header["end_tokens"], special, header["name"])
    nodes.flags.writeable = order.flags.writeable = False
    made.trie = TokenTrie(nodes, order, size, depth_limit, made.joined_bytes)
    return made

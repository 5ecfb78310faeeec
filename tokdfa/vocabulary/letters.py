"""The letters of a vocabulary: as few texts as tell whether tokens can end a text.

Words. A *spellable* byte is a token by itself. A *crossing* token contains a byte that is not spellable. The *letters*
are the spellable bytes and the texts of the crossing tokens.

Law. Tokens lead from a state to an end iff letters do. A token that crosses nothing can be replaced by its bytes, which
are letters; and every letter is a token. So whoever asks which states are *live* need not look at the other tokens, of
which there are nearly as many as the vocabulary has: most vocabularies that lack bytes have no crossing tokens (SmolLM2
lacks 21 bytes, and no token contains one of them), and then liveness is reachability by spellable bytes alone.

Cost: one pass over the token bytes, once for a vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.vocabulary.trie import TokenBytes, build_trie

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.vocabulary.trie import TokenTrie


class Letters(NamedTuple):
    """`spellable`: bool, shape (256,); `crossing`: the texts of the crossing tokens, each once, sorted; `trie`: that of
    the letters, numbered from the spellable bytes on.
    """

    spellable: npt.NDArray[np.bool_]
    crossing: tuple[bytes, ...]
    trie: TokenTrie


def letters_of(tokens: TokenBytes) -> Letters:
    """The letters of all tokens."""
    begins, ends = tokens.offsets[:-1], tokens.offsets[1:]
    spellable = np.zeros(256, dtype=np.bool_)
    spellable[tokens.data[begins[ends - begins == 1]]] = True
    missing = np.append(0, np.cumsum(~spellable[tokens.data]))
    crossing = sorted({tokens.of(token) for token in np.flatnonzero(missing[ends] > missing[begins]).tolist()})
    texts = [*(bytes([byte]) for byte in np.flatnonzero(spellable).tolist()), *crossing]
    offsets = np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64)
    return Letters(spellable, tuple(crossing), build_trie(TokenBytes(b"".join(texts), offsets)))

"""Set-up: what an engine makes once of a vocabulary, from the loaded tokenizer to masks of a throw-away constraint.

Tries, slices, tables and pools are shared between engines of one process, so whoever comes first would pay for all.
Each set-up is therefore timed in a fork of its own that has the tokenizer, the kernels and nothing else.
"""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING

from tokdfa.backends.registry import create_backend
from tokdfa.lab.measure.limits import die_with_parent, limit_address_space
from tokdfa.lab.measure.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tokdfa.lab.measure.limits import Limits
    from tokdfa.vocabulary.vocabulary import Vocabulary

_SECONDS = struct.Struct("<d")


def set_up_seconds(
    name: str, vocabulary: Vocabulary, options: Mapping[str, Any], kind: str, limits: Limits
) -> float | None:
    """Wall seconds of creating a backend and warming it up for a kind of constraint, in a fork; None if that fails.

    To be called before anything of the vocabulary has been made in this process.
    """
    reader, writer = os.pipe()
    fork = os.fork()
    if fork == 0:
        try:
            die_with_parent()
            limit_address_space(limits)
            began = time.perf_counter()
            warm_up(create_backend(name, vocabulary, **options), kind)
            os.write(writer, _SECONDS.pack(time.perf_counter() - began))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(fork, 0)
    return _SECONDS.unpack(said)[0] if len(said) == _SECONDS.size else None

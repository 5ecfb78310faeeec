"""What all tokenizer loaders share: their result, reading files with good errors, end tokens.

A *loader* turns a file into a `LoadedTokenizer`: the exact bytes of every token, and the reference library's own
encoder and decoder. Every fault of a file is a TokenizerError that names the file and the fault.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.core.packages import missing_import
from tokdfa.errors import TokenizerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How to say what ends a text.
REMEDY = "; name one with ?end=NAME, or with end_tokens=[...] of tokdfa.constrain"
#: No tokenizer file comes near this size; it bounds what a wrong path can cost.
MAX_FILE_BYTES = 1 << 29


@dataclass(frozen=True)
class LoadedTokenizer:
    """What a loader returns.

    `encode`: valid text -> tokens, without begin and end tokens; text that looks like a special token is plain text.
    `decode`: tokens that all spell something -> text, invalid UTF-8 replaced in the reference library's manner.
    `identity`: bytes that differ between encoders that share a vocabulary (pattern, merges, normaliser, ...).
    `merges`: how it merges, made when called; TokenizerError if it does not work by merges, or not in a way that
    `MergeSource` can say.
    """

    vocabulary: Vocabulary
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    identity: bytes
    merges: Callable[[], MergeSource]


def _hint(path: str) -> str:
    """What may have been meant by a path that leads nowhere."""
    if path.startswith(("http:", "https:")):
        return "; nothing is downloaded here: fetch it, and name the file"
    if "?" in path:
        return (
            "; options follow the name of a format, as in tiktoken:PATH?pattern=NAME (`tokdfa tokenizers` lists them)"
        )
    return ""


def check_path(path: Path) -> int:
    """The size in bytes of the regular file at `path`; TokenizerError names the path and what is wrong with it."""
    try:
        if path.is_dir():
            raise TokenizerError(f"{path}: this is a folder; name the tokenizer's file inside it")
        if not path.exists():
            raise TokenizerError(f"{path}: there is no such file{_hint(str(path))}")
        if not path.is_file():
            raise TokenizerError(f"{path}: this is not a regular file")
        return path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise unreadable(path, error) from None


def read_file(path: Path) -> bytes:
    """The content of a regular file of at most MAX_FILE_BYTES; TokenizerError names the file and what is wrong."""
    size = check_path(path)
    if size > MAX_FILE_BYTES:
        raise TokenizerError(f"{path}: {size} bytes is too large for a tokenizer (at most {MAX_FILE_BYTES})")
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError | ValueError) -> TokenizerError:
    """What to raise when the system refuses to read the file at `path`."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return TokenizerError(f"{path}: cannot be read: {reason}")


def parse_json(path: Path, data: bytes) -> dict[str, Any]:
    """The JSON object in `data`, the content of `path`; TokenizerError names line and column of a fault."""
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path}: byte {error.start} ({data[error.start]:#04x}) is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"{path}: this is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise TokenizerError(f"{path}: this JSON cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise TokenizerError(f"{path}: the file holds a JSON {type(value).__name__}, not an object")
    return value


def package_file(module: str, relative: str, purpose: str) -> Path:
    """A data file inside an installed package, found without importing the package (some import slowly)."""
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise missing_import(module, purpose)
    return Path(next(iter(found.submodule_search_locations))) / relative


def choose_end_tokens(path: Path, wanted: Iterable[str], special: Mapping[int, str]) -> list[int]:
    """The ids that `wanted` names (ids in decimal, or names) among `special`, the id -> name of the silent tokens.

    An end token that text could reach would make encode and masks disagree, so anything else is a TokenizerError.
    """
    by_name = {name: token for token, name in special.items()}
    chosen = []
    for entry in wanted:
        token = by_name.get(entry, int(entry) if entry.isdecimal() and len(entry) < 12 else -1)
        if token not in special:
            known = ", ".join(f"{name!r} ({token})" for token, name in sorted(special.items())[:12])
            raise TokenizerError(
                f"{path}: end token {entry!r} is not among the special tokens: {known or 'none'}{REMEDY}"
            )
        chosen.append(token)
    return chosen

"""What all tokenizer loaders share: their result, reading files with good errors, end tokens.

A *loader* turns a file into a `LoadedTokenizer`: the exact bytes of every token, and the reference library's own
encoder and decoder. Every fault of a file is a TokenizerError that names the file and the fault.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.core.nesting import read_json
from tokdfa.core.packages import missing_import
from tokdfa.errors import LimitExceeded, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How to say what ends a text.
REMEDY = "; name one with ?end=NAME, or with end_tokens=[...]"
#: No tokenizer file comes near this size; it bounds what a wrong path can cost.
MAX_FILE_BYTES = 1 << 29


@dataclass(frozen=True)
class LoadedTokenizer:
    """What a loader returns.

    `encode`: valid text -> tokens, without begin and end tokens; text that looks like a special token is plain text.
    `decode`: tokens that all spell something -> text, invalid UTF-8 replaced in the reference library's manner.
    `encode_prompt`: like `encode`, of a text from its beginning, in which names of special tokens are these tokens;
    None where that is `encode` of what stands between the names.
    `identity`: bytes that differ between encoders that share a vocabulary (pattern, merges, normaliser, ...).
    `merges`: how it merges, made when called; TokenizerError if it does not work by merges, or not in a way that
    `MergeSource` can say.
    """

    vocabulary: Vocabulary
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    identity: bytes
    merges: Callable[[], MergeSource]
    encode_prompt: Callable[[str], list[int]] | None = None


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
        value = read_json(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path}: byte {error.start} ({data[error.start]:#04x}) is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"{path}: this is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (LimitExceeded, ValueError) as error:  # nested too deep; a number of too many digits
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


def choose_end_tokens(
    path: Path,
    wanted: Iterable[str],
    tokens: list[bytes],
    special: dict[int, str],
    names: Mapping[int, str] | None = None,
    size: int | None = None,
) -> list[int]:
    """The ids that `wanted` names, each an id in decimal, a name of `special` or `names`, or what one token spells.

    What ends a text is special from here on, and spells nothing: `tokens` and `special` are changed. `names`: of other
    added tokens; `size`: the logit width, as ids past the tokens may end a text, too. TokenizerError for anything else.
    """
    named = {name: token for token, name in {**(names or {}), **special}.items()}
    chosen = []
    for entry in wanted:
        token = named.get(entry, -1)
        if token < 0 and entry.isdecimal() and len(entry) < 12:
            token = int(entry)
        elif token < 0 and tokens.count(entry.encode(errors="replace")) == 1 and entry:
            token = tokens.index(entry.encode())
        if not 0 <= token < max(len(tokens), size or 0):
            known = ", ".join(f"{name!r} ({token})" for token, name in sorted(special.items())[:12])
            raise TokenizerError(
                f"{path}: end token {entry!r} is not among the tokens; special tokens are {known or 'none'}{REMEDY}"
            )
        if token not in special:
            spelled = tokens[token].decode(errors="replace") if token < len(tokens) else ""
            special[token] = (names or {}).get(token) or spelled or f"<added {token}>"
        if token < len(tokens):
            tokens[token] = b""
        chosen.append(token)
    return chosen


def cut_at_names(names: Mapping[int, str]) -> Callable[[str], list[str | int]]:
    """A function that cuts a text at `names`, the leftmost and longest first: stretches of text, and ids for names."""
    by_name = {name: token for token, name in names.items() if name}
    if not by_name:
        return lambda text: [text] if text else []
    pattern = re.compile("(" + "|".join(map(re.escape, sorted(by_name, key=len, reverse=True))) + ")")

    def cut(text: str) -> list[str | int]:
        return [by_name[part] if k % 2 else part for k, part in enumerate(pattern.split(text)) if part]

    return cut

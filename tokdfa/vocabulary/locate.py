"""From what people call a tokenizer to its file: a path, a folder, a name of the Hugging Face hub in the local cache.

A folder is searched for the files of `FOLDER_FILES`, in that order. The files beside a tokenizer often say which tokens
end a text: ``generation_config.json``, as a model stops there, else ``tokenizer_config.json``. Nothing is fetched from
a network.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tokdfa.core.packages import import_library
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.loading import check_path, read_file
from tokdfa.vocabulary.word_patterns import PATTERNS

#: What a folder may hold: pattern of names -> family of tokenizers, "" if only the content tells.
FOLDER_FILES = {
    "tokenizer.json": "hf",
    "tekken.json": "tekken",
    "tokenizer.model": "",
    "*.model": "",
    "*.tiktoken": "",
    "*.gguf": "gguf",
}
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+=* \d+\s*$", re.M)
#: An end of a name that looks like a file.
_SUFFIXES = (".json", ".model", ".tiktoken", ".gguf", ".txt", ".bin", ".safetensors")


def escape_option(value: str) -> str:
    """One entry of an option's value, as names have it: what separates is written as in a URL."""
    return value.replace("%", "%25").replace(",", "%2C").replace("&", "%26")


def locate_tokenizer(name: str, has_pattern: bool = False) -> str | None:
    """The full name of a tokenizer, as in ``hf:FOLDER/tokenizer.json?end=2``; None if `name` is none of the above.

    `has_pattern`: whether the word pattern of a rank file is given beside.

    Raises TokenizerError for a path or a folder without a tokenizer, and for a name of the hub that is not there.
    """
    if not name:
        return None
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return _in_folder(path, has_pattern)
        if path.is_file() or name.startswith((".", "/", "~")) or path.suffix in _SUFFIXES:
            return _of_file(path, has_pattern)
    except OSError as error:
        raise TokenizerError(f"{name[:80]!r} cannot be looked up: {error.strerror}") from None
    except ValueError:  # a NUL character
        return None
    if not _HUB_NAME.fullmatch(name):
        return None
    folder = _hub_folder(name)
    if folder is not None:
        return _in_folder(folder, has_pattern)
    if "/" not in name:
        return None
    raise TokenizerError(
        f"{name!r} is no file or folder, nor a model in the local cache of the Hugging Face hub; nothing is downloaded "
        f"here: run `hf download {name}` first, or pass the tokenizer that transformers has loaded"
    )


def _in_folder(folder: Path, has_pattern: bool) -> str:
    for pattern in FOLDER_FILES:
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            names = ", ".join(path.name for path in found[:5])
            raise TokenizerError(f"{folder}: which of these files is it? Name one: {names}")
        if found:
            return _of_file(found[0], has_pattern)
    remedy = f"it has to hold one of {', '.join(FOLDER_FILES)}"
    if (folder / "vocab.json").exists() or (folder / "vocab.txt").exists():
        remedy = (
            "vocab and merges files do not say how texts are cut; transformers makes a tokenizer.json of them: "
            f"AutoTokenizer.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
        )
    raise TokenizerError(f"{folder}: there is no tokenizer in this folder; {remedy}")


def _of_file(path: Path, has_pattern: bool) -> str:
    check_path(path)
    if path.is_file() and not path.stat().st_size:
        raise TokenizerError(f"{path}: the file is empty, so it holds no tokenizer; copy or download it again")
    family = next((family for pattern, family in FOLDER_FILES.items() if path.match(pattern)), "")
    if not family:
        family = _family_of(path, has_pattern)
    end = _end_tokens_beside(path) if family in ("hf", "sentencepiece") else ""
    return f"{family}:{path}{'?end=' if end else ''}{end if end.replace(',', '').isdecimal() else escape_option(end)}"


def _family_of(path: Path, has_pattern: bool) -> str:
    if path.suffix == ".json":
        return "tekken" if path.name.startswith("tekken") else "hf"
    with path.open("rb") as file:
        beginning = file.read(4096)
    if beginning[:4] == b"GGUF":
        return "gguf"
    if _RANK_LINE.match(beginning.partition(b"\n")[0]):
        if has_pattern:
            return "tiktoken"
        raise TokenizerError(
            f"{path}: a rank file names neither its word pattern nor its end tokens; write load_tokenizer(..., "
            f"pattern=..., end_tokens=[ID]) or tiktoken:{path}?pattern=NAME&end=ID; patterns are "
            f"{', '.join(PATTERNS)}, or a regex"
        )
    return "sentencepiece"


def _end_tokens_beside(path: Path) -> str:
    """What the files beside a tokenizer say ends a text: ids or a name, with commas; "" if they say nothing."""
    ends = _entry(path.with_name("generation_config.json"), "eos_token_id")
    if isinstance(ends, list) and ends and all(type(end) is int for end in ends):
        return ",".join(map(str, ends))
    if type(ends) is int:
        return str(ends)
    named = _entry(path.with_name("tokenizer_config.json"), "eos_token")
    named = named.get("content") if isinstance(named, dict) else named
    return named if isinstance(named, str) else ""


def _entry(path: Path, key: str) -> object:
    """One entry of a JSON file; None if there is none, or no such file."""
    try:
        content = json.loads(read_file(path))
    except (TokenizerError, ValueError, RecursionError):
        return None
    return content.get(key) if isinstance(content, dict) else None


def _hub_folder(name: str) -> Path | None:
    """The folder of a model in the hub's local cache, if it holds a tokenizer."""
    find = import_library("huggingface_hub", "looking up a name of the Hugging Face hub").try_to_load_from_cache
    for file in ("tokenizer.json", "tekken.json", "tokenizer.model", "vocab.json", "config.json"):
        try:
            found = find(name, file)
        except ValueError:  # of the hub, for what cannot be a name there
            return None
        if isinstance(found, str):
            return Path(found).parent
    return None

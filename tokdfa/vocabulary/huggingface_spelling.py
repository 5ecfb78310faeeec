"""What the tokens of a tokenizer.json spell: its decoder, read as a rule from one token to its bytes.

A tokenizer.json decodes a sequence by a chain of steps. Token bytes exist exactly when the chain treats every token by
itself and joins the results. The steps that do:

- ``ByteLevel``: each character of a token stands for one byte (GPT-2's alphabet: printable bytes stand for themselves,
  the others for U+0100 and up). A token with any other character, such as an added token, is taken literally.
- ``Replace`` of a fixed string, and ``Metaspace``: U+2581 stands for a space. Behind ``ByteFallback`` or ``Fuse`` a
  string of one character other than ASCII, as it cannot be spread over two tokens, but of byte tokens: of those that
  spell U+2581 itself such a chain makes a space, and we keep the bytes.
- ``ByteFallback``: ``<0xHH>`` is one byte.
- ``Fuse`` joins. Somewhere behind it, ``Strip`` may take the first space away: the trace of the *dummy prefix*, a space
  that the encoder puts before every text.

All others look at neighbours or at the end of the text (WordPiece, BPEDecoder, CTC, Strip per token, Replace of a
regex), or are missing (then tokens are joined with spaces); `read_decoder` refuses them by name.

A constrained text continues a context, so a token must add its bytes and nothing else. `without_dummy_prefix` therefore
takes the dummy prefix out of encoder and decoder: ``encode("a")`` is the token ``a``, and ``encode(" a")`` what the
original encoder makes of ``"a"`` at the start of a text. It also puts what replaces characters first in the decoder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokenizerError

if TYPE_CHECKING:
    from pathlib import Path

SPACE = "\u2581"


def byte_alphabet() -> list[str]:
    """GPT-2's character of each byte: itself if it is printable Latin-1, else U+0100, U+0101, ... in turn."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    shifted = {byte: chr(0x100 + index) for index, byte in enumerate(others)}
    return [shifted.get(byte, chr(byte)) for byte in range(256)]


def _latin1_table() -> dict[int, int]:
    """Maps the alphabet to the Latin-1 characters of the bytes, and other Latin-1 characters out of Latin-1."""
    beyond = dict.fromkeys(range(256), 0xFFFF)
    return beyond | {ord(character): byte for byte, character in enumerate(byte_alphabet())}


_TO_LATIN1 = _latin1_table()
#: Values of steps that are texts.
_TEXTS = ("prepend", "replacement", "content")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class SpellingRule:
    """How one token's text becomes its bytes: `replacements` first, then `byte_fallback` or `byte_level`."""

    replacements: tuple[tuple[str, str], ...] = ()
    byte_fallback: bool = False
    byte_level: bool = False

    def spell(self, token: str) -> bytes:
        """The bytes that a token with this text adds to the output."""
        for old, new in self.replacements:
            token = token.replace(old, new)
        if self.byte_fallback and (match := _BYTE_TOKEN.fullmatch(token)):
            return bytes.fromhex(match[1])
        if self.byte_level:
            try:
                return token.translate(_TO_LATIN1).encode("latin-1")
            except UnicodeEncodeError:  # a character outside the alphabet: the token is literal
                pass
        return token.encode()


def check_components(path: Path, spec: dict[str, Any]) -> None:
    """Raise TokenizerError unless the steps of a tokenizer.json's components have the types that are read here."""
    for part, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers"), ("decoder", "decoders")):
        todo = [spec.get(part)]
        while todo:
            step = todo.pop()
            if step is None:
                continue
            if not isinstance(step, dict) or not isinstance(step.get("type"), str):
                raise TokenizerError(f"{path}: {part}: a step must be an object with a type")
            wrong = next((name for name in _TEXTS if not isinstance(step.get(name, ""), str)), None)
            if wrong is not None:
                raise TokenizerError(f"{path}: {part}: {wrong} of {step['type']} must be a text, not {step[wrong]!r}")
            if step["type"] == "Sequence":
                if not isinstance(step.get(key), list):
                    raise TokenizerError(f"{path}: {part}: a Sequence needs a list {key}")
                todo += step[key]


def read_decoder(path: Path, decoder: Any) -> SpellingRule:
    """The rule of a tokenizer.json's ``decoder``; TokenizerError names a step that gives no exact token bytes."""
    replacements: list[tuple[str, str]] = []
    done: set[str] = set()
    for step in component_steps(decoder, "decoders"):
        kind = step.get("type")
        replaced = _replaced(step)
        if replaced and (not done or ("ByteLevel" not in done and len(replaced[0]) == 1 and not replaced[0].isascii())):
            replacements.append(replaced)
        elif kind == "Fuse" or (kind in {"ByteFallback", "ByteLevel"} and not done):
            done.add(kind)
        elif not (kind == "Strip" and _strips_dummy_prefix(step) and "Fuse" in done):
            raise TokenizerError(f"{path}: the decoder step {kind!r} gives tokens no exact bytes here")
    if not replacements and not done:
        raise TokenizerError(f"{path}: there is no decoder, so tokens are words joined by spaces, without exact bytes")
    return SpellingRule(tuple(replacements), "ByteFallback" in done, "ByteLevel" in done)


def without_dummy_prefix(spec: dict[str, Any]) -> dict[str, Any]:
    """A copy of a tokenizer.json's content that neither adds a space before a text nor takes one away."""
    return {
        **spec,
        "normalizer": _rebuilt(spec.get("normalizer"), "normalizers"),
        "pre_tokenizer": _rebuilt(spec.get("pre_tokenizer"), "pretokenizers"),
        "decoder": _rebuilt(spec.get("decoder"), "decoders"),
    }


def _rebuilt(part: Any, key: str) -> Any:
    """One component (possibly a Sequence of them under `key`) without its dummy prefix; None if nothing is left."""
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind == "Sequence" and isinstance(part.get(key), list):
        kept = [step for step in (_rebuilt(step, key) for step in part[key]) if step is not None]
        if key == "decoders":
            kept = [step for inner in kept for step in component_steps(inner, key)]
            kept.sort(key=lambda step: _replaced(step) is None)
        return {**part, key: kept}
    if (kind == "Prepend" and part.get("prepend") in {SPACE, " "}) or (kind == "Strip" and _strips_dummy_prefix(part)):
        return None
    if kind == "Metaspace":
        return {**part, "prepend_scheme": "never", "add_prefix_space": False}
    if kind == "ByteLevel" and key == "pretokenizers":
        return {**part, "add_prefix_space": False}
    return part


def component_steps(part: Any, key: str) -> list[dict[str, Any]]:
    """The steps of a tokenizer.json's component, nested Sequences (lists under `key`) flattened."""
    if not isinstance(part, dict):
        return []
    if part.get("type") != "Sequence":
        return [part]
    return [step for inner in part.get(key) or [] for step in component_steps(inner, key)]


def _replaced(step: dict[str, Any]) -> tuple[str, str] | None:
    """What a decoder's step puts in place of what, if it is a fixed text in every token."""
    if step.get("type") == "Metaspace":
        return step.get("replacement", SPACE), " "
    pattern = _fixed_pattern(step) if step.get("type") == "Replace" else ""
    return (pattern, str(step.get("content", ""))) if pattern else None


def _fixed_pattern(step: dict[str, Any]) -> str:
    pattern = step.get("pattern")
    return str(pattern.get("String") or "") if isinstance(pattern, dict) else ""


def _strips_dummy_prefix(step: dict[str, Any]) -> bool:
    """A decoder's Strip of one leading space. (A normaliser's Strip has no `content`, and stays.)"""
    return step.get("content") == " " and step.get("start") == 1 and step.get("stop") == 0

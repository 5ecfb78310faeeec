"""Word patterns: how rank files cut a text into words before they merge. A rank file does not say its own."""

from __future__ import annotations

import re

from tokdfa.errors import UnknownNameError

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"

#: Published word patterns, by the name of the encoding they belong to (alternatives in order of precedence). Those of
#: gpt2 (also r50k and p50k), cl100k and o200k are tiktoken's, that of llama3 is llama-models', and that of qwen2 (also
#: of Qwen 2.5 and 3) is the same with digits one by one.
PATTERNS: dict[str, str] = {
    "gpt2": "|".join(
        (r"'(?:[sdmt]|ll|ve|re)", r" ?\p{L}++", r" ?\p{N}++", r" ?[^\s\p{L}\p{N}]++", r"\s++$", r"\s+(?!\S)", r"\s")
    ),
    "cl100k": "|".join(
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\p{N}{1,3}+",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            *(r"\s++$", r"\s*[\r\n]", r"\s+(?!\S)", r"\s"),
        )
    ),
    "o200k": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            *(r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"),
        )
    ),
    "llama3": "|".join(
        (
            _CONTRACTIONS,
            r"[^\r\n\p{L}\p{N}]?\p{L}+",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            *(r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"),
        )
    ),
}
PATTERNS["qwen2"] = PATTERNS["llama3"].replace(r"\p{N}{1,3}", r"\p{N}")


def word_pattern(wanted: str) -> str:
    """The pattern that `wanted` names, or that it is: a regex of tiktoken's. UnknownNameError for a word alone."""
    if wanted in PATTERNS:
        return PATTERNS[wanted]
    if re.fullmatch(r"[\w-]*", wanted):
        raise UnknownNameError("word pattern", wanted, PATTERNS)
    return wanted

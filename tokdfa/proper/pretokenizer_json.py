"""From a tokenizer.json (package tokenizers) to the description of its pre-tokenizer, or a refusal that names why.

Read are the pre-tokenizers Sequence, Split, Digits, ByteLevel, Metaspace, Punctuation, WhitespaceSplit and
CharDelimiterSplit. A normaliser changes the text before it is cut, so that some texts are never reproduced. Those of
`tokdfa.proper.normalizers.COVERED` are passed over here, as texts that they change are refused elsewhere. One that
writes spaces as another character is, for a model without pre-tokenizer, a metaspace that does not split; a
pre-tokenizer behind it that only splits at spaces cuts nothing, as there are none. All others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokenizerError, a_noun
from tokdfa.proper.normalizers import COVERED

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A step of a description, see `tokdfa.proper.pretokenizer`.
Step = dict[str, Any]

_BEHAVIORS = {
    "Isolated": "isolated",
    "Removed": "removed",
    "Contiguous": "contiguous",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
}


def read_tokenizer_json(content: Mapping[str, Any]) -> list[Step]:
    """The description of the pre-tokenizer of a whole tokenizer.json, its normaliser taken into account.

    Raises TokenizerError naming the place in the file and what is not covered.
    """
    section = content.get("pre_tokenizer")
    replacement = _read_normalizer(content.get("normalizer"))
    if replacement is None:
        return read_pre_tokenizer(section)
    steps = read_pre_tokenizer(section)
    if not all(step["kind"] == "split" and step["dialect"] == "literal" and " " in step["pattern"] for step in steps):
        raise TokenizerError("normalizer: a Replace of spaces together with a pre_tokenizer is not covered")
    return [{"kind": "metaspace", "replacement": replacement, "split": False, "prepend_scheme": "never"}]


def read_pre_tokenizer(section: Any, where: str = "pre_tokenizer") -> list[Step]:
    """The steps of a ``pre_tokenizer`` section (null: none). `where` is its place in the file, for messages.

    A dummy prefix (``add_prefix_space``, ``prepend_scheme``) is kept in the steps, and refused when they are built.
    Raises TokenizerError naming the place and what is not covered.
    """
    if section is None:
        return []
    kind = section.get("type") if isinstance(section, dict) else None
    match kind:
        case "Sequence":
            parts = _value(section, "pretokenizers", list, where)
            named = ((part, f"{where}.pretokenizers[{number}]") for number, part in enumerate(parts))
            return [step for part, place in named for step in read_pre_tokenizer(part, place)]
        case "Split":
            step = {"kind": "split", **_pattern(section, where), "behavior": _behavior(section, where)}
            return [{**step, "invert": _value(section, "invert", bool, where, False)}]
        case "CharDelimiterSplit":
            delimiter = _value(section, "delimiter", str, where)
            return [{"kind": "split", "pattern": delimiter, "dialect": "literal", "behavior": "removed"}]
        case "Digits":
            return [{"kind": "digits", "individual": _value(section, "individual_digits", bool, where)}]
        case "Punctuation":
            return [{"kind": "punctuation", "behavior": _behavior(section, where, "Isolated")}]
        case "WhitespaceSplit":
            return [{"kind": "whitespace_split"}]
        case "ByteLevel":
            add, use = (_value(section, key, bool, where, True) for key in ("add_prefix_space", "use_regex"))
            return [{"kind": "byte_level", "use_regex": use, "add_prefix_space": add}]
        case "Metaspace":
            return [_metaspace(section, where)]
    raise TokenizerError(f"{where}: the pre-tokenizer {kind or section!r} is not covered")


def _metaspace(section: Mapping[str, Any], where: str) -> Step:
    """Older files have add_prefix_space in place of prepend_scheme, and split always."""
    if "prepend_scheme" in section:
        scheme = _value(section, "prepend_scheme", str, where)
    else:
        scheme = "always" if _value(section, "add_prefix_space", bool, where, True) else "never"
    replacement = _value(section, "replacement", str, where)
    split = _value(section, "split", bool, where, True)
    return {"kind": "metaspace", "replacement": replacement, "split": split, "prepend_scheme": scheme}


def _pattern(section: Mapping[str, Any], where: str) -> Step:
    given = _value(section, "pattern", dict, where)
    if set(given) == {"Regex"}:
        return {"pattern": _value(given, "Regex", str, f"{where}.pattern"), "dialect": "oniguruma"}
    if set(given) == {"String"}:
        return {"pattern": _value(given, "String", str, f"{where}.pattern"), "dialect": "literal"}
    raise TokenizerError(f"{where}.pattern holds Regex or String, not {', '.join(map(repr, given)) or 'nothing'}")


def _behavior(section: Mapping[str, Any], where: str, default: str | None = None) -> str:
    given = _value(section, "behavior", str, where, default)
    if given not in _BEHAVIORS:
        raise TokenizerError(f"{where}.behavior is {given!r}, not one of {', '.join(_BEHAVIORS)}")
    return _BEHAVIORS[given]


def _value(section: Mapping[str, Any], key: str, kind: type, where: str, default: Any = None) -> Any:
    value = section.get(key, default)
    if type(value) is not kind:
        raise TokenizerError(f"{where}.{key} must be {a_noun(kind.__name__)}, not {value!r}")
    return value


def _read_normalizer(section: Any, where: str = "normalizer") -> str | None:
    """The one character that a normaliser writes for spaces; None if it writes none."""
    if section is None:
        return None
    kind = section.get("type") if isinstance(section, dict) else None
    if kind == "Sequence":
        parts = _value(section, "normalizers", list, where)
        read = (_read_normalizer(part, f"{where}.normalizers[{number}]") for number, part in enumerate(parts))
        found = [replacement for replacement in read if replacement is not None]
        if len(found) > 1:
            raise TokenizerError(f"{where}: more than one Replace of spaces is not covered")
        return found[0] if found else None
    if kind in COVERED:
        return None
    if kind == "Replace" and section.get("pattern") == {"String": " "} and section.get("content") != " ":
        return str(_value(section, "content", str, where))
    raise TokenizerError(
        f"{where}: {kind or section!r} changes the text before it is cut, so some texts have no proper tokens; "
        "only a tokenizer without it is covered"
    )

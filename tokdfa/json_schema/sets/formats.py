r"""The formats of the drafts as patterns of ours, written from the grammars of their standards.

Which names are asserted. A ``format`` that this table has is asserted, whatever the draft, unless `asserts` of a
`tokdfa.constraint.JsonSchema` says otherwise: the drafts leave it to the implementation, and common validators assert
all they know; so are those that pydantic writes (`tokdfa.json_schema.sets.class_formats`). Other names (``int32``,
``phone``) are annotations.

Which language. Each format is what its standard says *and* the checker of the Python package `jsonschema` (with its
format extras) accepts, so nothing is in it that either refuses. ``outside`` is a language that contains all that the
checker accepts; its complement is what ``not format`` means. Where the two are one language, it stands there once.

=====================  ====================================================  =======================================
format                 standard                                              beside it, the checker
=====================  ====================================================  =======================================
date                   RFC 3339 full-date, years 0001..9999                  is equal
time, date-time        RFC 3339, real dates; no leap seconds (checker)       allows a last newline
duration               RFC 3339, appendix A                                  ISO 8601 with gaps, fractions, signs
email                  RFC 5321 Mailbox                                      asks for an @ only
idn-email              RFC 6531, domains as in idn-hostname                  asks for an @ only
hostname               RFC 1123, at most 253 characters; ``xn--`` undecoded   last dot or newline, other digits
idn-hostname           RFC 5890: ASCII, or short labels of some scripts      Punycode, NFC: not regular; no outside
ipv4                   RFC 2673 dotted quad                                  is equal
ipv6                   RFC 4291, no zone                                     is equal
uri, uri-reference     RFC 3986                                              ``[::01.2.3.4]``, a last newline
iri, iri-reference     RFC 3987 up to U+FFFF; IPv6 with one group left out   is equal
uuid                   RFC 4122 (8-4-4-4-12)                                 looks at four hyphens, strips braces
uri-template           RFC 6570, operators of levels 1 to 4                  any literals, defaults
json-pointer           RFC 6901                                              is equal
relative-json-pointer  draft, no digit behind a 0 (checker)                  digits of all scripts
regex                  groups four deep, escapes and ranges known to all     tries it; not regular; no outside
=====================  ====================================================  =======================================
"""

from __future__ import annotations

from dataclasses import dataclass

from tokdfa.errors import UnknownNameError, UnsupportedConstraint
from tokdfa.json_schema.sets.class_formats import CLASS_FORMATS
from tokdfa.json_schema.sets.regex_format import VALID_REGEX
from tokdfa.json_schema.sets.uri_formats import (
    ANY_URI,
    ANY_URI_REFERENCE,
    IPV4,
    IPV6,
    IRI,
    IRI_REFERENCE,
    URI,
    URI_REFERENCE,
    URI_TEMPLATE,
)


@dataclass(frozen=True)
class Format:
    """One format.

    `pattern`: found in its texts; `max_length`: in code points; `outside`: a pattern found in all texts that the
    checker accepts, None if none is known; `large`: its automaton has more states than are worth making in advance.
    """

    pattern: str
    outside: str | None
    max_length: int | None = None
    large: bool = False


def _exact(pattern: str) -> Format:
    return Format(pattern, pattern)


# RFC 3339, with the days that months have.
_NOT_ZERO_YEAR = r"(?:\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000)"
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])"
DATE = rf"(?:{_NOT_ZERO_YEAR}-(?:{_DAY})|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
TIME = rf"{_HOUR_AND_MINUTE}:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]{_HOUR_AND_MINUTE})"

# RFC 3339, appendix A: units follow each other without a gap.
_TIME_UNITS = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DATE_UNITS = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"
_DURATION = rf"^P(?:\d+W|{_DATE_UNITS}(?:{_TIME_UNITS})?|{_TIME_UNITS})$"

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
#: The checker ignores case by Unicode's rules, and takes digits of all scripts; it counts code points otherwise.
_ANY_HOSTNAME = r"^(?:[-A-Za-z0-9\u017f\u212a]|[^\x00-\x7f])[^\x00-,/:-@\[-`{-\x7f]*\n?$"

# RFC 5891. A label of ASCII has no hyphens in both of its third and fourth places. Of other letters those are taken
# that are valid and stay as they are under NFC, whatever stands beside them. Punycode takes at most 4 octets for a
# letter below U+0700 and 6 for one below U+D800 in labels so short, so that 14 or 9 of them keep within 60 octets; four
# labels, one of them not ASCII, keep within 253. Beside them stand what RFC 5892 allows in some contexts only: the
# middle dots of Catalan and Japanese, keraia, geresh, joiners behind a virama and between letters that join.
_L, _H = "[A-Za-z0-9]", "[A-Za-z0-9-]"
_LOW_LETTERS = r"a-z\u00df-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u045f"
_HIGH_LETTERS = _LOW_LETTERS + r"\u0f0b\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fef\uac00-\ud7a3"
_LOW, _HIGH = f"[{_LOW_LETTERS}0-9]", f"[{_HIGH_LETTERS}0-9]"
_KANA_OR_HAN = r"[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fef]"
_DEVANAGARI = r"[\u0905-\u0939][\u093e-\u094d]?"
_ARABIC_DUAL = r"\u0628\u062a-\u062e\u0633-\u063a\u0641-\u0647\u064a"
_R = r"\u05d0-\u05ea\u0620-\u063a\u0641-\u064a\u06fd\u06fe"
_DOT = r"[.\u3002\uff0e\uff61]"


def _left_to_right(digits: str) -> str:
    """Labels written from left to right; `digits` may come first, and the middle dot of Japanese if they may."""
    first, low, high = (f"[{letters}{digits}]" for letters in ("A-Za-z", _LOW_LETTERS, _HIGH_LETTERS))
    return "|".join(
        (
            rf"{first}(?:{_H}?{_L}|{_H}{{2}}{_L}|{_H}(?:{_L}{_H}|-{_L}){_H}{{0,58}}{_L})?",
            rf"{low}{_LOW}{{0,13}}|{low}(?:-?{_LOW}){{0,6}}|{high}{_HIGH}{{0,8}}|{high}(?:-?{_HIGH}){{0,4}}",
            rf"(?:{low}{_LOW}{{0,4}})?l\u00b7l{_LOW}{{0,5}}|{low}{_LOW}{{0,5}}\u0375[\u03ac-\u03ce]{_LOW}{{0,5}}",
            rf"(?:{high}{_HIGH}{{0,2}})?{_KANA_OR_HAN}\u30fb{_HIGH}{{1,4}}",
            rf"(?:{_DEVANAGARI}){{1,4}}|(?:{_DEVANAGARI})?[\u0905-\u0939]\u094d[\u200c\u200d](?:{_DEVANAGARI}){{1,2}}",
            *([rf"\u30fb{_KANA_OR_HAN}{_HIGH}{{0,6}}|[\u06f0-\u06f9][0-9\u06f0-\u06f9]{{0,13}}"] if digits else []),
        )
    )


# RFC 5893: where one label is written from right to left, no other begins with a digit, and it has digits of one kind.
_RIGHT_TO_LEFT = (
    rf"[{_R}][{_R}\u0660-\u0669]{{0,13}}|[{_R}][{_R}0-9\u06f0-\u06f9]{{0,13}}"
    rf"|[{_R}]{{0,5}}[\u05d0-\u05ea][\u05f3\u05f4][{_R}]{{0,5}}"
    rf"|[{_R}]{{0,5}}[{_ARABIC_DUAL}]\u200c[{_ARABIC_DUAL}\u0627\u062f-\u0632\u0648][{_R}]{{0,5}}"
)
_LTR_LABEL, _BIDI_LABEL = _left_to_right("0-9"), f"{_left_to_right('')}|{_RIGHT_TO_LEFT}"
_IDN_DOMAIN = rf"(?:{_LTR_LABEL})(?:{_DOT}(?:{_LTR_LABEL})){{0,3}}|(?:{_BIDI_LABEL})(?:{_DOT}(?:{_BIDI_LABEL})){{0,3}}"
_LDH_LABEL = _LTR_LABEL.partition(f"|[{_LOW_LETTERS}")[0]
_IDN_HOSTNAME = rf"(?:{_LDH_LABEL}(?:{_DOT}{_LDH_LABEL})*|{_IDN_DOMAIN})"

# RFC 5321, section 4.1.2; RFC 6531, section 3.3.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_ADDRESS = rf"\[(?:{IPV4}|IPv6:{IPV6})\]"
_IDN_ATOM = r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7f])+"
_IDN_QUOTED = r'"(?:[ !#-\[\]-~]|[^\x00-\x7f]|\\[ -~])*"'

_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

FORMATS: dict[str, Format] = {
    "date": _exact(rf"^{DATE}$"),
    "time": Format(rf"^{TIME}$", rf"^{TIME}\n?$"),
    "date-time": Format(rf"^{DATE}[Tt]{TIME}$", rf"^{DATE}[Tt]{TIME}\n?$"),
    "duration": Format(_DURATION, r"^[+-]?P[\s\S]*[DMYWHS]$"),
    "email": Format(rf"^(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_HOSTNAME}|{_ADDRESS})$", "@"),
    "idn-email": Format(
        rf"^(?:{_IDN_ATOM}(?:\.{_IDN_ATOM})*|{_IDN_QUOTED})@(?:{_IDN_DOMAIN}|{_HOSTNAME}|{_ADDRESS})$", "@",
        large=True,
    ),
    "hostname": Format(rf"^{_HOSTNAME}$", _ANY_HOSTNAME, 253, large=True),
    "idn-hostname": Format(rf"^{_IDN_HOSTNAME}$", None, 253, large=True),
    "ipv4": _exact(rf"^{IPV4}$"),
    "ipv6": _exact(rf"^{IPV6}$"),
    "uri": Format(rf"^{URI}$", rf"^{ANY_URI}\n?$"),
    "uri-reference": Format(rf"^{URI_REFERENCE}$", rf"^{ANY_URI_REFERENCE}\n?$"),
    "iri": _exact(rf"^{IRI}$"),
    "iri-reference": _exact(rf"^{IRI_REFERENCE}$"),
    "uuid": Format(r"^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", r"^[\s\S]{8}(?:-[\s\S]{4}){3}-"),
    "uri-template": Format(rf"^{URI_TEMPLATE}$", r"^[^{}]*(?:\{[^}]*\}[^{}]*)*$"),
    "json-pointer": _exact(rf"^{_POINTER}$"),
    "relative-json-pointer": Format(rf"^(?:0|[1-9]+0?)(?:#|{_POINTER})$", rf"^(?:\d|[^\x00-\x7f])+(?:#|{_POINTER})$"),
    "regex": Format(rf"^{VALID_REGEX}$", None, large=True),
}  # fmt: skip

#: The same, and those that no draft has (`tokdfa.json_schema.sets.class_formats`).
ASSERTED = FORMATS | {
    name: Format(pattern, None, large=name.endswith("network")) for name, pattern in CLASS_FORMATS.items()
}

# RFC 8259 with arrays and objects three deep. RFC 4648 without bits that are lost; outside, RFC 2045, which has lines.
_JSON_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"'
_JSON = rf"(?:null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?|{_JSON_STRING})"
for _ in range(3):
    _ITEM = rf"[ \t\n\r]*{_JSON}[ \t\n\r]*"
    _MEMBER = rf"[ \t\n\r]*{_JSON_STRING}[ \t\n\r]*:{_ITEM}"
    _ARRAY, _OBJECT = (rf"(?:{part}(?:,{part})*|[ \t\n\r]*)" for part in (_ITEM, _MEMBER))
    _JSON = rf"(?:{_JSON}|\[{_ARRAY}\]|\{{{_OBJECT}\}})"

#: What contentEncoding and contentMediaType of draft 7 name, if they are asserted. No formats by name.
CONTENTS: dict[str, Format] = {
    "base64": Format(CLASS_FORMATS["base64"], r"^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$"),
    "application/json": Format(rf"^[ \t\n\r]*{_JSON}[ \t\n\r]*$", None, large=True),
}


def find_format(name: str) -> Format:
    """The format or content of that name. Raises UnknownNameError."""
    found = CONTENTS.get(name) or ASSERTED.get(name)
    if found is None:
        raise UnknownNameError("asserted format", name, FORMATS)
    return found


def outside_of(name: str) -> str:
    """A pattern found in all texts that the checker accepts. Raises UnknownNameError or UnsupportedConstraint."""
    outside = find_format(name).outside
    if outside is None:
        raise UnsupportedConstraint(f"the negation of format {name!r} is not supported: {name} is no regular language")
    return outside

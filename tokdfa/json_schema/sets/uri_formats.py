r"""Addresses and identifiers as patterns: IPv4, IPv6, URI, IRI, URI template.

Written from RFC 3986 (appendix A), RFC 3987 (section 2.2), RFC 6570 (section 2) and RFC 4291 (section 2.2). None of
them has anchors. What the common checker accepts beyond the standards is in the patterns named ``ANY_``.
"""

from __future__ import annotations

OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = rf"(?:{OCTET}\.){{3}}{OCTET}"
_GROUP = r"[0-9A-Fa-f]{1,4}"


def _ipv6(ipv4: str) -> str:
    """Eight groups, or ``::`` for one or more of them; two can be written as `ipv4`."""
    options = [rf"(?:{_GROUP}:){{6}}(?:{_GROUP}:{_GROUP}|{ipv4})"]
    for before in range(8):
        start = rf"(?:{_GROUP}:){{{before}}}:" if before else "::"
        after = [rf"(?:{_GROUP}:){{0,{6 - before}}}{_GROUP}"] if before < 7 else []
        if before < 6:
            after.append(rf"(?:{_GROUP}:){{0,{5 - before}}}{ipv4}")
        options.append(start + (rf"(?:{'|'.join(after)})?" if after else ""))
    return rf"(?:{'|'.join(options)})"


IPV6 = _ipv6(IPV4)

# RFC 3986. The checker takes octets with leading zeros in an IPv6 address; as a name, they are legal anyway.
_ANY_IPV4 = r"(?:(?:25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d\d?)"
_UNRESERVED = r"A-Za-z0-9._~-"
_SUB_DELIMITERS = r"!$&'()*+,;="
_ENCODED = r"%[0-9A-Fa-f]{2}"
_IP_FUTURE = rf"v[0-9A-Fa-f]+\.[{_SUB_DELIMITERS}:{_UNRESERVED}]+"


def _identifier(ipv6: str, more: str = "", private: str = "") -> tuple[str, str]:
    """A URI and a reference: `more` characters stand unreserved, `private` ones in queries."""

    def one_of(characters: str) -> str:
        return rf"(?:[{characters}{_SUB_DELIMITERS}{more}{_UNRESERVED}]|{_ENCODED})"

    segment = one_of(":@")
    authority = rf"(?:{one_of(':')}*@)?(?:\[(?:{ipv6}|{_IP_FUTURE})\]|{one_of('')}*)(?::\d*)?"
    segments = rf"(?:/{segment}*)*"
    shared = rf"//{authority}{segments}|/(?:{segment}+{segments})?"
    query, fragment = one_of(":@/?" + private), one_of(":@/?")
    end = rf"(?:\?{query}*)?(?:#{fragment}*)?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{shared}|{segment}+{segments})?{end}"
    relative = rf"(?:{shared}|{one_of('@')}+{segments})?{end}"
    return absolute, rf"(?:{absolute}|{relative})"


URI, URI_REFERENCE = _identifier(IPV6)
ANY_URI, ANY_URI_REFERENCE = _identifier(_ipv6(_ANY_IPV4))

# RFC 3987 up to U+FFFF, which is as far as the checker goes; it also wants seven groups beside a ``::``.
_LAST_32_BITS = rf"(?:{_GROUP}:{_GROUP}|{IPV4})"
_LONG_IPV6 = "|".join(
    [rf"(?:{_GROUP}:){{6}}{_LAST_32_BITS}", rf"::(?:{_GROUP}:){{5}}{_LAST_32_BITS}"]
    + [rf"(?:{_GROUP}:){{{k}}}:(?:{_GROUP}:){{{5 - k}}}{_LAST_32_BITS}" for k in range(1, 6)]
    + [rf"(?:{_GROUP}:){{6}}:{_GROUP}", rf"(?:{_GROUP}:){{7}}:"]
)
IRI, IRI_REFERENCE = _identifier(
    rf"(?:{_LONG_IPV6})", more=r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef", private=r"\ue000-\uf8ff"
)

# RFC 6570. The checker wants names to begin with a letter, a digit or ``_``, and prefixes of at most three digits; the
# operators ``= , ! @ |`` are reserved.
_NAME = rf"[A-Za-z0-9_](?:\.?(?:[A-Za-z0-9_]|{_ENCODED}))*"
_VARIABLE = rf"{_NAME}(?:\*|:[1-9]\d{{0,2}})?"
_LITERAL = (
    r"[!#$&'()*+,\-./:;=?@\[\]_~A-Za-z0-9"
    r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\ue000-\uf8ff"
    + "".join(rf"\u{{{plane:x}0000}}-\u{{{plane:x}fffd}}" for plane in range(1, 17))
    + "]"
)
URI_TEMPLATE = rf"(?:{_LITERAL}|{_ENCODED}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"

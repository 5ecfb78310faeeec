r"""Formats beside those of the drafts, which pydantic writes for types of Python: what its parsers accept of them.

``uuid1`` to ``uuid8`` are UUIDs of one version; networks and interfaces are addresses with a prefix length. Each
pattern is within what pydantic parses, so what is generated can be read. It leaves out other spellings: UUIDs with
braces or without hyphens; of IPv6 networks those whose prefix ends inside of a group, or with other short forms.
A network's bits past its prefix are zero, as Python's `ipaddress` demands.

`DESCRIBING` are names that say what a text is for and not how it is spelled, or that no automaton can check
(``json-string``): they are known, and demand nothing.
"""

from __future__ import annotations

from tokdfa.json_schema.sets.uri_formats import IPV4, IPV6, OCTET

#: From the registry of OpenAPI, and pydantic's for paths, addresses of servers and texts that are encoded.
DESCRIBING = frozenset(
    [
        *("int32", "int64", "float", "double", "byte", "binary", "password", "path", "file-path", "directory-path"),
        *("multi-host-uri", "json-string", "base64url", "name-email", "color", "phone"),
    ]
)

_HEX = "[0-9A-Fa-f]"


def _uuid(version: int) -> str:
    return rf"^{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}$"


def _ipv4_network() -> str:
    """Octets that are whole, one that has some bits, and zeros, for each prefix length."""
    found = []
    for bits in range(33):
        whole, rest = divmod(bits, 8)
        octets = [OCTET] * whole
        if whole < 4:
            octets.append("(?:" + "|".join(str(number) for number in range(0, 256, 256 >> rest)) + ")")
        octets += ["0"] * (4 - len(octets))
        found.append(r"\.".join(octets) + f"/{bits}")
    return rf"(?:{IPV4}|{'|'.join(found)})"


def _ipv6_network() -> str:
    """Whole groups before ``::`` or zeros, and a prefix that covers them."""
    group, found = f"{_HEX}{{1,4}}", [IPV6, f"{IPV6}/128"]
    for count in range(8):
        groups = f"{group}(?::{group}){{{count - 1}}}" if count else ""
        rest = f"(?:{'::' if not count else f'::|(?::0){{{8 - count}}}'})"
        found.append(f"{groups}{rest}/(?:{'|'.join(str(bits) for bits in range(16 * count, 129))})")
    return f"(?:{'|'.join(found)})"


_IPV4_INTERFACE = rf"{IPV4}(?:/(?:3[0-2]|[12]?\d))?"
_IPV6_INTERFACE = rf"{IPV6}(?:/(?:12[0-8]|1[01]\d|[1-9]?\d))?"
_IPV4_NETWORK, _IPV6_NETWORK = _ipv4_network(), _ipv6_network()

#: Format -> a pattern found in its texts.
CLASS_FORMATS = {
    **{f"uuid{version}": _uuid(version) for version in range(1, 9)},
    "ipv4interface": f"^{_IPV4_INTERFACE}$",
    "ipv6interface": f"^{_IPV6_INTERFACE}$",
    "ipvanyaddress": f"^(?:{IPV4}|{IPV6})$",
    "ipvanyinterface": f"^(?:{_IPV4_INTERFACE}|{_IPV6_INTERFACE})$",
    "ipv4network": f"^{_IPV4_NETWORK}$",
    "ipv6network": f"^{_IPV6_NETWORK}$",
    "ipvanynetwork": f"^(?:{_IPV4_NETWORK}|{_IPV6_NETWORK})$",
    "base64": r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
}

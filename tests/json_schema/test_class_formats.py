"""Formats that pydantic writes for types of Python: it parses every text of them, and what Python writes is one."""

from __future__ import annotations

import base64
import ipaddress
import random
import uuid
from typing import Any

import pydantic
import pytest

from tests.json_schema.spellings import random_text
from tests.json_schema.test_formats import decoded_dfa
from tokdfa.json_schema.sets.class_formats import CLASS_FORMATS, DESCRIBING

TYPES: dict[str, Any] = {
    **{f"uuid{version}": getattr(pydantic, f"UUID{version}") for version in (1, 3, 4, 5, 6, 7, 8)},
    "ipv4interface": ipaddress.IPv4Interface,
    "ipv6interface": ipaddress.IPv6Interface,
    "ipvanyaddress": pydantic.IPvAnyAddress,
    "ipvanyinterface": pydantic.IPvAnyInterface,
    "ipv4network": ipaddress.IPv4Network,
    "ipv6network": ipaddress.IPv6Network,
    "ipvanynetwork": pydantic.IPvAnyNetwork,
    "base64": pydantic.Base64Bytes,
}


def address(draw: random.Random, version: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    number = draw.getrandbits(32 if version == 4 else 128) & draw.choice((0, -1, 0xFFFF << 112))
    return ipaddress.IPv4Address(number & 0xFFFFFFFF) if version == 4 else ipaddress.IPv6Address(number)


def written(name: str, draw: random.Random) -> str:
    """A text as Python writes it."""
    if name.startswith("uuid"):
        version = int(name[4:])
        bits = draw.getrandbits(128) & ~(0xF << 76) & ~(0xC << 60) | version << 76 | 0x8 << 60
        return str(uuid.UUID(int=bits))
    if name == "base64":
        return base64.b64encode(draw.randbytes(draw.randint(0, 9))).decode()
    version = 4 if "v4" in name else 6 if "v6" in name else draw.choice((4, 6))
    found = address(draw, version)
    if name.endswith("address"):
        return str(found)
    bits = draw.randint(0, 32) if version == 4 else 16 * draw.randint(0, 8)
    interface = ipaddress.ip_interface(f"{found}/{bits}")
    if name.endswith("interface"):
        return str(interface)
    network = interface.network
    return str(network) if version == 4 or bits in (0, 128) else f"{network.network_address}/{bits}"


def test_every_format_has_a_type() -> None:
    assert {*TYPES, "uuid2"} == set(CLASS_FORMATS)  # pydantic has no type for version 2
    assert not DESCRIBING & CLASS_FORMATS.keys()


@pytest.mark.parametrize("name", TYPES)
def test_pydantic_writes_the_format(name: str) -> None:
    schema = pydantic.TypeAdapter(TYPES[name]).json_schema()
    assert schema["format"] == name


@pytest.mark.parametrize("name", TYPES)
def test_pydantic_parses_every_text(name: str) -> None:
    adapter, draw, dfa = pydantic.TypeAdapter(TYPES[name]), random.Random(name), decoded_dfa(name)
    for _ in range(300):
        adapter.validate_python(random_text(dfa, draw, longest=80).decode())


@pytest.mark.parametrize("name", CLASS_FORMATS)
def test_what_python_writes_is_a_text(name: str) -> None:
    draw, dfa = random.Random(name), decoded_dfa(name)
    for _ in range(200):
        text = written(name, draw)
        assert dfa.accepts(text.encode()), text

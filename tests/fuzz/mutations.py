"""Valid texts, bytes and JSON values, changed a little: what strategies of several entries draw from.

All choices are Hypothesis's, so that a seed gives the same cases again.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Numbers that programs take badly.
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 256, 65535, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30)
#: Texts that programs take badly.
TEXTS = ("", "\x00", "\n", "\u2028", "\ud800", "é", "😀", "\ufeff", "a" * 5000, "[" * 300, "\\", '"', "%s", "../x")


@st.composite
def mutated_texts(draw: st.DrawFn, seeds: Sequence[str], words: Sequence[str]) -> str:
    """A seed with up to four changes; `words` are put in."""
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        how = draw(st.integers(0, 8))
        if how <= 2:
            put = draw(st.sampled_from(words))
        elif how == 3:
            put = ""
        elif how == 4:
            put = text[begin:end] * draw(st.sampled_from((2, 3, 10, 100)))
        elif how == 5:
            other = draw(st.sampled_from(seeds))
            at = draw(st.integers(0, len(other)))
            put = other[at : at + draw(st.integers(0, 60))]
        elif how == 6:
            put = draw(st.text(max_size=4))
        elif how == 7:
            put = str(draw(st.sampled_from(NUMBERS)))
        else:
            put = draw(st.sampled_from((*TEXTS, "")))
            end = draw(st.sampled_from((end, len(text))))
        text = text[:begin] + put + text[end:]
    return text


@st.composite
def mutated_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with up to three changes, most of them near its beginning, where headers are."""
    for _ in range(draw(st.integers(1, 3))):
        near = draw(st.sampled_from((64, 1024, len(data))))
        begin = draw(st.integers(0, max(min(near, len(data)) - 1, 0)))
        how = draw(st.integers(0, 7))
        if how <= 1 and data:
            data = data[:begin] + bytes([data[begin] ^ 1 << draw(st.integers(0, 7))]) + data[begin + 1 :]
        elif how == 2:
            size = draw(st.integers(1, 8))
            data = data[:begin] + draw(st.binary(min_size=size, max_size=size)) + data[begin + size :]
        elif how == 3:
            data = data[:begin]
        elif how == 4:
            data = data[:begin] + draw(st.binary(max_size=16)) + data[begin:]
        elif how == 5:
            data = data[:begin] + data[begin + draw(st.integers(1, 64)) :]
        else:
            layout = draw(st.sampled_from(("<I", ">I", "<Q", "<H")))
            number = draw(st.sampled_from(NUMBERS)) % 256 ** struct.calcsize(layout)
            data = data[:begin] + struct.pack(layout, number) + data[begin + struct.calcsize(layout) :]
    return data


def odd_values(words: Sequence[str] = ()) -> st.SearchStrategy[Any]:
    """JSON values of every type, the odd ones often."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.sampled_from(NUMBERS), st.floats(), st.sampled_from((*TEXTS, *words)),
    )  # fmt: skip
    keys = st.sampled_from(words) if words else st.text(max_size=3)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


@st.composite
def mutated_json(draw: st.DrawFn, seeds: Sequence[Any], words: Sequence[str]) -> Any:
    """A seed with one to three changes: values exchanged, left out, repeated, put inside each other; keys renamed."""
    value = json.loads(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(_somewhere(value))
        if holder is None:
            continue
        how = draw(st.integers(0, 7))
        if how == 0:
            holder[key] = draw(odd_values(words))
        elif how == 1:
            del holder[key]
        elif how == 2 and isinstance(holder, dict):
            holder[draw(st.sampled_from(words))] = holder.pop(key)
        elif how == 3 and isinstance(holder, list):
            holder[key:key] = [holder[key]] * draw(st.sampled_from((1, 2, 50)))
        elif how == 4:
            holder[key] = {draw(st.sampled_from(words)): holder[key]}
        elif how == 5:
            other_holder, other_key = draw(_somewhere(json.loads(draw(st.sampled_from(seeds)))))
            holder[key] = None if other_holder is None else other_holder[other_key]
        elif how == 6 and isinstance(holder, dict):
            holder[draw(st.sampled_from(words))] = draw(odd_values(words))
        else:
            holder[key] = draw(st.sampled_from((*NUMBERS, *TEXTS, *words, [], {}, None, True)))
    return value


@st.composite
def _somewhere(draw: st.DrawFn, value: Any) -> tuple[Any, Any]:
    """(dict or list, key) of a value inside `value`; (None, None) if it holds none. Each step goes on with 2 in 3."""
    holder, key = None, None
    while isinstance(value, dict | list) and value and (holder is None or draw(st.integers(0, 2))):
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, draw(st.sampled_from(keys))
        value = value[key]
    return holder, key

"""Adapters beside the calls that the peers' makers document: the same masks, and no call more than it takes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.backends.peers.own_calls import OWN, WORK, OwnCalls, work_of
from tests.packages import backend
from tokdfa import mask as masks
from tokdfa.backends.peers.common import Peer
from tokdfa.backends.registry import BUILT_IN, backend_class, create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a peer's object is asked for a mask, for taking a token, and for starting (a method of the compiled object).
CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "llguidance": (("unsafe_compute_mask_ptr", "is_stopped"), ("try_consume_tokens",)),
    "llguidance, forcing": (("unsafe_compute_mask_ptr", "is_stopped"), ("try_consume_tokens",)),
    "glrmask": (("fill_mask", "is_accepting"), ("commit_token",)),
    "xgrammar": (("fill_next_token_bitmask",), ("accept_token",)),
    "xgrammar, eager": (("fill_next_token_bitmask",), ("accept_token",)),
    "xgrammar_cfgzip": (("fill_next_token_bitmask", "is_completed"), ("accept_token",)),
    "outlines_core": (("write_mask_into",), ("advance",)),
    "maskforge": (("write_mask",), ("advance",)),
}
#: Where an adapter's matcher keeps the peer's object.
PLACES = ("peer", "_guide", "_session")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("tekken")


@pytest.fixture(scope="module")
def own_of(tokenizer: Tokenizer) -> Callable[[str], OwnCalls]:
    """A peer's own calls, prepared once."""
    return cache(lambda label: OWN[label](tokenizer))


def test_every_peer_has_its_own_calls() -> None:
    peers = {name for name in BUILT_IN if issubclass(backend_class(name), Peer)}
    assert peers - {own.backend for own in OWN.values()} == {"grid", "syncode"}, "see own_calls"


def cases() -> list[Any]:
    return [backend(own.backend, label, name) for label, own in OWN.items() for name in work_of(own)]


@pytest.mark.parametrize(("peer", "label", "name"), cases())
def test_masks_are_those_of_the_peers_own_calls(
    peer: str, label: str, name: str, tokenizer: Tokenizer, own_of: Callable[[str], OwnCalls]
) -> None:
    constraint, text = WORK[name]
    own = own_of(label)
    own.compile(constraint)
    own.start()
    matcher = create_backend(peer, own.vocab, **own.options).compile(constraint).start()
    mask, ends = masks.allocate_mask(own.vocab.size), own.ends
    tokens = tokenizer.encode(text)
    assert len(tokens) > 3
    for token in [*tokens, None]:
        matcher.fill_mask(mask)
        ours, theirs = (set(masks.mask_to_ids(np.array(one))) - set(ends) for one in (mask, own.fill()))
        assert ours == theirs, f"before {token}"
        if token is not None:
            assert token in ours
            matcher.advance(token)
            own.take(token)
    assert matcher.can_end()


class Counting:
    """A peer's object, with its calls counted."""

    def __init__(self, wrapped: Any, calls: Counter[str]) -> None:
        self._wrapped, self._calls = wrapped, calls

    def __getattr__(self, name: str) -> Any:
        self._calls[name] += 1
        return getattr(self._wrapped, name)


@pytest.mark.parametrize(
    ("peer", "label", "name"), [case for case in cases() if case.values[1] in CALLS and case.values[2] != "grammar"]
)
def test_a_token_takes_no_call_more(peer: str, label: str, name: str, tokenizer: Tokenizer) -> None:
    constraint, text = WORK[name]
    options = OWN[label].options
    matcher = create_backend(peer, tokenizer.vocabulary, **options).compile(constraint).start()
    calls: Counter[str] = Counter()
    place = next(place for place in PLACES if hasattr(matcher, place))
    setattr(matcher, place, Counting(getattr(matcher, place), calls))
    mask, tokens = masks.allocate_mask(tokenizer.vocabulary.size), tokenizer.encode(text)
    for token in tokens:
        matcher.fill_mask(mask)
        matcher.advance(token)
    fill, take = CALLS[label]
    assert calls == Counter(fill * len(tokens)) + Counter(take * len(tokens))


@pytest.mark.parametrize("peer", [backend("llguidance"), backend("xgrammar"), backend("maskforge"), backend("glrmask")])
def test_a_schema_goes_over_as_text_and_is_not_parsed_by_us(
    peer: str, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint, _ = WORK["schema"]
    assert isinstance(constraint, JsonSchema)
    made = create_backend(peer, tokenizer.vocabulary)
    monkeypatch.setattr(JsonSchema, "schema", property(lambda self: pytest.fail("the adapter has parsed it")))
    made.compile(JsonSchema(constraint.text))

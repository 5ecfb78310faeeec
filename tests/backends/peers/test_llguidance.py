"""llguidance with its own default, forcing; what all peers have in common is in `test_peers`."""

from __future__ import annotations

import pytest

from tests.backends.peers.test_peers import BYTES
from tests.packages import needs
from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, JsonSchema
from tokdfa.errors import OptionError
from tokdfa.vocabulary.tokenizers import load_tokenizer

pytestmark = needs("llguidance")

SCHEMA = JsonSchema(
    {"type": "object", "properties": {"colour": {"enum": ["dark red", "dark blue"]}}, "required": ["colour"]},
    whitespace="compact",
)
GRAMMAR = Grammar('start: "{\\"colour\\":\\"dark " ("red" | "blue") "\\"" "}"\n')
TEXT = '{"colour":"dark blue"}'


@pytest.mark.parametrize("name", ["tekken", "mistral-v1"])  # by its own encoder of ranks, and by ours in Python
@pytest.mark.parametrize("constraint", [SCHEMA, GRAMMAR])
def test_forcing_leaves_the_tokenizers_own_token(name: str, constraint: JsonSchema | Grammar) -> None:
    tokenizer = load_tokenizer(name)
    full, forced = (
        create_backend("llguidance", tokenizer, forcing=forcing).compile(constraint).start()
        for forcing in (False, True)
    )
    one, other = (masks.allocate_mask(tokenizer.vocabulary.size) for _ in range(2))
    smaller = 0
    for token in tokenizer.encode(TEXT):
        full.fill_mask(one)
        forced.fill_mask(other)
        assert masks.contains(other, token)
        assert not (other & ~one).any()
        if (other != one).any():
            assert masks.mask_to_ids(other).tolist() == [token], "where it forces, one token is left"
            smaller += 1
        full.advance(token)
        forced.advance(token)
    assert smaller > 0
    assert full.can_end()
    assert forced.can_end()


def test_forcing_is_another_token_language_and_needs_an_encoder() -> None:
    tokenizer = load_tokenizer("tekken")
    assert create_backend("llguidance", tokenizer).token_language == "all"
    assert create_backend("llguidance", tokenizer, forcing=True).token_language == "forced"
    with pytest.raises(OptionError, match="forcing needs the encoder of a tokenizer"):
        create_backend("llguidance", BYTES, forcing=True)


def test_the_json_route_reads_the_same_options() -> None:
    tokenizer = load_tokenizer("tekken")
    for whitespace, spaced in (("compact", False), ("flexible", True)):
        constraint = JsonSchema(SCHEMA.schema, whitespace=whitespace)
        for forcing in (False, True):
            matcher = create_backend("llguidance", tokenizer, forcing=forcing).compile(constraint).start()
            matcher.advance(tokenizer.encode("{")[0])
            mask = masks.allocate_mask(tokenizer.vocabulary.size)
            matcher.fill_mask(mask)
            blanks = {token for token in masks.mask_to_ids(mask) if tokenizer.vocabulary.token_bytes(token).isspace()}
            assert bool(blanks) == spaced

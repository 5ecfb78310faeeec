"""The pre-tokenizer of a loaded tokenizer, and the check that catches one that lost a step."""

from __future__ import annotations

import pytest

from tests.packages import needs_smollm2
from tokdfa.errors import TokenizerError
from tokdfa.proper.piece_borders import check_pieces, load_marked_dfa, pre_tokenizer_steps
from tokdfa.proper.pretokenizer import build_marked_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer


@pytest.mark.parametrize(("name", "states"), [("llama3", 2224), ("tekken", 2622)])
def test_real_tokenizers(name: str, states: int) -> None:
    tokenizer = load_tokenizer(name)
    marked = load_marked_dfa(tokenizer)
    assert marked is not None
    assert marked.state_count == states
    assert load_marked_dfa(tokenizer) is marked


@pytest.mark.parametrize("name", ["mistral-v1", "bytes"])
def test_tokenizers_without_pre_tokenizer(name: str) -> None:
    assert load_marked_dfa(load_tokenizer(name)) is None


@needs_smollm2
def test_a_step_that_got_lost_is_noticed() -> None:
    """Without the Digits step, digits after two spaces stand in other pieces."""
    tokenizer = load_tokenizer("smollm2")
    steps = pre_tokenizer_steps(tokenizer)
    assert [step["kind"] for step in steps] == ["digits", "byte_level"]
    check_pieces(build_marked_dfa(steps), tokenizer)
    with pytest.raises(TokenizerError, match="does not say all that the tokenizer does"):
        check_pieces(build_marked_dfa(steps[1:]), tokenizer)


def test_another_pattern_is_noticed() -> None:
    tokenizer = load_tokenizer("llama3")
    (step,) = pre_tokenizer_steps(tokenizer)
    wrong = build_marked_dfa([{**step, "pattern": step["pattern"].replace("{1,3}", "{1,2}")}])
    with pytest.raises(TokenizerError, match="does not say all that the tokenizer does"):
        check_pieces(wrong, tokenizer)

"""Targets by a walk against single steps, and the two kinds of texts against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokdfa import mask as masks
from tokdfa.backends.base import StateMatcher
from tokdfa.backends.earley_trie.strategy import CompiledEarley, EarleyTrie
from tokdfa.backends.matcher_situations import MatcherSituations
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.constraint import Grammar
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.situation_source import SituationSource


@pytest.mark.parametrize(
    "grammar",
    [
        'start: ("list" | "listen") "ed" "ab"*\n',
        'start: /a+b?/ NAME | <|x|> "a"\nNAME: /[a-c]+/\n%ignore /[ \\n]+/\n',
        'start: "{" start? "}" | /"[^"]*"/\n',
    ],
)
@pytest.mark.parametrize("lacking", [b"", b"bd{"])
@pytest.mark.parametrize("engine", ["earley longest", "earley one_byte", "pushdown longest", "pushdown any"])
def test_targets_are_steps(grammar: str, lacking: bytes, engine: str) -> None:
    """Fallbacks, special tokens, several tokens of one spelling, and a vocabulary that lacks bytes."""
    texts = [bytes([byte]) for byte in range(256) if byte not in lacking]
    texts += [*b'liste isten ned aab aab {" }} ed "} listed'.split(), b"a c", b" a", b"", b""]
    special, end = len(texts) - 2, len(texts) - 1
    vocabulary = Vocabulary(texts, end_tokens=[end], special_tokens={special: "<|x|>", end: "<end>"})
    name, lexer = engine.split()
    if name == "earley":
        compiled = EarleyTrie(vocabulary, lexer=lexer).compile(Grammar(grammar))
        assert isinstance(compiled, CompiledEarley)
        bulk: SituationSource = compiled
        situations = [compiled.machine.start]
    else:
        compiled = PushdownTrie(vocabulary, lexer=lexer).compile(Grammar(grammar))
        assert isinstance(compiled, CompiledPushdown)
        bulk = compiled.generation
        situations = [0]
    matcher = compiled.start()
    assert isinstance(matcher, StateMatcher)
    single = MatcherSituations(matcher)
    mask = masks.allocate_mask(vocabulary.size)
    for situation in situations:  # grows on the way
        targets = bulk.targets(situation)
        assert targets.tolist() == [
            bulk.step(situation, token) if texts[token] else -1 for token in range(vocabulary.size)
        ]
        number = single.number(situation)
        assert [single._states[found] for found in single.targets(number) if found >= 0] == [
            found for token in range(end) if (found := bulk.step(situation, token)) >= 0
        ]
        bulk.fill(situation, mask)
        twin = masks.allocate_mask(vocabulary.size)
        single.fill(number, twin)
        assert np.array_equal(mask, twin)
        assert bulk.can_end(situation) == single.can_end(number) == masks.contains(mask, end)
        new = dict.fromkeys(targets[targets >= 0].tolist())
        situations += [found for found in new if found not in situations][: 40 - len(situations)]
    assert len(situations) > 4

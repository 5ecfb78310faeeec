"""The published skew of 002 (challenge 1), from the numbers that the article prints.

Prompt: "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon
fraternity?\\nAnswer:", constraint: " William" or " Theodore", model: Mistral-7B. The article prints no probabilities of
single sequences, but five numbers that together determine them, up to a common factor and the choice of which improper
sequences carry the rest. The article names " The" as the one that matters.

The five numbers, all of which the code must give back from one model:

- 0.85879: the ideal probability of " William";
- 99.9997 % and 99.8586 %: the share of the proper spelling in the mass of " William" and of " Theodore";
- 0.52852: the probability of " William" under the plain token DFA;
- 0.85872: the same if only proper sequences are allowed.

What follows from them: " William" is one token of Mistral's, " Theodore" is " Theod" and "ore". The proper masks decide
at the first token, so 0.85872 = p(" William") / (p(" William") + p(" Theod")), which gives p("ore" | " Theod").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.constraint import Choice
from tokdfa.models.table import TableModel
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.vocabulary.vocabulary import Vocabulary

WILLIAM, THEODORE = " William", " Theodore"
IDEAL, PLAIN, PROPER = 0.85879, 0.52852, 0.85872
WILLIAM_SHARE, THEODORE_SHARE = 0.999997, 0.998586

#: Probabilities for a total mass of 1 of both answers; they are scaled below.
P_WILLIAM = IDEAL * WILLIAM_SHARE
P_WILL = IDEAL * (1 - WILLIAM_SHARE)  # then "iam" for sure
P_THEOD = P_WILLIAM * (1 - PROPER) / PROPER
P_ORE = (1 - IDEAL) * THEODORE_SHARE / P_THEOD  # after " Theod"
P_THE = (P_WILLIAM + P_WILL) * (1 - PLAIN) / PLAIN - P_THEOD
P_ODORE = (1 - IDEAL) * (1 - THEODORE_SHARE) / P_THE  # after " The"


def tokens(vocabulary: Vocabulary, *texts: str) -> tuple[int, ...]:
    return tuple(vocabulary.trie.prefixes_of(text.encode())[-1] for text in texts)


def printed_model(vocabulary: Vocabulary, mass: float) -> TableModel:
    """The model of the module's docstring, whose answers have the total probability `mass`; else it ends the text."""
    following = {
        (): {" William": mass * P_WILLIAM, " Will": mass * P_WILL, " Theod": mass * P_THEOD, " The": mass * P_THE},
        (" Will",): {"iam": 1.0},
        (" Theod",): {"ore": P_ORE},
        (" The",): {"od": P_ODORE},
        (" The", "od"): {"ore": 1.0},
    }
    rows: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}
    for prefix, onward in following.items():
        row = np.zeros(vocabulary.size)
        for text, probability in onward.items():
            (token,) = tokens(vocabulary, text)
            assert vocabulary.token_bytes(token) == text.encode()
            row[token] = probability
        row[vocabulary.end_tokens[0]] = 1 - row.sum()
        rows[tokens(vocabulary, *prefix)] = row
    return TableModel(vocabulary, rows)


@pytest.mark.parametrize("mass", [0.5, 1e-3, 1e-9])
def test_the_published_probabilities(mass: float) -> None:
    """Nothing depends on how probable the answers are altogether, which the article does not print."""
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    model, texts = printed_model(vocabulary, mass), (WILLIAM, THEODORE)
    ideal = ideal_distribution(model, (), texts, eos="ignored", tolerance=0)
    assert round(ideal.distribution.named(WILLIAM), 5) == IDEAL
    assert [round(spelling.proper_share or 0, 6) for spelling in ideal.spellings] == [WILLIAM_SHARE, THEODORE_SHARE]
    assert math.exp(ideal.log_mass.lower) == pytest.approx(mass)
    assert [spelling.sequences for spelling in ideal.spellings] == [2, 2]
    for names, published in (
        ((("token_index", {}), ("tokens_dfa", {}), ("llguidance", {})), PLAIN),
        (
            (("cartesian_merge", {}), ("direct_merge", {}), ("encoded_texts", {}), ("tokens_dfa", {"proper": True})),
            PROPER,
        ),
    ):
        for name, options in names:
            compiled = compile_constraint(Choice(texts), vocabulary, name, **options)
            masked = masked_distribution(compiled, model, (), texts, eos="ignored", tolerance=0)
            assert round(masked.distribution.named(WILLIAM), 5) == published
            variation = compare(ideal.distribution, masked.distribution).total_variation
            assert variation.lower == variation.upper == pytest.approx(IDEAL - published, abs=1e-9)
            if published == PROPER:
                assert masked.improper_mass == 0
                # one call where the article says so: after the first token the rest is forced
                assert masked.spellings[1].sequences == 1

"""The improper mass against enumeration: what stands in no encoding of any text is improper, and nothing else."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.proper_oracle import merge_pairs, piece_texts
from tests.proper.small_tokenizers import merge_list, ranked_pieces, trained_byte_level
from tokdfa.errors import ModelError, OptionError, TokenizerError
from tokdfa.models.ngram import train_ngram
from tokdfa.models.table import TableModel, random_table
from tokdfa.skew.improper_mass import ImproperMass, improper_mass, proper_tokens
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.vocabulary.tokenizers import Tokenizer


def improper_by_enumeration(tokenizer: Tokenizer, text: str, letters: str, longest: int) -> list[set[int]]:
    """Before each token of `text`: the tokens over `letters` that come next in no encoding of a text so long at most.

    All texts over `letters` are encoded by the reference library.
    """
    tokens = tokenizer.encode(text)
    over = {
        token
        for token in range(tokenizer.vocabulary.size)
        if (spelled := tokenizer.vocabulary.token_bytes(token)) and set(spelled) <= set(letters.encode())
    }
    following: dict[tuple[int, ...], set[int]] = {}
    for length in range(1, longest + 1):
        for characters in product(letters, repeat=length):
            encoded = tokenizer.encode("".join(characters))
            for place in range(min(len(encoded), len(tokens))):
                if encoded[:place] != tokens[:place]:
                    break
                following.setdefault(tuple(encoded[:place]), set()).add(encoded[place])
    return [over - following.get(tuple(tokens[:place]), set()) for place in range(len(tokens))]


def check_masses(tokenizer: Tokenizer, text: str, letters: str, longest: int) -> int:
    """The model has the tokens over `letters` only, each with a different probability, so that a mass tells the set."""
    vocabulary = tokenizer.vocabulary
    weights = np.zeros(vocabulary.size)
    for token in range(vocabulary.size):
        if vocabulary.token_bytes(token) and set(vocabulary.token_bytes(token)) <= set(letters.encode()):
            weights[token] = np.sqrt(token + 2)
    weights[vocabulary.end_tokens[0]] = 3
    weights /= weights.sum()
    found = improper_mass(TableModel(vocabulary, lambda _: weights), tokenizer, text, batch=2)
    expected = improper_by_enumeration(tokenizer, text, letters, longest)
    assert np.allclose(np.exp(found.log_mass), [weights[list(improper)].sum() for improper in expected], atol=1e-12)
    for top, improper in zip(found.top_tokens[:, 0].tolist(), expected, strict=True):
        assert top == max(improper, key=lambda token: weights[token], default=-1)
    return sum(map(len, expected))


@settings(deadline=None, derandomize=True, max_examples=25)
@given(pairs=merge_pairs(longest=3), text=st.text("ab", min_size=1, max_size=4))
def test_random_merge_lists(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], text: str) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "ab", pairs))
    check_masses(tokenizer, text, "ab", 10)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(pieces=piece_texts("a 1", 3), text=st.text("a 1", min_size=1, max_size=3))
def test_random_ranked_pieces_with_borders(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], text: str
) -> None:
    """tiktoken's pre-tokenizer decides about spaces by what follows them."""
    tokenizer = load_tokenizer(ranked_pieces(tmp_path_factory.mktemp("t") / "ranks.tiktoken", pieces))
    check_masses(tokenizer, text, "a 1", 7)


def test_an_improper_token_by_hand(tmp_path: Path) -> None:
    """a b merges at once: after a no b may come; but another a may, and ab or aba anywhere they can begin."""
    tokenizer = load_tokenizer(merge_list(tmp_path / "t.json", "ab", [("a", "b"), ("ab", "a")]))
    vocabulary = tokenizer.vocabulary
    b = tokenizer.encode("b")[0]
    assert check_masses(tokenizer, "aaab", "ab", 8) > 0
    model = random_table(vocabulary, 0)
    found = improper_mass(model, tokenizer, "aab")
    assert found.tokens.tolist() == tokenizer.encode("aab")
    row = model.log_probabilities([tokenizer.encode("aab")[:1]])[0]
    assert found.top_tokens[1] == [b]
    assert found.log_mass[1] == pytest.approx(row[b], abs=1e-12)
    assert found.log_chosen[1] == row[found.tokens[1]]
    end = vocabulary.end_tokens[0]
    after_end = improper_mass(model, tokenizer, "aab", before=[end])
    assert after_end.log_mass[1] == model.log_probabilities([[end, *tokenizer.encode("aab")[:1]]])[0][b]


def test_a_trained_model_along_a_real_text(tmp_path: Path) -> None:
    """The n-gram model has seen proper texts only, so its improper mass is small, but it is not zero."""
    tokenizer = load_tokenizer(trained_byte_level(tmp_path / "t.json"))
    text = "A list of the remaining items in the iterable is then assigned to the starred target."
    found = improper_mass(train_ngram(tokenizer, order=3), tokenizer, text, batch=7)
    assert found.tokens.tolist() == list(proper_tokens(tokenizer, text))
    assert np.isfinite(found.log_mass).all()
    assert 0 < found.mean < 0.2
    assert (np.exp(found.log_mass) + np.exp(found.log_chosen) <= 1 + 1e-9).all()


def fake(masses: list[float]) -> ImproperMass:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(masses))
    zeros = np.zeros(len(masses))
    return ImproperMass(zeros.astype(np.int32), logs, zeros, zeros[:, None].astype(np.int32), zeros[:, None])


def test_histogram() -> None:
    found = fake([0.0, 0.0, 1e-30, 2e-3, 0.05, 0.5, 1.0])
    edges, counts, below = found.histogram(per_decade=1, smallest=-4)
    assert edges.tolist() == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1])
    assert counts.tolist() == [0, 1, 1, 2]
    assert below == 3
    for wrong in ({"per_decade": 0}, {"smallest": 0}):
        with pytest.raises(OptionError, match="a histogram needs"):
            found.histogram(**wrong)


def test_errors(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path / "t.json", "ab", [("a", "b")]))
    model = random_table(tokenizer.vocabulary, 0)
    with pytest.raises(OptionError, match="the text is empty"):
        improper_mass(model, tokenizer, "")
    with pytest.raises(OptionError, match="batch is at least 1"):
        improper_mass(model, tokenizer, "ab", batch=0)
    with pytest.raises(OptionError, match="the tokens before the text spell b'a'"):
        improper_mass(model, tokenizer, "ab", before=tokenizer.encode("a"))
    with pytest.raises(TokenizerError):
        improper_mass(model, tokenizer, "abc")
    other = random_table(Vocabulary([b"a", b""], end_tokens=[1]), 0)
    with pytest.raises(ModelError, match=r"different vocabularies \(2 against"):
        improper_mass(other, tokenizer, "ab")

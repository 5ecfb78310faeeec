"""Exact distributions against plain enumeration, over random models, vocabularies, texts and backends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proper.small_tokenizers import merge_list
from tests.proper.toy_tokenizers import toy_with_byte_fallback
from tests.skew import enumeration
from tests.skew.enumeration import by_text
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import LawBroken, LimitExceeded, ModelError, OptionError, TokdfaError
from tokdfa.models.table import TableModel, random_table
from tokdfa.skew.estimate import estimate_skew
from tokdfa.skew.exact import BATCH_ROWS, ideal_distribution, masked_distribution
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.skew.enumeration import Tokens
    from tokdfa.models.base import LanguageModel
    from tokdfa.skew.exact import ExactResult
    from tokdfa.vocabulary.tokenizers import Tokenizer

CONVENTIONS = st.sampled_from(["ignored", "counted"])
ALL_SPELLINGS = (
    ("token_index", {}),
    ("tokens_dfa", {}),
    ("brute_force", {}),
    ("llguidance", {}),
)
PROPER_ONLY = (("cartesian_merge", {}), ("encoded_texts", {}), ("tokens_dfa", {"proper": True}), ("direct_merge", {}))


def check(result: ExactResult, texts: tuple[bytes, ...], masses: dict[Tokens, float], vocabulary: Vocabulary) -> None:
    """Probabilities, lengths and numbers of spellings are those of `masses`, to 1e-12."""
    expected = by_text(vocabulary, texts, masses)
    total = math.fsum(expected)
    assert result.distribution.unresolved == 0
    assert result.distribution.texts == texts
    assert result.distribution.probabilities == pytest.approx(np.array(expected) / total, abs=1e-12)
    mean = math.fsum(mass * len(tokens) for tokens, mass in masses.items()) / total
    assert result.mean_tokens == pytest.approx(mean, abs=1e-12)
    counts = [sum(vocabulary.spell(tokens) == text for tokens in masses) for text in texts]
    assert [spelling.sequences for spelling in result.spellings] == counts


def check_log_mass(result: ExactResult, model_masses: dict[Tokens, float]) -> None:
    truth = math.log(math.fsum(model_masses.values()))
    assert result.log_mass.lower == pytest.approx(truth, abs=1e-12)
    assert result.log_mass.upper == pytest.approx(truth, abs=1e-12)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Tokens over a and b, among them both letters, perhaps equal ones, a special token, and one or two ends."""
    longer = draw(st.lists(st.text("ab", min_size=2, max_size=3), min_size=1, max_size=4))
    ends = draw(st.integers(1, 2))
    tokens = [b"a", b"", b"b", *(text.encode() for text in longer), *[b""] * ends]
    return Vocabulary(tokens, end_tokens=range(len(tokens) - ends, len(tokens)), special_tokens={1: "<s>"})


def text_sets(eos: str) -> st.SearchStrategy[tuple[bytes, ...]]:
    """One to four texts over a and b; with eos="ignored" none begins another."""
    texts = st.lists(st.text("ab", min_size=1, max_size=5).map(str.encode), min_size=1, max_size=4, unique=True)
    return texts.map(_prefix_free if eos == "ignored" else tuple)


def _prefix_free(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    kept: list[bytes] = []
    for text in sorted(texts, key=len):
        if not any(text.startswith(shorter) for shorter in kept):
            kept.append(text)
    return tuple(kept)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(vocabularies(), CONVENTIONS, st.data(), st.integers(0, 1_000), st.sampled_from([0.3, 1.0, 5.0]))
def test_all_spellings(vocabulary: Vocabulary, eos, data: st.DataObject, seed: int, concentration: float) -> None:  # type: ignore[no-untyped-def]
    texts = data.draw(text_sets(eos))
    model = random_table(vocabulary, seed, concentration)
    model.start_tokens = data.draw(st.sampled_from([(), (1,)]))
    context = data.draw(st.sampled_from([(), (0, 2)]))
    language = enumeration.all_spellings(vocabulary, texts)
    model_masses = enumeration.model_masses(model, context, language, eos)
    ideal = ideal_distribution(model, context, texts, eos=eos, tolerance=0)
    check(ideal, texts, model_masses, vocabulary)
    check_log_mass(ideal, model_masses)
    assert ideal.improper_mass is ideal.forced_share is ideal.spellings[0].log_proper is None
    masses = enumeration.masked_masses(model, context, language, eos)
    for name, options in ALL_SPELLINGS:
        compiled = compile_constraint(Choice(texts), vocabulary, name, **options)
        masked = masked_distribution(compiled, model, context, texts, eos=eos, tolerance=0)
        check(masked, texts, masses, vocabulary)
        check_log_mass(masked, model_masses)
        assert math.fsum(masses.values()) == pytest.approx(1, abs=1e-12)
        assert masked.forced_share == pytest.approx(enumeration.forced_share(model, context, language, eos), abs=1e-12)


MERGES = (
    [("a", "b"), ("ab", "a")],
    [("b", "a"), ("a", "a"), ("ba", "b")],
    [("a", "a"), ("aa", "a"), ("b", "b")],
    [("a", "b"), ("ab", "ab"), ("b", "a"), ("a", "ba")],
)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    folder = tmp_path_factory.mktemp("merges")
    return [load_tokenizer(merge_list(folder / f"{n}.json", "ab", merges)) for n, merges in enumerate(MERGES)]


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(0, len(MERGES) - 1), CONVENTIONS, st.data(), st.integers(0, 1_000))
def test_proper_spellings(tokenizers: list[Tokenizer], number: int, eos, data: st.DataObject, seed: int) -> None:  # type: ignore[no-untyped-def]
    tokenizer = tokenizers[number]
    vocabulary = tokenizer.vocabulary
    texts = data.draw(text_sets(eos))
    model = random_table(vocabulary, seed)
    proper = {tuple(tokenizer.encode(text.decode())) for text in texts}
    model_masses = enumeration.model_masses(model, (), proper, eos)
    masses = enumeration.masked_masses(model, (), proper, eos)
    for name, options in PROPER_ONLY:
        compiled = compile_constraint(Choice(texts), vocabulary, name, **options)
        masked = masked_distribution(compiled, model, (), texts, eos=eos, tolerance=0)
        check(masked, texts, masses, vocabulary)
        check_log_mass(masked, model_masses)
        assert masked.improper_mass == 0
        assert {spelling.proper_share for spelling in masked.spellings} == {1.0}
    # the improper mass of what allows all spellings
    language = enumeration.all_spellings(vocabulary, texts)
    everything = enumeration.masked_masses(model, (), language, eos)
    plain = masked_distribution(compile_constraint(Choice(texts), vocabulary), model, (), texts, eos=eos, tolerance=0)
    improper = math.fsum(mass for tokens, mass in everything.items() if tokens not in proper)
    assert plain.improper_mass == pytest.approx(improper, abs=1e-12)
    for spelling in plain.spellings:
        own = everything[tuple(tokenizer.encode(spelling.text.decode()))]
        assert math.exp(spelling.log_proper or 0) == pytest.approx(own, abs=1e-12)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(vocabularies(), CONVENTIONS, st.data(), st.integers(0, 1_000), st.sampled_from([0.5, 0.1, 0.01]))
def test_intervals_contain_the_truth(vocabulary: Vocabulary, eos, data, seed: int, tolerance: float) -> None:  # type: ignore[no-untyped-def]
    texts = data.draw(text_sets(eos))
    model = random_table(vocabulary, seed)
    compiled = compile_constraint(Choice(texts), vocabulary)
    limit = data.draw(st.sampled_from([3, 10, 10_000]))
    for walk in (
        lambda **limits: ideal_distribution(model, (), texts, eos=eos, **limits),
        lambda **limits: masked_distribution(compiled, model, (), texts, eos=eos, **limits),
    ):
        exact = walk(tolerance=0)
        try:
            early = walk(tolerance=tolerance, max_prefixes=limit)
        except LimitExceeded:
            if limit == 10_000:
                raise
            continue
        assert early.prefixes <= min(limit, exact.prefixes)
        unresolved = early.distribution.unresolved
        if limit == 10_000:
            # relative to the mass found, which is 1 - unresolved of all
            assert unresolved <= tolerance * (1 - unresolved) + 1e-12
        assert early.distribution.probabilities.sum() + unresolved == pytest.approx(1, abs=1e-12)
        for text in texts:
            assert early.distribution.interval(text).contains(exact.distribution.named(text), 1e-12)
        assert early.log_mass.lower - 1e-12 <= exact.log_mass.lower <= early.log_mass.upper + 1e-12


def test_some_walks_do_stop_early() -> None:
    """Without this, the test above might never see unresolved mass."""
    vocabulary = Vocabulary([b"a", b"aa", b"aaa", b"b", b""], end_tokens=[4])
    texts = [b"a" * 12, b"b" * 3]
    model = random_table(vocabulary, 1, 0.3)
    exact = ideal_distribution(model, (), texts, eos="ignored", tolerance=0)
    early = ideal_distribution(model, (), texts, eos="ignored", tolerance=0.1)
    assert 0 < early.distribution.unresolved <= 0.1
    assert early.prefixes < exact.prefixes / 2
    assert exact.spellings[0].sequences == 927  # compositions of 12 into parts of at most 3
    assert early.spellings[0].sequences < 927


def test_rows_come_in_batches_and_once_for_each_prefix() -> None:
    vocabulary = Vocabulary([b"a", b"aa", b"b", b""], end_tokens=[3])
    asked: list[Tokens] = []

    def uniform(prefix: Tokens) -> list[float]:
        asked.append(prefix)
        return [0.25] * 4

    model = TableModel(vocabulary, uniform)
    result = ideal_distribution(model, (2,), [b"a" * 12], eos="ignored", tolerance=0)
    # prefixes of 0 to 11 letters; each number of letters has as many spellings as Fibonacci says
    assert result.prefixes == len(asked) == len(set(asked)) == 376
    assert model.counts.batches < 376 / BATCH_ROWS + 12
    assert all(prefix[0] == 2 for prefix in asked)


def test_a_text_of_tiny_probability() -> None:
    """The probabilities of two long texts underflow; their ratio does not."""
    vocabulary = Vocabulary([b"a", b"b", b"c", b""], end_tokens=[3])
    model = TableModel(vocabulary, lambda _: [1e-4, 3e-4, 0.9, 0.0996])
    texts = [b"b" + b"a" * 199, b"a" * 200]
    result = ideal_distribution(model, (), texts, eos="ignored")
    assert result.distribution.probabilities == pytest.approx([0.75, 0.25], abs=1e-9)
    assert result.log_mass.lower == pytest.approx(math.log(4) + 200 * math.log(1e-4))


def test_proper_after_a_context() -> None:
    """The context counts for what is proper, but only since its last token that spells nothing."""
    vocabulary = toy_with_byte_fallback().vocabulary  # a b ab, two bytes of é, end
    model = TableModel(vocabulary, lambda _: [0.2, 0.2, 0.2, 0.1, 0.1, 0.2])

    class Merging:
        def encode(self, text: str) -> list[int]:
            found = []
            while text:
                token = 2 if text.startswith("ab") else "ab".index(text[0])
                found.append(token)
                text = text[len(vocabulary.token_bytes(token)) :]
            return found

    vocabulary.tokenizer = Merging()  # type: ignore[assignment]
    for context, proper in (((), True), ((1,), True), ((0,), False), ((0, 5), True)):
        result = ideal_distribution(model, context, [b"b"], eos="ignored")
        assert result.spellings[0].proper_share == float(proper)
        assert result.improper_mass == float(not proper)


@pytest.mark.parametrize("name", ["token_index", "cartesian_merge", "llguidance"])
def test_the_empty_text(name: str, tokenizers: list[Tokenizer]) -> None:
    vocabulary = tokenizers[0].vocabulary
    model = random_table(vocabulary, 3)
    compiled = compile_constraint(Choice(["", "ab"]), vocabulary, name)
    result = masked_distribution(compiled, model, (), ["", "ab"], eos="counted", tolerance=0)
    row = np.exp(model.log_probabilities([()])[0])
    ends = row[list(vocabulary.end_tokens)].sum()
    first = [0, 2] if name != "cartesian_merge" else [2]
    assert vocabulary.token_bytes(2) == b"ab"
    assert result.distribution.named("") == pytest.approx(ends / (ends + row[first].sum()))
    alone = ideal_distribution(model, (), [""], eos="ignored")
    assert (alone.distribution.named(""), alone.prefixes, alone.mean_tokens) == (1.0, 0, 0.0)


def small() -> tuple[Vocabulary, LanguageModel]:
    vocabulary = Vocabulary([b"a", b"b", b""], end_tokens=[2])
    return vocabulary, random_table(vocabulary, 0)


def test_what_is_no_distribution_over_the_listed_texts() -> None:
    vocabulary, model = small()
    other = Vocabulary([b"a", b"b", b"c", b""], end_tokens=[3])
    for pattern, texts, eos, said in (
        ("a|b", ["a"], "ignored", r"the masks admit b'b', which begins none of the 1 texts; .*estimate_skew"),
        # an infinite language is met where the listed texts end
        ("a*b", ["b", "ab"], "counted", "the masks admit b'aa', which begins none of the 2 texts"),
        ("ab?", ["ab"], "counted", "the masks admit the text b'a', which is not among the 1 texts"),
        # the listed texts are fit for the convention; the constraint is not
        ("ab?", ["a"], "ignored", r"b'a' may end and may also go on, so eos='ignored' .* use eos='counted'"),
    ):
        compiled = compile_constraint(Regex(pattern), vocabulary)
        with pytest.raises(OptionError, match=said):
            masked_distribution(compiled, model, (), texts, eos=eos)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"different vocabularies \(3 against 4"):
        masked_distribution(compile_constraint(Choice(["a"]), other), model, (), ["a"], eos="ignored")


def test_zero_probabilities() -> None:
    vocabulary, _ = small()
    never_a = TableModel(vocabulary, lambda _: [0, 0.5, 0.5])
    with pytest.raises(ModelError, match="probability 0 to each of the 2 texts"):
        ideal_distribution(never_a, (), ["a", "ba"], eos="ignored")
    with pytest.raises(ModelError, match="probability 0 to all 1 tokens that the mask allows after b'b'"):
        masked_distribution(compile_constraint(Choice(["ba"]), vocabulary), never_a, (), ["ba"], eos="ignored")
    # what is impossible is no part of a distribution, and no error as long as something else is possible
    result = ideal_distribution(never_a, (), ["a", "b"], eos="counted")
    assert result.distribution.probabilities.tolist() == [0, 1]
    assert result.spellings[0].sequences == 0


def test_a_dead_end_of_a_backend() -> None:
    """llguidance looks at bytes only, so with gaps in the vocabulary it offers tokens that lead nowhere."""
    vocabulary = Vocabulary([b"a", b"b", b"bc", b""], end_tokens=[3])
    compiled = compile_constraint(Choice(["a", "bc"]), vocabulary, "llguidance")
    with pytest.raises(TokdfaError, match="the mask after b'b' is empty: the backend has run into a dead end"):
        masked_distribution(compiled, random_table(vocabulary, 0), (), ["a", "bc"], eos="ignored")
    with pytest.raises(LawBroken, match="leaves no token after b'b'"):
        estimate_skew(compiled, random_table(vocabulary, 0), eos="ignored", samples=50)


@pytest.mark.parametrize(
    ("option", "value"), [*(("tolerance", value) for value in (-0.1, 1.0, math.nan)), ("max_prefixes", 0)]
)
def test_bad_arguments(option: str, value: float) -> None:
    _, model = small()
    with pytest.raises(OptionError, match=option):
        ideal_distribution(model, (), ["a"], eos="ignored", **{option: value})  # type: ignore[arg-type]


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    texts=st.sets(st.text("ab", min_size=1, max_size=5), min_size=2, max_size=4),
    seed=st.integers(0, 10**6),
    eos=CONVENTIONS,
    engine=st.sampled_from([("token_index", {}), ("tokens_dfa", {"mute_literals": True})]),
)
def test_spellings_need_not_be_followed(
    texts: set[str], seed: int, eos: str, engine: tuple[str, dict[str, bool]]
) -> None:
    """What is decided is that text's, in all spellings: the same distribution for at most as many rows."""
    listed = sorted(texts)
    if eos == "ignored" and any(one != other and other.startswith(one) for one in listed for other in listed):
        return
    vocabulary = Vocabulary([b"a", b"b", b"ab", b"ba", b"aa", b""], end_tokens=(5,), special_tokens={5: "<end>"})
    model = random_table(vocabulary, seed)
    compiled = compile_constraint(Choice(listed), vocabulary, backend=engine[0], **engine[1])
    whole = masked_distribution(compiled, model, (0,), listed, eos=eos, tolerance=0)  # type: ignore[arg-type]
    short = masked_distribution(
        compiled,
        model,
        (0,),
        listed,
        eos=eos,
        tolerance=0,
        follow_spellings=False,  # type: ignore[arg-type]
    )
    assert short.distribution.probabilities == pytest.approx(whole.distribution.probabilities, abs=1e-12)
    assert short.distribution.unresolved == whole.distribution.unresolved == 0
    assert short.prefixes <= whole.prefixes
    assert short.log_mass.lower == -math.inf
    assert short.log_mass.upper >= whole.log_mass.upper - 1e-12
    assert math.isnan(short.mean_tokens)
    assert (short.forced_share, short.improper_mass, short.spellings) == (None, None, ())


def test_a_decided_prefix_needs_no_row() -> None:
    """Two texts that part at their first letter: one row decides, however long they are."""
    vocabulary = load_tokenizer("bytes").vocabulary
    texts = ["a" * 40, "b" * 40]
    compiled = compile_constraint(Choice(texts), vocabulary, backend="token_index")
    result = masked_distribution(
        compiled, random_table(vocabulary, 1), (), texts, eos="ignored", follow_spellings=False
    )
    assert result.prefixes == 1
    assert result.distribution.unresolved == 0

from __future__ import annotations

import pytest

from tests.lab.measure.fakes import byte_vocabulary
from tests.lab.run.fake_backends import Fake
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import OptionError
from tokdfa.lab.measure.workloads import RandomWalk, Strings, Texts, derive_seed, plan_walks
from tokdfa.vocabulary.tokenizers import load_tokenizer

TOKENIZER = load_tokenizer("bytes")
END = TOKENIZER.vocabulary.end_tokens[0]


def plan(workload, constraint, seed=0, how="honest", begin=lambda: None):
    start = Fake(byte_vocabulary(), how=how, where="mask").compile(constraint).start
    return plan_walks(workload, constraint, TOKENIZER, start, seed, begin)


def test_a_seed_is_what_it_was():
    # from: printf '[0,"bytes",1]' | sha256sum, the first 8 bytes read as a little-endian number, halved
    assert derive_seed(0, "bytes", 1) == 57342324020874321


def test_walks_are_decided_by_the_seed_alone():
    workload, constraint = RandomWalk(walks=4, steps=12), Regex("a*|b*|abc|bcd")
    first = plan(workload, constraint, seed=5)
    assert plan(workload, constraint, seed=5) == first
    assert plan(RandomWalk(walks=2, steps=12), constraint, seed=5) == first[:2]  # more walks change no earlier one
    assert plan(workload, constraint, seed=6) != first


def test_a_random_walk_takes_every_allowed_token_about_equally_often():
    walks = plan(RandomWalk(walks=600, steps=1), Regex("a|b|c|*"))
    counts = {token: sum(walk.tokens == (token,) for walk in walks) for token in (*b"abc", END)}
    assert sum(counts.values()) == 600
    # 150 expected each, standard deviation 10.6
    assert all(100 < count < 200 for count in counts.values())


def test_complete_walks_are_judged_by_the_oracle():
    assert {walk.inside for walk in plan(RandomWalk(walks=5), Choice(["yes", "no"]))} == {True}
    lax = plan(RandomWalk(walks=3, steps=4), Choice(["yes"]), how="lax")
    assert {walk.inside for walk in lax if walk.complete} == {False}


def test_texts_are_encoded_ended_and_judged():
    walks = plan_walks(Strings(texts=["yes", "nö", ""]), Choice(["yes", "no"]), TOKENIZER, None, 0)
    assert [walk.tokens for walk in walks] == [(*b"yes", END), (*"nö".encode(), END), (END,)]
    assert [walk.inside for walk in walks] == [True, False, False]
    assert all(walk.given and walk.complete for walk in walks)


def test_texts_of_a_constraint_are_vouched_for_where_the_oracle_does_not_know():
    texts, unknown = ["a", "b"], Grammar('start: "a"')
    assert [walk.inside for walk in plan_walks(Texts(texts=texts), unknown, TOKENIZER, None, 0)] == [True, True]
    assert [walk.inside for walk in plan_walks(Strings(texts=texts), unknown, TOKENIZER, None, 0)] == [None, None]
    # what the oracle knows is beyond doubt, and what the tokens spell is what counts
    assert [walk.inside for walk in plan_walks(Texts(texts=texts), Choice(["a"]), TOKENIZER, None, 0)] == [True, False]

    class Spaced:
        vocabulary = TOKENIZER.vocabulary

        def encode(self, text):
            return TOKENIZER.encode(f" {text}")

    assert [walk.inside for walk in plan_walks(Texts(texts=texts), unknown, Spaced(), None, 0)] == [None, None]


def test_a_text_is_repeated_up_to_its_tokens():
    (walk,) = plan(Texts(texts=["(", "+12"], repeat=8), Regex(".*"))
    assert walk.tokens == tuple(b"(+12+12+")
    assert (walk.inside, walk.complete, walk.given) == (None, False, True)
    for texts in ([], ["("], ["(", ""]):
        with pytest.raises(OptionError, match="two texts"):
            plan(Texts(texts=texts, repeat=8), Regex(".*"))

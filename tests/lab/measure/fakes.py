"""What the tests of measuring share: contenders made of fake backends, on the byte vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.run.fake_backends import Fake
from tokdfa.constraint import Regex
from tokdfa.lab.measure.contenders import Contender, Outcome
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

ABC = Regex("abc|ax")


def byte_vocabulary() -> Vocabulary:
    return load_tokenizer("bytes").vocabulary


def contender(how: str = "honest", where: str = "compile") -> Contender:
    """One that does a trick, on its way through `ABC`; its label is the trick."""
    return Contender(Fake(byte_vocabulary(), how=how, where=where), ABC, ignore, Outcome(how))


def ignore(phase: str) -> None:
    """A `begin` that nobody watches."""

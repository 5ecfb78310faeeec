"""What the tests of measuring share: contenders made of fake backends, on the byte vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.run.fake_backends import Fake
from tokdfa.lab.measure.contenders import Contender, Outcome
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary


def byte_vocabulary() -> Vocabulary:
    return load_tokenizer("bytes").vocabulary


def contenders(*tricks: str, where: str = "compile") -> list[Contender]:
    """One contender per trick; its label and tag are its place."""
    return [
        Contender(tag, Fake(byte_vocabulary(), how=how, where=where, tag=tag), Outcome(str(tag)))
        for tag, how in enumerate(tricks)
    ]


def ignore(contender: int, phase: str) -> None:
    """A `begin` that nobody watches."""

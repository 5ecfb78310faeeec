"""An entry that does every wrong thing when it is told to, for the tests of the driver."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tokdfa.errors import TokenizerError

if TYPE_CHECKING:
    from collections.abc import Iterator


class TroubleEntry:
    """What a body holds decides what happens."""

    name = "trouble"
    file_name = "trouble.txt"

    def prepare(self) -> None:
        pass

    def cases(self) -> st.SearchStrategy[Case]:
        words = ("fine ", "refuse ", "nameless ", "raise ", "spin ", "grow ", "die ", "panic ", "-", "#")
        return st.builds(Case, st.just("x"), st.lists(st.sampled_from(words), max_size=3).map("".join))

    def run(self, case: Case) -> str:
        body = str(case.body)
        if "refuse" in body:
            raise TokenizerError(f"{self.file_name}: no")
        if "nameless" in body:
            raise TokenizerError("no")
        if "raise" in body:
            raise KeyError("x")
        if "panic" in body:
            raise Panic
        if "die" in body:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "grow" in body:
            return str(len(bytes(1 << 30)))
        while "spin" in body:
            pass
        return "fine"

    def smaller(self, body: object) -> Iterator[str]:
        return iter(())


class Panic(BaseException):
    """Like those of libraries in Rust."""


ENTRY = TroubleEntry()

"""A backend that does what tests ask of it: measure well, hang, hog memory, die, lie. Importable by worker processes.

Its language: the alternatives of a Choice, or of a regex made of literals, `|` and one trailing `*` on an alternative
of one character (``ab|c*``). Masks are made token by token, so it suits small vocabularies only.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.constraint import Choice, Regex
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.lab.measure.warm_up import LABEL as WARM_UP

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask

TRICKS = (
    *("honest", "sleep", "nap", "hog", "small_hog", "segfault", "exit", "kill", "panic", "raise"),
    *("limit", "unsupported", "no_memory", "missing", "lax", "strict", "wide"),
)
PLACES = ("init", "warm", "compile", "start", "mask", "advance")

#: Every call in this process, as (the backend's tag, what), for tests of the order.
journal: list[tuple[str, str]] = []


class Panic(BaseException):
    """As raised by a compiled engine that breaks down."""


def nap() -> None:
    """Sleep, and note when and on which processors in the file that the environment variable NAPS names, if any."""
    began = time.monotonic_ns()
    time.sleep(0.06)
    if path := os.environ.get("NAPS"):
        with open(path, "a") as file:
            file.write(f"{json.dumps([began, time.monotonic_ns(), sorted(os.sched_getaffinity(0))])}\n")


def play(how: str, hogged: list[bytearray]) -> None:
    """Do a trick."""
    if how == "sleep":
        time.sleep(60)
    elif how == "nap":
        nap()
    elif how == "hog":
        for _ in range(24):
            hogged.append(bytearray(b"x" * (16 * 2**20)))
            time.sleep(0.01)
        time.sleep(60)
    elif how == "small_hog":
        hogged[:] = [bytearray(24 * 2**20), bytearray(8 * 2**20)]
        for block in hogged:
            block[::4096] = b"x" * (len(block) // 4096)  # touch every page, so that it is resident
        hogged.pop(0)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "exit":
        print("so long", file=sys.stderr, flush=True)
        os._exit(7)
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "panic":
        raise Panic("the engine broke down")
    elif how == "raise":
        raise RuntimeError("on purpose")
    elif how == "limit":
        raise LimitExceeded("too many states", limit="states", value=7)
    elif how == "unsupported":
        raise UnsupportedConstraint("fake does not take this one")
    elif how == "no_memory":
        raise MemoryError
    elif how == "missing":
        raise missing_dependency("llguidance", "the fake backend")


class Fake(Backend):
    name = "fake"
    summary = "does what a test asks of it"
    kinds = ("regex", "choice")
    options = (
        Option("how", str, "honest", "what it does wrong", choices=TRICKS),
        Option("where", str, "compile", "when", choices=PLACES),
        Option("tag", int, 0, "tells twins apart"),
    )

    def __init__(self, vocab: Any, **options: Any) -> None:
        super().__init__(vocab, **options)
        self._hogged: list[bytearray] = []
        self.act("init")

    def act(self, where: str) -> None:
        """Do the trick if this is its place."""
        if where == self.settings["where"]:
            play(self.settings["how"], self._hogged)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        self.act("warm" if constraint.label == WARM_UP else "compile")
        return FakeCompiled(constraint, self)


class FakePeer(Fake):
    """Counts as a peer: it names a package, so it is not warmed up before the fork."""

    name = "fake_peer"
    packages = ("numpy",)


class FakeCompiled(CompiledConstraint):
    def __init__(self, constraint: Constraint, backend: Fake) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.backend = backend
        with self.phases.measure("read"):
            texts = [""]
            if isinstance(constraint, Choice):
                texts = [text.decode() for text in constraint.as_bytes()]
            elif isinstance(constraint, Regex):
                texts = constraint.pattern.removeprefix("(?:").split("|")
            self.texts = [text.encode() for text in texts if not text.endswith("*")]
            self.loops = [text[:-1].encode() for text in texts if text.endswith("*")]
            if constraint.label == WARM_UP:
                self.texts, self.loops = [b"0"], []
        self.sizes = {"states": len(self.texts), "bytes": sum(map(len, self.texts)), "alternatives": len(texts)}
        self.sizes["process"] = os.getpid()
        journal.append((self.tag, "compile"))

    @property
    def tag(self) -> str:
        return str(self.backend.settings["tag"])

    def _start(self, context: tuple[int, ...]) -> FakeMatcher:
        self.act("start")
        return FakeMatcher(self)

    def act(self, where: str) -> None:
        if self.constraint.label != WARM_UP:
            self.backend.act(where)

    def is_prefix(self, text: bytes) -> bool:
        return any(one.startswith(text) for one in self.texts) or self._is_loop(text)

    def is_whole(self, text: bytes) -> bool:
        return text in self.texts or self._is_loop(text)

    def _is_loop(self, text: bytes) -> bool:
        return any(text == loop * len(text) for loop in self.loops)


class FakeMatcher(StateMatcher[bytes]):
    def __init__(self, compiled: FakeCompiled) -> None:
        super().__init__(compiled.vocab, b"")
        self.compiled = compiled
        self.how = compiled.backend.settings["how"]
        self.counters = {"masks": 0, "steps": 0}

    def _step(self, state: bytes, token: int) -> bytes | None:
        text = state + self.vocab.token_bytes(token)
        if self.how == "strict" and text.endswith(b"b"):
            return None
        allowed = self.compiled.is_prefix(text) or (self.how == "lax" and len(text) <= 3)
        return text if allowed and text != state else None

    def _accepts(self, state: bytes) -> bool:
        return self.compiled.is_whole(state) or (self.how == "lax" and len(state) > 0)

    def _fill(self, state: bytes, out: Mask) -> None:
        allowed = [token for token in range(self.vocab.size) if self._next(token) is not None]
        if self.how == "wide":
            allowed += [token for token in (1, 2, 3) if token not in allowed]
        out[:] = masks.mask_from_ids(allowed, self.vocab.size)

    def _fork_empty(self) -> FakeMatcher:
        return FakeMatcher(self.compiled)

    def fill_mask(self, out: Mask) -> None:
        journal.append((self.compiled.tag, f"mask {self.state!r}"))
        self.compiled.act("mask")
        self.counters["masks"] += 1
        super().fill_mask(out)

    def advance(self, token: int) -> None:
        self.compiled.act("advance")
        journal.append((self.compiled.tag, f"advance {token}"))
        super().advance(token)
        self.counters["steps"] += 1

"""The backend `cut_texts`: the texts of a choice, cut at every byte; each piece is looked up in a table of tokens."""

from __future__ import annotations

from tokdfa.backends.base import Backend, CompiledConstraint, Matcher, StateMatcher
from tokdfa.constraint import Choice, Constraint
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.mask import Mask, mask_from_ids


class CutTexts(Backend):
    name = "cut_texts"
    summary = "the texts of a choice, cut at every byte and looked up in a table of tokens"
    kinds = ("choice",)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        assert isinstance(constraint, Choice)  # `supports` has looked at the kind
        return CutChoice(self, constraint)


class CutChoice(CompiledConstraint):
    """`tokens`: what has been written -> the tokens that may come next, for every beginning of a text."""

    def __init__(self, backend: CutTexts, constraint: Choice) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self.texts = set(constraint.as_bytes())
        self.tokens: dict[bytes, set[int]] = {}
        with self.phases.measure("table"):
            spelling: dict[bytes, list[int]] = {}  # token bytes -> the ids that spell them
            for token in range(self.vocab.size):
                spelling.setdefault(self.vocab.token_bytes(token), []).append(token)
            longest = max(map(len, spelling))
        with self.phases.measure("cut"):
            for text in self.texts:
                ends = {len(text)}  # from here tokens can spell the rest, so no mask leads into a dead end
                for begin in reversed(range(len(text))):
                    for end in range(begin + 1, min(begin + longest, len(text)) + 1):
                        if end in ends and text[begin:end] in spelling:
                            ends.add(begin)
                            self.tokens.setdefault(text[:begin], set()).update(spelling[text[begin:end]])
        if not (b"" in self.tokens or b"" in self.texts):
            raise VocabularyCannotSpell(
                f"no tokens spell a text of {constraint.name!r}; add the missing bytes as tokens"
            )
        self.sizes = {"states": len(self.tokens.keys() | self.texts)}

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return CutTextsMatcher(self)


class CutTextsMatcher(StateMatcher[bytes]):
    """The state is what has been written so far."""

    def __init__(self, compiled: CutChoice) -> None:
        super().__init__(compiled.vocab, b"")
        self.compiled = compiled

    def _step(self, state: bytes, token: int) -> bytes | None:
        return state + self.vocab.token_bytes(token) if token in self.compiled.tokens.get(state, ()) else None

    def _accepts(self, state: bytes) -> bool:
        return state in self.compiled.texts

    def _fill(self, state: bytes, out: Mask) -> None:
        ends = self.vocab.end_tokens if self._accepts(state) else ()
        out[:] = mask_from_ids([*self.compiled.tokens.get(state, ()), *ends], self.vocab.size)

    def _fork_empty(self) -> CutTextsMatcher:
        return CutTextsMatcher(self.compiled)

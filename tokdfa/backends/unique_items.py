"""Names that no object may have twice, and arrays whose items must differ, over any strategy: its masks, less what
would repeat one.

A `Scanner` reads the text beside the strategy's matcher: which containers are open, the names that each object had, and
of an array of this kind the values that were; where such arrays are a schema says by paths
(`tokdfa.json_schema.solve.unique_items`). Its state is a tuple, so a fork shares it and a rollback restores it; it
stands beside the strategy's state, whose masks are shared and know nothing of it.

Masks. A token is refused if some byte of it is. Tokens are walked along the trie as long as a byte could be refused, by
the bytes that matter (`Scanner.watched`); what is beyond, in the midst of a name or an item that none before it begins
with, can only be refused if a token ends it and has another one behind a comma, so just these tokens are read as a
whole (`tokdfa.backends.unique_tokens`), what they begin with alike once; with items that are arrays or objects those
with a closing bracket, too. Numbers have no exponents where items differ, so where a strategy allows a digit that leads
to none without one, they are walked to their end.

Dead ends. Of names without end there is always another one, if the vocabulary has a letter or digit by itself. If it
has not, or a schema limits names (`tokdfa.json_schema.solve.object_plan`), or only proper sequences are allowed, then a
token behind which the name may be one that was is allowed only if a search over tokens finds a way to one that was not.

Cost: 1 to 3 us a byte of text; a mask where a name may begin or has begun like another one some 10 us more, 1 to 10 ms
with a search; within an array whose items differ 0.1 to 2 ms more, the most where an item may begin; automata of the
former values, made anew for each item. Memory: some 500 bytes a name of the objects that are open, the values of open
arrays, at most `MAX_REMEMBERED` each, and some 100 bytes for each byte of an item that is an array or an object and has
not closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint, Matcher
from tokdfa.backends.unique_scanner import BLANKS, NAME, OBJECT, START, Scanner, State
from tokdfa.backends.unique_tokens import suspect_tokens
from tokdfa.core.budget import spend, spending
from tokdfa.errors import TokenRefused, UnsupportedConstraint
from tokdfa.vocabulary.trie import TOKEN_SHIFT

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.backends.remembered_ends import Memory
    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.grammar.cfg import OpenNames
    from tokdfa.json_schema.solve.unique_items import Location
    from tokdfa.mask import Mask


#: Work (`tokdfa.core.budget`) of a step in a search for another name.
NS_PER_WAY = 100_000


class UniqueItems(CompiledConstraint):
    """What a strategy made of a constraint, and what it does not remember.

    `locations`: where items are remembered; `is_proper`: whether the strategy allows proper sequences only.
    """

    def __init__(self, plain: CompiledConstraint, locations: Sequence[Location], is_proper: bool = False) -> None:
        super().__init__(plain.constraint, plain.vocab, plain.backend_name)
        self.plain, self.phases, self.dropped, self.sizes = plain, plain.phases, plain.dropped, plain.sizes
        self.has_items = bool(locations)
        is_distinct = getattr(plain.constraint, "duplicates", "") == "refused"
        self.scanner = Scanner(locations, is_distinct, plain.constraint)
        #: Tokens that may end a name or an item and have something behind a comma, which are read as a whole; and those
        #: that may close one.
        self.tokens = suspect_tokens(plain.vocab)
        self._is_short = is_proper or not self.tokens.has_letter

    @property
    def names(self) -> OpenNames:
        """What is known of the names that no place of the program holds; code that is written later may have more."""
        return self.plain.open_names if self.scanner.names else "none"

    @property
    def is_awake(self) -> bool:
        """Whether there is something to remember."""
        return self.has_items or self.names != "none"

    @property
    def searches(self) -> bool:
        """Whether names may run out: see the module's docstring."""
        return self.names == "limited" or (self._is_short and self.names != "none")

    def refused(
        self, state: State, mask: Mask, doubtful: list[tuple[int, State]] | None = None
    ) -> list[npt.NDArray[np.int32]]:
        """The tokens that the scanner refuses, among those of a mask and maybe others.

        To `doubtful` come tokens behind which names may have run out, each with the state after it, if that can be.
        """
        scanner, tokens, trie, size = self.scanner, self.tokens, self.vocab.trie, np.uint64(self.vocab.size)
        suspects = tokens.suspects_of(scanner, state, mask, self.has_items, doubtful is not None)
        read = dict[bytes, State | None]({b"": state})
        whole = []
        for token in tokens.listed(suspects) if suspects is not None else ():
            following = self._after(self.vocab.token_bytes(token), read)
            if following is None:
                whole.append(token)
            elif doubtful is not None and scanner.may_exhaust(following):
                doubtful.append((token, following))
        found = [np.array(whole, dtype=np.int32)] if whole else []
        #: By identity: a state, the bytes watched there, and where these lead.
        known = dict[int, tuple[State, frozenset[int], dict[int, State | None]]]()
        todo = [(tokens.branches(-1), state)]
        if state and doubtful is None and all(scanner.step(state, blank) is state for blank in BLANKS):
            todo = [(branches, state) for branches in tokens.behind_blanks]
        while todo:
            branches, here = todo.pop()
            if id(here) not in known:
                known[id(here)] = here, scanner.watched(here), {}
            _, watched, steps = known[id(here)]
            for byte in watched & branches.keys():
                if byte not in steps:
                    steps[byte] = scanner.step(here, byte)
                (first, last), following = branches[byte], steps[byte]
                if following is None:
                    ids = trie.nodes[first : trie.next(last)] >> np.uint64(TOKEN_SHIFT)
                    found.append(ids[ids < size].astype(np.int32))
                    continue
                if doubtful is not None and scanner.may_exhaust(following):
                    equal = (trie.token(child) for child in range(first, last + 1))
                    doubtful += [(token, following) for token in equal if token >= 0]
                if trie.next(last) > last + 1:  # longer tokens begin so
                    todo.append((tokens.branches(last), following))
        return found

    def _after(self, text: bytes, read: dict[bytes, State | None]) -> State | None:
        """The state after a text; `read`: those after texts that were read, from the same state; this one is added."""
        here = read[b""]
        for past in range(1, len(text) + 1):
            before = text[:past]
            if before not in read:
                read[before] = self.scanner.step(here, before[-1]) if here else here
            here = read[before]
        return here

    def _start(self, context: tuple[int, ...]) -> UniqueItemsMatcher:
        return UniqueItemsMatcher(self, self.plain._start(context))

    def _save_tables(self) -> Any:
        return self.plain._save_tables()

    def save(self, path: str | Path) -> None:
        """Write what the strategy writes; its `load` finds out again what is to be remembered.

        Raises UnsupportedConstraint for automata too large to save, and for a strategy that does not save.
        """
        save = getattr(self.plain, "save", None)
        if save is None:
            raise UnsupportedConstraint(f"{self.backend_name} does not save what it compiles")
        save(path)


class UniqueItemsMatcher(Matcher):
    """The strategy's matcher, and the states of the scanner before each token and now, as far as anybody asked."""

    _UNCOUNTED = (
        "a state holds the items that were, so there are too many to count tokens to an end; leave max_tokens out, or "
        "give the items as an enum of at most 64 values"
    )

    def __init__(self, compiled: UniqueItems, text: Matcher) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self.text, self._scanner = compiled, text, compiled.scanner
        self._states: list[State] = [START]
        #: Of its own: that of the compiled constraint is entered by one thread at a time.
        self._working = spending(compiled.working.budget, compiled.working.what)
        self.counters = text.counters

    @property
    def scanned(self) -> State:
        """The state of the scanner now."""
        for token in self._tokens[len(self._states) - 1 :]:
            state = self._states[-1]
            if token not in self.vocab.end_token_set:
                after = self._scanner.run(state, self.vocab.token_bytes(token))
                assert after is not None  # it was allowed
                state = after
            self._states.append(state)
        return self._states[-1]

    def _fill_mask(self, out: Mask) -> None:
        with self._working:
            self.text.fill_mask(out)
            if self._compiled.is_awake and not self.text.is_finished():
                state = self.scanned
                doubtful: list[tuple[int, State]] | None = [] if self._compiled.searches else None
                self._clear(out, self._compiled.refused(state, out, doubtful))
                alive: dict[Hashable, bool] = {}
                for token, following in doubtful or ():
                    if masks.contains(out, token) and not self._goes_on(self._behind(token), following, alive):
                        masks.clear_token(out, token)

    def _clear(self, out: Mask, refused: list[npt.NDArray[np.int32]]) -> None:
        if refused:
            tokens = np.concatenate(refused)
            np.bitwise_and.at(out, tokens >> 5, ~(np.int32(1) << (tokens & 31)))

    def _goes_on(self, start: Matcher, state: State, alive: dict[Hashable, bool]) -> bool:
        """Whether some way leads from where a matcher of the text is, with the scanner in `state`, to a name that was
        not.

        `alive`: what is known of places by now.
        """
        origin = start.whereabouts(), state
        if origin in alive:
            return alive[origin]
        todo, met, mask = [(start, state)], {origin}, masks.allocate_mask(self.vocab.size)
        while todo:
            here, scanned = todo.pop()
            here.fill_mask(mask)
            doubtful: list[tuple[int, State]] = []
            self._clear(mask, self._compiled.refused(scanned, mask, doubtful))
            ways = {way: following for way, following in doubtful if masks.contains(mask, way)}
            if masks.count(mask) > len(ways):
                alive[origin] = True
                return True
            for way, following in ways.items():
                spend(NS_PER_WAY)
                there = here.fork()
                there.advance(way)
                key = there.whereabouts(), following
                if key not in met:
                    met.add(key)
                    todo.append((there, following))
        alive.update(dict.fromkeys(met, False))
        return False

    def _is_free(self, token: int) -> bool:
        """Whether the scanner has nothing to say of a token."""
        return token in self.vocab.end_token_set or not self._compiled.is_awake

    def _behind(self, token: int) -> Matcher:
        """A matcher of the text after one more token."""
        following = self.text.fork()
        following.advance(token)
        return following

    def _following(self, token: int, is_taken: bool = False) -> State | None:
        """The state after a token that the text allows, or has taken; None if it is refused."""
        following = self._scanner.run(self.scanned, self.vocab.token_bytes(token))
        if following and self._compiled.searches and self._scanner.may_exhaust(following):
            behind = self.text.fork() if is_taken else self._behind(token)
            return following if self._goes_on(behind, following, {}) else None
        return following

    def _advance(self, token: int) -> None:
        with self._working:
            self.text.advance(token)
            if self._is_free(token):
                return
            following: State | None = None
            try:
                following = self._following(token, is_taken=True)
            finally:
                if following is None:
                    self.text.rollback(1)
            if following is None:
                raise TokenRefused(token, self._why_refused())
            self._states.append(following)

    def _why_refused(self) -> str:
        if any(frame[0] == NAME or (frame[0] == OBJECT and frame[3].size) for frame in self.scanned):
            return "it would give an object a name that it has, or leave it no other"
        return "it would repeat an item of an array whose items must differ"

    def _allows(self, token: int) -> bool:
        with self._working:
            if not self.text.allows(token):
                return False
            return self._is_free(token) or self._following(token) is not None

    def can_end(self) -> bool:
        return self.text.can_end()

    def is_finished(self) -> bool:
        return self.text.is_finished()

    def _forced_bytes(self, limit: int) -> bytes:
        compiled = self._compiled
        # of names without end none that was leaves fewer ways to go on than two
        return (
            super()._forced_bytes(limit) if compiled.has_items or compiled.searches else self.text._forced_bytes(limit)
        )

    def _rollback(self, count: int) -> None:
        self.text.rollback(count)
        del self._states[len(self._tokens) - count + 1 :]

    def _fork(self) -> UniqueItemsMatcher:
        twin = UniqueItemsMatcher(self._compiled, self.text.fork())
        twin._states = self._states.copy()
        return twin

    def whereabouts(self) -> Hashable:
        return self.text.whereabouts(), self.scanned if self._compiled.is_awake else START

    @property
    def plain(self) -> Matcher:
        return self.text.plain

    def situation_source(self) -> SituationSource | None:
        return super().situation_source() if self._compiled.has_items else self.text.situation_source()

    def memory(self) -> Memory | None:
        return ReadNames(self._compiled, self.scanned) if self._compiled.is_awake else None


@dataclass(frozen=True)
class ReadNames:
    """The names that a text has had: see `tokdfa.backends.remembered_ends.Memory`."""

    compiled: UniqueItems
    state: State

    @property
    def is_endless(self) -> bool:
        """Whether there is always another name."""
        return not self.compiled.searches

    def read(self, text: bytes) -> Memory | None:
        """After a text; None if it has a name twice."""
        state = self.compiled.scanner.run(self.state, text)
        return None if state is None else ReadNames(self.compiled, state)

    def exceptions(self, allowed: Mask) -> tuple[npt.NDArray[np.int32], Mapping[int, Memory]]:
        """See `Memory`: tokens after which the name may be one that was."""
        doubtful: list[tuple[int, State]] = []
        refused = self.compiled.refused(self.state, allowed, doubtful)
        others = {token: ReadNames(self.compiled, state) for token, state in doubtful if masks.contains(allowed, token)}
        return np.concatenate([*refused, np.empty(0, dtype=np.int32)]), others

"""The laws of the mask interface: what `tokdfa.backends.base` promises, as functions of a trial.

Each check returns None if its law holds in a `Trial` (one backend at work on one case), or describes the smallest
counterexample it has met: the text so far, the token, what was expected. The order is: compiling, masks, advancing,
then fork, rollback and threads, then texts.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.laws.trial import Trial, advances
from tokdfa.errors import LawBroken, LimitExceeded, TokdfaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.backends.laws.trial import Prefix

    Check = Callable[[Trial], str | None]


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about a trial."""


@dataclass(frozen=True)
class Law:
    """`check` returns None or a description of the counterexample; calling the law raises LawBroken with it."""

    name: str
    statement: str
    check: Check

    def __call__(self, trial: Trial) -> None:
        found = self.check(trial)
        if found is not None:
            raise LawBroken(self.name, found)


_laws: list[Law] = []


def _law(name: str, statement: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        _laws.append(Law(name, statement, check))
        return check

    return register


def _law_of_matchers(name: str, statement: str) -> Callable[[Check], Check]:
    """A law about a constraint that has been compiled."""

    def register(check: Check) -> Check:
        def check_compiled(trial: Trial) -> str | None:
            if trial.compiled is None:
                raise NotApplicable(f"it was not compiled: {trial.refusal}")
            return check(trial)

        return _law(name, statement)(check_compiled)

    return register


# Compiling.


@_law("compiles", "A constraint that the backend supports compiles, unless it is wrong or no text is in its language.")
def _compiles(trial: Trial) -> str | None:
    if trial.case.gaps:
        raise NotApplicable("a vocabulary with gaps has a law of its own")
    if isinstance(trial.refusal, LimitExceeded) and not trial.is_small:
        raise NotApplicable(f"refused for its size: {trial.refusal}")
    return _compare_refusal(trial)


@_law(
    "compiles_with_gaps", "On a vocabulary with gaps, it compiles iff tokens spell at least one text of the language."
)
def _compiles_with_gaps(trial: Trial) -> str | None:
    if not trial.case.gaps:
        raise NotApplicable("the vocabulary has no gaps")
    return _compare_refusal(trial)


def _compare_refusal(trial: Trial) -> str | None:
    expected, got = trial.case.error, trial.refusal
    if expected is None:
        return None if got is None else f"compiling fails with {type(got).__name__}: {got}"
    if isinstance(got, expected):
        return None
    return f"compiling must raise {expected.__name__}, but " + ("succeeds" if got is None else f"raises {got!r}")


# Masks.


@_law_of_matchers("masks_equal", "Masks are those of the brute force (of proper sequences: of all encodings).")
def _masks_equal(trial: Trial) -> str | None:
    if trial.oracle is None:
        raise NotApplicable("no brute force for this")
    names = (trial.backend.name, trial.oracle.backend_name)
    return compare_masks(trial, trial.oracle, names)


@_law_of_matchers(
    "text_tokens_only", "No bit of a special, padding or empty token is set, and none past the vocabulary."
)
def _text_tokens_only(trial: Trial) -> str | None:
    spelling = trial.vocab.lengths > 0
    spelling[trial.end_ids] = True
    packed = masks.allocate_mask(trial.vocab.size)
    for prefix in trial.prefixes:
        trial.at(prefix).fill_mask(packed)
        allowed = masks.mask_to_bool(packed)
        past = np.flatnonzero(allowed[trial.vocab.size :])
        if len(past):
            return f"{trial.name_prefix(prefix)}: bit {trial.vocab.size + past[0]} is set, the vocabulary ends before"
        wrong = np.flatnonzero(allowed[: trial.vocab.size] & ~spelling)
        if len(wrong):
            return f"{trial.name_prefix(prefix)}: {trial.name_token(int(wrong[0]))} is allowed"
    return None


@_law_of_matchers("mask_overwritten", "fill_mask overwrites the whole buffer, and refuses a buffer that is no mask.")
def _mask_overwritten(trial: Trial) -> str | None:
    zeros, ones = masks.allocate_mask(trial.vocab.size), masks.allocate_mask(trial.vocab.size)
    for prefix in trial.prefixes:
        zeros.fill(0)
        ones.fill(-1)
        trial.at(prefix).fill_mask(zeros)
        trial.at(prefix).fill_mask(ones)
        if not np.array_equal(zeros, ones):
            word = int(np.flatnonzero(zeros != ones)[0])
            return f"{trial.name_prefix(prefix)}: word {word} of the mask depends on what the buffer held before"
        buffers: list[Any] = [zeros[:-1], zeros.astype(np.int64), np.zeros(4 * len(zeros), np.uint8)]
        for wrong in buffers:
            try:
                trial.at(prefix).fill_mask(wrong)
            except TokdfaError:
                continue
            return f"{trial.name_prefix(prefix)}: a {wrong.dtype} buffer of shape {wrong.shape} is taken for a mask"
    return None


@_law_of_matchers("end_bits", "The bits of the end tokens are set iff can_end(), all of them alike.")
def _end_bits(trial: Trial) -> str | None:
    for prefix in trial.prefixes:
        matcher = trial.at(prefix)
        for token, allowed in zip(trial.vocab.end_tokens, trial.mask_of(matcher)[trial.end_ids], strict=True):
            if allowed != matcher.can_end():
                bit = "set" if allowed else "clear"
                return f"{trial.name_prefix(prefix)}: can_end() is {not allowed} and {trial.name_token(token)} is {bit}"
    return None


@_law_of_matchers("no_dead_end", "After every allowed token there is an allowed token, or the text may end.")
def _no_dead_end(trial: Trial) -> str | None:
    if trial.case.gaps:
        raise NotApplicable("a vocabulary with gaps has a law of its own")
    return _find_dead_end(trial)


@_law_of_matchers("no_dead_end_with_gaps", "On a vocabulary with gaps, tokens can complete the text after every token.")
def _no_dead_end_with_gaps(trial: Trial) -> str | None:
    if not trial.case.gaps:
        raise NotApplicable("the vocabulary has no gaps")
    oracle = trial.brute_force("tokens") if trial.case.error is None else None
    if oracle is not None:
        for prefix in trial.prefixes:
            here, there = trial.mask_of(trial.at(prefix)), trial.mask_of(trial.at(prefix, oracle))
            beyond = np.flatnonzero(here & ~there)
            if len(beyond):
                token = trial.name_token(int(beyond[0]))
                return f"{trial.name_prefix(prefix)}: {token} is allowed, but then no tokens complete the text"
    return _find_dead_end(trial)


def _find_dead_end(trial: Trial) -> str | None:
    for prefix in trial.prefixes:
        matcher = trial.at(prefix)
        if not matcher.is_finished() and not trial.mask_of(matcher).any():
            return f"{trial.name_prefix(prefix)}: the mask is empty and the text is not finished"
    return None


# Advancing.


@_law_of_matchers("advance_iff_bit", "advance succeeds iff the token's bit is set; refused, it changes nothing.")
def _advance_iff_bit(trial: Trial) -> str | None:
    for prefix in _spread(trial.prefixes, 8):
        allowed = trial.mask_of(trial.at(prefix))
        matcher = trial.at(prefix)
        for token in (*trial.some_tokens(np.flatnonzero(~allowed), "refused"), *trial.outside):
            if advances(matcher, token):
                return (
                    f"{trial.name_prefix(prefix)}: the bit of {trial.name_token(token)} is clear, yet advance takes it"
                )
        difference = trial.difference(allowed, trial.mask_of(matcher), ("before refused tokens it", "after them it"))
        if difference:
            return f"{trial.name_prefix(prefix)}: {difference}"
        for token in trial.some_tokens(np.flatnonzero(allowed), "allowed"):
            if not advances(trial.at(prefix), token):
                return (
                    f"{trial.name_prefix(prefix)}: the bit of {trial.name_token(token)} is set, yet advance refuses it"
                )
    return None


@_law_of_matchers("allows_is_bit", "allows(token) is the token's bit, and asking changes nothing.")
def _allows_is_bit(trial: Trial) -> str | None:
    for prefix in _spread(trial.prefixes, 16):
        matcher = trial.at(prefix)
        allowed = trial.mask_of(matcher)
        inside = [
            *trial.some_tokens(np.flatnonzero(allowed), "set"),
            *trial.some_tokens(np.flatnonzero(~allowed), "clear"),
        ]
        for token in (*inside, *trial.vocab.end_tokens, *trial.outside):
            bit = 0 <= token < trial.vocab.size and bool(allowed[token])
            if matcher.allows(token) != bit:
                says = "set, yet allows says no" if bit else "clear, yet allows says yes"
                return f"{trial.name_prefix(prefix)}: the bit of {trial.name_token(token)} is {says}"
        difference = trial.difference(allowed, trial.mask_of(matcher), ("before asking it", "after asking it"))
        if difference:
            return f"{trial.name_prefix(prefix)}: {difference}"
    return None


@_law_of_matchers(
    "equal_tokens", "Of tokens with equal bytes all bits are equal (of proper sequences: as allows and advance say)."
)
def _equal_tokens(trial: Trial) -> str | None:
    if not trial.equal_tokens:
        raise NotApplicable("no two tokens have equal bytes")
    for prefix in _spread(trial.prefixes, 16 if trial.is_small else 4):
        matcher = trial.at(prefix)
        allowed = trial.mask_of(matcher)
        for token, other in trial.equal_tokens:
            if not trial.is_proper and allowed[token] != allowed[other]:
                found = trial.name_token(token), trial.name_token(other)
                is_set, is_clear = found if allowed[token] else found[::-1]
                return f"{trial.name_prefix(prefix)}: the bit of {is_set} is set, that of {is_clear} is clear"
            for one in (token, other):
                if {matcher.allows(one), advances(matcher.fork(), one)} != {bool(allowed[one])}:
                    bit = "set" if allowed[one] else "clear"
                    where = trial.name_prefix(prefix)
                    return f"{where}: the bit of {trial.name_token(one)} is {bit}; allows or advance say otherwise"
    return None


@_law_of_matchers(
    "finished_after_end",
    "After an end token it is finished: its mask holds the end tokens, which advance takes without effect; no other.",
)
def _finished_after_end(trial: Trial) -> str | None:
    ends_only = np.zeros(trial.vocab.size, dtype=np.bool_)
    ends_only[trial.end_ids] = True
    for prefix in trial.prefixes:
        matcher = trial.at(prefix)
        if matcher.is_finished() != bool(prefix and prefix[-1] in trial.vocab.end_token_set):
            return f"{trial.name_prefix(prefix)}: is_finished() is {matcher.is_finished()}"
        for end in trial.vocab.end_tokens if matcher.can_end() and not matcher.is_finished() else ():
            ended = trial.at((*prefix, end))
            where = trial.name_prefix((*prefix, end))
            if not ended.is_finished() or not ended.can_end() or ended.forced_tokens():
                return f"{where}: it is not finished, cannot end, or forces a token"
            for token in trial.some_tokens(range(min(8, trial.vocab.size)), "after end"):
                if token in trial.vocab.end_token_set:
                    continue
                if ended.allows(token) or advances(ended, token):
                    return f"{where}: {trial.name_token(token)} is taken after the end"
            for again in (end, *trial.vocab.end_tokens):
                found = trial.difference(ends_only, trial.mask_of(ended), ("a finished matcher", "this one"))
                if found:
                    return f"{where}: {found}"
                if not (ended.allows(again) and advances(ended, again) and ended.is_finished()):
                    return f"{where}: {trial.name_token(again)} is not taken after the end"
            if ended.tokens != (*prefix, end):
                return f"{where}: end tokens after the end are among its tokens, which are {list(ended.tokens)}"
            ended.rollback(1)
            found = trial.difference(
                trial.mask_of(matcher), trial.mask_of(ended), ("before the end it", "back from beyond the end it")
            )
            if ended.is_finished() or found:
                return f"{trial.name_prefix(prefix)}: {found or 'rollback(1) does not reopen it'}"
    return None


@_law_of_matchers(
    "forced_tokens",
    "forced_tokens begin with those that are, one after another, the only bit of the mask; the others spell forced "
    "bytes, in the tokenizer's own way, and are allowed.",
)
def _forced_tokens(trial: Trial) -> str | None:
    limit = 5
    for prefix in trial.prefixes:
        matcher = trial.at(prefix)
        before = trial.mask_of(matcher)
        forced = matcher.forced_tokens(limit)
        if trial.difference(before, trial.mask_of(matcher), ("", "")):
            return f"{trial.name_prefix(prefix)}: forced_tokens changes the mask"
        expected: list[int] = []
        while not matcher.is_finished() and len(expected) < limit:
            only = np.flatnonzero(trial.mask_of(matcher))
            if len(only) != 1:
                break
            expected.append(int(only[0]))
            matcher.advance(expected[-1])
        where = f"{trial.name_prefix(prefix)}: forced_tokens({limit}) says {forced}"
        if list(forced[: len(expected)]) != expected or len(forced) > limit:
            return f"{where}, but the masks force {expected}"
        more = list(forced[len(expected) :])
        spelled, bytes_ahead = trial.vocab.spell(more), matcher.forced_bytes() if more else b""
        if not bytes_ahead.startswith(spelled):
            return f"{where}, of which {spelled!r} is not forced, but {bytes_ahead!r}"
        tokenizer = trial.vocab.tokenizer
        if more and (tokenizer is None or tokenizer.encode(bytes_ahead.decode(errors="ignore"))[: len(more)] != more):
            return f"{where}, which the tokenizer would not write"
        if not all(advances(matcher, token) for token in more):
            return f"{where}, which are not all allowed"
    return None


# Fork, rollback, threads.


@_law_of_matchers("fork_independent", "A fork is in the same state, has the same past, and neither touches the other.")
def _fork_independent(trial: Trial) -> str | None:
    start_mask = trial.mask_of(trial.at(()))
    for prefix in _spread(trial.prefixes, 16):
        matcher = trial.at(prefix)
        expected = trial.mask_of(trial.at(prefix))
        first, second = matcher.fork(), matcher.fork()
        tokens = np.flatnonzero(expected)[:: max(1, int(expected.sum()) - 1)].tolist()
        tokens = [] if matcher.is_finished() else tokens
        for one, ahead in ((first, tokens[:1]), (matcher, tokens[-1:])):
            if not all(advances(one, token) for token in ahead):
                return f"{trial.name_prefix(prefix)}: {trial.name_token(ahead[0])} is refused once a fork has advanced"
        found = trial.difference(
            expected, trial.mask_of(second), ("the original", "a fork, when others have advanced,")
        )
        if found:
            return f"{trial.name_prefix(prefix)}: {found}"
        for one, taken in ((first, (*prefix, *tokens[:1])), (matcher, (*prefix, *tokens[-1:])), (second, prefix)):
            found = trial.difference(trial.mask_of(trial.at(taken)), trial.mask_of(one), ("a new matcher", "a fork"))
            if found:
                return f"{trial.name_prefix(taken)}: {found}"
            one.rollback(len(taken))
            found = trial.difference(
                start_mask, trial.mask_of(one), ("a new matcher", "a fork taken back to the start")
            )
            if found:
                return f"{trial.name_prefix(taken)}: {found}"
    return None


@_law_of_matchers("rollback_restores", "rollback(n) brings back the state n tokens ago, also from beyond an end token.")
def _rollback_restores(trial: Trial) -> str | None:
    choose = trial.random("rollback")
    for walk in sorted(trial.walks, key=len, reverse=True)[:2]:
        matcher = trial.started.start()
        past = [trial.mask_of(matcher)]
        for token in walk:
            matcher.advance(token)
            past.append(trial.mask_of(matcher))
        for wrong in (len(walk) + 1, -1):
            try:
                matcher.rollback(wrong)
            except TokdfaError:
                continue
            return f"rollback({wrong}) after {len(walk)} tokens is not refused"
        place = len(walk)
        for _ in range(2 * len(walk)):
            back = choose.randint(0, place)
            matcher.rollback(back)
            place -= back
            found = trial.difference(past[place], trial.mask_of(matcher), ("the first time it", "after a rollback it"))
            if found:
                return f"{trial.name_prefix(walk)}, then back to {place} tokens: {found}"
            if matcher.is_finished():
                continue
            for token in walk[place : choose.randint(place, len(walk))]:
                matcher.advance(token)
                place += 1
    return None


@_law_of_matchers("deterministic", "Compiled again, the constraint gives the same masks.")
def _deterministic(trial: Trial) -> str | None:
    again = trial.case.compile(type(trial.backend)(trial.vocab, **trial.backend.settings))
    return compare_masks(trial, again, ("the first", "the second"))


@_law_of_matchers("threads", "Two threads that share a compiled constraint get the masks that one gets.")
def _threads(trial: Trial) -> str | None:
    fresh = trial.case.compile(trial.backend)

    def follow(walks: Sequence[Prefix]) -> list[list[bytes]]:
        return [[mask.tobytes() for mask in trial.masks_along(fresh.start(), walk)] for walk in walks]

    backwards = trial.walks[::-1]
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(follow, (trial.walks, backwards))
    alone = [[mask.tobytes() for mask in trial.masks_along(trial.at(()), walk)] for walk in trial.walks]
    if one != alone or other[::-1] != alone:
        return "along random walks, two threads saw other masks than one"
    return None


# Texts.


@_law_of_matchers(
    "texts_in_language", "can_end() iff what has been spelled is in the language (and, if need be, properly spelled)."
)
def _texts_in_language(trial: Trial) -> str | None:
    member = trial.case.member
    if member is None:
        raise NotApplicable("nothing outside tokdfa decides this language")
    for prefix in trial.prefixes:
        matcher, text = trial.at(prefix), trial.vocab.spell(prefix)
        belongs = member(text)
        if belongs and trial.is_proper and trial.case.encode is not None:
            belongs = trial.case.encode(text.decode()) == [
                token for token in prefix if token not in trial.vocab.end_token_set
            ]
        if (matcher.can_end() or matcher.is_finished()) != belongs:
            known = "in" if belongs else "not in"
            return f"{trial.name_prefix(prefix)}: can_end() is {matcher.can_end()}, the text is {known} the language"
    return None


@_law_of_matchers("texts_accepted", "Every spelling (the proper one only, if need be) of a text is accepted.")
def _texts_accepted(trial: Trial) -> str | None:
    spelled_any = False
    for text in trial.case.texts:
        for tokens in trial.spellings(text):
            spelled_any = True
            matcher = trial.started.start()
            for place, token in enumerate(tokens):
                if not advances(matcher, token):
                    where = trial.name_prefix(tokens[:place])
                    return f"{where}: {trial.name_token(token)} on the way to {text!r} is refused"
            if not matcher.can_end():
                return f"{trial.name_prefix(tokens)}: the text is in the language, but can_end() is False"
    if not spelled_any:
        raise NotApplicable("no text of the language is known")
    return None


# Parts of the checks.


def compare_masks(trial: Trial, other: CompiledConstraint, names: tuple[str, str]) -> str | None:
    """Where the masks of the trial and of `other` first differ: on short prefixes, then along the walks."""
    short = trial.short_prefixes(depth=3, limit=250) if trial.is_small else []
    for prefix in dict.fromkeys([*short, *trial.prefixes]):
        try:
            matcher = trial.at(prefix, other)
        except TokdfaError as error:
            return f"{trial.name_prefix(prefix)}: {names[0]} took these tokens, {names[1]} says: {error}"
        found = trial.difference(trial.mask_of(trial.at(prefix)), trial.mask_of(matcher), names)
        if found:
            return f"{trial.name_prefix(prefix)}: {found}"
    return None


def _spread(prefixes: Sequence[Prefix], limit: int) -> Sequence[Prefix]:
    """At most `limit` of them, evenly spread, the first included."""
    return prefixes[:: -(-len(prefixes) // limit)]


#: All laws, in the order in which they are checked.
LAWS: tuple[Law, ...] = tuple(_laws)

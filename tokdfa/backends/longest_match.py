"""Grammars that the longest match leads astray: found when they are compiled.

By longest match a lexeme may swallow what should follow it. Under ``start: "x" | A A`` with ``A: /a+/`` no text begins
with "a", though A can be read: whatever follows belongs to the same A. A mask must not allow such a beginning.

Whether there are such places is undecidable for grammars in general, as it asks what a context-free language lacks
(which lexemes may *not* come next decides where one ends). So it is done in two steps.

1. *A proof that there are none* (`find_blocked`). A derivation is *clean* if all borders between its lexemes are
   (`tokdfa.backends.lexeme_borders`); a text of a clean derivation is read as derived. At each place that can be
   reached every lexeme that may be read must stand in some clean derivation to the end of the text
   (`tokdfa.backends.clean_derivations`). Nearly all grammars in use are proved so.
2. *A search* (`settle`). What is not proved is explored, letter by letter, from the beginning: of each situation an
   end is searched for, now and whenever a token is to be allowed, and masks leave out those that do not lead to one. A
   grammar is refused, with the two lexemes that cannot stand side by side, if a search does not come to a decision:
   situations may go on for ever without an end.

Cost of the proof: 0.5 to 3 ms for a grammar of up to 100 lexemes; it is kept for `KEPT` grammars.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.constraint import Grammar
from tokdfa.core.budget import is_spent
from tokdfa.errors import EmptyLanguageError, GrammarUnsupported, LimitExceeded, UnsupportedConstraint
from tokdfa.grammar.cfg import Lexeme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.coaccessible import CoaccessibleSearch
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
    from tokdfa.grammar.lexer_components import Components
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Bools = npt.NDArray[np.bool_]

#: Grammars of which it is kept whether they are proved.
KEPT = 512
#: Situations that `settle` meets at most, and those that a search for an end does, while compiling.
MOST_SITUATIONS, MOST_SEARCHED = 1_000, 2_000


#: What to tell users of a search past its limit, with the number of situations.
NO_END_FOUND = (
    "the longest match may keep the text from its end: no way to one was found among {} situations; raise max_search,"
    " or take pushdown_trie with lexer=any"
)


class Blocked(NamedTuple):
    """Why it is not proved that texts can be finished, and where that stands in the grammar (0: nowhere)."""

    reason: str
    line: int = 0
    column: int = 0

    def error(self, constraint: Constraint, what: str) -> GrammarUnsupported | UnsupportedConstraint:
        """What to raise of a grammar that is refused for it."""
        message = (
            f"{self.reason}, {what}; let the texts of the first end before a byte that cannot continue them, put"
            " something between the two, or take pushdown_trie with lexer=any"
        )
        if isinstance(constraint, Grammar):
            return GrammarUnsupported(message, constraint.text, max(self.line, 1), max(self.column, 1))
        return UnsupportedConstraint(message)


def find_blocked(
    cfg: Cfg, *, longest: bool = True, available: Bools | None = None, components: Components | None = None
) -> Blocked | None:
    """None if every beginning of a text that an engine takes leads to an end; else lexemes that may be in the way.

    `longest`: the lexing rule; False for `one_byte`. The others: see `tokdfa.backends.lexeme_borders.Borders`.
    """
    if not any(isinstance(lexeme, Lexeme) for lexeme in cfg.lexemes):
        return None
    from tokdfa.backends.clean_derivations import CleanDerivations
    from tokdfa.backends.lexeme_borders import Borders
    from tokdfa.backends.lexeme_follows import Follows

    make_borders = partial(Borders, cfg, longest, available, components)
    borders = make_borders()
    every = (1 << len(cfg.lexemes)) - 1
    try:
        if cfg.skip >= 0:  # most often blanks keep all lexemes apart, whatever meets
            borders.read([every])
            if borders.all_apart:
                return None
            borders = make_borders()
        follows = Follows(cfg)
        follows.meet(borders)
        if borders.all_apart:
            return None
        fault = CleanDerivations(cfg, borders, follows).fault()
    except LimitExceeded as error:
        if error.limit != "max_lexer_states":
            raise
        return Blocked(f"the terminals overlap in too many ways to know where one ends ({error})")
    if fault is None:
        return None
    first, second = fault
    lexeme = cfg.lexemes[first]
    reason = f"by longest match {cfg.names[first]} may swallow {cfg.names[second]}, which may stand behind it"
    return Blocked(reason, getattr(lexeme, "line", 0), getattr(lexeme, "column", 0))


class ProvedGrammars:
    """What `find_blocked` says of a grammar, kept by the constraint, the lexing rule and the bytes there are."""

    def __init__(self) -> None:
        self._kept = lru_cache(KEPT)(_Verdict)

    def blocked(
        self,
        constraint: Constraint,
        cfg: Cfg,
        vocab: Vocabulary,
        is_spelled: bool,
        *,
        longest: bool = True,
        components: Components | None = None,
    ) -> Blocked | None:
        """`find_blocked` of the grammar that was read of a constraint, with the bytes that are tokens by themselves.

        `is_spelled`: whether these end every lexeme from everywhere. If not, tokens are searched for a way to an end
        anyhow, and the grammar is judged with all bytes.
        """
        if not isinstance(constraint, Grammar):
            return None  # one lexeme, or JSON, whose lexemes end before bytes that do not go on with them
        available = vocab.single_byte_tokens if is_spelled and not vocab.single_byte_tokens.all() else None
        verdict = self._kept(constraint, longest, b"" if available is None else available.tobytes())
        if not verdict.is_known:
            verdict.found = find_blocked(cfg, longest=longest, available=available, components=components)
            verdict.is_known = True
        return verdict.found


class _Verdict:
    """What is known of a grammar."""

    def __init__(self, *_: object) -> None:
        self.is_known, self.found = False, None  # type: bool, Blocked | None


def settle(
    blocked: Blocked,
    constraint: Constraint,
    vocab: Vocabulary,
    start: int,
    search: CoaccessibleSearch[int],
    successors: Callable[[int], Iterable[int]],
) -> None:
    """Step 2 of the module: meet the situations that lead from `start`, all of them or so many, and ask whether each
    leads to an end.

    `successors`: the situations behind any letter or special token; `search`: finds ends by them. Raises
    GrammarUnsupported if that is not found out, EmptyLanguageError if `start` does not and every byte is a token.
    """
    met, agenda = {start}, [start]
    try:
        for situation in agenda:  # grows on the way
            for target in successors(situation):
                if target not in met:
                    met.add(target)
                    agenda.append(target)
            if len(met) > MOST_SITUATIONS:
                break
        for situation in agenda:
            search.is_live(situation)
    except LimitExceeded as error:
        if is_spent(error):
            raise
        raise blocked.error(constraint, "and whether a text can be finished is not known at every place") from None
    if not search.is_live(start) and vocab.single_byte_tokens.all():
        raise EmptyLanguageError(str(blocked.error(constraint, "and no text is left")))


#: Of this process.
PROVED = ProvedGrammars()

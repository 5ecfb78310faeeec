"""Grammars that the longest match leads astray: found when they are compiled.

By longest match a lexeme may swallow what should follow it. Under ``start: "x" | A A`` with ``A: /a+/`` no text begins
with "a", though A can be read: whatever follows belongs to the same A. A mask must not allow such a beginning.

Whether there are such places is undecidable for grammars in general, as it asks what a context-free language lacks
(which lexemes may *not* come next decides where one ends). So it is done in two steps.

1. *A proof that there are none* (`find_blocked`). A derivation is *clean* if all borders between its lexemes are
   (`tokdfa.backends.lexeme_borders`); a text of a clean derivation is read as derived. What matters of a text so far is
   its last lexeme, or rather the lexemes that may cleanly follow it: its *class*. For every nonterminal and every class
   before it the classes behind it are known by a fixed point, as are the classes from which what a rule still lacks
   leads to its end. Then every place that can be reached is visited: at each, every lexeme that may be read must stand
   in some clean derivation to the end of the text. Nearly all grammars in use are proved so.
2. *A search* (`settle`). What is not proved is explored, letter by letter, from the beginning: of each situation an
   end is searched for, now and whenever a token is to be allowed, and masks leave out those that do not lead to one. A
   grammar is refused, with the two lexemes that cannot stand side by side, if a search does not come to a decision:
   situations may go on for ever without an end.

Cost of the proof: 0.5 to 3 ms for a grammar of up to 100 lexemes; it is kept for `KEPT` grammars.
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.backends.lexeme_borders import Borders, bits_of
from tokdfa.backends.lexeme_follows import NS_PER_SYMBOL, Follows
from tokdfa.constraint import Grammar
from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import EmptyLanguageError, GrammarUnsupported, LimitExceeded, UnsupportedConstraint
from tokdfa.grammar.cfg import Lexeme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.coaccessible import CoaccessibleSearch
    from tokdfa.backends.earley_trie.lexer_components import Components
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
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
#: The dots of the rules that may be read on at a place of a text, each with the classes that are live behind its rule.
Place = frozenset[tuple[int, int]]


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
        return _Proof(cfg, borders, follows).fault()
    except LimitExceeded as error:
        if error.limit != "max_lexer_states":
            raise
        return Blocked(f"the terminals overlap in too many ways to know where one ends ({error})")


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


class _Proof:
    """One run of step 1. Classes are bits; `live`: the classes from which what comes later can be read to the end."""

    def __init__(self, cfg: Cfg, borders: Borders, follows: Follows) -> None:
        self.cfg, self.borders, self.follows = cfg, borders, follows
        self.count = len(cfg.lexemes)
        numbers = borders.kinds[0]
        apart: dict[tuple[bool, ...], int] = {}
        allowed_kinds = map(tuple, borders.allowed.tolist())
        self.class_of = [1 << apart.setdefault(kinds, len(apart)) for kinds in allowed_kinds]
        self.free = 1 << len(apart)  # the class before the first lexeme: anything may follow
        self.every = 2 * self.free - 1
        #: By lexeme, the classes that it may follow cleanly.
        self.follow = []
        for symbol, kind in enumerate(numbers):
            classes = self.free
            for allowed, number in apart.items():
                if kind < 0 or allowed[kind]:
                    classes |= 1 << number
            self.follow.append(classes if borders.can_be_chosen(symbol) else 0)
        #: A *dot* is a place in a rule: of every one the symbol behind it, -1 at the end of the rule, by nonterminal
        #: the dots that its rules begin with, and in the first place that before the whole text.
        self._symbols, self._ends = [cfg.start, -1], [1, 1]
        self._begins = defaultdict[int, list[int]](list)
        for left, right in cfg.rules:
            begin = len(self._symbols)
            self._begins[left].append(begin)
            self._symbols += [*right, -1]
            self._ends += [begin + len(right)] * (len(right) + 1)
        self._lives = dict[tuple[int, int], list[int]]()
        self._clean = dict[int, int]()
        self._reached: dict[tuple[int, int], int] = {}
        self._reach()

    def fault(self) -> Blocked | None:
        """Two lexemes that may be in the way, None if none are."""
        agenda: list[tuple[int, Place]] = [(-1, frozenset({(0, self.every)}))]
        seen = set(agenda)
        for before, place in agenda:  # grows on the way
            dots = self._closed(place)
            for symbol, items in dots.items():
                if symbol < self.count:
                    live = 0
                    for dot, behind in items:
                        live |= self._live(dot, behind)
                    if not live & self.class_of[symbol] and self._is_possible(before, symbol):
                        return self._name(symbol)
                following = frozenset(item for item in items if item[0] != self._ends[item[0]])
                if following and (symbol, following) not in seen:
                    seen.add((symbol, following))
                    agenda.append((symbol, following))
            if self.cfg.skip >= 0 and dots:
                live = 0
                for dot, behind in place:
                    live |= self._live(dot, behind)
                if not live & self.class_of[self.cfg.skip]:
                    return self._name(self.cfg.skip)
        return None

    def _reach(self) -> None:
        """`_reached`: (nonterminal, class before it) -> the classes behind it, by clean derivations: a fixed point."""
        users, classes = defaultdict(set), [1 << k for k in range(self.every.bit_length())]
        for left, right in self.cfg.rules:
            for symbol in right:
                if symbol >= self.count:
                    users[symbol].add((left, right))
        agenda, waiting = deque(reversed(self.cfg.rules)), set(self.cfg.rules)
        while agenda:
            left, right = agenda.popleft()
            waiting.discard((left, right))
            changed = False
            for one in classes:
                found = self._through(right, one)
                changed = changed or found & ~self._reached.get((left, one), 0) != 0
                self._reached[left, one] = self._reached.get((left, one), 0) | found
            if changed:
                agenda.extend(users[left] - waiting)
                waiting |= users[left]

    def _through(self, right: tuple[int, ...], classes: int) -> int:
        """The classes behind some symbols, if one of `classes` is before them."""
        for symbol in right:
            spend(NS_PER_SYMBOL)
            if symbol < self.count:
                classes = self.class_of[symbol] if classes & self.follow[symbol] else 0
            else:
                found = 0
                for one in bits_of(classes):
                    found |= self._reached.get((symbol, 1 << one), 0)
                classes = found
        return classes

    def _live(self, dot: int, live: int) -> int:
        """The classes from which what is left of a rule leads to one of `live`."""
        end = self._ends[dot]
        lives = self._lives.setdefault((end, live), [live])
        while len(lives) <= end - dot:
            lives.append(self._before_symbol(self._symbols[end - len(lives)], lives[-1]))
        return lives[end - dot]

    def _before_symbol(self, symbol: int, live: int) -> int:
        spend(NS_PER_SYMBOL)
        if symbol < self.count:
            return self.follow[symbol] if live & self.class_of[symbol] else 0
        found = 0
        for one in bits_of(self.every):
            if self._reached.get((symbol, 1 << one), 0) & live:
                found |= 1 << one
        return found

    def _closed(self, place: Place) -> dict[int, set[tuple[int, int]]]:
        """By symbol that may come next at a place: the dots behind it, with the classes live behind their rules.

        Of several that wait for a nonterminal at one place any may go on behind it.
        """
        dots: dict[int, set[tuple[int, int]]] = defaultdict(set)
        entered = dict[int, int]()
        agenda = list(place)
        while agenda:
            dot, live = agenda.pop()
            while (symbol := self._symbols[dot]) >= 0:
                spend(NS_PER_SYMBOL)
                dot += 1
                dots[symbol].add((dot, live))
                behind = entered.get(symbol, 0) | self._live(dot, live)
                if symbol >= self.count and behind != entered.get(symbol, -1):
                    entered[symbol] = behind
                    agenda += [(begin, behind) for begin in self._begins[symbol]]
                if symbol not in self.follows.nullable:
                    break
        return dots

    def _is_possible(self, before: int, symbol: int) -> bool:
        """Whether a text may go on with a lexeme behind the symbol `before` (-1: it begins)."""
        if before < 0 or self.cfg.skip >= 0:
            return True
        return any(self.borders.may_precede(last, symbol) for last in bits_of(self.follows.last[before]))

    def _name(self, symbol: int) -> Blocked:
        """The lexeme, or the nearest of those that follow it, that has one behind it without a clean border."""
        names, agenda, met = self.cfg.names, [symbol], 1 << symbol
        first, second = symbol, symbol
        for one in agenda:  # grows on the way
            behind = self.follows.behind[one]
            if unclean := behind & ~self._cleanly_behind(self.class_of[one]):
                first, second = one, bits_of(unclean)[0]
                break
            agenda += bits_of(behind & ~met)
            met |= behind
        lexeme = self.cfg.lexemes[first]
        reason = f"by longest match {names[first]} may swallow {names[second]}, which may stand behind it"
        return Blocked(reason, getattr(lexeme, "line", 0), getattr(lexeme, "column", 0))

    def _cleanly_behind(self, one: int) -> int:
        """The lexemes that may cleanly follow a class."""
        if one not in self._clean:
            self._clean[one] = sum(1 << symbol for symbol, classes in enumerate(self.follow) if classes & one)
        return self._clean[one]


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

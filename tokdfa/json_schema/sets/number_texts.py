"""Which texts of a set of numbers may be written: all of `number_dfa`, or the natural ones of them.

*Natural* is what people and programs write:

- no exponent, and no negative zero (``-0``, ``-0.0``);
- no point if all numbers of the set are whole, unless the set asks for one (an integer of draft 4 has none, so what is
  not one has a point);
- a single number (``const``, a number of ``enum``, equal bounds) has one text: that of ECMAScript and RFC 8785, but
  with all of its digits: 1, 2.5, 1e+30, 1e-7. An integer that no double is equal to is written out.

*Digits* are those before the exponent: 1.25e3 has three. A bound on them never empties a set. If none of its texts is
so short, then

- natural texts of numbers that need not be whole are scientific: one digit before the point, no zero at the end of the
  fraction, ``e+`` or ``e-``: from 1e30 on, 1e+30;
- and where there are none of these, either, or the numbers are whole, there may be as many digits as the shortest text
  has: integers from 1e30 on have 31.

Everything here is an intersection with an automaton of all texts, so no text spells a number outside of its set.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from tokdfa.automata.algebra import difference, intersection, minimize, shortest_word, union
from tokdfa.constraint import Choice, Regex
from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.number_dfa import NS_PER_AUTOMATON, SHIFT, number_dfa, numbers_dfa
from tokdfa.json_schema.sets.number_set import Number, NumberSet, split_number, written_out
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.automata.dfa import Dfa

#: ECMAScript writes numbers from 1e21 on, and those below 1e-6, with an exponent.
_MOST_WHOLE, _MOST_ZEROS = 21, 6


def number_texts(sets: Sequence[NumberSet], natural: bool, digits: int, shift: int = SHIFT) -> Dfa:
    """The automaton of the texts of all numbers of all sets, minimal if there are several.

    `natural`: the natural ones only; `digits`: the most digits before the exponent, 0 for any number of them. `shift`
    and errors: as for `numbers_dfa`, which this is without either condition.
    """
    if not natural and not digits:
        return numbers_dfa(sets, shift)
    found, listed = [], set()
    for numbers in {numbers.key: numbers.normal for numbers in sets}.values():
        if numbers is None:
            continue
        spend(NS_PER_AUTOMATON)
        if natural and numbers.low is not None and numbers.low == numbers.high:
            listed.add(natural_text(numbers, shift))
        else:
            found.append(_texts_of_set(numbers, natural, digits, shift))
    if listed:
        found.append(compile_dfa(Choice(listed)))
    return minimize(reduce(union, found)) if found else numbers_dfa((), shift)


def natural_text(single: NumberSet, shift: int = SHIFT) -> str:
    """The natural text of a set of one number, in normal form."""
    assert single.low is not None
    scientific, plain = _ecmascript_text(single.low), written_out(single.low)
    texts = [scientific, plain, plain + ".0"]
    if scientific == plain and single.plain is not False:
        return plain
    taken = number_dfa(single, shift)
    return next(text for text in texts if taken.accepts(text.encode()))


def _texts_of_set(numbers: NumberSet, natural: bool, digits: int, shift: int) -> Dfa:
    """The texts of one set, in normal form and not empty."""
    if natural:
        is_whole = bool(numbers.multiples) and type(numbers.multiples[0]) is int
        if is_whole and numbers.plain is None:
            numbers = numbers.intersect(NumberSet(plain=True))
        texts = difference(number_dfa(numbers, -1), _pattern("-0(?:\\.0*)?"))
    else:
        is_whole, texts = True, number_dfa(numbers, shift)
    if not digits:
        return texts
    fitting = intersection(texts, _bounded(digits))
    if not fitting.state_count and not is_whole:
        scientific = _pattern("-?[1-9](?:\\.[0-9]*[1-9])?e[+-][1-9][0-9]*")
        fitting = intersection(intersection(number_dfa(numbers, shift), scientific), _bounded(digits))
    if not fitting.state_count:
        shortest = shortest_word(texts)
        assert shortest is not None, "no set is without texts"
        fitting = intersection(texts, _bounded(sum(map(str.isdigit, shortest.decode().lower().partition("e")[0]))))
    return fitting


def _ecmascript_text(value: Number) -> str:
    """A number as Number.prototype.toString writes it, but with all of its digits."""
    c, e = split_number(value)
    shown, sign = str(c), "-" if value < 0 else ""
    point = len(shown) + e  # where it is, from the first digit on
    if -_MOST_ZEROS < point <= _MOST_WHOLE:
        return written_out(value)
    fraction = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{sign}{shown[0]}{fraction}e{point - 1:+d}"


@lru_cache(64)
def _bounded(digits: int) -> Dfa:
    """Texts of numbers with so many digits before the exponent at most, and others that are none."""
    return _pattern(f"-?(?:\\.?[0-9]){{1,{digits}}}(?:[eE][+-]?[0-9]+)?")


@lru_cache(64)
def _pattern(pattern: str) -> Dfa:
    return compile_dfa(Regex(pattern))

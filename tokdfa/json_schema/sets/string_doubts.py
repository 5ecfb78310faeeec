"""Texts about which judges may differ: whether a set of strings has one for any of them.

A `StringSet` holds the texts that all judges find in it (`tokdfa.json_schema.sets.patterns`), and its complement those
that all find outside; some texts are in neither. A text in one branch of a oneOf is valid to all judges only if none of
them finds it in another. So two branches are apart only if no text may be in both, to any judge.
"""

from __future__ import annotations

from functools import lru_cache

from tokdfa.core.budget import is_spent
from tokdfa.errors import LimitExceeded, UnsupportedConstraint
from tokdfa.json_schema.sets.string_set import PROOF_STATES, StringSet, lower_set
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.tree_writer import UTF8


@lru_cache(maxsize=4096)
def may_hold_a_text(strings: StringSet) -> bool:
    """Whether some text is not surely outside of a set; True, too, if that takes more than `PROOF_STATES` states."""
    if not (strings.patterns or strings.not_patterns or strings.formats or strings.not_formats):
        return not strings.is_empty()
    if strings.values is not None:
        outside = strings.complement()
        return any(not _is_surely_in(text, outside) for text in strings.values)
    store = ExpressionStore()
    parts = [lower_set(StringSet(), store, UTF8)]
    for part in strings.complement():
        try:
            parts.append(store.complement(lower_set(part, store, UTF8)))
        except UnsupportedConstraint:  # of some formats nothing is surely outside
            continue
    try:
        return not LazyDfa(store, store.intersection(parts), PROOF_STATES).is_empty
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return True


def _is_surely_in(text: str, sets: list[StringSet]) -> bool:
    for strings in sets:
        try:
            if strings.holds(text):
                return True
        except UnsupportedConstraint:
            continue
    return False

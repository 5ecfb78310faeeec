"""Random grammars in Lark's notation, with terminals that overlap in every way that the lexer has to decide."""

from __future__ import annotations

from hypothesis import strategies as st

#: Strings and regexes over a, b; order, laziness and common beginnings matter in most pairs of them.
PATTERNS = (
    '"a"', '"b"', '"ab"', '"ba"', '"aab"', '"A"i', "/a+/", "/b+/", "/ab?/", "/[ab]/", "/a|ab/", "/ab|a/", "/a*?b/",
    "/(ab)+/", "/aab|a/", "/a(ba)?/", "/b(a+b)?/", "/[ab]{2,3}/", "/(a|ab)(b|ba)?/", "/a{1,3}?b?/",
)  # fmt: skip
IGNORED = ("", "", "", "%ignore /c+/", '%ignore "c"', "%ignore /ca?/", "%ignore /a*c/")


@st.composite
def random_grammars(draw: st.DrawFn) -> str:
    """A grammar with one to three rules over two to four terminals; not always LALR(1)."""
    patterns = draw(st.lists(st.sampled_from(PATTERNS), min_size=2, max_size=4, unique=True))
    priorities = draw(st.lists(st.sampled_from(("", "", "", ".1", ".-1")), min_size=4, max_size=4))
    rules = draw(st.integers(1, 3))
    symbols = [*(f"T{number}" for number in range(len(patterns))), *(f"r{number}" for number in range(1, rules))]
    sequence = st.lists(st.sampled_from(symbols), max_size=3).map(" ".join)
    lines = []
    for number in range(rules):
        options = draw(st.lists(sequence, min_size=1, max_size=3, unique=True))
        lines.append(f"{f'r{number}' if number else 'start'}: " + " | ".join(options))
    lines += [f"T{number}{priorities[number]}: {pattern}" for number, pattern in enumerate(patterns)]
    return "\n".join([*lines, draw(st.sampled_from(IGNORED))]) + "\n"

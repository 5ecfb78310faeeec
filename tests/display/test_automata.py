"""A small automaton is drawn, with its states and labels; a large one is counted."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.display.pages import piece_of
from tokdfa import Regex, show
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.graph import to_networkx
from tokdfa.regex.compile import compile_dfa

SVG = "{http://www.w3.org/2000/svg}"
PATTERNS = ["a", "a*b*", "(0[1-9]|1[0-2])-[0-3][0-9]", '[a<&"]+>', "(a|b)*abb"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_drawing(pattern):
    dfa = compile_dfa(Regex(pattern))
    view = show(dfa)
    assert view.is_drawn
    svg = ET.fromstring(view.svg())  # an XML parser other than the writer's
    graph = to_networkx(dfa)
    texts = [element.text for element in svg.iter(f"{SVG}text")]
    assert sorted(texts) == sorted(
        [*map(str, range(dfa.state_count)), *(label for _, _, label in graph.edges(data="label"))]
    )
    assert len(list(svg.iter(f"{SVG}circle"))) == dfa.state_count + int(dfa.accepting.sum())
    assert len(list(svg.iter(f"{SVG}path"))) == len(graph.edges) + 1  # and the arrow into the start
    assert view.arrow_count == len(graph.edges)
    width, height = (float(length) for length in svg.get("viewBox").split()[2:])
    for circle in svg.iter(f"{SVG}circle"):
        x, y, radius = (float(circle.get(name)) for name in ("cx", "cy", "r"))
        assert radius < x < width - radius
        assert radius < y < height - radius
    piece_of(view)


def test_sizes_of_a_large_one():
    dfa = compile_dfa(Regex("a{41}|<b>"))
    view = show(dfa)
    assert not view.is_drawn
    sizes = dict(piece_of(view).rows)
    assert sizes["states"] == str(dfa.state_count)
    assert sizes["accepting"] == str(int(dfa.accepting.sum()))
    assert sizes["transitions"] == f"{int((dfa.transitions >= 0).sum())} of {dfa.transitions.size}"
    assert sizes["shortest words"] == "<b> " + 39 * "a" + "…"
    assert repr(view) == f"AutomatonView({dfa!r})"


def test_the_empty_language():
    sizes = dict(piece_of(show(Dfa.empty())).rows)
    assert (sizes["states"], sizes["shortest words"]) == ("0", "none: the language is empty")

"""What a drawing contains and, by geometry, that nothing hides anything."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from tests.automata.test_graph import ends_in_abb
from tokdfa.automata.graph import draw, to_networkx, token_automaton_to_networkx
from tokdfa.automata.layout import RADIUS, lay_out
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded
from tokdfa.regex.compile import compile_dfa

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyArrowPatch


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


DATE = to_networkx(compile_dfa(Regex("[0-9]{4}-[01][0-9]")))
TOKENS = token_automaton_to_networkx(
    [(0, b"hel", 1), (1, b"lo", 3), (0, b"hello", 3), (0, b"h", 2), (2, b"ello", 3), (3, b" world", 4), (4, b"!", 4)],
    accepting=[4],
)
GRAPHS = {"textbook": to_networkx(ends_in_abb()), "date": DATE, "tokens": TOKENS}


def count(ax, kind: type) -> int:
    return sum(type(patch) is kind for patch in ax.patches)


@pytest.mark.parametrize("name", GRAPHS)
def test_each_state_arrow_and_label_is_drawn(name):
    graph = GRAPHS[name]
    ax = draw(graph, title="name")
    pairs = {(source, target) for source, target, _ in graph.edges}
    accepting = sum(data["accepting"] for _, data in graph.nodes(data=True))
    assert count(ax, Circle) == len(graph) + accepting
    assert count(ax, FancyArrowPatch) == len(pairs) + 1
    assert len(ax.texts) == len(graph) + len(pairs)
    assert {text.get_text() for text in ax.texts} >= {str(node) for node in graph}
    assert {text.get_text() for text in ax.texts} >= {data["label"] for *_, data in graph.edges(data=True)}
    assert ax.get_title() == "name"
    assert not ax.axison
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_hides_a_state_or_a_label(name):
    layout = lay_out(GRAPHS[name])
    low, high = layout.corners
    boxes = [(arrow.label, np.array(arrow.size) / 2) for arrow in layout.arrows]
    for index, (label, half) in enumerate(boxes):
        assert (label - half >= low).all()
        assert (label + half <= high).all()
        for place in layout.places.values():
            assert np.hypot(*np.maximum(np.abs(place - label) - half, 0)) > RADIUS
        for other, other_half in boxes[:index]:
            assert (np.abs(label - other) > half + other_half).any()
    for arrow in layout.arrows:
        for node, place in layout.places.items():
            nearest = np.hypot(*(arrow.points - place).T).min()
            assert nearest > RADIUS - (0.02 if node in (arrow.source, arrow.target) else 0.0)


def test_colours_and_given_axes():
    _, axes = plt.subplots(1, 2)
    assert draw(GRAPHS["textbook"], axes[1], accent="red", highlight=[1]) is axes[1]
    assert not axes[0].patches
    circles = [patch for patch in axes[1].patches if type(patch) is Circle]
    assert [patch.get_facecolor() == to_rgba("red") for patch in circles] == [False, True, False, False, False]
    assert [patch.get_edgecolor() == to_rgba("red") for patch in circles] == [False, False, False, True, True]


def test_large_automata_are_refused_with_a_remedy():
    chain = token_automaton_to_networkx([(state, "a", state + 1) for state in range(60)])
    with pytest.raises(
        LimitExceeded, match="61 states cannot be read; draw at most 60, or export with to_dot"
    ) as error:
        draw(chain)
    assert error.value.value == 60

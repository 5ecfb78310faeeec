"""What a drawing of a tree contains and, by geometry, that nothing covers anything."""

from __future__ import annotations

import itertools
import random

import matplotlib as mpl
import pytest

from tests.backends.cfg_fsm.oracles import corpus, machine_of
from tests.backends.cfg_fsm.test_masks import pieces_of
from tests.backends.cfg_fsm.test_tree_graph import tree_of
from tokdfa.backends.cfg_fsm.tree_drawing import draw_tree, edge_text
from tokdfa.vocabulary.vocabulary import Vocabulary

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, PathPatch


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module", params=["json", "c_like"])
def graph(request):
    grammar, accepted, _ = corpus(request.param)
    vocab = pieces_of(accepted, random.Random(1))
    return tree_of(machine_of(grammar), vocab, {"json": '{"a": ', "c_like": "int f() { x"}[request.param], examples=4)


def kinds(ax, kind: type) -> list:
    return [patch for patch in ax.patches if type(patch) is kind]


def test_each_node_and_line_is_drawn(graph) -> None:
    ax = draw_tree(graph, limit=1_000, title="after $x$")
    assert len(graph) > 8
    assert len(kinds(ax, FancyBboxPatch)) == len(graph)
    assert len(kinds(ax, PathPatch)) == len(graph) - 1
    written = [text.get_text() for text in ax.texts]
    for _, node in graph.edges:
        assert edge_text(graph, node) in written
        assert f"{graph.nodes[node]['ending']:,} end here" in written
    assert f"{graph.nodes[0]['tokens']:,} tokens" in written
    assert ax.get_title(loc="left") == "after $x$"
    ax.figure.canvas.draw()  # a missing glyph would be a warning, and an error here


def test_nothing_covers_anything(graph) -> None:
    ax = draw_tree(graph, limit=1_000)
    ax.figure.canvas.draw()
    boxes = [patch.get_window_extent() for patch in kinds(ax, FancyBboxPatch)]
    texts = [text.get_window_extent() for text in ax.texts]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    for one, other in itertools.combinations(texts, 2):
        assert not one.overlaps(other)
    whole = ax.figure.bbox
    for text in texts:
        inside = [box for box in boxes if box.overlaps(text)]
        assert len(inside) <= 1
        for box in inside:  # a line of a box, and within its rim
            assert box.x0 < text.x0
            assert text.x1 < box.x1
            assert box.y0 < text.y0
            assert text.y1 < box.y1
        assert whole.x0 <= text.x0
        assert text.x1 <= whole.x1


def test_the_widest_branches_are_kept(graph) -> None:
    ax = draw_tree(graph, limit=5)
    assert len(kinds(ax, FancyBboxPatch)) == 5
    assert any("narrower" in text.get_text() for text in ax.texts)
    least = min(int(text.get_text().split()[-1].replace(",", "")) for text in ax.texts if text.get_color() == "#1a6fb5")
    kept = sorted((graph.nodes[node]["tokens"] for node in graph), reverse=True)[:5]
    assert least == kept[-1]


def test_given_axes_and_odd_tokens() -> None:
    machine = machine_of("start: A+\nA: /[^b]b?/\n")
    vocab = Vocabulary(["$中$b".encode(), "中".encode()[:2], b"\\n_^{b" * 9, b""], end_tokens=[3])
    _, axes = plt.subplots(1, 2)
    assert draw_tree(tree_of(machine, vocab, examples=4), axes[1]) is axes[1]
    assert not axes[0].patches
    assert any("\\u4e2d" in text.get_text() for text in axes[1].texts)
    axes[1].figure.canvas.draw()

"""What a drawing of a tree contains and, by geometry, that nothing covers anything."""

from __future__ import annotations

import itertools
import random

import matplotlib as mpl
import pytest

from tests.backends.cfg_fsm.oracles import corpus, machine_of
from tests.backends.cfg_fsm.test_masks import pieces_of
from tests.backends.cfg_fsm.test_tree_graph import tree_of
from tokdfa.backends.cfg_fsm.tree_drawing import box_lines, draw_tree
from tokdfa.vocabulary.vocabulary import Vocabulary

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module", params=["json", "c_like"])
def graph(request):
    grammar, accepted, _ = corpus(request.param)
    vocab = pieces_of(accepted, random.Random(1))
    return tree_of(machine_of(grammar), vocab, {"json": '{"a": ', "c_like": "int f() { x"}[request.param], examples=4)


def test_each_node_and_line_is_drawn_and_nothing_covers_anything(graph) -> None:
    ax = draw_tree(graph, limit=1_000, title="after $x$")
    assert len(graph) > 8
    assert len(ax.lines) == len(graph) - 1
    assert sorted(text.get_text() for text in ax.texts) == sorted(
        "\n".join(box_lines(graph, graph, node)) for node in graph
    )
    assert ax.get_title(loc="left") == "after $x$"
    ax.figure.canvas.draw()  # a missing glyph would be a warning, and an error here
    boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert all(ax.get_window_extent().padded(2).contains(*corner) for box in boxes for corner in box.corners())


def test_the_widest_branches_are_kept(graph) -> None:
    texts = [text.get_text() for text in draw_tree(graph, limit=3).texts]
    assert len(texts) == 3
    left_out = sum(1 for node in graph if node) - 2
    assert sum(int(text.rsplit("\n", 1)[-1].split()[0]) for text in texts if "narrower" in text) <= left_out
    assert any("narrower" in text for text in texts)


def test_letters_that_a_font_lacks_and_a_tree_of_one_node() -> None:
    machine = machine_of('start: "\u65e5" "\u672c"?')
    vocab = Vocabulary(["\u65e5".encode(), "\u65e5\u672c".encode(), b"\xe6", b""], end_tokens=[3])
    ax = draw_tree(tree_of(machine, vocab, "", examples=2))
    assert any("\\u65e5" in text.get_text() for text in ax.texts)
    ax.figure.canvas.draw()
    (_, own) = plt.subplots()
    assert draw_tree(tree_of(machine, vocab, ""), own, limit=1) is own

from __future__ import annotations

import matplotlib as mpl

from tests.vocabulary.vocabularies import ODD
from tokdfa.automata.trie_graph import draw_trie, trie_to_networkx


def test_the_graph_is_the_tree_of_prefixes() -> None:
    graph = trie_to_networkx(ODD.trie)
    assert len(graph) == ODD.trie.node_count + 1
    assert graph.number_of_edges() == ODD.trie.node_count
    for parent, node in graph.edges:
        assert graph.nodes[node]["prefix"][:-1] == graph.nodes[parent]["prefix"]
    for token in range(ODD.size):
        spelled = ODD.token_bytes(token)
        ends = [data["prefix"] for _, data in graph.nodes(data=True) if data["token"] == token]
        assert ends == ([spelled] if spelled else [])


def test_drawing_has_a_mark_and_a_note_for_each_node() -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    axes = draw_trie(ODD.trie, visited={0, 1})
    assert len(axes.texts) == 2 * ODD.trie.node_count
    assert "next → 1" in axes.texts[1].get_text()
    plt.close(axes.figure)

"""An excerpt of a trie is the layout itself."""

from __future__ import annotations

from tests.display.pages import piece_of
from tokdfa import show
from tokdfa.vocabulary.vocabulary import Vocabulary

VOCAB = Vocabulary([b"a", b"a<", b"a<b>", b"c", b"a", b""], end_tokens=[5])


def nodes_of(view):
    return [row for row in piece_of(view).rows if row[0].isdigit()]


def test_all_nodes():
    trie = VOCAB.trie
    rows = nodes_of(show(trie))
    assert len(rows) == trie.node_count
    for node, row in enumerate(rows):
        token = trie.token(node)
        assert row[0] == str(node)
        assert row[1] == chr(trie.byte(node))
        assert row[3] == (str(token) if token >= 0 else "")
        assert row[4] == str(trie.next(node))
        if token >= 0:
            assert row[2].encode() == VOCAB.token_bytes(token)
    assert repr(show(trie)) == f"TrieView({trie.node_count} nodes)"


def test_a_limit():
    piece = piece_of(show(VOCAB.trie, limit=2))
    assert [row[2] for row in piece.rows[1:]] == ["a", "a", "4 more nodes"]


def test_below_a_prefix():
    view = show(VOCAB.trie, prefix=b"a<")
    assert [row[2] for row in nodes_of(view)] == ["a<", "a<b", "a<b>"]
    assert "3 of 6 nodes at and below a<" in piece_of(view).text
    assert repr(view) == "TrieView(3 nodes below a<)"

"""What is published: the small examples that the sources print, as they print them (`papers/claims.md` names each), and
the pages of papers/reports, which what they name can make again.
"""

from __future__ import annotations

import importlib.resources
import re
from pathlib import Path

import pytest
import sentencepiece
import yaml

import tokdfa
from tokdfa.automata.byte_classes import byte_classes
from tokdfa.lab.declare.cells import escape_markdown
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.report import speed_and_skew
from tokdfa.lab.report.tables import FAILURES
from tokdfa.regex.compile import compile_dfa
from tokdfa.regex.derivative import DerivativeTable, partition_bytes
from tokdfa.regex.expression import EMPTY, NOTHING, ExpressionStore
from tokdfa.vocabulary.walk_forms import build_tree, flatten


def derivative(store: ExpressionStore, expression: int, byte: bytes) -> int:
    return DerivativeTable(store, partition_bytes(store, expression)).derivative(expression, byte[0])


def test_derivatives_of_llguidance() -> None:
    """d([ab][cd], a) = [cd], d([ab]+, a) = [ab]*, d([ab], a) = ε, d([ab]c, c) = ∅."""
    store = ExpressionStore()
    ab, cd, c = store.byte_set(b"ab"), store.byte_set(b"cd"), store.literal(b"c")
    assert derivative(store, store.concat(ab, cd), b"a") == cd
    assert derivative(store, store.repeat(ab, 1, None), b"a") == store.repeat(ab, 0, None)
    assert derivative(store, ab, b"a") == EMPTY
    assert derivative(store, store.concat(ab, c), b"c") == NOTHING
    union = store.union([store.concat(ab, cd), store.repeat(c, 2, 5)])
    assert derivative(store, union, b"a") == store.union([cd, NOTHING])


def test_the_tree_of_toktrie() -> None:
    """The number of parents to pop of each node, as its page draws it."""
    tokens = [b"a", b"b", b"c", b"ax", b"az", b"aza", b"aya", b"ayb"]
    nodes = flatten(build_tree(enumerate(tokens)))[1:]
    spelled: list[bytes] = []
    parents, path = {}, b""
    for node in nodes:
        path += bytes([node.byte])
        parents[path] = node.parents_to_pop
        spelled.append(path)
        if node.subtree_size == 1:
            path = path[: len(path) - node.parents_to_pop]
    assert parents == {
        b"a": 1, b"b": 1, b"c": 1, b"ax": 1, b"ay": 1, b"az": 2, b"aza": 3, b"aya": 1, b"ayb": 2,
    }  # fmt: skip
    assert spelled == sorted(spelled)


@pytest.mark.parametrize(("pattern", "live"), [("[a-z]", 1), ("a[a-z]", 2)])
def test_byte_classes_of_outlines_core(pattern: str, live: int) -> None:
    """In ``^[a-z]$`` all letters are one class; in ``^a[a-z]$`` the a is one of its own."""
    dfa = compile_dfa(tokdfa.Regex(pattern))
    byte_class, _ = byte_classes(dfa.transitions[:, dfa.byte_class])
    assert len({int(byte_class[byte]) for byte in range(ord("a"), ord("z") + 1)}) == live
    if live == 1:  # so tokens of one length are one class, "man" is [a][a][a]
        assert len({byte_class[list(word)].tobytes() for word in (b"man", b"the", b"fox")}) == 1


def test_splits_of_mistral_in_outlines_issue_669() -> None:
    """A mean word length of 5.029875 and 128,956 pairs, over the names of all 32,000 pieces."""
    file = importlib.resources.files("mistral_common") / "data" / "tokenizer.model.v1"
    model = sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes())
    lengths = [len(model.id_to_piece(number)) for number in range(model.get_piece_size())]
    assert sum(lengths) / len(lengths) == 5.029875
    assert sum(length - 1 for length in lengths) == 128_956


ROOT = Path(__file__).parent.parent
REPORTS, EXPERIMENTS = ROOT / "papers" / "reports", ROOT / "experiments"
#: Pages of an earlier form, and the number of their headings that no kind makes today: they are to be made again, and
#: leave this list.
OF_EARLIER_FORMS = {"generation-profile": 3}


def unknown_headings(page: Path) -> list[str]:
    """The headings of the page of an experiment that the experiment's kinds do not declare."""
    config = yaml.safe_load((EXPERIMENTS / f"{page.stem.replace('-', '_')}.yaml").read_text())
    kind = config.get("kind", "backends")
    kinds = [kind, *(config.get("settings", {}) if kind == "backends" else ())]
    tables = [*speed_and_skew.TABLES, *(table for name in kinds for table in find_kind(name).tables)]
    titles = {table.title for table in tables}
    known = {escape_markdown(title) for title in (*titles, FAILURES.title, "Charts", "Environment")}
    return [head for head in re.findall(r"^## (.*)$", page.read_text(), re.M) if head not in known]


def test_pages_are_of_clean_commits_and_of_what_kinds_tell_today() -> None:
    unknown = {}
    for page in REPORTS.glob("*.md"):
        stated = re.search(r"^\| git · dirty +\| (\w+)", page.read_text(), re.M)
        assert not stated or stated[1] == "false", page
        if (EXPERIMENTS / f"{page.stem.replace('-', '_')}.yaml").exists():
            assert stated, page
            unknown[page.stem] = len(unknown_headings(page))
    assert {name: count for name, count in unknown.items() if count} == OF_EARLIER_FORMS

"""The picture of the house in docs/architecture.md, made from the imports: ``python -m tests.architecture``.

Storeys and their parts stand here, lowest first; tests/test_layers.py holds the package to them. The picture is a
Mermaid chart, as code-hosting sites draw it: an arrow leads from a part to each part that it imports, without those
arrows that follow from others.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import networkx as nx

import tokdfa

#: Storey -> its parts, modules or folders of the package. A part may import those before it.
STOREYS = {
    "ground": ("errors", "core", "mask", "constraint", "vocabulary", "automata"),
    "languages": ("regex", "proper", "token_automata", "grammar", "program", "json_schema"),
    "strategies": ("masks", "backends"),
    "uses": ("display", "models", "decoding", "serving", "skew", "tasks", "lab", "cli"),
}
PARTS = tuple(part for parts in STOREYS.values() for part in parts)
PACKAGE = Path(tokdfa.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"


_NAME = r"[\w.]+(?: as \w+)?"
#: (from ..., import ...): an import of Cython in a line, or in brackets.
_CYTHON_IMPORT = re.compile(
    rf"^ *((?:from [\w.]+ )?)c?(import (?:\([^)]*\)|{_NAME}(?:, {_NAME})*))(?= *(?:#|$))", re.MULTILINE
)


def sources() -> list[Path]:
    """All files of the package that import others: Python, Cython, and what Cython shares."""
    return [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd")]


def part_of(path: Path) -> str:
    """The part that a file of the package belongs to."""
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed once; of a file in Cython, the imports."""
    text = path.read_text()
    if path.suffix != ".py":
        text = "\n".join("".join(found) for found in _CYTHON_IMPORT.findall(text))
    return ast.parse(text)


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All imports of a file, wherever they stand: statements hold them, never expressions."""
    found: list[ast.Import | ast.ImportFrom] = []
    agenda: list[ast.AST] = [tree_of(path)]
    while agenda:
        node = agenda.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif isinstance(node, ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case):
            agenda += ast.iter_child_nodes(node)
    return found


def imported_parts(path: Path) -> set[str]:
    """The parts that a file imports anywhere in it, for types alone too."""
    found = set()
    for node in import_nodes(path):
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        names = [prefix + alias.name for alias in node.names]
        found |= {parts[1] for name in names if (parts := name.split("."))[0] == "tokdfa" and len(parts) > 1}
    return found & set(PARTS)


def draw() -> str:
    """The chart, in Mermaid's notation."""
    graph = nx.DiGraph()
    graph.add_nodes_from(PARTS)
    for path in sources():
        here = part_of(path)
        graph.add_edges_from((here, other) for other in imported_parts(path) if here in PARTS and other != here)
    lines = ["flowchart TD"]
    for storey, parts in reversed(STOREYS.items()):
        lines += [f"  subgraph {storey}", *(f"    {part}" for part in parts), "  end"]
    arrows = nx.transitive_reduction(graph).edges
    lines += [f"  {here} --> {other}" for here, other in sorted(arrows)]
    return "\n".join(lines)


def with_picture(page: str) -> str:
    """The page with the picture as it is now."""
    return re.sub(r"(```mermaid\n).*?(\n```)", lambda found: found[1] + draw() + found[2], page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text()))

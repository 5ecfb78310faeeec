"""Imports go only towards the bottom: a file may import its own part and those below it, and files form no circles.
What Cython cimports counts as well, and a module's declarations are one file with it.

Imports inside functions and those for types alone count as well: a file is read together with what it imports.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import networkx as nx
import pytest

from tests.architecture import (
    PACKAGE,
    PAGE,
    PARTS,
    import_nodes,
    imported_parts,
    part_of,
    sources,
    tree_of,
    with_picture,
)
from tests.conftest import FAST, FAST_FILES, LONG_FILES

if TYPE_CHECKING:
    from pathlib import Path


#: The rooms of `tokdfa.json_schema`, lowest first.
ROOMS = ("sets", "read", "solve", "write")
#: The package itself, which imports what is asked of it.
ABOVE = ("__init__", "__main__")


def test_every_file_has_a_place() -> None:
    for path in sources():
        assert part_of(path) in (*PARTS, *ABOVE), f"{path} belongs to no storey"


def test_imports_go_down() -> None:
    for path in sources():
        if (part := part_of(path)) not in ABOVE:
            above = [name for name in imported_parts(path) if PARTS.index(name) > PARTS.index(part)]
            assert not above, f"{path} imports {above}"


def test_rooms_of_json_schema_import_those_before_them() -> None:
    found = set()
    for path in sources():
        parts = path.relative_to(PACKAGE).parts
        if parts[0] != "json_schema" or parts == ("json_schema", "__init__.py"):
            continue
        assert parts[1] in ROOMS, f"{path} stands in no room"
        found.add(parts[1])
        for node in import_nodes(path):
            room = (node.module or "").split(".")[2:3] if isinstance(node, ast.ImportFrom) else []
            if room and (node.module or "").startswith("tokdfa.json_schema."):
                assert ROOMS.index(room[0]) <= ROOMS.index(parts[1]), f"{path} imports {node.module}"
    assert found == set(ROOMS)


def test_the_picture_shows_the_imports() -> None:
    page = PAGE.read_text()
    assert with_picture(page) == page, "python -m tests.architecture draws it again"


def import_graph() -> nx.DiGraph:
    """An edge from each file to every file of the package that it imports, anywhere in it."""
    files = {name_of(path) for path in sources()}
    graph = nx.DiGraph()
    for path in sources():
        name = name_of(path)
        for node in import_nodes(path):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            else:
                assert node.module, f"{path} has an import that does not name its package"
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
                imported = [module if module in files else node.module for module in modules]
            graph.add_edges_from((name, other) for other in imported if other in files)
    return graph


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_files_form_no_circles() -> None:
    components = [sorted(files) for files in nx.strongly_connected_components(import_graph()) if len(files) > 1]
    circles = {" ".join(name.removeprefix("tokdfa.") for name in files) for files in components}
    assert not circles


def test_private_names_stay_at_home() -> None:
    for path in sources():
        for node in import_nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tokdfa"):
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                assert not private, f"{path} imports {private} from {node.module}"


#: What a strategy writes of a matcher, and of what is compiled; what holds another one calls these, too.
HOOKS = {"_accepts", "_advance", "_compile", "_fill", "_start", "_step"}


def test_private_attributes_stay_at_home() -> None:
    names = {path: private_names(path) for path in PACKAGE.rglob("*.py")}
    everywhere = {name for of_own, _ in names.values() for name in of_own}
    for path, (of_own, read) in names.items():
        left = read & everywhere - of_own - HOOKS
        assert not left, path


def private_names(path: Path) -> tuple[set[str], set[str]]:
    """(the private names that a file's classes and the file itself have, those it reads of anything but `self`)."""
    of_own, read = set(), set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef):
            of_own |= {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
            of_own |= {name for one in node.body for name in assigned(one)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            of_own.add(node.attr)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls", "super()"):
            read.add(node.attr)
    return of_own, {name for name in read if name.startswith("_") and not name.endswith("_")}


def assigned(node: ast.stmt) -> set[str]:
    """The names that a statement assigns to, itself."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def test_heavy_packages_are_imported_lazily() -> None:
    heavy = {
        "torch", "transformers", "tiktoken", "tokenizers", "sentencepiece", "mistral_common", "llama_models",
        "llguidance", "outlines_core", "glrmask", "matplotlib", "pandas", "pyarrow", "networkx", "interegular", "lark",
        "dask", "distributed",
    }  # fmt: skip
    for path in PACKAGE.rglob("*.py"):
        for node in tree_of(path).body:  # what stands under `if TYPE_CHECKING` does not count
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & heavy, f"{path} imports {names} at import time"


def test_nothing_is_compiled_at_run_time() -> None:
    for path in sources():
        for node in import_nodes(path):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            assert not {name.split(".")[0] for name in named} & {"numba", "llvmlite"}, path


@pytest.mark.parametrize("strategy", ["token_index", "tokens_dfa", "cfg_fsm"])
def test_strategies_need_no_grammar_engine(strategy: str) -> None:
    """Whatever they import, for types alone and by way of others included, can be read without one."""
    graph = import_graph()
    own = {name for name in graph if f"{name}.".startswith(f"tokdfa.backends.{strategy}.")}
    assert own
    below = set.union(*(nx.descendants(graph, name) for name in own))
    engines = ("tokdfa.backends.earley_trie", "tokdfa.backends.pushdown_trie")
    assert not {name for name in below if name.startswith(engines)}


def test_compiled_modules_say_their_types() -> None:
    assert not [path for path in PACKAGE.rglob("*.pyx") if not path.with_suffix(".pyi").exists()]


def test_every_package_has_fast_tests() -> None:
    assert not [path for path in FAST_FILES | LONG_FILES if not path.exists()]
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= {folder.split("/")[0] for folder in FAST}

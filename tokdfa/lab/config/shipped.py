"""The experiments that come with the package, and what an experiment names that is not installed.

In a checkout they stand in its folder ``experiments``. A wheel has them among its data files, so that they are
installed as ``share/tokdfa/experiments`` below the environment's folder.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.core.packages import install_commands
from tokdfa.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where the wheel's data files (pyproject.toml) are, below the environment's folder.
INSTALLED = "share/tokdfa/experiments"

#: Keys whose values name something that may need packages: what that is.
_NAMING = {
    **dict.fromkeys(("backends", "backend", "engines"), "backend"),
    **dict.fromkeys(("tokenizers", "tokenizer"), "tokenizer"),
    **dict.fromkeys(("models", "model"), "model"),
}


@dataclass(frozen=True)
class Missing:
    """Something that an experiment names and whose packages are not installed: ``backend``, ``model`` or ``tokenizer``,
    its name, and what installs them.
    """

    what: str
    name: str
    commands: tuple[str, ...]


def experiments_folder() -> Path:
    """The folder of the shipped experiments, which may not exist."""
    root = Path(tokdfa.__file__).parents[1]
    return root / "experiments" if (root / "pyproject.toml").is_file() else installed_folder()


def installed_folder() -> Path:
    """Where the experiments of an installed package are: in the environment, or in the user's own folder."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [Path(sysconfig.get_path("data", scheme)) / INSTALLED for scheme in schemes]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def shipped_experiments() -> dict[str, Path]:
    """Name -> file of all that come with the package, in the order of their names."""
    return {path.stem: path for path in sorted(experiments_folder().glob("*.yaml"))}


def find_experiment(given: str | Path) -> Path:
    """The file of an experiment: a path is itself, a bare name one that comes with the package. UnknownNameError."""
    path = Path(given)
    if path.name != str(given) or path.suffix or path.exists():
        return path
    known = shipped_experiments()
    if path.name not in known:
        raise UnknownNameError("experiment", path.name, known)
    return known[path.name]


def missing_packages(experiment: Any) -> list[Missing]:
    """What an experiment, as plain data, names that is not installed here, each once.

    Cost: the import of the named backends' modules (not of the peers' packages).
    """
    from tokdfa.backends.registry import backend_info, backend_names
    from tokdfa.models.registry import model_names
    from tokdfa.vocabulary.tokenizers import tokenizer_names

    tokenizers, models = tokenizer_names(), model_names()
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for what, name in dict.fromkeys(_named(experiment, "")):
        if what == "backend" and name in backend_names():
            found[what, name] = install_commands(backend_info(name).missing)
        elif what == "tokenizer" and (whole := name.partition("?")[0]) in tokenizers:
            found[what, whole] = install_commands(tokenizers[whole].missing)
        elif what == "model":
            # the registry's names are patterns such as ngram?order=... and hf:NAME-or-path
            own = [one for one in models if one.name.partition("?")[0] == name.partition("?")[0]]
            own += [one for one in models if name.startswith("hf:") and one.name.startswith("hf:")]
            found[what, name] = own[0].install_commands if own else ()
    return [Missing(*named, commands) for named, commands in found.items() if commands]


def _named(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """(what it is, name) of all that is named in plain data, as a text or as the ``name`` of an entry."""
    if isinstance(value, str) and key in _NAMING:
        yield _NAMING[key], value
    elif isinstance(value, list):
        for entry in value:
            yield from _named(entry, key)
    elif isinstance(value, dict):
        for inner, entry in value.items():
            yield from _named(entry, key if inner == "name" else inner)

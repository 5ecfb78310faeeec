"""Whether optional packages are there, without importing them."""

from __future__ import annotations

import importlib.metadata
import importlib.util


def installed_version(package: str) -> str | None:
    """The version of a pip package, None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_importable(package: str) -> bool:
    """Whether a pip package's module can be imported, installed by pip or not."""
    return importlib.util.find_spec(package.replace("-", "_")) is not None

"""Strategies behind one interface: `base` (the interface), `registry` (names), `laws`, one folder or file each.

`tokdfa.backends` is both this package and, when called, the list of backends: ``tokdfa.backends()``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokdfa.backends.registry import BackendInfo


class _CallablePackage(ModuleType):
    def __call__(self) -> dict[str, BackendInfo]:
        """name -> what the backend supports, its options, and whether its packages are installed."""
        from tokdfa.backends.registry import backends

        return backends()


sys.modules[__name__].__class__ = _CallablePackage

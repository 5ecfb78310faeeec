"""The fake backends, registered for each test; workers learn of them from the watching process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tokdfa.backends import registry

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def fake_backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "fake", "tests.lab.run.fake_backends:Fake")
    monkeypatch.setitem(registry.BUILT_IN, "fake_peer", "tests.lab.run.fake_backends:FakePeer")
    registry.backend_targets.cache_clear()
    yield
    registry.backend_targets.cache_clear()

"""No mask depends on what else was compiled in its vocabulary (`tests.backends.mixed_constraints`)."""

from __future__ import annotations

from tests.backends.mixed_constraints import MixedConstraints, check


def test_masks_do_not_depend_on_what_was_compiled_before() -> None:
    check(examples=40)
    assert MixedConstraints.compared > 1_000

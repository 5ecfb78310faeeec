"""Objects as automata over their members: how much is looked at. What they accept is in `test_plans`."""

from __future__ import annotations

from tests.json_schema.schemas import expand
from tokdfa.json_schema.solve.object_plan import plan_object
from tokdfa.json_schema.solve.object_states import ObjectStates


def any_order(schema: dict[str, object]) -> ObjectStates:
    shape_builder, root, _ = expand({"type": "object", **schema})
    clause = shape_builder.shape_of(root).objects[0]
    plan = plan_object(shape_builder, clause)
    assert plan is not None
    return ObjectStates(shape_builder, clause, plan, any_order=True)


def test_many_required_names_in_any_order() -> None:
    """One way to the end is enough for all states: a search from each would look at the square of the names."""
    states = any_order({"required": [f"k{number}" for number in range(300)]})
    moves = states.moves(states.start)
    assert len(moves) == 301
    assert all(len(states.moves(move.following)) in (300, 301) for move in moves[:3] + moves[-3:])
    assert len(states._ends._alive) <= 301

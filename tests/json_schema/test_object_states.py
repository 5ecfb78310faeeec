"""Objects as automata over their members: how much is looked at. What they accept is in `test_plans`."""

from __future__ import annotations

from tests.json_schema.schemas import expand
from tokdfa.json_schema.object_plan import plan_object
from tokdfa.json_schema.object_states import ObjectStates


def any_order(schema: dict[str, object]) -> ObjectStates:
    shape_builder, root, _ = expand({"type": "object", **schema})
    clause = shape_builder.shape(root).objects[0]
    plan = plan_object(shape_builder.oracle, clause)
    assert plan is not None
    return ObjectStates(shape_builder.oracle, clause, plan, any_order=True)


def test_many_required_names_in_any_order() -> None:
    """One way to the end is enough for all states: a search from each would look at the square of the names."""
    states = any_order({"required": [f"k{number}" for number in range(300)]})
    moves = states.moves(states.start)
    assert len(moves) == 301
    assert all(len(states.moves(move.following)) in (300, 301) for move in moves[:3] + moves[-3:])
    assert len(states._ends._alive) <= 301


def test_counts_are_looked_ahead_for() -> None:
    """With a maximum, what was taken may leave no room for what is required."""
    names = {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "required": ["a", "b"]}
    for most, expected in ((3, ["a", "b", "c"]), (2, ["a", "b"])):
        states = any_order({**names, "maxProperties": most})
        assert [states.plan.names[move.member] for move in states.moves(states.start)] == expected


def test_moves_that_are_plain_to_see_are_those_that_come_to_an_end() -> None:
    for schema in (
        {"properties": {"a": {}, "b": {"type": "null"}, "c": False}, "required": ["b"], "minProperties": 2},
        {
            "properties": {"a": {}},
            "patternProperties": {"^b": {}, "^c": False},
            "additionalProperties": {"type": "null"},
        },
    ):
        states = any_order(schema)
        assert states.is_free
        agenda = [states.start]
        for state in agenda:
            moves = states.moves(state)
            assert moves == [move for move in states._all_moves(state) if states.alive(move.following)]
            agenda += [move.following for move in moves if move.following not in agenda]
        assert len(agenda) >= 2

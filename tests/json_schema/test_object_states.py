"""Objects as automata over their members: how much is looked at. What they accept is in `test_plans`."""

from __future__ import annotations

import random

import pytest

from tests.json_schema.schemas import expand
from tokdfa.json_schema.solve import shape_builder
from tokdfa.json_schema.solve.ends import Ends
from tokdfa.json_schema.solve.object_plan import plan_object
from tokdfa.json_schema.solve.object_states import Members, ObjectStates


def any_order(schema: dict[str, object]) -> list[ObjectStates]:
    """The automata of the objects of a schema, one for each clause that some object meets."""
    builder, root, _ = expand({"type": "object", **schema})
    plans = [(clause, plan_object(builder, clause)) for clause in builder.shape_of(root).objects]
    return [ObjectStates(builder, clause, plan, any_order=True) for clause, plan in plans if plan is not None]


def test_many_required_names_in_any_order() -> None:
    """One way to the end is enough for all states: a search from each would look at the square of the names."""
    (states,) = any_order({"required": [f"k{number}" for number in range(300)]})
    moves = states.moves(states.start)
    assert len(moves) == 301
    assert all(len(states.moves(move.following)) in (300, 301) for move in moves[:3] + moves[-3:])
    assert len(states._ends._alive) <= 301


VALUES: list[object] = [True, {"const": 1}, {"enum": [1, 2]}, {"type": "string"}, {"minimum": 1, "type": "number"}]


def alternative(draw: random.Random, names: str) -> dict[str, object]:
    """A part of a schema: values of some names, names that must be there, whether others may."""
    found: dict[str, object] = {"properties": {name: draw.choice(VALUES) for name in names if draw.random() < 0.4}}
    if draw.random() < 0.7:
        found["required"] = draw.sample(names, draw.randint(1, 2))
    if draw.random() < 0.3:
        found["additionalProperties"] = draw.choice([False, {"type": "string"}])
    return found


@pytest.mark.parametrize("seed", range(150))
def test_moves_are_those_from_which_an_end_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known without a search is what a search finds, from every state that moves lead to."""
    draw = random.Random(seed)
    if draw.random() < 0.5:
        monkeypatch.setattr(shape_builder, "MULTIPLIED", 0)  # few branches of oneOf are chosen from as many are
    names = "abcd"[: draw.randint(2, 4)]
    schema = alternative(draw, names)
    for keyword in draw.choice([["anyOf"], ["oneOf"], ["anyOf", "oneOf"], []]):
        schema[keyword] = [alternative(draw, names) for _ in range(draw.randint(2, 4))]
    if draw.random() < 0.4:
        schema["minProperties"] = draw.randint(1, 4)
    if draw.random() < 0.2:
        schema["patternProperties"] = {"^x": draw.choice(VALUES)}
    for states in filter(ObjectStates.is_inhabited, any_order(schema)):
        waiting, met = [states.start], {states.start}
        while waiting and len(met) < 300:
            state = waiting.pop()
            found = states.moves(state)
            assert found == [move for move in states._all_moves(state) if has_end(states, move.following)]
            following = {move.following for move in found} - met
            met |= following
            waiting += following


def has_end(states: ObjectStates, state: Members) -> bool:
    """Whether a state comes to an end, by a search of its own."""
    ends = Ends[Members](100_000)
    return ends.alive(state, states.can_close, lambda here: (move.following for move in states._all_moves(here)))

"""A constraint in the header of a stored file: as JSON can hold it, and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint


def describe_constraint(constraint: Constraint) -> dict[str, Any]:
    """A constraint as JSON can hold it. Raises UnsupportedConstraint for a kind that is none of ours."""
    if isinstance(constraint, Grammar):
        described: dict[str, Any] = {"kind": "grammar", "text": constraint.text, "start": constraint.start}
        for name in ("sources", "json_options"):
            if chosen := dict(getattr(constraint, name)):
                described[name] = chosen
        return {**described, "label": constraint.label}
    if isinstance(constraint, Regex):
        return {"kind": "regex", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    if isinstance(constraint, Choice):
        texts = [text if isinstance(text, str) else {"hex": text.hex()} for text in constraint.choices]
        return {"kind": "choice", "choices": texts, "label": constraint.label}
    if isinstance(constraint, JsonSchema):
        return {"kind": "json_schema", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    raise UnsupportedConstraint(f"a {constraint.kind} cannot be saved")


def rebuild_constraint(described: dict[str, Any]) -> Constraint:
    """What `describe_constraint` described. Raises KeyError, TypeError or ValueError for anything else."""
    given = dict(described)
    kind = given.pop("kind")
    if kind == "grammar":
        return Grammar(**given)
    if kind == "regex":
        return Regex(**given)
    if kind == "json_schema":
        return JsonSchema(given.pop("text"), **given)
    texts = [text if isinstance(text, str) else bytes.fromhex(text["hex"]) for text in given["choices"]]
    return Choice(texts, label=given["label"])

from tokdfa.json_schema.solve.object_plan import ObjectPlan
from tokdfa.json_schema.write.lower_object import ObjectWriter

def write_members(
    writer: ObjectWriter, plan: ObjectPlan, table: int, beside: list[int], other: int, after: int, more: int
) -> list[tuple[int, int]]:
    """The declared members of an object in order: for each the place of its name, and that of what follows the member
    before it, which is a comma, or the end, if it may be here. Last, `more` and `after`.

    `beside`, `other`: the places of other names, which may come where all required ones have been, as
    `ObjectWriter._other_names` has them; `after`: the place after the last member; `more`: that of other names after
    all declared ones, or -1. All windows share one list of targets, so it is O(members).
    """

"""The README's first table, from the published page of `families.yaml`: ``python -m tests.readme_table`` prints it."""

from __future__ import annotations

from tests.figures import REPORTS

PAGE = REPORTS / "families.md"
#: The vocabulary of the model whose distribution the README tells of.
TOKENIZER = "smollm2"
#: The page's column -> the README's.
COLUMNS = {
    "compile": "compile",
    "time to first mask": "first mask",
    "mask, mean": "mask, mean",
    "mask, p99": "mask, p99",
    "advance, p50": "advance, p50",
    "retained memory": "memory",
    "total variation": "total variation",
}


def readme_table(page: str) -> str:
    """The Markdown of the table: a line for each strategy, families in the order of the page."""
    plain = page.partition("## Speed and skew")[2].replace("**", "").replace("\\_", "_")
    table = [line for line in plain.partition("\n## ")[0].splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    found: dict[str, list[str]] = {}
    for row in (dict(zip(head, cells, strict=True)) for cells in rows):
        if row["tokenizer"] == TOKENIZER:
            backend, comma, more = row["strategy"].partition(", ")
            cells = [f"`{backend}`{comma}{more}", *(row[column] for column in COLUMNS)]
            found.setdefault(row["family"], []).append(" | ".join(cells))
    lines = [f"| family | strategy | {' | '.join(COLUMNS.values())} |", f"|---|---|{'--:|' * len(COLUMNS)}"]
    for family, strategies in found.items():
        lines += [f"| {family if not place else ''} | {cells} |" for place, cells in enumerate(strategies)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(readme_table(PAGE.read_text(encoding="utf-8")))

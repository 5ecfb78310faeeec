"""Questions over many databases as SQL: Spider (Yu et al. 2018, arXiv 1809.08887), from a folder of yours.

``load_task("spider", folder)`` reads the published data (CC BY-SA 4.0): ``dev.json``, a list of objects with ``db_id``,
``question`` and ``query``; ``tables.json``, with the names of each database's tables and columns;
``database/DB/DB.sqlite``.

The constraint is a grammar of SELECT made for the database of the question. Its names are the tables, the columns and
aliases T1 to T9: an answer cannot name what is not there, but may set a column beside the wrong table. An answer is
valid if sqlite runs it, and right if it gives the rows of the reference, in their order where the reference asks for
one (execution accuracy). References are queries of the data, often spaced otherwise than the grammar writes them.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.tasks.base import Item, Task, few_shot
from tokdfa.tasks.queries import rows_of

#: SELECT over named tables; `{tables}` and `{columns}` are alternatives of quoted names.
_GRAMMAR = r"""
start: select ((" UNION " | " INTERSECT " | " EXCEPT ") select)?
select: "SELECT " "DISTINCT "? item (", " item)* " FROM " from where? group? order?
item: "*" | value | AGGREGATE "(" ("*" | "DISTINCT "? value) ")"
value: (ALIAS ".")? COLUMN
from: table (" JOIN " table " ON " value " = " value)*
table: TABLE (" AS " ALIAS)?
where: " WHERE " test ((" AND " | " OR ") test)*
test: value (COMPARISON operand | " BETWEEN " NUMBER " AND " NUMBER | " NOT"? (" LIKE " STRING | " IN (" select ")"))
operand: NUMBER | STRING | value | "(" select ")"
group: " GROUP BY " value (", " value)* (" HAVING " item COMPARISON operand)?
order: " ORDER BY " item (", " item)* (" ASC" | " DESC")? (" LIMIT " COUNT)?
AGGREGATE: "COUNT" | "SUM" | "AVG" | "MIN" | "MAX"
ALIAS: "T" /[1-9]/
COMPARISON: " = " | " != " | " < " | " > " | " <= " | " >= "
NUMBER: /-?[0-9]{1,9}(\.[0-9]{1,4})?/
COUNT: /[1-9][0-9]{0,3}/
STRING: /'([^'\x00-\x1f]|''){0,60}'/
"""


def spider(folder: str) -> Task:
    """The task of a folder. Raises OptionError, which names the file and the entry, for another format."""
    root = Path(folder)
    databases = {}
    for place, found in _entries(root / "tables.json"):
        try:
            columns = [(table, name) for table, name in found["column_names_original"] if table >= 0]
            names = list(found["table_names_original"])
            told = "; ".join(
                f"{name}({', '.join(column for owner, column in columns if owner == number)})"
                for number, name in enumerate(names)
            )
            grammar = Grammar(_GRAMMAR + _names("TABLE", names) + _names("COLUMN", [name for _, name in columns]))
            databases[found["db_id"]] = told, grammar
        except (KeyError, TypeError, ValueError) as error:
            raise OptionError(f"spider: {root / 'tables.json'}, {place}: no names of a database: {error!r}") from None
    items: list[Item] = []
    paths = {}
    for place, found in _entries(root / "dev.json"):
        try:
            told, grammar = databases[found["db_id"]]
            path = root / "database" / found["db_id"] / f"{found['db_id']}.sqlite"
            prompt = few_shot(f"Write SQL. Tables: {told}.", [], found["question"])
            item = Item(f"{len(items):04d}", prompt, grammar, found["query"])
        except (KeyError, TypeError) as error:
            raise OptionError(
                f"spider: {root / 'dev.json'}, {place}: no question of a known db_id: {error!r}"
            ) from None
        if not path.is_file():
            raise OptionError(f"spider: {root / 'dev.json'}, {place}: there is no file {path}")
        items.append(item)
        paths[item.label] = path

    def rows(item: Item, query: str) -> list[tuple[object, ...]] | None:
        with closing(sqlite3.connect(f"{paths[item.label].resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # some of the data is not UTF-8
            return rows_of(connection, query)

    def is_right(item: Item, text: str) -> float:
        wanted, found = rows(item, item.reference), rows(item, text)
        if wanted is None or found is None:
            return 0.0
        if "order by" not in item.reference.lower():
            wanted, found = sorted(wanted, key=repr), sorted(found, key=repr)
        return float(wanted == found)

    return Task(
        "spider",
        "questions over many databases as SQL queries, run in sqlite3",
        "CC-BY-SA-4.0",
        tuple(items),
        lambda item, text: rows(item, text) is not None,
        is_right,
        max_tokens=128,
    )


def _entries(path: Path) -> list[tuple[str, Any]]:
    """The objects of a list, with their places."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list) or not found:
            raise ValueError("no list of objects")
    except (OSError, ValueError) as error:
        raise OptionError(f"spider: {path}: {error}; give the folder of the published data") from None
    return [(f"entry {number}", one) for number, one in enumerate(found)]


def _names(terminal: str, names: list[str]) -> str:
    """A terminal of names; those that sqlite does not read as they are, like ``order``, are quoted."""
    with closing(sqlite3.connect(":memory:")) as connection:
        plain = [
            name
            if rows_of(connection, f"SELECT {name} FROM (SELECT 1 AS {name})")
            else '"' + name.replace('"', '""') + '"'
            for name in dict.fromkeys(names)
        ]
    if not plain:
        raise ValueError(f"no {terminal.lower()}")
    return f"{terminal}: {' | '.join(json.dumps(name, ensure_ascii=False) for name in plain)}\n"

"""Two tasks in formal languages: ``sql`` (a query, run by sqlite3) and ``code`` (an expression, checked by `ast`).

A query is valid if sqlite runs it on the table here; right if it gives the rows of the reference, in any order. An
expression is valid if `ast` reads it and its names, operators and numbers are those of the grammar; right if it has the
value of the reference at every point that is tried.
"""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing

from tokdfa.constraint import Grammar
from tokdfa.tasks.base import OURS, Item, Task, draws, few_shot
from tokdfa.tasks.queries import rows_of

ROWS = [
    ("apple", "red", 3, 120), ("pear", "green", 4, 80), ("plum", "blue", 2, 200), ("cherry", "red", 9, 40),
    ("lemon", "yellow", 5, 60), ("melon", "green", 12, 15), ("fig", "blue", 7, 33), ("kiwi", "green", 6, 90),
]  # fmt: skip
SQL_GRAMMAR = r"""
start: "SELECT " what " FROM fruit WHERE " test
what: "name" | "COUNT(*)" | "MAX(price)" | "SUM(stock)"
test: NUMBER_COLUMN " " OPERATOR " " NUMBER | "colour = '" COLOUR "'"
NUMBER_COLUMN: "price" | "stock"
OPERATOR: "<" | ">" | "="
COLOUR: "red" | "green" | "blue" | "yellow"
NUMBER: /[1-9][0-9]{0,2}/
"""
CODE_GRAMMAR = r"""
start: term (OPERATOR term)*
term: NAME | NUMBER | "(" start ")"
OPERATOR: " + " | " - " | " * "
NAME: "x" | "y"
NUMBER: /[0-9]{1,2}/
"""
#: Where expressions are tried; more points than polynomials of the references' degree need.
POINTS = [(x, y) for x in range(-3, 4) for y in range(-3, 4)]
#: What an expression may be made of, and how long it may be.
_NODES = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Name, ast.Load, ast.Constant)
_MOST_CHARACTERS = 200


def _rows(query: str) -> list[tuple[object, ...]] | None:
    """What a query gives, sorted; None if it does not run."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE fruit (name TEXT, colour TEXT, price INTEGER, stock INTEGER)")
        connection.executemany("INSERT INTO fruit VALUES (?, ?, ?, ?)", ROWS)
        found = rows_of(connection, query)
    return None if found is None else sorted(found, key=repr)


def sql() -> Task:
    """A question about a table of fruit as a query."""
    constraint = Grammar(SQL_GRAMMAR)
    items = []
    for label, stream in draws(6):
        what, asked = stream.choice(
            (("name", "Names"), ("COUNT(*)", "Number"), ("MAX(price)", "Highest price"), ("SUM(stock)", "Total stock"))
        )
        column = stream.choice(("price", "stock"))
        # some rows are over it and some under: a query without rows would be equal to every other such query
        number = stream.randint(3, 9) if column == "price" else stream.randint(20, 99)
        sign, word = stream.choice(((">", "over"), ("<", "under")))
        colour = stream.choice(("red", "green", "blue", "yellow"))
        test, told = stream.choice(
            (
                (f"{column} {sign} {number}", f"with {column} {word} {number}"),
                (f"colour = '{colour}'", f"that is {colour}"),
            )
        )
        shown = [
            ("Names of fruit with price over 5", "SELECT name FROM fruit WHERE price > 5"),
            ("Number of fruit that is red", "SELECT COUNT(*) FROM fruit WHERE colour = 'red'"),
            ("Total stock of fruit with stock under 50", "SELECT SUM(stock) FROM fruit WHERE stock < 50"),
            ("Highest price of fruit that is blue", "SELECT MAX(price) FROM fruit WHERE colour = 'blue'"),
        ]
        prompt = few_shot("Write SQL. Table: fruit(name, colour, price, stock).", shown, f"{asked} of fruit {told}")
        items.append(Item(label, prompt, constraint, f"SELECT {what} FROM fruit WHERE {test}"))
    return Task(
        "sql",
        "a question as an SQL query, run in sqlite3",
        OURS,
        tuple(items),
        lambda item, text: _rows(text) is not None,
        lambda item, text: float(_rows(text) == _rows(item.reference)),
        max_tokens=32,
    )


def _values(text: str) -> list[int] | None:
    """The values of an expression at the points; None if it is none of the grammar's language."""
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return None
        if isinstance(node, ast.Name) and node.id not in ("x", "y"):
            return None
        if isinstance(node, ast.Constant) and type(node.value) is not int:
            return None
    return [_value(tree.body, {"x": x, "y": y}) for x, y in POINTS]


def _value(node: ast.expr, names: dict[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.Mult):
            return left * right
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.Name):
        return names[node.id]
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return node.value


def code() -> Task:
    """An expression of Python from words."""
    constraint = Grammar(CODE_GRAMMAR)
    items = []
    for label, stream in draws(7):
        first, second, number = stream.choice("xy"), stream.choice("xy"), stream.randint(2, 20)
        asked, reference = stream.choice(
            (
                (f"{first} plus {number}", f"{first} + {number}"),
                (f"{number} times {first}, minus {second}", f"{number} * {first} - {second}"),
                (f"the sum of {first} and {number}, times {second}", f"({first} + {number}) * {second}"),
                (f"{first} times {second}, plus {number}", f"{first} * {second} + {number}"),
            )
        )
        shown = [
            ("y minus 3", "y - 3"),
            ("the sum of y and 5, times x", "(y + 5) * x"),
            ("4 times y, minus x", "4 * y - x"),
        ]
        items.append(Item(label, few_shot("Write a Python expression.", shown, asked), constraint, reference))
    return Task(
        "code",
        "an arithmetic expression of Python, checked by ast",
        OURS,
        tuple(items),
        lambda item, text: _values(text) is not None,
        lambda item, text: float(_values(text) == _values(item.reference)),
        max_tokens=24,
    )

"""Running the SQL of a model: reading only, and not for ever."""

from __future__ import annotations

import sqlite3

#: What a query may do.
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
#: Calls of sqlite's progress handler, one in a thousand steps of its machine.
_STEPS_A_CALL, _MOST_CALLS = 1000, 2000


def rows_of(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]] | None:
    """The rows of a query in their order; None if sqlite refuses it, if it writes, or takes over 2 million steps."""
    left = iter(range(_MOST_CALLS))
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY)
    connection.set_progress_handler(lambda: int(next(left, None) is None), _STEPS_A_CALL)
    try:
        found = connection.execute(query)
        # an empty text is no query
        return None if found.description is None else found.fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)

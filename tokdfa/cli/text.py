"""What commands share in printing: texts that are no markup, named lines, tokens as people read and write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from tokdfa.vocabulary.vocabulary import Vocabulary


def print_error(error: Exception) -> None:
    """An error of tokdfa's own, on stderr."""
    from rich.console import Console

    Console(stderr=True).print(f"[bold red]error:[/] {plain(str(error))}", highlight=False)


def plain(text: str) -> str:
    """`text` without any meaning to rich's markup."""
    from rich.markup import escape

    return escape(text)


def print_plain(console: Console, text: str) -> None:
    """One line, however long, in which no markup and no emoji code has a meaning."""
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_line(console: Console, name: str, content: str) -> None:
    """One line: what it is about, and the content."""
    print_plain(console, f"{name:<9} {content}")


def print_table(
    console: Console, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()
) -> None:
    """Texts in columns; those under `numbers` stand to the right, and names are never broken."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        side: Any = "right" if heading in numbers else "left"
        table.add_column(plain(heading), justify=side, no_wrap=heading in ("name", "where"), overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    console.print(table)


def text_of(data: bytes) -> str | None:
    """`data` as a text, None if it is no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def spelled(vocabulary: Vocabulary, token: int) -> str:
    """A token as a text, as bytes where it is no UTF-8, by its name where it spells nothing."""
    data = vocabulary.token_bytes(token)
    if not data:
        return vocabulary.special_tokens.get(token, "padding")
    return repr(text_of(data) or data)


def parse_ids(text: str) -> list[int]:
    """Token ids between spaces or commas, in brackets or not. Raises OptionError for anything else."""
    found = []
    for part in filter(None, re.split(r"[\s,]+", text.strip().removeprefix("[").removesuffix("]"))):
        if not re.fullmatch(r"-?[0-9]{1,12}", part):
            raise OptionError(f"token ids are numbers between commas or spaces, not {part[:40]!r}")
        found.append(int(part))
    return found

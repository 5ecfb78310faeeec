"""What commands share in printing: texts that are no markup, named lines, tokens as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

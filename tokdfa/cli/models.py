"""``tokdfa models``: the language models that can be loaded by name."""

from __future__ import annotations


def models() -> None:
    """List the language models, and how to install those that are not."""
    from rich.console import Console
    from rich.table import Table

    from tokdfa.cli.text import plain, print_line
    from tokdfa.models.registry import model_names

    infos, console = model_names(), Console()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "what it is", "tokenizer", "installed"):
        table.add_column(heading, no_wrap=heading == "name")
    for info in infos:
        tokenizer = "its own" if info.own_tokenizer else "any"
        table.add_row(plain(info.name), plain(info.summary), tokenizer, "yes" if info.installed else "no")
    console.print(table)
    for info in infos:
        for command in info.install_commands:
            print_line(console, f"to install {info.name}", command)

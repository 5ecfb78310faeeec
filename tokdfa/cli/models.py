"""``tokdfa models``: the language models that can be loaded by name."""

from __future__ import annotations


def models() -> None:
    """List the language models, and how to install those that are not."""
    from rich.console import Console

    from tokdfa.cli.text import print_line, print_table
    from tokdfa.models.registry import model_names

    infos, console = model_names(), Console()
    rows = (
        (one.name, one.summary, "its own" if one.own_tokenizer else "any", "yes" if one.installed else "no")
        for one in infos
    )
    print_table(console, ("name", "what it is", "tokenizer", "installed"), rows)
    for info in infos:
        for command in info.install_commands:
            print_line(console, f"to install {info.name}", command)

"""``tokdfa models``: the language models, or what one of them expects after a text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tokdfa.cli import arguments  # noqa: TC001 (typer reads the annotations)
from tokdfa.cli.text import plain, print_line, spelled
from tokdfa.errors import ModelError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How much of a prompt is printed, from its end: what a model answers to.
SHOWN_CHARACTERS = 60


def models(
    name: Annotated[str | None, typer.Argument(help="One model: what comes after the prompt?")] = None,
    tokenizer: arguments.OptionalTokenizer = None,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text so far.")] = "",
    top: Annotated[int, typer.Option("--top", "-n", help="How many tokens to print.")] = 10,
) -> None:
    """List the language models, or print the tokens that one of them finds most probable after a prompt."""
    if name is None:
        print_models(Console())
    else:
        print_next_tokens(name, tokenizer, prompt, top, Console())


def print_models(console: Console) -> None:
    """A table of all models, and below it how to install those that are not."""
    from rich.table import Table

    from tokdfa.models.registry import model_names

    infos = model_names()
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


def print_next_tokens(name: str, tokenizer: str | None, prompt: str, top: int, console: Console) -> None:
    """The `top` most probable tokens after `prompt`, which follows the model's start tokens, if it has any.

    Raises OptionError (`top` below 1), ModelError (a model without a tokenizer), and what loading and evaluating
    raise.
    """
    import numpy as np

    from tokdfa.models.registry import load_model

    if top < 1:
        raise OptionError(f"--top is the number of tokens to print, from 1, not {top}")
    started = time.perf_counter()
    model = load_model(name, tokenizer)
    loading = time.perf_counter() - started
    encoder = model.vocabulary.tokenizer
    if encoder is None:
        raise ModelError(f"{name} has no tokenizer for the prompt; name one with --tokenizer")
    tokens = encoder.encode(prompt)
    prefix = [*model.start_tokens, *tokens]
    row = model.log_probabilities([prefix])[0]
    best = np.argsort(-row, kind="stable")[:top]
    best = best[np.isfinite(row[best])]

    shown = repr(prompt) if len(prompt) <= SHOWN_CHARACTERS else f"...{prompt[-SHOWN_CHARACTERS:]!r}"
    print_line(console, "model", f"{model.name}, {model.vocabulary.size:,} tokens, fingerprint {model.fingerprint}")
    before = f", after the start tokens {list(model.start_tokens)}" if model.start_tokens else ""
    print_line(console, "prompt", f"{shown}: {len(tokens):,} tokens{before}")
    print_line(console, "time", f"{loading:.2f} s to load, {model.counts.seconds:.4f} s for the next token")
    _print_distribution(model.vocabulary, row, best, console)


def _print_distribution(
    vocabulary: Vocabulary, row: npt.NDArray[np.float64], best: npt.NDArray[np.int64], console: Console
) -> None:
    import numpy as np
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("token", "spells", "probability", "log"):
        table.add_column(heading, justify="left" if heading == "spells" else "right", no_wrap=True)
    for token in best.tolist():
        table.add_row(str(token), plain(spelled(vocabulary, token)), f"{np.exp(row[token]):.3e}", f"{row[token]:.4f}")
    console.print(table)
    rest = max(0.0, 1 - float(np.exp(row[best]).sum()))
    ends = float(np.exp(row[list(vocabulary.end_tokens)]).sum())
    print_line(console, "others", f"{rest:.3e} on all other tokens; {ends:.3e} on the end of the text")

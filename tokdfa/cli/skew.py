"""``tokdfa skew``: how far each backend bends a model's distribution over some choices after a prompt.

The choices with their probabilities, under the model itself and with each backend; then each backend's distances from
the model's own distribution, and what its texts look like. The numbers are exact up to `tolerance`
(`tokdfa.lab.measure.skew_rows`).
"""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokdfa.cli import arguments
from tokdfa.cli.text import print_line, print_table
from tokdfa.errors import ModelError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.measure.engines import Engine

#: The backends that are compared if none is named: every spelling against the proper ones.
DEFAULT_BACKENDS = ("token_index", "cartesian_merge")
#: Choices that are printed, the most probable ones.
SHOWN_CHOICES = 10


def skew(
    model: Annotated[str, typer.Option("--model", "-m", help="A name that `tokdfa models` lists.")],
    choice: Annotated[list[str], typer.Option("--choice", "-c", help="A text that may come next; at least two.")],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text so far.")] = "",
    tokenizer: arguments.OptionalTokenizer = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            "-b",
            help="A name that `tokdfa backends` lists, with options as in tokens_dfa?proper=true; may be repeated.",
        ),
    ] = None,
    eos: Annotated[str, typer.Option(help="The end of a text: ignored, or counted as a token.")] = "ignored",
    tolerance: Annotated[float, typer.Option(help="The share of the probability that may stay unresolved.")] = 1e-3,
    max_rows: Annotated[int, typer.Option("--max-rows", help="Rows of the model that a strategy may ask for.")] = 4000,
) -> None:
    """Compare a model's distribution over choices with what sampling through masks makes of it.

    Exit status: 0, or 1 if a backend failed or two with the same token language disagree.
    """
    from tokdfa.lab.measure.engines import EngineSet
    from tokdfa.lab.measure.limits import OK
    from tokdfa.lab.measure.model_bench import Prompt
    from tokdfa.lab.measure.settings import check_distinct
    from tokdfa.lab.measure.skew_rows import exact_rows
    from tokdfa.models.cache import CachedModel
    from tokdfa.models.registry import load_model
    from tokdfa.skew.eos import check_texts

    console = Console()
    engines = [read_backend(name) for name in backend or DEFAULT_BACKENDS]
    check_distinct("engines", [engine.name for engine in engines])
    choices = list(dict.fromkeys(choice))
    if len(choices) < 2:
        raise OptionError('give at least two choices, as in --choice " yes" --choice " no"')
    check_texts(choices, eos)
    if not (0 <= tolerance < 1 and max_rows >= 1):
        raise OptionError("--tolerance is a share from 0, below 1, and --max-rows a number from 1")
    loaded = load_model(model, tokenizer)
    encoder = loaded.vocabulary.tokenizer
    if encoder is None:
        raise ModelError(f"{model} has no tokenizer for the prompt; name one with --tokenizer")
    begun = time.perf_counter()
    cached = CachedModel(loaded)
    asked = Prompt(label="prompt", prompt=prompt, choices=choices)
    limits: dict[str, Any] = {"eos": eos, "tolerance": tolerance, "max_prefixes": max_rows}
    found = list(exact_rows(asked, cached, encoder, engines, EngineSet(engines, loaded.vocabulary), **limits))
    seconds = time.perf_counter() - begun
    failed = [row for row in found if row.get("status", OK) != OK]
    if found[0] in failed:
        raise ModelError(found[0]["message"])
    measured = [row for row in found if row not in failed]
    _print_choices(choices, measured, console)
    _print_distances(measured, console)
    print_line(console, "model", f"{loaded.name}: {cached.misses:,} rows for all of them in {seconds:.1f} s")
    same = [row for row in measured if "first" in row]
    for row in same:
        apart = f"at most {row['difference']:.2g} apart in the probability of any choice"
        print_line(console, "equal" if row["same"] else "DIFFER", f"{row['engine']} and {row['first']}: {apart}")
    for row in failed:
        print_line(console, "failed", f"{row['engine']}: {row['status']}: {row['message']}")
    if failed or not all(row["same"] for row in same):
        raise typer.Exit(1)


def read_backend(name: str) -> Engine:
    """``tokens_dfa?proper=true&threads=2`` as an engine whose label is what was typed.

    Raises UnknownNameError for a backend or an option, OptionError for a value.
    """
    from tokdfa.lab.measure.engines import Engine

    backend, mark, written = name.partition("?")
    options = arguments.read_options(backend, written.split("&") if mark else [])
    return Engine(backend=backend, options=options, label=name)


def _print_choices(choices: Sequence[str], rows: Sequence[dict[str, Any]], console: Console) -> None:
    """One row per choice, the most probable ones, and one column per strategy."""
    values = [json.loads(row["probabilities"]) for row in rows]
    names = [row["engine"] for row in rows]
    order = sorted(range(len(choices)), key=lambda one: -values[0][one])[:SHOWN_CHOICES]
    shown = ([repr(choices[place]), *(f"{one[place]:.5f}" for one in values)] for place in order)
    print_table(console, ["choice", *names], shown, numbers=names)
    if len(choices) > SHOWN_CHOICES:
        print_line(console, "", f"and {len(choices) - SHOWN_CHOICES} others, less probable ideally")


def _print_distances(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """One row per strategy; the middles of the bounds."""
    names = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
    heads = ("strategy", "TV", "KL to it", "KL from it", "JS", "improper", "tokens", "forced", "rows")
    shown = []
    for row in rows:
        distances = [_middle(row, name) for name in names]
        improper = "" if row["improper"] is None else f"{row['improper']:.2%}"
        forced = "" if row["forced_share"] is None else f"{row['forced_share']:.0%}"
        shown.append([row["engine"], *distances, improper, f"{row['mean_tokens']:.2f}", forced, f"{row['rows']:,}"])
    print_table(console, heads, shown, numbers=heads[1:])
    open_ends = (row["total_variation_high"] - row["total_variation_low"] for row in rows if "total_variation" in row)
    said = "TV: total variation from the ideal; KL to it: KL(ideal || it)"
    print_line(console, "in nats", f"{said}; at most {max(open_ends, default=0.0):.1g} of TV is unresolved")


def _middle(row: dict[str, Any], name: str) -> str:
    if name not in row:
        return ""
    return f"{row[name]:.4g}" if math.isfinite(row[f"{name}_high"]) else f">={row[name]:.3g}"

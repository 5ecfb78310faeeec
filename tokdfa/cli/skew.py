"""``tokdfa skew``: how far each backend bends a model's distribution over some choices after a prompt.

The choices with their probabilities, under the model itself and with each backend; then each backend's distances from
the model's own distribution, and what its texts look like. The numbers are exact up to `tolerance`
(`tokdfa.lab.measure.skew_comparison`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokdfa.cli import arguments
from tokdfa.cli.text import plain, print_line
from tokdfa.errors import ModelError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from tokdfa.lab.measure.engines import Engine
    from tokdfa.lab.measure.skew_comparison import Agreement, Entrant

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
    from tokdfa.lab.measure.engines import EngineSet, check_engines
    from tokdfa.lab.measure.limits import Failure
    from tokdfa.lab.measure.skew_comparison import Limits, agreements, compare_engines
    from tokdfa.models.cache import CachedModel
    from tokdfa.models.registry import load_model
    from tokdfa.skew.eos import check_texts

    console = Console()
    engines = [read_backend(name) for name in backend or DEFAULT_BACKENDS]
    check_engines(engines)
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
    limits = Limits(eos, tolerance, max_rows)  # type: ignore[arg-type]  # checked above
    begun = time.perf_counter()
    cached = CachedModel(loaded)
    engine_set = EngineSet(engines, loaded.vocabulary)
    found = list(compare_engines(cached, encoder.encode(prompt), choices, engines, engine_set, limits))
    if isinstance(found[0].result, Failure):
        raise ModelError(found[0].result.message)
    seconds = time.perf_counter() - begun
    measured = [entrant for entrant in found if not isinstance(entrant.result, Failure)]
    _print_choices(measured, console)
    _print_distances(measured, console)
    print_line(console, "model", f"{loaded.name}: {cached.misses:,} rows for all of them in {seconds:.1f} s")
    same = agreements(found)
    for one in same:
        print_line(console, "equal" if one.holds else "DIFFER", _agreement(one))
    failed = [entrant for entrant in found if entrant not in measured]
    for entrant in failed:
        assert isinstance(entrant.result, Failure)
        print_line(console, "failed", f"{entrant.name}: {entrant.result.kind}: {entrant.result.message}")
    if failed or not all(one.holds for one in same):
        raise typer.Exit(1)


def read_backend(name: str) -> Engine:
    """``tokens_dfa?proper=true&threads=2`` as an engine whose label is what was typed.

    Raises UnknownNameError for a backend or an option, OptionError for a value.
    """
    from tokdfa.lab.measure.engines import Engine

    backend, mark, written = name.partition("?")
    options = arguments.read_options(backend, written.split("&") if mark else [])
    return Engine(backend=backend, options=options, label=name)


def _print_choices(entrants: Sequence[Entrant], console: Console) -> None:
    """One row per choice, one column per entrant."""
    import numpy as np

    ideal, *_ = distributions = [_distribution(entrant) for entrant in entrants]
    table = _table("choice", *(entrant.name for entrant in entrants))
    for index in np.argsort(-ideal.probabilities, kind="stable")[:SHOWN_CHOICES].tolist():
        shown = plain(repr(ideal.texts[index].decode()))
        table.add_row(shown, *(f"{one.probabilities[index]:.5f}" for one in distributions))
    console.print(table)
    if len(ideal.texts) > SHOWN_CHOICES:
        print_line(console, "", f"and {len(ideal.texts) - SHOWN_CHOICES} others, less probable ideally")


def _distribution(entrant: Entrant) -> Any:
    result: Any = entrant.result
    return result.distribution


def _print_distances(entrants: Sequence[Entrant], console: Console) -> None:
    """One row per entrant; the middles of the bounds."""
    table = _table("strategy", "TV", "KL to it", "KL from it", "JS", "improper", "tokens", "forced", "rows")
    for entrant in entrants:
        result: Any = entrant.result
        distances = ["", "", "", ""] if entrant.distances is None else [_middle(*one) for one in entrant.distances]
        improper = "" if result.improper_mass is None else f"{result.improper_mass:.2%}"
        forced = "" if result.forced_share is None else f"{result.forced_share:.0%}"
        cells = (improper, f"{result.mean_tokens:.2f}", forced, f"{result.prefixes:,}")
        table.add_row(plain(entrant.name), *distances, *cells)
    console.print(table)
    variations = [one.distances.total_variation for one in entrants if one.distances]
    widest = max((high - low for low, high in variations), default=0.0)
    said = "TV: total variation from the ideal; KL to it: KL(ideal || it)"
    print_line(console, "in nats", f"{said}; at most {widest:.1g} of TV is unresolved")


def _middle(lower: float, upper: float) -> str:
    import math

    return f"{(lower + upper) / 2:.4g}" if math.isfinite(upper) else f">={lower:.3g}"


def _agreement(one: Agreement) -> str:
    return f"{one.other} and {one.first}: at most {one.difference:.2g} apart in the probability of any choice"


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(plain(heading), justify="right" if place else "left", overflow="fold")
    return table

"""What ``tokdfa skew`` prints: how far each backend bends a model's distribution over some choices after a prompt.

The choices with their probabilities, under the model itself and with each backend; then each backend's distances from
the model's own distribution, and what its texts look like. The numbers are exact up to `tolerance`
(`tokdfa.lab.measure.skew_comparison`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.cli.text import plain, print_line
from tokdfa.errors import ModelError, OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from tokdfa.lab.measure.engines import Engine
    from tokdfa.lab.measure.skew_comparison import Agreement, Entrant

#: The backends that are compared if none is named: every spelling against the proper ones.
DEFAULT_BACKENDS = ("token_index", "cartesian_merge")
#: Choices that are printed, the most probable ones.
SHOWN_CHOICES = 10


@dataclass(frozen=True)
class Question:
    """What is asked for on the command line; see the options of the command."""

    model: str
    tokenizer: str | None
    prompt: str
    choices: Sequence[str]
    backends: Sequence[str]
    eos: str
    tolerance: float
    max_rows: int


def print_skew(question: Question, console: Console) -> bool:
    """Load, compare, print; False if a backend failed or two of one token language disagree.

    Raises OptionError, UnknownNameError and MissingDependency for what is asked for, ModelError for a model that gives
    no distribution, and what walking the ideal distribution raises.
    """
    from tokdfa.lab.measure.engines import Workshop, check_engines
    from tokdfa.lab.measure.limits import Failure
    from tokdfa.lab.measure.skew_comparison import Limits, agreements, compare_engines
    from tokdfa.models.cache import CachedModel
    from tokdfa.models.registry import load_model
    from tokdfa.skew.eos import check_texts

    engines = [read_backend(name) for name in question.backends or DEFAULT_BACKENDS]
    check_engines(engines)
    choices = list(dict.fromkeys(question.choices))
    if len(choices) < 2:
        raise OptionError('give at least two choices, as in --choice " yes" --choice " no"')
    check_texts(choices, question.eos)
    if not (0 <= question.tolerance < 1 and question.max_rows >= 1):
        raise OptionError("--tolerance is a share from 0, below 1, and --max-rows a number from 1")
    model = load_model(question.model, question.tokenizer)
    tokenizer = model.vocabulary.tokenizer
    if tokenizer is None:
        raise ModelError(f"{question.model} has no tokenizer for the prompt; name one with --tokenizer")
    limits = Limits(question.eos, question.tolerance, question.max_rows)  # type: ignore[arg-type]  # checked above
    begun = time.perf_counter()
    cached = CachedModel(model)
    workshop = Workshop(engines, model.vocabulary)
    found = list(compare_engines(cached, tokenizer.encode(question.prompt), choices, engines, workshop, limits))
    if isinstance(found[0].result, Failure):
        raise ModelError(found[0].result.message)
    seconds = time.perf_counter() - begun
    measured = [entrant for entrant in found if not isinstance(entrant.result, Failure)]
    _print_choices(measured, console)
    _print_distances(measured, console)
    print_line(console, "model", f"{model.name}: {cached.misses:,} rows for all of them in {seconds:.1f} s")
    same = agreements(found)
    for one in same:
        print_line(console, "equal" if one.holds else "DIFFER", _agreement(one))
    failed = [entrant for entrant in found if entrant not in measured]
    for entrant in failed:
        assert isinstance(entrant.result, Failure)
        print_line(console, "failed", f"{entrant.name}: {entrant.result.kind}: {entrant.result.message}")
    return not failed and all(one.holds for one in same)


def read_backend(name: str) -> Engine:
    """``tokens_dfa?proper=true&threads=2`` as an engine whose label is what was typed.

    Raises UnknownNameError for a backend or an option, OptionError for a value.
    """
    from tokdfa.backends.registry import backend_class
    from tokdfa.lab.measure.engines import Engine

    backend, mark, written = name.partition("?")
    known = {option.name: option for option in backend_class(backend).options}
    options: dict[str, Any] = {}
    for part in written.split("&") if mark else ():
        option, separator, value = part.partition("=")
        if option not in known:
            raise UnknownNameError(f"option of backend {backend}", option, known)
        if not separator:
            raise OptionError(f"an option is NAME=VALUE, not {part!r}, as in {backend}?{option}=VALUE")
        options[option] = known[option].parse(value)
    return Engine(backend=backend, options=options, label=name)


def _print_choices(entrants: Sequence[Entrant], console: Console) -> None:
    """One row per choice, one column per entrant."""
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
    return f"{(lower + upper) / 2:.4g}" if np.isfinite(upper) else f">={lower:.3g}"


def _agreement(one: Agreement) -> str:
    return f"{one.other} and {one.first}: at most {one.difference:.2g} apart in the probability of any choice"


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(plain(heading), justify="right" if place else "left", overflow="fold")
    return table

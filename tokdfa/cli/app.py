"""The command `tokdfa`: run experiments, report on them, look at masks and tokens, list and check what there is.

Each command prepares arguments, calls the library and prints. Heavy modules are imported inside commands, so that
``tokdfa --help`` answers at once. Errors of tokdfa's own are printed without a traceback; the exit status is then 1
(2 for `proper`, where 1 is an answer).
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import tokdfa
from tokdfa.cli import arguments, cache, check_schema, models, proper, shipped_experiments, show, skew
from tokdfa.cli import report as reports
from tokdfa.cli.text import plain, print_error, print_plain, print_table
from tokdfa.errors import TokdfaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tokdfa {tokdfa.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compare the strategies for turning constraints into token masks."""


def main() -> None:
    """The entry point: runs the command and turns tokdfa's errors into one message and exit status 1."""
    try:
        app()
    except TokdfaError as error:
        print_error(error)
        sys.exit(1)


@app.command()
def run(
    file: Annotated[
        Path, typer.Argument(help="The experiment's YAML file, or the name of one that `tokdfa experiments` lists.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(help="Where run folders go (default: results/ beside the file; here for an installed one)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what an earlier run has measured.")] = False,
    report: Annotated[bool, typer.Option(help="Write tables, plots and the HTML page at the end.")] = True,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the experiment as NAME=VALUE (YAML), such as data=DIR; repeat."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Measure on a Dask cluster: the scheduler's address (tcp://HOST:PORT), or dask:local."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Groups measured at a time, each on a core of its own (default: 1; with dask:local one a core). "
            "With a scheduler's address: how many workers to wait for.",
        ),
    ] = None,
) -> None:
    """Run an experiment; an interrupted one goes on where it stopped."""
    with _interruption("nothing has been measured yet"):
        from tokdfa.lab.config.resolve import load_config
        from tokdfa.lab.run.plan import describe

        config = load_config(file, arguments.read_settings(settings or []))
        console.print(f"[bold]{config.name}[/]: {plain(config.question)}", highlight=False)
        shipped_experiments.print_missing(config, console)
        plan = describe(config, folder, fresh)
        console.print(plain(str(plan)), highlight=False)
        if dry_run:
            return
        from tokdfa.cli.progress import RunProgress
        from tokdfa.lab.run.execute import run as execute

    with RunProgress(console) as progress:
        summary = execute(config, folder, progress, fresh, workers, scheduler)
    console.print(plain(str(summary)), highlight=False)
    if report and summary.found + summary.measured:
        with _interruption(f"what was measured is kept, write its report by: tokdfa report {summary.folder}"):
            reports.report_run(summary.folder, console)
    if summary.interrupted:
        raise typer.Exit(130)


@contextmanager
def _interruption(what: str) -> Iterator[None]:
    """Let Ctrl-C end the command with a line that says what has been done, and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print_plain(console, f"interrupted; {what}")
        raise typer.Exit(130) from None


_elsewhere: tuple[Callable[..., None], ...] = (
    *(reports.report, reports.compare, cache.cache, show.mask, show.show),
    *(proper.proper, models.models, skew.skew, check_schema.check_schema),
)
for command in _elsewhere:
    app.command()(command)


@app.command("experiments")
def list_experiments() -> None:
    """List the experiments that come with the package: what each asks, how long it takes, what it needs."""
    shipped_experiments.print_experiments(console)


@app.command("backends")
def list_backends(name: Annotated[str | None, typer.Argument(help="One backend, with its options.")] = None) -> None:
    """List the backends, or one backend's options."""
    from tokdfa.backends.registry import backend_class, backend_info, backends

    if name is None:
        rows = ((one.name, ", ".join(one.kinds), one.summary, _installed(one)) for one in backends().values())
        print_table(console, ("backend", "takes", "what it is", "installed"), rows)
        return
    info = backend_info(name)
    console.print(f"[bold]{info.name}[/]: {plain(info.summary)}", highlight=False)
    console.print(f"takes {', '.join(info.kinds)}", highlight=False)
    options = [
        (one.name, " | ".join(one.choices) or one.kind.__name__, repr(one.default), one.help) for one in info.options
    ]
    if options:
        print_table(console, ("option", "type", "default", "what it does"), options)
    else:
        console.print("no options")
    for law, reason in backend_class(name).known_differences.items():
        console.print(f"known difference ({plain(law)}): {plain(reason)}", highlight=False)


@app.command("tokenizers")
def list_tokenizers() -> None:
    """List the tokenizers that can be loaded by name."""
    from tokdfa.vocabulary.tokenizers import tokenizer_names

    rows = (
        (one.name, f"{one.size:,}" if one.size else "by file", one.summary, _installed(one))
        for one in tokenizer_names().values()
    )
    print_table(console, ("name", "tokens", "what it is", "installed"), rows)


def _installed(info: Any) -> str:
    """Whether what a backend or a tokenizer needs is there, or else what installs it."""
    from tokdfa.core.packages import install_commands

    return "yes" if info.installed else f"no: {' && '.join(install_commands(info.missing))}"


@app.command()
def check(
    backend: Annotated[str, typer.Argument(help="A name that `tokdfa backends` lists.")],
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", help="Also on this tokenizer; may be repeated.")
    ] = None,
    option: arguments.Options = None,
) -> None:
    """Run the laws of the mask interface on a backend."""
    from tokdfa.backends.laws.contract import check_backend, real_cases, toy_cases

    settings = arguments.read_options(backend, option or [])
    cases = [*toy_cases(), *(real_cases(tokenizer) if tokenizer else [])]
    with console.status("checking") as status:
        results = check_backend(
            backend, settings, cases=cases, report=lambda result: status.update(f"checking: {plain(result.law)}")
        )
    _print_law_results(results)
    if any(not result.ok for result in results):
        raise typer.Exit(1)


def _print_law_results(results: list[Any]) -> None:
    heads = {"held": "held", "declared": "declared difference", "broken": "broken", "skipped": "not applicable"}
    counts = Counter((result.law, result.outcome) for result in results)
    laws = dict.fromkeys(result.law for result in results)
    rows = ([law, *(str(counts[law, outcome] or "") for outcome in heads)] for law in laws)
    print_table(console, ("law", *heads.values()), rows)
    for result in results:
        if not result.ok:
            console.print(f"[red]broken[/] {plain(f'{result.law}, {result.case}: {result.message}')}", highlight=False)

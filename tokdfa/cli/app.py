"""The command `tokdfa`: run experiments, report on them, look at masks and tokens, list and check what there is.

Each command prepares arguments, calls the library and prints. Heavy modules are imported inside commands, so that
``tokdfa --help`` answers at once. Errors of tokdfa's own are printed without a traceback; the exit status is then 1
(2 for `proper`, where 1 is an answer).
"""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import Annotated, Any

import typer
from rich.console import Console

from tokdfa.cli import arguments
from tokdfa.cli import cost as cli_cost
from tokdfa.cli import experiments as cli_experiments
from tokdfa.cli import report as cli_report
from tokdfa.cli.text import plain
from tokdfa.errors import TokdfaError

app = typer.Typer(
    help="Compare the strategies for turning constraints into token masks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def main() -> None:
    """The entry point: runs the command and turns tokdfa's errors into one message and exit status 1."""
    try:
        app()
    except TokdfaError as error:
        _print_error(error)
        sys.exit(1)


def _print_error(error: TokdfaError) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {plain(str(error))}", highlight=False)


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
    from tokdfa.lab.config.plan import describe
    from tokdfa.lab.config.resolve import load_config

    config = load_config(file, arguments.read_settings(settings or []))
    console.print(f"[bold]{config.name}[/]: {plain(config.question)}", highlight=False)
    cli_experiments.print_missing(config, console)
    plan = describe(config, folder)
    console.print(plain(str(plan)), highlight=False)
    if dry_run:
        return
    from tokdfa.cli.progress import RunProgress
    from tokdfa.lab.run.execute import run as execute

    with RunProgress(console) as progress:
        summary = execute(config, folder, progress, fresh, workers, scheduler)
    console.print(plain(str(summary)), highlight=False)
    if report and summary.found + summary.measured:
        cli_report.report_run(summary.folder, console)
    if summary.interrupted:
        raise typer.Exit(130)


app.command()(cli_report.report)
app.command()(cli_report.compare)
app.command()(cli_cost.cost)


@app.command("experiments")
def list_experiments() -> None:
    """List the experiments that come with the package: what each asks, how long it takes, what it needs."""
    cli_experiments.print_experiments(console)


@app.command("mask")
def show_mask(
    tokenizer: arguments.Tokenizer,
    regex: arguments.Regex = None,
    choice: arguments.Choice = None,
    grammar: arguments.Grammar = None,
    schema: arguments.Schema = None,
    schema_option: arguments.SchemaOptions = None,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Text that has been generated already.")] = "",
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            "-b",
            help="A name that `tokdfa backends` lists (default: one that takes the constraint).",
        ),
    ] = None,
    search: arguments.Search = False,
    samples: Annotated[int, typer.Option("--samples", "-n", help="How many allowed tokens to print.")] = 24,
    option: arguments.Options = None,
) -> None:
    """Print which tokens may come next."""
    from tokdfa.backends.registry import create_backend
    from tokdfa.cli.show import advance_by_text, print_mask
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    constraint = arguments.read_constraint(regex, search, choice, grammar, schema, schema_option)
    if backend is None:
        backend = {"grammar": "earley_trie", "json_schema": "pushdown_trie"}.get(constraint.kind, "token_index")
    loaded = load_tokenizer(tokenizer)
    settings = arguments.read_options(backend, option or [])
    if backend == "token_index" and not settings:
        settings = {"lazy": True}
    matcher = create_backend(backend, loaded.vocabulary, **settings).compile(constraint).start()
    advance_by_text(matcher, loaded, prefix, console)
    print_mask(matcher, loaded, samples, console)


@app.command("show")
def show_inside(
    regex: arguments.Regex = None,
    choice: arguments.Choice = None,
    grammar: arguments.Grammar = None,
    schema: arguments.Schema = None,
    schema_option: arguments.SchemaOptions = None,
    search: arguments.Search = False,
    lexer: Annotated[
        str | None,
        typer.Option(
            "--lexer", help="pushdown_trie, for a grammar: longest (the default), or any way to cut the text."
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", "-b", help="pushdown_trie: its program. cfg_fsm: the situation after a text.")
    ] = "pushdown_trie",
    tokenizer: Annotated[str | None, typer.Option("--tokenizer", "-t", help="cfg_fsm: whose tokens.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="cfg_fsm: text that has been generated already.")] = "",
    tree: Annotated[
        Path | None, typer.Option("--tree", help="cfg_fsm: draw the speculative terminal tree (.svg, .pdf, .png).")
    ] = None,
) -> None:
    """Print what a backend makes of a constraint: its program, or which terminals the next token may run through."""
    from tokdfa.cli.show import Question, show

    constraint = arguments.read_constraint(regex, search, choice, grammar, schema, schema_option)
    show(Question(constraint, backend, lexer, tokenizer, prefix, tree), console)


@app.command("proper")
def show_proper(
    tokenizer: arguments.Tokenizer,
    text: Annotated[
        str | None, typer.Argument(help='A text; or token ids to judge, as in "[1, 2, 3]" or "1 2 3".')
    ] = None,
    tokens: Annotated[str | None, typer.Option("--tokens", help="Token ids to judge, as in 1,2,3.")] = None,
    cut: Annotated[str | None, typer.Option("--cut", help='Tokens to judge, as a text: " The|od|ore".')] = None,
    after: Annotated[str | None, typer.Option("--after", help="A token (its id or text): what may not follow?")] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Figures of the tokenizer's merge rules.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="What looks like token ids is a text all the same.")] = False,
    separator: Annotated[str, typer.Option(help="What stands between the tokens of --cut.")] = "|",
    derivation: Annotated[bool, typer.Option("--derivation", "-d", help="Also print how tokens are merged.")] = False,
    samples: Annotated[int, typer.Option("--samples", "-n", help="How many rules --after prints.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a text's proper tokens, or judge whether tokens are proper: what the tokenizer makes of their text.

    Exit status: 0 proper, 1 not proper, 2 error.
    """
    from tokdfa.cli.proper import Question, answer

    question = Question(
        *(tokenizer, text, tokens, cut, after, statistics),
        *(as_text, separator, derivation, samples, as_json),
    )
    try:
        status = answer(question, console)
    except TokdfaError as error:
        _print_error(error)
        status = 2
    raise typer.Exit(status)


@app.command("backends")
def list_backends(name: Annotated[str | None, typer.Argument(help="One backend, with its options.")] = None) -> None:
    """List the backends, or one backend's options."""
    from rich.table import Table

    from tokdfa.backends.registry import backend_class, backend_info, backends

    if name is None:
        table = Table("backend", "takes", "what it is", "installed", box=None, pad_edge=False)
        for info in backends().values():
            installed = "yes" if info.installed else f"no: pip install {' '.join(info.missing)}"
            table.add_row(info.name, ", ".join(info.kinds), info.summary, installed)
        console.print(table)
        return
    info = backend_info(name)
    console.print(f"[bold]{info.name}[/]: {plain(info.summary)}", highlight=False)
    console.print(f"takes {', '.join(info.kinds)}", highlight=False)
    table = Table("option", "type", "default", "what it does", box=None, pad_edge=False)
    for option in info.options:
        kind = " | ".join(option.choices) or option.kind.__name__
        table.add_row(option.name, plain(kind), plain(repr(option.default)), plain(option.help))
    console.print(table if info.options else "no options")
    for law, reason in backend_class(name).known_differences.items():
        console.print(f"known difference ({plain(law)}): {plain(reason)}", highlight=False)


@app.command("tokenizers")
def list_tokenizers() -> None:
    """List the tokenizers that can be loaded by name."""
    from rich.table import Table

    from tokdfa.vocabulary.tokenizers import tokenizer_names

    table = Table("name", "tokens", "what it is", "installed", box=None, pad_edge=False)
    for info in tokenizer_names().values():
        size = f"{info.size:,}" if info.size else "by file"
        installed = "yes" if info.installed else f"no: pip install {' '.join(info.missing)}"
        table.add_row(plain(info.name), size, plain(info.summary), plain(installed))
    console.print(table)


@app.command("models")
def show_models(
    name: Annotated[str | None, typer.Argument(help="One model: what comes after the prompt?")] = None,
    tokenizer: arguments.OptionalTokenizer = None,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text so far.")] = "",
    top: Annotated[int, typer.Option("--top", "-n", help="How many tokens to print.")] = 10,
) -> None:
    """List the language models, or print the tokens that one of them finds most probable after a prompt."""
    from tokdfa.cli.models import print_models, print_next_tokens

    if name is None:
        print_models(console)
    else:
        print_next_tokens(name, tokenizer, prompt, top, console)


@app.command("skew")
def show_skew(
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
    from tokdfa.cli.skew import Question, print_skew

    question = Question(model, tokenizer, prompt, choice, backend or [], eos, tolerance, max_rows)
    if not print_skew(question, console):
        raise typer.Exit(1)


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
    from rich.table import Table

    table = Table("law", "held", "declared difference", "broken", "not applicable", box=None, pad_edge=False)
    laws = list(dict.fromkeys(result.law for result in results))
    for law in laws:
        outcomes = [result.outcome for result in results if result.law == law]
        counts = [sum(outcome == name for outcome in outcomes) for name in ("held", "declared", "broken", "skipped")]
        table.add_row(law, *(str(number) if number else "" for number in counts))
    console.print(table)
    for result in results:
        if not result.ok:
            console.print(f"[red]broken[/] {plain(f'{result.law}, {result.case}: {result.message}')}", highlight=False)


@app.command()
def warmup() -> None:
    """Compile all kernels now (they are kept on disk)."""
    from tokdfa.core import jit
    from tokdfa.core.kernel_store import kernel_folder

    if jit.is_warm():
        console.print(f"all kernels are compiled already, in {kernel_folder()}", highlight=False, soft_wrap=True)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console.print(
        f"compiling kernels, once (a minute or two; kept in {kernel_folder()})", highlight=False, soft_wrap=True
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("kernels", total=len(jit.WARMUP_STEPS))
        for title, done, total in jit.warm_up():
            progress.update(bar, description=title, completed=done, total=total)
        progress.update(bar, description="kernels", completed=len(jit.WARMUP_STEPS))

"""The command `tokdfa`: run experiments, report on them, look at masks and tokens, list and check what there is.

Each command prepares arguments, calls the library and prints. Heavy modules are imported inside commands, so that
``tokdfa --help`` answers at once. Errors of tokdfa's own are printed without a traceback; the exit status is then 1
(2 for `proper`, where 1 is an answer).
"""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokdfa.errors import ConfigError, OptionError, TokdfaError, TokenRefused

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher
    from tokdfa.constraint import Constraint, JsonSchema
    from tokdfa.vocabulary.tokenizers import Tokenizer

app = typer.Typer(
    help="Compare the strategies for turning constraints into token masks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()

OptionsArgument = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="A backend option as NAME=VALUE; may be repeated.")
]


def main() -> None:
    """The entry point: runs the command and turns tokdfa's errors into one message and exit status 1."""
    try:
        app()
    except TokdfaError as error:
        _print_error(error)
        sys.exit(1)


def _print_error(error: TokdfaError) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {_plain(str(error))}", highlight=False)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The experiment's YAML file.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where run folders go (default: results/ beside the file).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what an earlier run has measured.")] = False,
    report: Annotated[bool, typer.Option(help="Write tables, plots and the HTML page at the end.")] = True,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the experiment as NAME=VALUE (YAML), such as data=DIR; repeat."),
    ] = None,
) -> None:
    """Run an experiment; an interrupted one goes on where it stopped."""
    from tokdfa.runs.config import load_config
    from tokdfa.runs.expand import describe

    config = load_config(file, _parse_settings(settings or []))
    plan = describe(config, folder)
    console.print(f"[bold]{config.name}[/]: {_plain(config.question)}", highlight=False)
    console.print(_plain(str(plan)), highlight=False)
    if dry_run:
        return
    _ensure_warm()
    from tokdfa.cli_progress import RunProgress
    from tokdfa.runs.execute import run as execute

    with RunProgress(console) as progress:
        summary = execute(config, folder=folder, progress=progress, fresh=fresh)
    console.print(_plain(str(summary)), highlight=False)
    if report:
        _report(summary.folder)
    if summary.interrupted:
        raise typer.Exit(130)


def _parse_settings(given: list[str]) -> dict[str, Any]:
    """``["data=DIR", "max_cases=5"]`` as names and values."""
    import yaml

    settings: dict[str, Any] = {}
    for entry in given:
        name, sign, text = entry.partition("=")
        if not sign or not name:
            raise OptionError(f"{entry!r}: a setting is given as NAME=VALUE")
        try:
            settings[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise OptionError(f"{entry!r}: the value is not YAML; quote it within the quotes of the shell") from None
    return settings


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders (or the folder that holds them).")],
) -> None:
    """Write tables (Markdown), plots and one HTML page for each run folder."""
    for folder in folders:
        inside = (
            [folder] if (folder / "config.yaml").exists() else sorted(p.parent for p in folder.glob("*/config.yaml"))
        )
        if not inside:
            raise ConfigError("there is no run in this folder (no config.yaml)", str(folder))
        for run_folder in inside:
            _report(run_folder)


def _report(folder: Path) -> None:
    from tokdfa.report.write import print_summary, write_report
    from tokdfa.runs.store import open_run

    measured = open_run(folder)
    print_summary(measured, console)
    files = write_report(measured)
    console.print(f"report: {files.html}", highlight=False, soft_wrap=True)


@app.command("mask")
def show_mask(
    tokenizer: Annotated[str, typer.Option("--tokenizer", "-t", help="A name that `tokdfa tokenizers` lists.")],
    regex: Annotated[str | None, typer.Option("--regex", "-r", help="The constraint: a regular expression.")] = None,
    choice: Annotated[list[str] | None, typer.Option("--choice", "-c", help="The constraint: a text; repeat.")] = None,
    grammar: Annotated[
        Path | None, typer.Option("--grammar", "-g", help="The constraint: a file that holds a Lark grammar.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", "-s", help="The constraint: a file with a JSON schema, or a case with its tests."),
    ] = None,
    schema_option: Annotated[
        list[str] | None,
        typer.Option("--schema-option", help="How the schema is read, as NAME=VALUE, such as order=any; repeat."),
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Text that has been generated already.")] = "",
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            "-b",
            help="A name that `tokdfa backends` lists (default: one that takes the constraint).",
        ),
    ] = None,
    search: Annotated[bool, typer.Option("--search", help="The text contains a match, instead of being one.")] = False,
    samples: Annotated[int, typer.Option("--samples", "-n", help="How many allowed tokens to print.")] = 24,
    option: OptionsArgument = None,
) -> None:
    """Print which tokens may come next."""
    from tokdfa.backends.registry import create_backend
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    constraint = _constraint(regex, search, choice, grammar, schema, schema_option)
    if backend is None:
        backend = {"grammar": "earley_trie", "json_schema": "pushdown_trie"}.get(constraint.kind, "token_index")
    _ensure_warm()
    loaded = load_tokenizer(tokenizer)
    settings = _parse_options(backend, option or [])
    if backend == "token_index" and not settings:
        settings = {"lazy": True}
    matcher = create_backend(backend, loaded.vocabulary, **settings).compile(constraint).start()
    _advance_by_text(matcher, loaded, prefix)
    _print_mask(matcher, loaded, samples)


def _constraint(
    regex: str | None,
    search: bool,
    choices: list[str] | None,
    grammar: Path | None,
    schema: Path | None,
    schema_options: list[str] | None,
) -> Constraint:
    """The one constraint that the arguments give."""
    from tokdfa.constraint import Choice, Grammar, Regex

    if (regex is not None) + bool(choices) + (grammar is not None) + (schema is not None) != 1:
        raise OptionError(
            "give one constraint: --regex PATTERN, --choice TEXT once or more, --grammar FILE, or --schema FILE"
        )
    if grammar is not None or schema is not None:
        from tokdfa.runs.yaml_source import read_text

        if schema is not None:
            return _read_schema(schema, schema_options or [])
        assert grammar is not None
        return Grammar(read_text(grammar), label=grammar.stem)
    return Regex(regex, search=search) if regex is not None else Choice(choices or [])


def _read_schema(path: Path, options: list[str]) -> JsonSchema:
    """The constraint of a file with a JSON schema, or with a case of a benchmark: a schema and its tests."""
    import json

    from tokdfa.constraint import JsonSchema
    from tokdfa.runs.yaml_source import read_text

    text, settings = read_text(path), _parse_settings(options)
    try:
        data = json.loads(text)
        if isinstance(data, dict) and "schema" in data and "tests" in data:
            text = json.dumps(data["schema"])
        return JsonSchema(text, label=path.stem, **settings)
    except json.JSONDecodeError as error:
        raise OptionError(f"{path} is not JSON: {error}") from None
    except TypeError:
        raise OptionError(f"a schema is read with options of JsonSchema, not {', '.join(settings)}") from None


def _advance_by_text(matcher: Matcher, tokenizer: Tokenizer, prefix: str) -> None:
    """Feed the tokenizer's tokens of `prefix`."""
    vocab = tokenizer.vocabulary
    done: list[int] = []
    for token in tokenizer.encode(prefix):
        try:
            matcher.advance(token)
        except TokenRefused:
            raise TokdfaError(
                f"the prefix leaves the constraint: after {vocab.spell(done)!r}, "
                f"token {token} ({vocab.token_bytes(token)!r}) is not allowed"
            ) from None
        done.append(token)
    if done:
        spelled = " ".join(f"{vocab.token_bytes(token)!r}" for token in done)
        console.print(f"prefix    {len(done)} tokens: {_plain(spelled)}", highlight=False)


def _print_mask(matcher: Matcher, tokenizer: Tokenizer, samples: int) -> None:
    import numpy as np
    from rich.table import Table

    from tokdfa import mask as masks

    vocab = tokenizer.vocabulary
    mask = masks.allocate_mask(vocab.size)
    matcher.fill_mask(mask)
    allowed = masks.mask_to_ids(mask)
    spelling = sorted((vocab.token_bytes(token), token) for token in allowed.tolist() if vocab.token_bytes(token))
    share = len(spelling) / vocab.size
    console.print(f"allowed   {len(spelling):,} of {vocab.size:,} tokens ({share:.2%})", highlight=False)
    console.print(f"may end   {'yes' if matcher.can_end() else 'no'}", highlight=False)
    forced = matcher.forced_tokens()
    if forced:
        console.print(f"forced    {_plain(repr(vocab.spell(forced)))} ({len(forced)} tokens)", highlight=False)
    if not spelling or samples <= 0:
        return
    picked = np.unique(np.linspace(0, len(spelling) - 1, min(samples, len(spelling))).round().astype(int))
    table = Table("token", "bytes", "token", "bytes", "token", "bytes", box=None, pad_edge=False)
    cells = [cell for k in picked.tolist() for cell in (str(spelling[k][1]), _plain(repr(spelling[k][0])[1:]))]
    for start in range(0, len(cells), 6):
        table.add_row(*cells[start : start + 6])
    title = "all of them" if len(picked) == len(spelling) else f"{len(picked)} of them, evenly spaced in byte order"
    console.print(f"{title}:", highlight=False)
    console.print(table)


@app.command("show")
def show_form(
    regex: Annotated[str | None, typer.Option("--regex", "-r", help="The constraint: a regular expression.")] = None,
    choice: Annotated[list[str] | None, typer.Option("--choice", "-c", help="The constraint: a text; repeat.")] = None,
    grammar: Annotated[
        Path | None, typer.Option("--grammar", "-g", help="The constraint: a file that holds a Lark grammar.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", "-s", help="The constraint: a file with a JSON schema, or a case with its tests."),
    ] = None,
    schema_option: Annotated[
        list[str] | None,
        typer.Option("--schema-option", help="How the schema is read, as NAME=VALUE, such as order=any; repeat."),
    ] = None,
    search: Annotated[bool, typer.Option("--search", help="The text contains a match, instead of being one.")] = False,
    lexer: Annotated[
        str, typer.Option("--lexer", help="For a grammar: longest, or any way to cut the text.")
    ] = "longest",
) -> None:
    """Print the program that `pushdown_trie` makes of a constraint."""
    from tokdfa.constraint import JsonSchema
    from tokdfa.pushdown.lower import lower_constraint_to_form

    if lexer not in ("longest", "any"):
        raise OptionError(f"--lexer is longest or any, not {lexer!r}")
    constraint = _constraint(regex, search, choice, grammar, schema, schema_option)
    if isinstance(constraint, JsonSchema):
        from tokdfa.json_schema.lower import lower_schema

        form, _ = lower_schema(constraint)
    else:
        form = lower_constraint_to_form(constraint, longest=lexer == "longest")
    console.print(_plain(str(form)), highlight=False, soft_wrap=True)


@app.command("proper")
def show_proper(
    tokenizer: Annotated[str, typer.Option("--tokenizer", "-t", help="A name that `tokdfa tokenizers` lists.")],
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
    from tokdfa.cli_proper import Question, answer

    question = Question(
        *(tokenizer, text, tokens, cut, after, statistics),
        *(as_text, separator, derivation, samples, as_json),
    )
    if not as_json:
        _ensure_warm()
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
    console.print(f"[bold]{info.name}[/]: {_plain(info.summary)}", highlight=False)
    console.print(f"takes {', '.join(info.kinds)}", highlight=False)
    table = Table("option", "type", "default", "what it does", box=None, pad_edge=False)
    for option in info.options:
        kind = " | ".join(option.choices) or option.kind.__name__
        table.add_row(option.name, _plain(kind), _plain(repr(option.default)), _plain(option.help))
    console.print(table if info.options else "no options")
    for law, reason in backend_class(name).known_differences.items():
        console.print(f"known difference ({_plain(law)}): {_plain(reason)}", highlight=False)


@app.command("tokenizers")
def list_tokenizers() -> None:
    """List the tokenizers that can be loaded by name."""
    from rich.table import Table

    from tokdfa.vocabulary.tokenizers import tokenizer_names

    table = Table("name", "tokens", "what it is", "installed", box=None, pad_edge=False)
    for info in tokenizer_names().values():
        size = f"{info.size:,}" if info.size else "by file"
        installed = "yes" if info.installed else f"no: pip install {' '.join(info.missing)}"
        table.add_row(_plain(info.name), size, _plain(info.summary), _plain(installed))
    console.print(table)


@app.command("models")
def show_models(
    name: Annotated[str | None, typer.Argument(help="One model: what comes after the prompt?")] = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", "-t", help="A name that `tokdfa tokenizers` lists.")
    ] = None,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text so far.")] = "",
    top: Annotated[int, typer.Option("--top", "-n", help="How many tokens to print.")] = 10,
) -> None:
    """List the language models, or print the tokens that one of them finds most probable after a prompt."""
    from tokdfa.cli_models import print_models, print_next_tokens

    if name is None:
        print_models(console)
    else:
        print_next_tokens(name, tokenizer, prompt, top, console)


@app.command("skew")
def show_skew(
    model: Annotated[str, typer.Option("--model", "-m", help="A name that `tokdfa models` lists.")],
    choice: Annotated[list[str], typer.Option("--choice", "-c", help="A text that may come next; at least two.")],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="The text so far.")] = "",
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", "-t", help="A name that `tokdfa tokenizers` lists.")
    ] = None,
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
    from tokdfa.cli_skew import Question, print_skew

    _ensure_warm()
    question = Question(model, tokenizer, prompt, choice, backend or [], eos, tolerance, max_rows)
    if not print_skew(question, console):
        raise typer.Exit(1)


@app.command()
def check(
    backend: Annotated[str, typer.Argument(help="A name that `tokdfa backends` lists.")],
    tokenizer: Annotated[
        list[str] | None, typer.Option("--tokenizer", "-t", help="Also on this tokenizer; may be repeated.")
    ] = None,
    option: OptionsArgument = None,
) -> None:
    """Run the laws of the mask interface on a backend."""
    from tokdfa.backends.contract import check_backend, real_cases, toy_cases

    settings = _parse_options(backend, option or [])
    _ensure_warm()
    cases = [*toy_cases(), *(real_cases(tokenizer) if tokenizer else [])]
    with console.status("checking") as status:
        results = check_backend(
            backend, settings, cases=cases, report=lambda result: status.update(f"checking: {_plain(result.law)}")
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
            console.print(f"[red]broken[/] {_plain(f'{result.law}, {result.case}: {result.message}')}", highlight=False)


@app.command()
def warmup() -> None:
    """Compile all kernels now (they are kept on disk)."""
    from tokdfa import jit

    if jit.is_warm():
        console.print(f"all kernels are compiled already, in {jit.kernel_folder()}", highlight=False, soft_wrap=True)
        return
    _ensure_warm()


def _ensure_warm() -> None:
    """Compile the kernels if this machine has not yet, saying so."""
    from tokdfa import jit

    if jit.is_warm():
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console.print(
        f"compiling kernels, once (a minute or two; kept in {jit.kernel_folder()})", highlight=False, soft_wrap=True
    )
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("kernels", total=len(jit.WARMUP_STEPS))
        for title, done, total in jit.warm_up():
            progress.update(bar, description=title, completed=done, total=total)
        progress.update(bar, description="kernels", completed=len(jit.WARMUP_STEPS))


def _parse_options(backend: str, given: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts as typed settings of `backend`."""
    from tokdfa.backends.registry import backend_class
    from tokdfa.errors import UnknownNameError

    known = {option.name: option for option in backend_class(backend).options}
    settings: dict[str, Any] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator:
            raise OptionError(f"an option is NAME=VALUE, not {text!r}")
        if name not in known:
            raise UnknownNameError(f"option of backend {backend}", name, known)
        settings[name] = known[name].parse(value)
    return settings


def _plain(text: str) -> str:
    """`text` without any meaning to rich's markup."""
    from rich.markup import escape

    return escape(text)

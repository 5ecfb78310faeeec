"""``tokdfa mask`` and ``tokdfa show``: which tokens may come next, and what a backend makes of a constraint.

`show` has two answers. For `pushdown_trie` it is the program; for `cfg_fsm` the situation after a text: what its end
may be, and the speculative terminal tree, the terminals that the next token may run through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokdfa.cli import arguments
from tokdfa.cli.text import parse_ids, plain, print_table
from tokdfa.errors import OptionError, TokdfaError, TokenRefused, VocabularyCannotSpell, counted

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer


def mask(
    tokenizer: arguments.Tokenizer,
    regex: arguments.Regex = None,
    choice: arguments.Choice = None,
    grammar: arguments.Grammar = None,
    schema: arguments.Schema = None,
    schema_option: arguments.SchemaOptions = None,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Text that has been generated already.")] = "",
    tokens: Annotated[
        str | None, typer.Option("--tokens", help="Ids of tokens in place of --prefix, as in '17 4'.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            "-b",
            help="A name that `tokdfa backends` lists (default: one that takes the constraint).",
        ),
    ] = None,
    search: arguments.Search = False,
    samples: Annotated[int, typer.Option("--samples", "-n", min=0, help="How many allowed tokens to print.")] = 24,
    option: arguments.Options = None,
) -> None:
    """Print which tokens may come next."""
    from tokdfa.backends.registry import create_backend, default_backend
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    if tokens is not None and prefix:
        raise OptionError("give --prefix or --tokens: both say what has been generated already")
    ids = None if tokens is None else parse_ids(tokens)
    constraint = arguments.read_constraint(regex, search, choice, grammar, schema, schema_option, "generation")
    if backend is None:
        backend = default_backend(constraint)
    loaded, console = load_tokenizer(tokenizer), Console()
    settings = arguments.read_options(backend, option or [])
    if backend == "token_index" and not settings:
        settings = {"lazy": True}
    matcher = create_backend(backend, loaded.vocabulary, **settings).compile(constraint).start()
    advance(matcher, loaded, spell(loaded, prefix) if ids is None else ids, console)
    print_mask(matcher, loaded, samples, console)


def show(
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
) -> None:
    """Print what a backend makes of a constraint: its program, or which terminals the next token may run through."""
    constraint = arguments.read_constraint(regex, search, choice, grammar, schema, schema_option)
    if backend == "cfg_fsm":
        if lexer is not None:
            raise OptionError("--lexer is for --backend pushdown_trie; cfg_fsm lexes as Lark does")
        if tokenizer is None:
            raise OptionError("which terminals a token runs through depends on the vocabulary: give --tokenizer")
        _print_situation(constraint, tokenizer, prefix, Console())
    elif backend != "pushdown_trie":
        raise OptionError(f"--backend is one of pushdown_trie, cfg_fsm here, not {backend!r}")
    elif prefix or tokenizer is not None:
        raise OptionError("--prefix and --tokenizer are for --backend cfg_fsm; a program knows no tokens")
    else:
        _print_program(constraint, lexer or "longest", Console())


def _print_program(constraint: Constraint, lexer: str, console: Console) -> None:
    from tokdfa.constraint import JsonSchema
    from tokdfa.program.lower import lower_constraint
    from tokdfa.program.printing import format_program

    if lexer not in ("longest", "any"):
        raise OptionError(f"--lexer is longest or any, not {lexer!r}")
    if isinstance(constraint, JsonSchema):
        from tokdfa.core.nesting import with_room
        from tokdfa.json_schema.write.lower import lower_and_remember

        program = with_room(lambda: lower_and_remember(constraint)[0])
    else:
        from tokdfa.json_schema.write.expand import SchemaPrograms

        program = lower_constraint(constraint, longest=lexer == "longest", schema=SchemaPrograms())
        for terminal in program.source.terminals:
            terminal.make()  # a regex is read here
    console.print(plain(format_program(program)), highlight=False, soft_wrap=True)


def _print_situation(constraint: Constraint, tokenizer: str, prefix: str, console: Console) -> None:
    from tokdfa.backends.cfg_fsm.tree_graph import tree_text, tree_to_networkx
    from tokdfa.backends.registry import create_backend
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    compiled: Any = create_backend("cfg_fsm", loaded.vocabulary, masks="vectors").compile(constraint)
    matcher: Any = compiled.start()
    advance(matcher, loaded, spell(loaded, prefix), console)
    _print_readings(compiled.machine, matcher.state, console)
    graph = tree_to_networkx(compiled.machine, compiled.filler, loaded.vocabulary, matcher.state)
    console.print(plain(tree_text(graph)), highlight=False, soft_wrap=True)


def _print_readings(machine: Any, situation: int, console: Console) -> None:
    """A line for each hypothesis."""
    from tokdfa.backends.cfg_fsm.describe import readings

    rows = []
    for reading in readings(machine, situation):
        where = "in a lexeme" if reading.begun else "between lexemes"
        cells = (" | ".join(reading.may_become) or "-", ", ".join(reading.must_not_match))
        end = ", may end" if reading.may_end else ""
        rows.append((where + end, *cells, str(len(reading.stack))))
    print_table(console, ("the end of the text", "may become", "must not match", "states on the stack"), rows)


def spell(tokenizer: Tokenizer, prefix: str) -> list[int]:
    """The tokenizer's tokens of a text. Raises VocabularyCannotSpell if they do not spell it."""
    vocab = tokenizer.vocabulary
    tokens, wanted = tokenizer.encode(prefix), prefix.encode()
    spelled = vocab.spell(tokens)
    if spelled != wanted:
        pairs = enumerate(zip(spelled, wanted, strict=False))
        position = next((place for place, (one, other) in pairs if one != other), min(len(spelled), len(wanted)))
        raise VocabularyCannotSpell(
            f"{tokenizer.name} changes the prefix at position {position} of its bytes: {wanted[position:][:20]!r} "
            f"becomes {spelled[position:][:20]!r}; write it as the tokenizer does"
        )
    return tokens


def advance(matcher: Matcher, tokenizer: Tokenizer, tokens: list[int], console: Console) -> None:
    """Feed tokens, and print them. Raises TokdfaError where one is not allowed."""
    vocab = tokenizer.vocabulary
    done: list[int] = []
    for token in tokens:
        try:
            matcher.advance(token)
        except TokenRefused:
            if not 0 <= token < vocab.size:
                raise
            raise TokdfaError(
                f"the prefix leaves the constraint: after {vocab.spell(done)!r}, "
                f"token {token} ({vocab.token_bytes(token)!r}) is not allowed"
            ) from None
        done.append(token)
    if done:
        listed = " ".join(f"{vocab.token_bytes(token)!r}" for token in done)
        console.print(f"prefix    {counted(len(done), 'token')}: {plain(listed)}", highlight=False)


def print_mask(matcher: Matcher, tokenizer: Tokenizer, samples: int, console: Console) -> None:
    """How many tokens are allowed, what is forced, and `samples` of the tokens, evenly spaced in byte order."""
    import numpy as np

    from tokdfa import mask as masks

    vocab = tokenizer.vocabulary
    mask = masks.allocate_mask(vocab.size)
    matcher.fill_mask(mask)
    allowed = masks.mask_to_ids(mask)
    spelling = sorted((vocab.token_bytes(token), token) for token in allowed.tolist() if vocab.token_bytes(token))
    share = len(spelling) / vocab.size
    console.print(f"allowed   {len(spelling):,} of {counted(vocab.size, 'token')} ({share:.2%})", highlight=False)
    console.print(f"may end   {'yes' if matcher.can_end() else 'no'}", highlight=False)
    forced = matcher.forced_tokens()
    text = [token for token in forced if token not in vocab.end_token_set]
    if forced:
        end = ", then the end" if len(text) < len(forced) else ""
        said = f"{plain(repr(vocab.spell(text)))} ({counted(len(text), 'token')}){end}"
        console.print(f"forced    {said}", highlight=False)
    if not spelling or not samples:
        return
    picked = np.unique(np.linspace(0, len(spelling) - 1, min(samples, len(spelling))).round().astype(int))
    cells = [cell for k in picked.tolist() for cell in (str(spelling[k][1]), repr(spelling[k][0])[1:])]
    title = "all of them" if len(picked) == len(spelling) else f"{len(picked)} of them, evenly spaced in byte order"
    console.print(f"{title}:", highlight=False)
    print_table(console, ("token", "bytes") * 3, [cells[start : start + 6] for start in range(0, len(cells), 6)])

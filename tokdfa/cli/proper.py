"""``tokdfa proper``: the proper tokens of a text, and verdicts on sequences of tokens.

A token that is UTF-8 is shown as a text ('ö'), any other as bytes (b'\\xc3').
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tokdfa.cli import arguments  # noqa: TC001 (typer reads the annotations)
from tokdfa.cli.text import parse_ids, print_error, print_line, print_plain, spelled, text_of
from tokdfa.errors import OptionError, TokdfaError, VocabularyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How many rows of two sequences are printed before and after their first difference.
CONTEXT_ROWS = 12
#: How much of a text or piece is printed.
SHOWN_CHARACTERS = 60


def proper(
    tokenizer: arguments.Tokenizer,
    text: Annotated[str | None, typer.Argument(help="A text: what are its proper tokens?")] = None,
    tokens: Annotated[str | None, typer.Option("--tokens", help="Token ids to judge, as in 1,2,3.")] = None,
    cut: Annotated[str | None, typer.Option("--cut", help='Tokens to judge, as a text: " The|od|ore".')] = None,
) -> None:
    """Print a text's proper tokens, or judge whether tokens are proper: what the tokenizer makes of their text.

    Exit status: 0 proper, 1 not proper, 2 error.
    """
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    try:
        if sum(given is not None for given in (text, tokens, cut)) != 1:
            raise OptionError("give one of: TEXT, --tokens IDS, --cut TEXT")
        loaded, console = load_tokenizer(tokenizer), Console()
        status = 0
        if text is not None:
            _print_pieces(loaded, text, console)
        else:
            given = parse_ids(tokens or "") if cut is None else cut_tokens(loaded, cut)
            status = 0 if _print_verdict(loaded, given, console) else 1
    except TokdfaError as error:
        print_error(error)
        status = 2
    raise typer.Exit(status)


def cut_tokens(tokenizer: Tokenizer, text: str) -> list[int]:
    """The tokens that the parts of `text` between ``|`` spell, one each.

    Raises OptionError (an empty part), VocabularyError (a part that is no token, by its number).
    """
    tokens = []
    for number, part in enumerate(text.split("|") if text else []):
        if not part:
            raise OptionError(f"part {number} of --cut is empty; give the ids of tokens with a | by --tokens")
        tokens.append(find_token(tokenizer, part, f"part {number} of --cut"))
    return tokens


def find_token(tokenizer: Tokenizer, text: str, what: str) -> int:
    """The token that spells `text`: of several the one that encoding uses, else the first.

    Raises VocabularyError, calling the text `what`, if there is none. O(V).
    """
    import numpy as np

    from tokdfa.proper.rules_cache import load_canonicity

    vocabulary, data = tokenizer.vocabulary, text.encode(errors="surrogateescape")
    alike = np.flatnonzero(vocabulary.lengths == len(data)).tolist() if data else []
    found = [token for token in alike if vocabulary.token_bytes(token) == data]
    if not found:
        raise VocabularyError(f"{what}: no token of {tokenizer.name} spells {text!r}")
    if len(found) == 1:
        return int(found[0])
    canonicity = load_canonicity(tokenizer)
    isolated = frozenset(canonicity.source.isolated)
    return int(min(found, key=lambda token: (token not in isolated, not canonicity.usable[token], token)))


def _print_pieces(tokenizer: Tokenizer, text: str, console: Console) -> None:
    """The proper tokens of a text, piece by piece."""
    from tokdfa.proper.explain_text import encode_text, join_pieces

    vocabulary, pieces = tokenizer.vocabulary, encode_text(tokenizer, text)
    tokens = join_pieces(pieces)
    print_line(console, "text", f"{_size(text.encode())}, {_count(len(pieces), 'piece')}")
    if tokens is None:
        print_line(console, "proper", "no tokens: the text holds a character that no tokens stand for")
    else:
        print_line(console, "proper", f"{_count(len(tokens), 'token')}: {', '.join(map(str, tokens))}")
    rows = [
        ["" if index else _shorten(piece.text), str(token), spelled(vocabulary, token)]
        for piece in pieces
        for index, token in enumerate(piece.tokens or ())
    ]
    if rows:
        _print_table(console, ["piece", "token", "spells"], rows)


def _print_verdict(tokenizer: Tokenizer, tokens: Sequence[int], console: Console) -> bool:
    """Whether tokens are proper; if not, where and by which rule."""
    from tokdfa.proper.explain_text import explain_tokens, first_difference

    vocabulary, verdict = tokenizer.vocabulary, explain_tokens(tokenizer, tokens)
    fault, proper = verdict.fault, verdict.proper_tokens
    print_plain(console, "proper" if fault is None else f"not proper: at position {fault.position}: {fault.reason}")
    pieces = "" if verdict.pieces is None else f", {_count(len(verdict.pieces), 'piece')}"
    print_line(console, "text", f"{_shorten(verdict.text)} ({_size(verdict.text)}{pieces})")
    if fault is None:
        rows = [[str(k), str(token), spelled(vocabulary, token)] for k, token in enumerate(verdict.tokens)]
        if rows:
            _print_table(console, ["position", "token", "spells"], rows)
    elif proper is None:
        print_line(console, "proper", "there is no proper sequence of this text")
    else:
        difference = first_difference(verdict.tokens, proper) or 0
        _print_side_by_side(vocabulary, verdict.tokens, proper, difference, console)
    return verdict.is_proper


def _print_side_by_side(
    vocabulary: Vocabulary, given: Sequence[int], proper: Sequence[int], difference: int, console: Console
) -> None:
    """Both sequences in rows, by position: up to their first difference they agree."""
    rows = []
    for position, tokens in enumerate(zip_longest(given, proper)):
        cells = (("", "") if one is None else (str(one), spelled(vocabulary, one)) for one in tokens)
        mark = "<- first difference" if position == difference else ""
        rows.append([str(position), *chain.from_iterable(cells), mark])
    begin, end = max(0, difference - CONTEXT_ROWS), difference + CONTEXT_ROWS + 1
    if begin:
        print_line(console, "...", f"{_count(begin, 'row')} without a difference")
    _print_table(console, ["position", "given", "spells", "proper", "spells", ""], rows[begin:end])
    if end < len(rows):
        print_line(console, "...", f"{_count(len(rows) - end, 'row')} more")


def _shorten(data: bytes) -> str:
    """The beginning of a text, or of bytes that are none."""
    text: str | bytes | None = text_of(data)
    text = data if text is None else text
    return repr(text[:SHOWN_CHARACTERS]) + ("..." if len(text) > SHOWN_CHARACTERS else "")


def _size(data: bytes) -> str:
    text = text_of(data)
    characters = "" if text is None else f"{_count(len(text), 'character')}, "
    return f"{characters}{_count(len(data), 'byte')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns side by side, their widths counted as a terminal does (some characters take two cells, some none)."""
    from rich.cells import cell_len

    lines = [headings, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        print_plain(console, "  ".join(padded).rstrip())

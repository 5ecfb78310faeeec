"""``tokdfa proper``: the proper tokens of a text, verdicts on sequences, what may not follow a token.

Spelling on the screen: a token that is UTF-8 is shown as a text ('ö'), any other as bytes (b'\\xc3'). In JSON a token
is an object with ``id``, ``hex`` (its bytes) and ``text`` (null if they are no UTF-8).
"""

from __future__ import annotations

import json
import re
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tokdfa.cli import arguments  # noqa: TC001 (typer reads the annotations)
from tokdfa.cli.text import print_error, print_line, print_plain, spelled, text_of
from tokdfa.errors import OptionError, TokdfaError, VocabularyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.explain_text import Piece
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: How many rows of two sequences are printed before and after their first difference.
CONTEXT_ROWS = 12
#: How many examples stand beside a rule.
EXAMPLES = 4

#: How much of a text or piece is printed.
SHOWN_CHARACTERS = 60

_NUMBERS = re.compile(r"[0-9]+(?:(?:\s*,\s*|\s+)[0-9]+)*")


def proper(
    tokenizer: arguments.Tokenizer,
    text: Annotated[
        str | None, typer.Argument(help='A text; or token ids to judge, as in "[1, 2, 3]" or "1 2 3".')
    ] = None,
    tokens: Annotated[str | None, typer.Option("--tokens", help="Token ids to judge, as in 1,2,3.")] = None,
    cut: Annotated[str | None, typer.Option("--cut", help='Tokens to judge, as a text: " The|od|ore".')] = None,
    after: Annotated[str | None, typer.Option("--after", help="A token (its id or text): what may not follow?")] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Statistics of the tokenizer's merge rules.")
    ] = False,
    as_text: Annotated[bool, typer.Option("--text", help="What looks like token ids is a text all the same.")] = False,
    separator: Annotated[str, typer.Option(help="What stands between the tokens of --cut.")] = "|",
    derivation: Annotated[bool, typer.Option("--derivation", "-d", help="Also print how tokens are merged.")] = False,
    samples: Annotated[int, typer.Option("--samples", "-n", help="How many rules --after prints.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print a text's proper tokens, or judge whether tokens are proper: what the tokenizer makes of their text.

    Exit status: 0 proper, 1 not proper, 2 error.
    """
    from tokdfa.vocabulary.tokenizers import load_tokenizer

    asked = [given is not None for given in (text, tokens, cut, after)] + [statistics]
    try:
        if sum(asked) != 1:
            raise OptionError("give one of: TEXT, --tokens IDS, --cut TEXT, --after TOKEN, --statistics")
        loaded, console = load_tokenizer(tokenizer), Console()
        status = 0
        if statistics:
            _print_statistics(loaded, as_json, console)
        elif after is not None:
            _print_followers(loaded, _named_token(loaded, after, as_text), samples, as_json, console)
        elif text is not None and (as_text or not looks_like_ids(text)):
            _print_pieces(loaded, text, derivation, as_json, console)
        else:
            given = parse_ids(tokens or text or "") if cut is None else cut_tokens(loaded, cut, separator)
            status = 0 if _print_verdict(loaded, given, derivation, as_json, console) else 1
    except TokdfaError as error:
        print_error(error)
        status = 2
    raise typer.Exit(status)


def looks_like_ids(text: str) -> bool:
    """Whether a text is taken for token ids: numbers in brackets, or two numbers and more between spaces or commas."""
    inside, bracketed = _without_brackets(text)
    return bool(_NUMBERS.fullmatch(inside)) and (bracketed or not inside.isdigit())


def parse_ids(text: str) -> list[int]:
    """Token ids between spaces or commas, in brackets or not. Raises OptionError for anything else."""
    found = []
    for part in filter(None, re.split(r"[\s,]+", _without_brackets(text)[0])):
        if not re.fullmatch(r"-?[0-9]{1,12}", part):
            raise OptionError(f"token ids are numbers between commas or spaces, not {part[:40]!r}")
        found.append(int(part))
    return found


def _without_brackets(text: str) -> tuple[str, bool]:
    """What stands in square brackets, or the text itself; and whether there were brackets."""
    text = text.strip()
    bracketed = len(text) > 1 and text[0] == "[" and text[-1] == "]"
    return (text[1:-1].strip() if bracketed else text), bracketed


def cut_tokens(tokenizer: Tokenizer, text: str, separator: str = "|") -> list[int]:
    """The tokens that the parts of `text` between separators spell, one each.

    Raises OptionError (no separator given, an empty part), VocabularyError (a part that is no token, by its number).
    """
    if not separator:
        raise OptionError("the separator of --cut is at least one character")
    tokens = []
    for number, part in enumerate(text.split(separator) if text else []):
        if not part:
            raise OptionError(f"part {number} of --cut is empty; choose another --separator if {separator!r} is text")
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


def _named_token(tokenizer: Tokenizer, name: str, as_text: bool) -> int:
    """A token given by its id or by its text."""
    if not as_text and re.fullmatch(r"[0-9]{1,12}", name):
        tokenizer.vocabulary.token_bytes(int(name))  # raises
        return int(name)
    return find_token(tokenizer, name, "--after")


def _print_pieces(tokenizer: Tokenizer, text: str, derivation: bool, as_json: bool, console: Console) -> None:
    """The proper tokens of a text, piece by piece."""
    from tokdfa.proper.explain_text import encode_text, join_pieces
    from tokdfa.proper.rules_cache import load_canonicity

    vocabulary, canonicity, pieces = tokenizer.vocabulary, load_canonicity(tokenizer), encode_text(tokenizer, text)
    tokens = join_pieces(pieces)
    if as_json:
        described = [
            {
                "text": piece.text.decode(),
                "tokens": [
                    _describe(vocabulary, token) | (_origin(canonicity, token, piece) if derivation else {})
                    for token in piece.tokens or ()
                ],
            }
            for piece in pieces
        ]
        _print_json({"tokenizer": tokenizer.name, "text": text, "proper_tokens": tokens, "pieces": described}, console)
        return
    print_line(console, "text", f"{_size(text.encode())}, {_count(len(pieces), 'piece')}")
    if tokens is None:
        print_line(console, "proper", "no tokens: the text holds a character that no tokens stand for")
    else:
        print_line(console, "proper", f"{_count(len(tokens), 'token')}: {', '.join(map(str, tokens))}")
    rows = []
    for piece in pieces:
        for index, token in enumerate(piece.tokens or ()):
            cells = ["" if index else _shorten(piece.text), str(token), spelled(vocabulary, token)]
            if derivation:
                origin = _origin(canonicity, token, piece)
                cells.append(", ".join(map(_merge_in_words, origin["merges"])) or origin["origin"])
            rows.append(cells)
    if rows:
        headings = ["piece", "token", "spells", "merges in order (rank)"]
        _print_table(console, headings[: len(rows[0])], rows)


def _origin(canonicity: Canonicity, token: int, piece: Piece) -> dict[str, Any]:
    """How a token of a proper sequence comes to be: a word, and the merges of its letters in order."""
    from tokdfa.proper.explain_text import merge_steps

    merges: list[dict[str, Any]] = []
    if token in canonicity.source.isolated:
        origin = "isolated: cut out before merging"
    elif canonicity.fallback is not None and canonicity.fallback.byte_of[token] >= 0:
        origin = "byte fallback: its character is no token"
    elif piece.tokens == (token,) and token in canonicity.whole_piece_encodings:
        encoding = ", ".join(map(str, canonicity.whole_piece_encodings[token]))
        origin = f"a token as a whole piece; merging would give {encoding}"
    else:
        merges = [_describe_rule(canonicity, rule) for rule in merge_steps(canonicity, token)]
        origin = "merged" if merges else "a letter"
    return {"origin": origin, "merges": merges}


def _print_verdict(
    tokenizer: Tokenizer, tokens: Sequence[int], derivation: bool, as_json: bool, console: Console
) -> bool:
    """Whether tokens are proper; if not, where and by which rule."""
    from tokdfa.proper.explain_text import explain_tokens, first_difference, merge_steps
    from tokdfa.proper.rules_cache import load_canonicity

    vocabulary, canonicity, verdict = (
        tokenizer.vocabulary,
        load_canonicity(tokenizer),
        explain_tokens(tokenizer, tokens),
    )
    fault, proper = verdict.fault, verdict.proper_tokens
    difference = None if fault is None or proper is None else first_difference(verdict.tokens, proper)
    if as_json:
        described = None
        if fault is not None:
            rule = None if fault.rule is None else _describe_rule(canonicity, fault.rule)
            described = {"position": fault.position, "kind": fault.kind, "reason": fault.reason, "rule": rule}
        content = {
            "tokenizer": tokenizer.name,
            "proper": verdict.is_proper,
            "tokens": [_describe(vocabulary, token) for token in verdict.tokens],
            "text": text_of(verdict.text),
            "fault": described,
            "pieces": verdict.pieces and [piece.text.decode() for piece in verdict.pieces],
            "proper_tokens": proper,
            "first_difference": difference,
        }
        _print_json(content, console)
        return verdict.is_proper
    print_plain(console, "proper" if fault is None else f"not proper: at position {fault.position}: {fault.reason}")
    pieces = "" if verdict.pieces is None else f", {_count(len(verdict.pieces), 'piece')}"
    print_line(console, "text", f"{_shorten(verdict.text)} ({_size(verdict.text)}{pieces})")
    if fault is not None and fault.rule is not None and derivation:
        for token in verdict.tokens[fault.position - 1 : fault.position + 1]:
            steps = [_describe_rule(canonicity, rule) for rule in merge_steps(canonicity, token)]
            own = ", ".join(map(_merge_in_words, steps)) or "a letter"
            print_line(console, "merges", f"{token} {spelled(vocabulary, token)}: {own}")
    if fault is None:
        rows = [[str(k), str(token), spelled(vocabulary, token)] for k, token in enumerate(verdict.tokens)]
        if rows:
            _print_table(console, ["position", "token", "spells"], rows)
    elif proper is None:
        print_line(console, "proper", "there is no proper sequence of this text")
    else:
        _print_side_by_side(vocabulary, verdict.tokens, proper, difference or 0, console)
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


def _print_followers(tokenizer: Tokenizer, token: int, samples: int, as_json: bool, console: Console) -> None:
    """Which tokens may not follow `token` inside a piece, by the rule that merges."""
    from tokdfa.proper.rules_cache import load_canonicity
    from tokdfa.proper.statistics import forbidden_by_rule

    vocabulary, canonicity = tokenizer.vocabulary, load_canonicity(tokenizer)
    by_rule = forbidden_by_rule(canonicity, token)
    forbidden, possible = sum(map(len, by_rule.values())), len(canonicity.merge_tree.order)
    listed = list(by_rule.items())[: max(0, samples)]
    if as_json:
        rules = [
            _describe_rule(canonicity, rule)
            | {"forbids": len(followers), "examples": [_describe(vocabulary, one) for one in followers[:EXAMPLES]]}
            for rule, followers in listed
        ]
        content = {"tokenizer": tokenizer.name, "token": _describe(vocabulary, token), "forbidden": forbidden}
        _print_json(content | {"of": possible, "rule_count": len(by_rule), "rules": rules}, console)
        return
    print_line(console, "after", f"{token} {spelled(vocabulary, token)}")
    share = f"{forbidden:,} of {possible:,} tokens ({forbidden / possible:.2%})"
    print_line(console, "forbidden", f"{share} may not follow inside a piece")
    if canonicity.fallback is not None and canonicity.fallback.byte_of[token] >= 0:
        print_line(console, "note", "a byte token never merges; inside a character only byte tokens may follow it")
    if not listed:
        return
    which = "all" if len(listed) == len(by_rule) else f"{len(listed)} of {len(by_rule):,}"
    print_plain(console, f"rules that merge across the border, {which}:")
    rows = [
        [
            _merge_in_words(_describe_rule(canonicity, rule)),
            f"{len(followers):,}",
            ", ".join(spelled(vocabulary, one) for one in followers[:EXAMPLES]),
        ]
        for rule, followers in listed
    ]
    _print_table(console, ["merge (rank)", "forbids", "for example"], rows)


def _print_statistics(tokenizer: Tokenizer, as_json: bool, console: Console) -> None:
    from tokdfa.proper.statistics import collect_statistics

    figures, vocabulary = collect_statistics(tokenizer), tokenizer.vocabulary
    after = figures.largest_after
    if as_json:
        tokens = [_describe(vocabulary, token) for token in after]
        _print_json({"tokenizer": tokenizer.name} | vars(figures) | {"largest_after": tokens}, console)
        return
    shown = ", ".join(f"{token} {spelled(vocabulary, token)}" for token in after[:EXAMPLES])
    shown += f" and {len(after) - EXAMPLES} more" if len(after) > EXAMPLES else ""
    kinds = {
        "proper": figures.proper_tokens,
        "improper": figures.improper_tokens,
        "of these proper as a whole piece": figures.whole_pieces,
        "irregular": figures.irregular_tokens,
        "for byte fallback": figures.byte_tokens,
        "isolated": figures.isolated_tokens,
    }
    always = ("proper", "improper", "irregular")
    counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number or kind in always)
    print_line(console, "tokenizer", f"{tokenizer.name}, {figures.tokens:,} tokens")
    print_line(console, "rules", f"{figures.rules:,}")
    print_line(console, "tokens", counted)
    print_line(console, "states", f"{figures.states:,}, with {figures.intervals:,} intervals")
    print_line(console, "largest", f"{figures.largest_count:,} tokens may not follow {shown}")
    pieces = "no pre-tokenizer"
    if figures.marked_states is not None and figures.marked_bytes is not None:
        pieces = f"pre-tokenizer: {figures.marked_states:,} states, {figures.marked_bytes / 1e6:.1f} MB"
    print_line(console, "memory", f"{figures.memory_bytes / 1e6:.1f} MB; {pieces}")
    loading = "loaded from the disk" if figures.on_disk else "built again, since the disk keeps nothing,"
    times = f"built in {figures.build_seconds:.2f} s, {loading} and verified in {figures.load_seconds:.2f} s"
    print_line(console, "time", times)


def _describe(vocabulary: Vocabulary, token: int) -> dict[str, Any]:
    data = vocabulary.token_bytes(token)
    return {"id": token, "hex": data.hex(), "text": text_of(data)}


def _describe_rule(canonicity: Canonicity, rule: int) -> dict[str, Any]:
    rules, vocabulary = canonicity.rules, canonicity.vocabulary
    parts = {"left": rules.left, "right": rules.right, "result": rules.result}
    described = {name: _describe(vocabulary, int(part[rule])) for name, part in parts.items()}
    return {**described, "rank": int(rules.rank[rule])}


def _merge_in_words(rule: dict[str, Any]) -> str:
    left, right = (repr(part["text"] or bytes.fromhex(part["hex"])) for part in (rule["left"], rule["right"]))
    return f"{left}+{right} ({rule['rank']})"


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


def _print_json(content: dict[str, Any], console: Console) -> None:
    print_plain(console, json.dumps(content, ensure_ascii=False))

r"""How models write calls of tools: descriptions of formats, and `tools`, which makes tags of one and a list of tools.

A description is text with NAME and ARGUMENTS in it. What stands between ⟦ and ⟧ may be left out; IDENTIFIER in it is
nine letters and digits. What it lists as markers is a special token where the vocabulary has one that is printed so,
and text elsewhere. A format with an `opening` puts several calls between that and its `closing`; others repeat the
call. A special token that begins calls may begin other things, too: `others` says which, with TEXT in them. An end
token of the vocabulary is left out of a description: the text may end there. The formats are those of the models' chat
templates (docs/tags.md says what each was checked against):

- ``llama3``: Llama 3.1 and later, JSON as text; ``llama3_function``: its user-defined ``<function=...>`` tags;
- ``hermes``: Hermes 2 Pro, Qwen 2.5 and 3; ``mistral``: tokenizers v2 to v7; ``mistral_args``: v11 and later;
- ``deepseek``: V3 and R1; ``deepseek_v31``: V3.1;
- ``harmony``: gpt-oss, what follows ``<|start|>assistant``, the recipient before the channel or after it; messages of
  other channels count as calls for ``at_least_one`` and ``stop_after_first``.
"""

from __future__ import annotations

import json as json_text
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.core.arguments import as_bool, as_sequence, as_text
from tokdfa.errors import ArgumentError, OptionError, UnknownNameError
from tokdfa.grammar.parts import NOTHING, Rule, choice, json, regex, repeat, seq, special, tag, tags, text_without
from tokdfa.grammar.tool_calls import ToolCalls
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.grammar.parts import Part
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class ToolFormat:
    """A format. `call`: one call; `trigger`: with what of it, or of `opening`, a call has begun. `also`: other ways to
    write a call, which begin with what stands before NAME.
    """

    call: str
    trigger: str
    opening: str = ""
    between: str = ""
    closing: str = ""
    markers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


_CALL = '{"name": "NAME", "arguments": ARGUMENTS}'
_DEEPSEEK = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
)
FORMATS: dict[str, ToolFormat] = {
    "llama3": ToolFormat('{"name": "NAME", "parameters": ARGUMENTS}', '{"name": "'),
    "llama3_function": ToolFormat("<function=NAME>ARGUMENTS</function>", "<function="),
    "hermes": ToolFormat(f"<tool_call>\n{_CALL}\n</tool_call>", "<tool_call>", markers=("<tool_call>", "</tool_call>")),
    "mistral": ToolFormat(
        '{"name": "NAME", "arguments": ARGUMENTS⟦, "id": "IDENTIFIER"⟧}',
        "[TOOL_CALLS]", "[TOOL_CALLS]⟦ ⟧[", ", ", "]", ("[TOOL_CALLS]",),
    ),
    "mistral_args": ToolFormat(
        "[TOOL_CALLS]NAME⟦[CALL_ID]IDENTIFIER⟧[ARGS]ARGUMENTS", "[TOOL_CALLS]",
        markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    ),
    "deepseek": ToolFormat(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGUMENTS\n```<｜tool▁call▁end｜>",
        _DEEPSEEK[0], _DEEPSEEK[0], "\n", _DEEPSEEK[1], _DEEPSEEK,
    ),
    "deepseek_v31": ToolFormat(
        "<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS<｜tool▁call▁end｜>",
        _DEEPSEEK[0], _DEEPSEEK[0], "", _DEEPSEEK[1], _DEEPSEEK,
    ),
    "harmony": ToolFormat(
        "<|channel|>commentary to=functions.NAME⟦ ⟧<|constrain|>json<|message|>ARGUMENTS<|call|>",
        "<|channel|>commentary to=",
        markers=("<|channel|>", "<|constrain|>", "<|message|>", "<|call|>", "<|end|>", "<|start|>"),
        others=("<|channel|>analysis<|message|>TEXT<|end|><|start|>assistant", "<|channel|>final<|message|>TEXT"),
        also=(" to=functions.NAME<|channel|>commentary ⟦<|constrain|>⟧json<|message|>ARGUMENTS<|call|>",),
    ),
}  # fmt: skip


def tools(
    format: str | ToolFormat,
    tools: Iterable[Mapping[str, Any]],
    vocab: Vocabulary | Tokenizer,
    *,
    at_least_one: bool = False,
    stop_after_first: bool = False,
    free_text: bool = True,
    parallel: bool = True,
    **json_options: Any,
) -> ToolCalls:
    """Free text with calls of tools in it, as `tokdfa.grammar.parts.tags`: ``tokdfa.constrain(tools(...), tokenizer)``,
    whose `parse` gives the calls, or ``tokdfa.Grammar(tools(...))``.

    `format`: a name of `FORMATS`, or a description; `tools`: each ``{"name": ..., "parameters": schema}``, alone or as
    OpenAI's ``{"type": "function", "function": {...}}``, any object if there are no parameters or null; `vocab`: says
    which markers are special tokens; `parallel`: several calls between one opening and closing, where the format has
    these; `json_options`: options of `JsonSchema` for the arguments. Raises UnknownNameError for a format,
    ArgumentError and OptionError for a tool that is none, for equal names, and for what `tags` refuses; what is wrong
    with a schema is said when the grammar is compiled, with its JSON pointer.
    """
    if not isinstance(format, ToolFormat):
        if as_text(format, "format") not in FORMATS:
            raise UnknownNameError("tool format", format, FORMATS)
        format = FORMATS[format]
    described = [_described(tool) for tool in as_sequence(tools, "tools", "tools")]
    names = [name for name, _ in described]
    if not names or len(set(names)) < len(names):
        raise OptionError("tools: one tool is needed at least, and no name twice")
    vocabulary = as_vocabulary(vocab)
    markers: dict[str, Part] = {
        marker: NOTHING if token in vocabulary.end_token_set else special(token)
        for token, marker in vocabulary.special_tokens.items()
        if marker in format.markers
    }
    calls: list[tuple[list[Part | str], Part, Part, str]] = []
    for other in format.others:
        before, _, after = other.partition("TEXT")
        pieces = _pieces(before, markers)
        if not isinstance(pieces[0], str):
            calls.append((pieces, text_without(), seq(*_pieces(after, markers)), format.trigger))
    for written in (format.call, *format.also):
        trigger = format.trigger if written == format.call else written.partition("NAME")[0]
        before, _, after = written.partition("ARGUMENTS")
        heads, tails = _pieces(before, markers), _pieces(after, markers)
        for name, schema in described:
            named, behind = ([_named(piece, name) for piece in pieces] for pieces in (heads, tails))
            calls.append((named, json(schema, **json_options), seq(*behind), trigger))
    wanted: dict[str, bool] = {
        "at_least_one": at_least_one, "stop_after_first": stop_after_first, "free_text": free_text
    }  # fmt: skip
    made: Part
    if not format.opening:
        made = tags(*(_tag(*call) for call in calls), **wanted)
    else:
        one = Rule(choice(*(seq(*before, content, after) for before, content, after, _ in calls)))
        several = repeat(seq(format.between, one)) if as_bool(parallel, "parallel") else NOTHING
        closing = seq(*_pieces(format.closing, markers))
        made = tags(
            _tag(_pieces(format.opening, markers), seq(one, several), closing, format.trigger), **wanted
        )  # fmt: skip
    ends = tuple(marker for marker, part in markers.items() if part == NOTHING)
    ways = (format.call, *format.also)
    return ToolCalls(
        made, tuple(names), ways, format.trigger, format.opening, format.between, format.closing, ends
    )  # fmt: skip


def _tag(before: list[Part | str], content: Part, after: Part, trigger: str) -> Any:
    """A tag that begins with a text or with a special token, what follows that being part of the content."""
    begin, *rest = before
    whole = trigger if isinstance(begin, str) and begin.startswith(trigger) else None
    return tag(begin, seq(*rest, content), after, trigger=whole)


def _pieces(written: str, markers: Mapping[str, Part]) -> list[Part | str]:
    """A text cut at markers that are special tokens and at what may be left out."""
    pieces: list[Part | str] = []
    for k, piece in enumerate(re.split("⟦(.*?)⟧", written)):
        if k % 2:
            before, identifier, after = piece.partition("IDENTIFIER")
            inside = [regex("[a-zA-Z0-9]{9}")] if identifier else []
            pieces.append(repeat(seq(*_cut(before, markers), *inside, *_cut(after, markers)), 0, 1))
        else:
            pieces += _cut(piece, markers)
    return pieces


def _cut(written: str, markers: Mapping[str, Part]) -> list[Part | str]:
    """A text cut at markers that are special tokens."""
    pieces: list[Part | str] = [written]
    for marker, part in markers.items():
        cut: list[Part | str] = []
        for piece in pieces:
            if not isinstance(piece, str):
                cut.append(piece)
                continue
            for k, between in enumerate(piece.split(marker)):
                cut += [part] * (k > 0) + [between] * (between != "")
        pieces = cut
    return [piece for piece in pieces if piece != ""]


def _named(piece: Part | str, name: str) -> Part | str:
    return piece.replace("NAME", name) if isinstance(piece, str) else piece


def _described(tool: Any) -> tuple[str, Any]:
    """The name and the schema of a tool."""
    given = tool.get("function", tool) if isinstance(tool, dict) else tool
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"]:
        raise ArgumentError(f"tools: a tool is {{'name': ..., 'parameters': schema}}, not {str(tool)[:60]!r}")
    name = given["name"]
    if name != json_text.dumps(name, ensure_ascii=False)[1:-1]:
        raise OptionError(f"tools: the name {name!r} must not need escapes in JSON")
    parameters = given.get("parameters")
    if isinstance(parameters, dict) and not {"type", "const", "enum", "$ref"} & parameters.keys():
        return name, {**parameters, "type": "object"}
    return name, {"type": "object"} if parameters is None else parameters

"""Chat templates: how a model's conversations are written, in Jinja, as files of models and tokenizers have them.

A template turns messages into a text in which special tokens stand by their names; `Tokenizer.chat` encodes it. It is
code from a file, so it runs in Jinja's sandbox, with what the templates of published models use: the filter ``tojson``
that escapes nothing, ``raise_exception``, ``strftime_now`` and ``break``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tokdfa.core.arguments import as_sequence
from tokdfa.core.packages import import_library
from tokdfa.errors import ArgumentError, TokenizerError
from tokdfa.vocabulary.loading import parse_json, read_file

if TYPE_CHECKING:
    from pathlib import Path

#: What a template may ask for by name.
TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class ChatTemplate:
    """`text`: the template; `names`: special tokens as the template calls them, such as ``bos_token``, and their texts;
    `place`: where it is from, for messages.
    """

    text: str
    names: tuple[tuple[str, str], ...]
    place: str

    def render(self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> str:
        """The text of a conversation. Raises ArgumentError for what are no messages, TokenizerError for what the
        template refuses, and MissingDependency.
        """
        given = list(as_sequence(messages, "messages", "messages"))
        wrong = next((one for one in given if not isinstance(one, Mapping) or "role" not in one), None)
        if wrong is not None or not given:
            raise ArgumentError(
                f"messages: each is {{'role': 'user', 'content': '...'}}, and there is one at least, not "
                f"{str(wrong)[:60]!r}"
            )
        import_library("jinja2", f"the chat template of {self.place}")
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise TemplateError(message)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": refuse, "strftime_now": datetime.now().strftime}
        try:
            template = environment.from_string(self.text)
            return template.render(messages=given, **{**dict(self.names), **variables})
        except (TemplateError, TypeError, ValueError, AttributeError) as error:
            raise TokenizerError(f"{self.place}: the chat template refuses these messages: {error}") from None


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def chosen_template(given: Any) -> str | None:
    """The text of a template as configurations have it: a text, or several by name, of which one is the default."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        given = {one.get("name"): one.get("template") for one in given if isinstance(one, Mapping)}
    if isinstance(given, Mapping):
        given = given.get("default")
    return given if isinstance(given, str) else None


def template_beside(path: Path) -> ChatTemplate | None:
    """The template beside a tokenizer's file: ``chat_template.jinja``, or in ``tokenizer_config.json``."""
    config: Mapping[str, Any] = {}
    beside = path.with_name("tokenizer_config.json")
    if beside.is_file():
        config = parse_json(beside, read_file(beside))
    alone = path.with_name("chat_template.jinja")
    text = (
        read_file(alone).decode(errors="replace") if alone.is_file() else chosen_template(config.get("chat_template"))
    )
    if text is None:
        return None
    named = {name: config.get(name) for name in TOKEN_NAMES}
    texts = {name: one.get("content") if isinstance(one, Mapping) else one for name, one in named.items()}
    return ChatTemplate(text, tuple((name, one) for name, one in texts.items() if isinstance(one, str)), str(path))

"""Formats of tools against the code of those who make the models, and of those who serve them.

`mistral_common` writes the calls of Mistral's models itself. xgrammar has descriptions of its own. Chat templates come
with no package: name a folder that has them, such as ``models/templates`` of llama.cpp, in TOKDFA_CHAT_TEMPLATES.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import mistral_common
import pytest

import tokdfa
from tests.packages import needs
from tokdfa.vocabulary.vocabulary import Vocabulary

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "parameters": SCHEMA}, {"name": "stop"}]
OSLO = {"city": "Oslo"}
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])


def takes(format_name: str, text: str) -> bool:
    """Whether the calls in a text are taken, and it may end there."""
    part = tokdfa.tools(format_name, TOOLS, BYTES, at_least_one=True)
    matcher = tokdfa.compile(tokdfa.Grammar(part), BYTES).start()
    return all(matcher.allows(byte) and matcher.advance(byte) is None for byte in text.encode()) and matcher.can_end()


@pytest.mark.parametrize("version", ["v3", "v7", "v3_tekken"])
@pytest.mark.parametrize("identifier", ["abcdefgh0", "null"])
def test_calls_that_mistral_common_writes(version: str, identifier: str) -> None:
    """Token by token, with the blank that SentencePiece begins a text with."""
    from mistral_common.protocol.instruct.messages import AssistantMessage
    from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    made = MistralTokenizer.v3(is_tekken=True) if version == "v3_tekken" else getattr(MistralTokenizer, version)()
    called = [("get_weather", OSLO), ("stop", {})]
    calls = [
        ToolCall(id=identifier, function=FunctionCall(name=name, arguments=json.dumps(arguments)))
        for name, arguments in called
    ]
    tokens = made.instruct_tokenizer.encode_assistant_message(AssistantMessage(content=None, tool_calls=calls), False)
    data = Path(mistral_common.__file__).parent / "data"
    family, pattern = ("tekken", "tekken_240718.json") if "tekken" in version else ("sentencepiece", f"*.{version}")
    tokenizer = tokdfa.load_tokenizer(f"{family}:{next(iter(data.glob(pattern)))}")
    part = tokdfa.tools("mistral", TOOLS, tokenizer, at_least_one=True)
    matcher = tokdfa.compile(tokdfa.Grammar(part), tokenizer).start()
    for token in tokens:
        assert matcher.allows(token), (matcher.tokens, token)
        matcher.advance(token)
    assert matcher.is_finished()


def tags_of(part: Any) -> list[dict[str, Any]]:
    """The tags with a schema inside a structural tag of xgrammar."""
    if isinstance(part, list):
        return [found for one in part for found in tags_of(one)]
    if not isinstance(part, dict):
        return []
    content = part.get("content")
    if part.get("type") == "tag" and isinstance(content, dict) and content.get("type") == "json_schema":
        return [part]
    return [found for one in part.values() for found in tags_of(one)]


@needs("xgrammar")
@pytest.mark.parametrize(
    ("model", "name", "opening", "closing"),
    [
        ("llama", "llama3", "", ""),
        ("qwen_3", "hermes", "", ""),
        ("deepseek_r1", "deepseek", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        ("deepseek_v3_1", "deepseek_v31", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        ("harmony", "harmony", "", ""),
    ],
)
def test_calls_that_xgrammar_describes(model: str, name: str, opening: str, closing: str) -> None:
    from xgrammar.builtin_structural_tag import get_model_structural_tag

    given = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    described = tags_of(get_model_structural_tag(model, tools=given, reasoning="disabled").model_dump())
    assert described
    for tag in described:
        ends = tag["end"] if isinstance(tag["end"], list) else [tag["end"]]
        assert any(takes(name, opening + tag["begin"] + json.dumps(OSLO) + end + closing) for end in ends), tag


TEMPLATES = {
    "meta-llama-Llama-3.1-8B-Instruct": ("llama3", "<eos>"),
    "meta-llama-Llama-3.3-70B-Instruct": ("llama3", "<eos>"),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("hermes", "<|im_end|>"),
    "Qwen-Qwen2.5-7B-Instruct": ("hermes", "<|im_end|>"),
    "Qwen-Qwen3-0.6B": ("hermes", "<|im_end|>"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("mistral", "<eos>"),
    "Mistral-Small-3.2-24B-Instruct-2506": ("mistral_args", "<eos>"),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("mistral_args", "<eos>"),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("deepseek", "<｜end▁of▁sentence｜>"),
    "deepseek-ai-DeepSeek-V3.1": ("deepseek_v31", "<｜end▁of▁sentence｜>"),
    "openai-gpt-oss-120b": ("harmony", "<eos>"),
}


@pytest.mark.skipif("TOKDFA_CHAT_TEMPLATES" not in os.environ, reason="TOKDFA_CHAT_TEMPLATES names no folder")
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("count", [1, 2])
def test_calls_that_templates_write(template: str, count: int) -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        pytest.skip(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    environment.globals.update(raise_exception=refuse, strftime_now=lambda layout: "2025-01-01")
    text = (Path(os.environ["TOKDFA_CHAT_TEMPLATES"]) / f"{template}.jinja").read_text()
    user: dict[str, Any] = {"role": "user", "content": "hi"}
    calls = [
        {"id": f"abcdefgh{k}", "type": "function", "function": {"name": "get_weather", "arguments": OSLO}}
        for k in range(count)
    ]
    described = [{"type": "function", "function": {"description": "w", **TOOLS[0]}}]
    prompts = {"tools": described, "bos_token": "<bos>", "eos_token": "<eos>", "add_generation_prompt": False}
    made = environment.from_string(text)
    answer = {"role": "assistant", "content": "", "tool_calls": calls}
    written = made.render(messages=[user, answer], **prompts)
    name, end = TEMPLATES[template]
    begins = ("assistant<|end_header_id|>\n\n", "<|im_start|>assistant\n", "<｜Assistant｜>", "<|start|>assistant")
    for begin in begins:
        written = written.split(begin, 1)[-1]
    assert takes(name, written.split(end)[0].removesuffix("<|eot_id|>")), written

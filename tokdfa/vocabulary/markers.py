"""Which added tokens are markers: of turns, thoughts, tools, media. They spell nothing, whatever their flag says.

Files flag some added tokens as special, and the flags differ between tokenizers that use the same tokens: ``</think>``
and ``<tool_call>`` are special in some and text in others. A model that writes ``</think>`` inside a string of a JSON
answer has ended its thoughts, for everything that reads its output. So under a constraint a marker is never a part of
text; a grammar may name it (``<name>``), as `tools`, `tags` and `think_first` do, and then it is allowed there only.
The characters of a marker, spelled by other tokens, are text like any other.

An added token is a marker by its form:

- ``<|...|>`` and DeepSeek's ``<｜...｜>``;
- ``[NAME]`` and ``[/NAME]`` in capitals, such as ``[INST]``;
- ``<name>`` and ``</name>`` if a part of the name, cut at everything but letters, is one of `WORDS`: ``<tool_call>``,
  ``<start_of_turn>``, ``<unused7>``, but not ``<table>``.

`Tokenizer.markers` lists them. Where the rule is wrong for a tokenizer, `load_tokenizer` takes a list of those that are
special (``special_tokens=[...]``; an empty list: only what the file flags).
"""

from __future__ import annotations

import re

#: Parts of names in angle brackets that make a marker.
WORDS = frozenset(
    (
        *("bos", "eos", "pad", "unk", "sep", "cls", "mask", "sentence", "document", "text", "eod", "eot", "eom"),
        *("im", "begin", "start", "end", "of", "think", "thinking", "thought", "thoughts", "reason", "reasoning"),
        *("reflection", "scratchpad", "answer", "final", "analysis", "tool", "tools", "function", "functions"),
        *("call", "calls", "response", "responses", "result", "results", "arg", "args", "argument", "arguments"),
        *("turn", "user", "assistant", "system", "human", "model", "role", "channel", "message", "constrain"),
        *("observation", "action", "image", "images", "img", "audio", "video", "vision", "soft", "box", "quad"),
        *("ref", "object", "point", "speech", "fim", "prefix", "middle", "suffix", "repo", "reponame", "filename"),
        *("file", "gh", "jupyter", "issue", "commit", "interpreter", "code", "output", "unused", "reserved"),
        *("extra", "special", "placeholder", "dummy"),
    )
)
#: Words that are tags of HTML as well, so that they make no marker when they are the whole name.
_TAGS = frozenset(("code", "output", "object", "text", "img"))
_FORMS = re.compile(r"<\|.*\|>|<｜.*｜>|\[/?[A-Z][A-Z0-9_ -]*\]", re.DOTALL)
_TAG = re.compile(r"</?([A-Za-z][\w:. -]*)>")


def is_marker(name: str) -> bool:
    """Whether an added token with this text has the form of a marker, see the module."""
    if _FORMS.fullmatch(name):
        return True
    match = _TAG.fullmatch(name)
    if match is None:
        return False
    parts = re.findall(r"[a-z]+", match[1].lower())
    return bool(WORDS.intersection(parts)) and not (len(parts) == 1 and match[1] in _TAGS)

"""tokdfa compares the strategies for turning a constraint into token masks for language-model decoding.

The public names are below; everything else is reached through its module (docs/architecture.md has the map).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # at run time the package `tokdfa.backends`, which can be called; for type checkers what calling it does
    from tokdfa.backends.batch import fill_masks, fill_tree
    from tokdfa.backends.region_budget import think_first
    from tokdfa.backends.registry import backends, compile
    from tokdfa.backends.token_healing import heal
    from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
    from tokdfa.decoding.answer import generate
    from tokdfa.decoding.constrain import Constrained, constrain
    from tokdfa.decoding.logits_processor import ConstraintLogitsProcessor
    from tokdfa.decoding.torch_masks import apply_masks
    from tokdfa.display import show
    from tokdfa.errors import TokdfaError, TokenRefused
    from tokdfa.grammar.tool_formats import tools
    from tokdfa.mask import allocate_mask, mask_to_bool, mask_to_ids
    from tokdfa.models.registry import load_model
    from tokdfa.serving.batch_matcher import BatchMatcher
    from tokdfa.serving.compiling import ConstraintCache, compile_async
    from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

__version__ = "0.1.0"

#: Public name -> module. Imported at first use, so that `import tokdfa` and `tokdfa --help` stay fast.
_PUBLIC = {
    "compile": "tokdfa.backends.registry",
    "Choice": "tokdfa.constraint",
    "Constraint": "tokdfa.constraint",
    "Grammar": "tokdfa.constraint",
    "JsonSchema": "tokdfa.constraint",
    "Regex": "tokdfa.constraint",
    "tools": "tokdfa.grammar.tool_formats",
    "TokdfaError": "tokdfa.errors",
    "TokenRefused": "tokdfa.errors",
    "allocate_mask": "tokdfa.mask",
    "mask_to_bool": "tokdfa.mask",
    "mask_to_ids": "tokdfa.mask",
    "load_model": "tokdfa.models.registry",
    "fill_masks": "tokdfa.backends.batch",
    "fill_tree": "tokdfa.backends.batch",
    "heal": "tokdfa.backends.token_healing",
    "think_first": "tokdfa.backends.region_budget",
    "Constrained": "tokdfa.decoding.constrain",
    "constrain": "tokdfa.decoding.constrain",
    "ConstraintLogitsProcessor": "tokdfa.decoding.logits_processor",
    "generate": "tokdfa.decoding.answer",
    "apply_masks": "tokdfa.decoding.torch_masks",
    "show": "tokdfa.display",
    "BatchMatcher": "tokdfa.serving.batch_matcher",
    "ConstraintCache": "tokdfa.serving.compiling",
    "compile_async": "tokdfa.serving.compiling",
    "Tokenizer": "tokdfa.vocabulary.tokenizers",
    "load_tokenizer": "tokdfa.vocabulary.tokenizers",
    "Vocabulary": "tokdfa.vocabulary.vocabulary",
}

__all__ = [
    "BatchMatcher",
    "Choice",
    "Constrained",
    "Constraint",
    "ConstraintCache",
    "ConstraintLogitsProcessor",
    "Grammar",
    "JsonSchema",
    "Regex",
    "TokdfaError",
    "TokenRefused",
    "Tokenizer",
    "Vocabulary",
    "allocate_mask",
    "apply_masks",
    "backends",
    "compile",
    "compile_async",
    "constrain",
    "fill_masks",
    "fill_tree",
    "generate",
    "heal",
    "load_model",
    "load_tokenizer",
    "mask_to_bool",
    "mask_to_ids",
    "show",
    "think_first",
    "tools",
]


def __getattr__(name: str) -> Any:
    if name == "backends":  # a package that can be called
        return importlib.import_module("tokdfa.backends")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tokdfa' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

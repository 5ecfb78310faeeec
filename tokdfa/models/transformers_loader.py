"""Loading models of the package transformers, by name or from a folder (`load_huggingface`), or from a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.errors import ModelError
from tokdfa.models.gguf_weights import import_lm, load_gguf_network
from tokdfa.models.transformers_model import TransformersModel
from tokdfa.vocabulary.gguf_file import read_metadata
from tokdfa.vocabulary.given_tokenizer import logit_width
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The two tokenizer keys of a GGUF file that say whether a text begins with a begin token, and with which.
_ADD_BEGIN, _BEGIN, _SPLIT = (f"tokenizer.ggml.{key}" for key in ("add_bos_token", "bos_token_id", "pre"))


def load_huggingface(
    name: str, tokenizer: str | Tokenizer | None = None, *, device: str | None = None
) -> TransformersModel:
    """The causal language model `name`: a local folder, a GGUF file, or a name that transformers fetches.

    `tokenizer`: a tokenizer of tokdfa's or its name; None: the tokenizer.json beside the weights, or the one inside the
    GGUF file. If the network's logits are wider than the tokenizer, the vocabulary is padded to their width. `device`:
    None for the GPU if there is one. On the CPU the weights become float32.
    Raises ModelError (cannot be loaded, does not fit the tokenizer), MissingDependency, and what `load_tokenizer` does.
    """
    transformers = import_lm("transformers")
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        return load_gguf(path, tokenizer, name=f"hf:{name}", device=device)
    is_local = path.is_dir()
    if not is_local and (path.exists() or name.startswith((".", "/", "~"))):
        raise ModelError(f"{name}: a model of transformers is a folder, a .gguf file or a name, and this is none")
    source = str(path) if is_local else name
    try:
        network = transformers.AutoModelForCausalLM.from_pretrained(source, local_files_only=is_local)
        file = _tokenizer_file(transformers, source)
        own = None if file is None else transformers.AutoTokenizer.from_pretrained(source, local_files_only=is_local)
    except Exception as error:  # of transformers, safetensors or the network, whatever they meet
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ModelError(f"{name}: transformers cannot load this model: {reason}") from error
    if tokenizer is None and file is None:
        raise ModelError(f"{name}: there is no tokenizer.json beside the weights; name a tokenizer")
    start_tokens = () if own is None else _start_tokens(own)
    return _assemble(f"hf:{name}", network, tokenizer or f"hf:{file}", start_tokens, device)


def load_gguf(
    path: Path, tokenizer: str | Tokenizer | None = None, *, name: str, device: str | None = None
) -> TransformersModel:
    """The language model in a GGUF file, dequantized by `tokdfa.models.gguf_weights`; else as `load_huggingface`."""
    network = load_gguf_network(path)
    found = read_metadata(path, {_ADD_BEGIN, _BEGIN, _SPLIT})
    # llama.cpp adds the begin token of Llama 3 even where the file does not ask for it
    adds = found.get(_ADD_BEGIN, found.get(_SPLIT) == "llama-bpe")
    start_tokens = (int(found[_BEGIN]),) if adds and _BEGIN in found else ()
    return _assemble(name, network, tokenizer or f"gguf:{path}", start_tokens, device)


def _assemble(
    name: str, network: Any, tokenizer: str | Tokenizer, start_tokens: Sequence[int], device: str | None
) -> TransformersModel:
    """The model on `device`, its vocabulary padded to the width of the logits."""
    device = device or ("cuda" if import_lm("torch").cuda.is_available() else "cpu")
    if device == "cpu":
        network = network.float()
    width = logit_width(network)
    chosen = load_tokenizer(tokenizer)
    if chosen.vocabulary.size < width:
        chosen = chosen.with_size(width)
    return TransformersModel(name, network.to(device), chosen.vocabulary, start_tokens=start_tokens)


def _tokenizer_file(transformers: Any, source: str) -> str | None:
    """The path of the tokenizer.json of a model, fetched if need be; None if it has none."""
    try:
        found: str | None = transformers.utils.cached_file(source, "tokenizer.json")
    except OSError:
        return None
    return found


def _start_tokens(tokenizer: Any) -> tuple[int, ...]:
    """What a tokenizer of transformers puts before a text."""
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    before = next(at for at in range(len(whole) + 1) if whole[at : at + len(plain)] == plain or at == len(whole))
    return tuple(whole[:before])

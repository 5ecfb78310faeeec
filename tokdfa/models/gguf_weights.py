"""The weights of a GGUF file as a network of the package transformers, dequantized once on a machine.

A GGUF file keeps most weights in *blocks* of a few bits: Q4_1, for example, keeps 32 weights as one scale d, one
offset m (float16 both) and 32 numbers q of 4 bits, each weight being ``d q + m``. transformers rewrites a block as
float32 and puts the rows of Llama's query and key matrices back into its own order (llama.cpp interleaves the halves
that the rotary embedding turns). That takes 18 s for SmolLM2 with its 135 million weights, nearly all of it spent on
the file's lists of tokens and of names, so the result is kept on disk in transformers' own format, from which it loads
in 0.1 s. It takes 4 bytes a weight: 540 MB for SmolLM2. The folder may be deleted at any time.

A kept network is named by the hash of the GGUF file and by the version of transformers that made it. A folder appears
whole or not at all; one that cannot be read is made anew; where none can be written, each load takes the long way.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tokdfa.core.folders import cache_folder
from tokdfa.core.packages import import_library
from tokdfa.errors import ModelError

_LOG = logging.getLogger("tokdfa")
#: What the optional packages are needed for, as the message for a missing one says it.
PURPOSE = "a language model of transformers"


def import_lm(module: str) -> Any:
    """Import a package of the extra ``lm`` at the moment it is needed; MissingDependency says how to install it."""
    return import_library(module, PURPOSE)


def weights_folder() -> Path:
    """Where dequantized networks are kept unless the caller names a folder: in the user's cache folder."""
    return cache_folder("dequantized")


def load_gguf_network(path: Path, folder: Path | None = None) -> Any:
    """The causal language model in the GGUF file at `path`: a PreTrainedModel with float32 weights, on the CPU.

    `folder`: where dequantized networks are kept (see `weights_folder`). Costs a hash of the file (0.1 s for 100 MB)
    and 0.1 s if the network is kept, otherwise 20 s and more. Nothing is fetched from a network. Raises ModelError for
    a file that is missing, damaged, or holds what transformers cannot dequantize, and MissingDependency.
    """
    transformers = import_lm("transformers")
    for package in ("gguf", "accelerate"):
        import_lm(package)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    kept = (folder or weights_folder()) / f"{digest}-{transformers.__version__}"
    if kept.is_dir():
        # whatever is wrong with the folder, the file itself is still there
        with suppress(Exception):
            return transformers.AutoModelForCausalLM.from_pretrained(str(kept), local_files_only=True).float()
        shutil.rmtree(kept, ignore_errors=True)
    network = _dequantize(transformers, path)
    with suppress(OSError):
        _keep(network, kept, path)
    return network


def _dequantize(transformers: Any, path: Path) -> Any:
    """The network, by transformers."""
    wanted = {"dtype": import_lm("torch").float32}
    if hasattr(transformers, "GgufConfig"):  # versions that know it may leave the weights in their blocks
        wanted["quantization_config"] = transformers.GgufConfig(dequantize=True)
    try:
        network = transformers.AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, local_files_only=True, **wanted
        )
    except Exception as error:  # transformers and gguf raise whatever they meet in a damaged file
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ModelError(f"{path}: transformers cannot load this GGUF file: {reason}") from error
    # The weights are plain float32 now, but some versions still call the network quantized and refuse to save it.
    for mark in ("hf_quantizer", "is_quantized", "quantization_method"):
        if mark in vars(network):
            delattr(network, mark)
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config
    return network


def _keep(network: Any, kept: Path, path: Path) -> None:
    """Save the `network` of `path` in the folder `kept`, and delete what other versions of transformers made of it."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=kept.parent, prefix="saving-"))
    try:
        network.save_pretrained(str(temporary))
        os.replace(temporary, kept)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    size = sum(file.stat().st_size for file in kept.iterdir())
    _LOG.warning(
        "the weights of %s, unpacked, are kept for the next time: %d MB in %s (tokdfa cache --clear dequantized)",
        *(path.name, size // 10**6, kept.parent),
    )
    for other in kept.parent.glob(f"{kept.name.partition('-')[0]}-*"):
        if other != kept:
            shutil.rmtree(other, ignore_errors=True)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.packages import needs_torch
from tokdfa.models.gguf_weights import load_gguf_network, weights_folder
from tokdfa.models.transformers_loader import load_gguf

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
gguf = pytest.importorskip("gguf", reason="gguf is not installed (extra lm)")
# Test workers share the cores; threads that wait for each other make small networks ten times slower.
torch.set_num_threads(1)
pytestmark = needs_torch

HEADS, KEY_HEADS, WIDTH, LAYERS = 4, 2, 64, 2
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def letters() -> list[str]:
    """GPT-2's alphabet of bytes: printable ones stand for themselves, the others for characters from 256 up."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(number) for number in (*printable, *range(256, 512 - len(printable)))]


def write_gguf(path: Path, begin: bool | None = None) -> Any:
    """A small Llama in Q4_1 at `path`; returns the network that it should be read as."""
    tokens = [*letters(), "<|endoftext|>", "ab"]
    config = transformers.LlamaConfig(
        hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS, vocab_size=len(tokens), max_position_embeddings=48, initializer_range=0.3,
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(1)
    network = transformers.LlamaForCausalLM(config).eval()
    writer = gguf.GGUFWriter(str(path), "llama")
    for key, value in {
        "context_length": 48, "embedding_length": WIDTH, "feed_forward_length": 96, "block_count": LAYERS,
        "head_count": HEADS, "head_count_kv": KEY_HEADS, "rope_dimension_count": WIDTH // HEADS,
        "layer_norm_rms_eps": config.rms_norm_eps, "vocab_size": len(tokens), "rope_freq_base": 10000.0,
    }.items():  # fmt: skip
        getattr(writer, f"add_{key}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(256)
    if begin is not None:
        writer.add_add_bos_token(begin)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    names |= {f"model.layers.{at}.{ours}": f"blk.{at}.{its}" for at in range(LAYERS) for ours, its in NAMES.items()}
    with torch.no_grad():
        for ours, its in names.items():
            weight = network.get_submodule(ours).weight
            values = weight.numpy()
            if its.endswith(("attn_q", "attn_k")):  # llama.cpp puts what is turned together side by side
                heads = HEADS if its.endswith("q") else KEY_HEADS
                values = values.reshape(heads, 2, -1, WIDTH).swapaxes(1, 2).reshape(values.shape)
            if values.ndim == 1:
                writer.add_tensor(f"{its}.weight", values)
                continue
            blocks, read = in_blocks(values)
            writer.add_tensor(f"{its}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
            if its.endswith(("attn_q", "attn_k")):
                read = read.reshape(heads, -1, 2, WIDTH).swapaxes(1, 2).reshape(values.shape)
            weight.copy_(torch.from_numpy(read))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return network


def in_blocks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(bytes of Q4_1, what they mean): of 32 numbers the first 16 are in the lower halves of bytes."""
    parts = values.reshape(-1, 32)
    offset = parts.min(axis=1, keepdims=True).astype(np.float16)
    scale = ((parts.max(axis=1, keepdims=True) - offset) / 15).astype(np.float16)
    numbers = np.clip(np.rint((parts - offset) / scale), 0, 15).astype(np.uint8)
    packed = numbers[:, :16] | numbers[:, 16:] << 4
    blocks = np.concatenate([scale.view(np.uint8), offset.view(np.uint8), packed], axis=1)
    meant = scale.astype(np.float32) * numbers + offset.astype(np.float32)
    return blocks.reshape(len(values), -1), meant.reshape(values.shape)


def test_a_file_is_dequantized_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, folder = tmp_path / "small.gguf", tmp_path / "kept"
    wanted = write_gguf(path).state_dict()

    def check(network: Any) -> None:
        found = network.state_dict()
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)

    (folder / "saving-left-over").mkdir(parents=True)
    check(load_gguf_network(path, folder))
    (kept,) = (entry for entry in folder.iterdir() if not entry.name.startswith("saving"))
    assert kept.name.endswith(transformers.__version__)
    announced = f"the weights of small.gguf, unpacked, are kept for the next time: 0 MB in {folder} "
    assert [record.getMessage()[: len(announced)] for record in caplog.records if record.name == "tokdfa"] == [
        announced
    ]
    # another load reads the kept network: a weight changed there comes out
    content = bytearray((kept / "model.safetensors").read_bytes())
    content[-4:] = np.float32(7).tobytes()
    (kept / "model.safetensors").write_bytes(content)
    assert any(bool((value == 7).any()) for value in load_gguf_network(path, folder).state_dict().values())
    # a damaged one is made anew, and what another version of transformers has left is deleted
    (kept / "model.safetensors").write_bytes(b"\0" * 50)
    other = folder / f"{kept.name.partition('-')[0]}-4.0.0"
    other.mkdir()
    check(load_gguf_network(path, folder))
    assert not other.exists()
    check(load_gguf_network(path, folder))
    # a folder that cannot be written to costs time only
    (tmp_path / "a file").touch()
    check(load_gguf_network(path, tmp_path / "a file" / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert weights_folder() == tmp_path / "home" / "tokdfa" / "dequantized"


@pytest.mark.parametrize("begin", [None, False, True])
def test_a_model_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bool | None) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "small.gguf"
    network = write_gguf(path, begin)
    model = load_gguf(path, name="small", device="cpu")
    assert (model.vocabulary.size, model.context_limit) == (258, 48)
    assert model.start_tokens == ((256,) if begin else ())
    assert model.vocabulary.tokenizer is not None
    prefix = model.vocabulary.tokenizer.encode("abba")
    assert prefix[0] == 257
    expected = torch.log_softmax(network(torch.tensor([prefix])).logits[0, -1].double(), -1).detach().numpy()
    np.testing.assert_allclose(model.log_probabilities([prefix])[0], expected, atol=1e-4)

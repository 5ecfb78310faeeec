from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packages import needs_torch
from tokdfa.errors import ModelError
from tokdfa.models.transformers_loader import load_huggingface
from tokdfa.models.transformers_model import TransformersModel
from tokdfa.vocabulary.tokenizers import load_tokenizer

torch = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
# Test workers share the cores; threads that wait for each other make small networks ten times slower.
torch.set_num_threads(1)
pytestmark = needs_torch

if TYPE_CHECKING:
    from pathlib import Path

#: Rows are computed in float32 and in different orders.
NOISE = 1e-4
WIDTH = 257
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}


def network_of(kind: str, width: int = WIDTH, **changes: Any) -> Any:
    """A random network of a small configuration; larger weights than usual, so that rows differ."""
    torch.manual_seed(0)
    settings = {**SMALL, "vocab_size": width, "max_position_embeddings": 64, "initializer_range": 0.3, **changes}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=width, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.3,
            bos_token_id=256, eos_token_id=256,
        )  # fmt: skip
    elif kind == "llama":
        config = transformers.LlamaConfig(**settings, num_key_value_heads=2, bos_token_id=256, eos_token_id=256)
    elif kind == "sliding":
        config = transformers.MistralConfig(
            **settings, num_key_value_heads=2, sliding_window=4, bos_token_id=256, eos_token_id=256
        )
    elif kind == "softcap":
        config = transformers.Gemma2Config(
            **settings, num_key_value_heads=2, head_dim=8, final_logit_softcapping=1.0, sliding_window=4,
            bos_token_id=256, eos_token_id=256, pad_token_id=0,
        )  # fmt: skip
    else:
        config = transformers.MambaConfig(
            vocab_size=width, hidden_size=32, num_hidden_layers=2, state_size=4, initializer_range=0.3,
            bos_token_id=256, eos_token_id=256, pad_token_id=0,
        )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def model_of(kind: str = "llama", **options: Any) -> TransformersModel:
    return TransformersModel(kind, network_of(kind), load_tokenizer("bytes").vocabulary, **options)


def plain_rows(model: TransformersModel, prefixes: list[tuple[int, ...]]) -> np.ndarray:
    """The twin: each prefix by itself, the whole network, no states."""
    rows = []
    for prefix in prefixes:
        with torch.no_grad():
            logits = model.network(torch.tensor([prefix]), use_cache=False).logits[0, -1].double()
        rows.append(torch.log_softmax(logits, -1).numpy())
    return np.array(rows)


tokens = st.integers(0, 3)  # few, so that prefixes share beginnings
batches = st.lists(st.lists(tokens, min_size=1, max_size=9).map(tuple), min_size=1, max_size=8)


@pytest.fixture(scope="module", params=[0, 1024])
def model(request: pytest.FixtureRequest) -> TransformersModel:
    """The bound of 0 MB splits every batch into single rows."""
    return model_of(batch_mb=request.param, states_mb=1)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(calls=st.lists(batches, min_size=1, max_size=4))
def test_rows_do_not_depend_on_batches_and_kept_states(
    model: TransformersModel, calls: list[list[tuple[int, ...]]]
) -> None:
    """States are kept from call to call and from example to example."""
    for prefixes in calls:
        np.testing.assert_allclose(model.log_probabilities(prefixes), plain_rows(model, prefixes), atol=NOISE)


@pytest.mark.parametrize("kind", ["gpt2", "sliding", "softcap", "mamba"])
def test_other_networks(kind: str) -> None:
    """Learned positions; memories that are not kept; logits that are more than the last layer."""
    model = model_of(kind)
    assert model._keeps_states == (kind == "gpt2")
    assert (model._head is None) == (kind == "softcap")
    context = tuple(b"The whale shark")
    for prefixes in ([context, context[:9]], [(*context, 65), (*context, 66, 67), context], [(*context, 66, 67, 68)]):
        np.testing.assert_allclose(model.log_probabilities(prefixes), plain_rows(model, prefixes), atol=NOISE)


def test_tokens_run_once() -> None:
    model = model_of()
    context = tuple(range(20))

    def run(*prefixes: tuple[int, ...]) -> int:
        before = model.counts.tokens
        model.log_probabilities(prefixes)
        return model.counts.tokens - before

    assert run(context) == 20
    assert run((*context, 1)) == 1
    assert run(context) == 1  # its last token, since outputs are not kept
    assert run((*context, 1, 2), (*context, 3), (*context, 1)) == 2 + 1  # the row of (context, 1) needs 1 again
    assert run((*context, 1, 2, 4), (*context, 3, 4), (*context, 3, 5, 6)) == 1 + 1 + 2
    model.forget()
    assert run((*context, 1), (*context, 2)) == 20 + 2  # the shared beginning by itself
    model.forget()
    assert run((7,), (8,), (7, 7), (7,)) == 3


def test_a_batch_does_not_fall_to_pieces() -> None:
    """Every sequence shares two tokens with another kept one, which is not worth ten runs."""
    model = model_of()
    for first in range(10):
        model.log_probabilities([(first, 0, *range(9))])
    runs = []
    model.network.model.register_forward_hook(lambda *_: runs.append(1))
    prefixes = [(first, 0, *range(20, 40)) for first in range(10)]
    rows = model.log_probabilities(prefixes)
    assert len(runs) == 1
    np.testing.assert_allclose(rows, plain_rows(model, prefixes), atol=NOISE)


def test_kept_states_are_bounded() -> None:
    model = model_of(states_mb=1)
    generator = np.random.default_rng(0)
    peak = 0
    for _ in range(40):
        model.log_probabilities([tuple(row) for row in generator.integers(0, 256, (8, 40)).tolist()])
        peak = max(peak, model.kept_bytes)
    # 3 layers of keys and values, 2 heads of width 8, 4 bytes: 384 bytes a token, 122,880 bytes a call
    assert (1 << 20) - 2 * 122_880 < peak <= 1 << 20
    none = model_of(states_mb=0)
    none.log_probabilities([(1, 2), (1, 3)])
    assert none.kept_bytes == 0


def test_errors() -> None:
    model = model_of()
    with pytest.raises(ModelError, match="empty prefix"):
        model.log_probabilities([(1,), ()])
    with pytest.raises(ModelError, match="longer than the 64"):
        model.log_probabilities([(1,) * 65])
    assert model.log_probabilities([(1,) * 64]).shape == (1, WIDTH)
    vocabulary = load_tokenizer("bytes").vocabulary
    with pytest.raises(ModelError, match="300 logits and the tokenizer 257 tokens; load it with size=300"):
        TransformersModel("wide", network_of("llama", 300), vocabulary)
    with pytest.raises(ModelError, match="200 logits and the tokenizer 257 tokens"):
        TransformersModel("narrow", network_of("llama", 200), vocabulary)
    short = network_of("llama", tie_word_embeddings=False)
    short.set_input_embeddings(torch.nn.Embedding(200, 32))
    with pytest.raises(ModelError, match="embeddings for 200 tokens and the tokenizer 257"):
        TransformersModel("short", short, vocabulary)
    broken = network_of("llama")
    broken.model.norm.weight.data[3] = float("nan")
    with pytest.raises(ModelError, match="NaN"):
        TransformersModel("broken", broken, vocabulary).log_probabilities([(1,)])


def test_fingerprint() -> None:
    model, again = model_of(), model_of()
    assert model.fingerprint == again.fingerprint != model_of("gpt2").fingerprint
    again.network.model.layers[1].mlp.up_proj.weight.data[0, 0] += 1
    assert TransformersModel("again", again.network, again.vocabulary).fingerprint != model.fingerprint


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    network = network_of("llama", 300)
    network.save_pretrained(str(tmp_path))
    with pytest.raises(ModelError, match="name a tokenizer"):
        load_huggingface(str(tmp_path))
    model = load_huggingface(str(tmp_path), "bytes", device="cpu")
    assert (model.vocabulary.size, model.context_limit, model.start_tokens) == (300, 64, ())
    assert model.name == f"hf:{tmp_path}"
    np.testing.assert_allclose(
        model.log_probabilities([(1, 2, 3)])[0],
        torch.log_softmax(network(torch.tensor([[1, 2, 3]])).logits[0, -1].double(), -1).detach().numpy(),
        atol=NOISE,
    )


@pytest.mark.parametrize("adds", [False, True])
def test_its_own_tokenizer_says_whether_a_text_begins_with_a_token(tmp_path: Path, adds: bool) -> None:
    library = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    letters = library.pre_tokenizers.ByteLevel.alphabet()
    vocab = {letter: number for number, letter in enumerate(sorted(letters))}
    tokenizer = library.Tokenizer(library.models.BPE(vocab, []))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>", "<s>"])
    if adds:
        tokenizer.post_processor = library.processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A $B", special_tokens=[("<s>", 257), ("</s>", 256)]
        )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    network_of("llama", 258).save_pretrained(str(tmp_path))
    model = load_huggingface(str(tmp_path), device="cpu")
    assert model.start_tokens == ((257,) if adds else ())
    assert model.vocabulary.end_tokens == (256,)
    assert model.vocabulary.token_bytes(vocab["a"]) == b"a"


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none"), "./none"):
        with pytest.raises(ModelError, match=r"a folder, a \.gguf file or a name"):
            load_huggingface(name)
    with pytest.raises(ModelError, match="cannot load this model"):
        load_huggingface(str(tmp_path))  # an empty folder
    network_of("llama").save_pretrained(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(ModelError, match="cannot load this model"):
        load_huggingface(str(tmp_path), "bytes")

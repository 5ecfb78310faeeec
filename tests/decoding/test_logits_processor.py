from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.decoding.models import DeadEnd
from tests.packages import needs_smollm2, needs_torch
from tokdfa.backends.registry import compile
from tokdfa.constraint import Choice, Regex
from tokdfa.decoding.logits_processor import ConstraintLogitsProcessor
from tokdfa.errors import ArgumentError, EmptyMask, ModelError, ParseError, TokenRefused, VocabularyError
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

torch = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
# Test workers share the cores; threads that wait for each other make small networks ten times slower.
torch.set_num_threads(1)
pytestmark = needs_torch

END = 256
BYTES = load_tokenizer("bytes")
COMPILED = compile(Regex("[ab]{3,6}c|x"), BYTES.vocabulary)


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.4, bos_token_id=END, eos_token_id=END, pad_token_id=END,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def padded(prompts: list[list[int]], pad: int) -> dict[str, Any]:
    """Prompts as rows, padding on the left."""
    width = max(map(len, prompts))
    rows = [[pad] * (width - len(prompt)) + prompt for prompt in prompts]
    seen = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(seen)}


PROMPTS = padded([list(b"hello"), list(b"a"), list(b"hello")], END)
WAYS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "num_return_sequences": 5},
    "beams": {"do_sample": False, "num_beams": 3, "num_return_sequences": 3},
    "sampled beams": {"do_sample": True, "num_beams": 2},
}


def texts_of(output: Any, prompt: int) -> list[bytes]:
    """The generated texts; each must have ended, with nothing but ends behind."""
    texts = []
    for row in output[:, prompt:].tolist():
        length = row.index(END)
        assert set(row[length:]) == {END}
        texts.append(BYTES.spell(row[:length]))
    return texts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", ["token_index", "brute_force", "cartesian_merge"])
def test_every_way_of_generating_gives_texts_of_the_constraint(network: Any, way: str, backend: str) -> None:
    torch.manual_seed(1)
    compiled = compile(Regex("[ab]{3,6}c|x"), BYTES.vocabulary, backend)
    processor = ConstraintLogitsProcessor(compiled, eos_token_id=END)
    output = network.generate(**PROMPTS, logits_processor=[processor], max_new_tokens=12, **WAYS[way])
    texts = texts_of(output, 5)
    assert len(texts) == 3 * WAYS[way].get("num_return_sequences", 1)
    assert all(re.fullmatch(b"[ab]{3,6}c|x", text) for text in texts)
    assert processor.steps > 1
    if way == "sampled":
        assert len(set(texts)) > 3


def test_greedy_is_what_masking_by_hand_gives(network: Any) -> None:
    """The oracle: one prompt at a time, whole sequences, a mask by brute force."""
    processor = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    output = network.generate(**PROMPTS, logits_processor=[processor], max_new_tokens=12, do_sample=False)
    for prompt, text in zip((b"hello", b"a", b"hello"), texts_of(output, 5), strict=True):
        tokens = list(prompt)
        while END not in tokens:
            with torch.no_grad():
                logits = network(torch.tensor([tokens])).logits[0, -1].numpy()
            ahead = bytes(tokens[len(prompt) :])
            allowed = [
                token
                for token in range(256)
                if regex_begins(ahead + bytes([token]))
            ] + [END] * bool(re.fullmatch(b"[ab]{3,6}c|x", ahead))  # fmt: skip
            tokens.append(max(allowed, key=lambda token: logits[token]))
        assert bytes(tokens[len(prompt) : -1]) == text


def regex_begins(text: bytes) -> bool:
    return bool(re.fullmatch(b"[ab]{0,6}|[ab]{3,6}c|x", text))


def test_beams_give_the_most_probable_texts(network: Any) -> None:
    """With as many beams as there are texts, beam search is exhaustive; scores are sums of the model's own."""
    choices = [b"ab", b"aab", b"b", b"cab"]
    compiled = compile(Choice(choices), BYTES.vocabulary)
    prompt = list(b"say ")
    output = network.generate(
        **padded([prompt], END), max_new_tokens=8, do_sample=False, num_beams=8, num_return_sequences=4,
        length_penalty=0.0, logits_processor=[ConstraintLogitsProcessor(compiled, eos_token_id=END)],
    )  # fmt: skip

    def score(text: bytes) -> float:
        tokens = [*prompt, *text, END]
        with torch.no_grad():
            rows = torch.log_softmax(network(torch.tensor([tokens])).logits[0].double(), -1)
        return sum(float(rows[at - 1, tokens[at]]) for at in range(len(prompt), len(tokens)))

    assert texts_of(output, len(prompt)) == sorted(choices, key=score, reverse=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_scores_that_come_in_are_left_as_they_are(dtype: Any) -> None:
    processor = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    scores = torch.zeros((1, 257), dtype=dtype)
    masked = processor(torch.tensor([[1, 2]]), scores)
    assert masked.dtype == dtype
    masked = masked.float()
    assert bool((scores == 0).all())
    assert np.flatnonzero(masked[0].numpy() == 0).tolist() == [ord("a"), ord("b"), ord("x")]
    assert bool((masked[0, :97] == -float("inf")).all())


def test_after_the_end_only_ends_and_padding() -> None:
    processor = ConstraintLogitsProcessor(COMPILED, eos_token_id=[END], pad_token_id=7)

    def allowed(*rows: list[int]) -> list[list[int]]:
        masked = processor(torch.tensor(rows), torch.zeros((len(rows), 257)))
        return [np.flatnonzero(row.numpy() == 0).tolist() for row in masked]

    assert allowed([5], [6]) == [[97, 98, 120]] * 2
    assert allowed([5, 120], [6, 97]) == [[END], [97, 98]]
    assert allowed([5, 120, END], [6, 97, 97]) == [[7, END], [97, 98]]
    assert allowed([6, 97, 97, 97], [5, 120, END, 7]) == [[97, 98, 99], [7, END]]  # rows may change places


def test_only_the_end_tokens_of_the_model_end_a_text() -> None:
    vocabulary = load_tokenizer("bytes", size=300).vocabulary
    both = type(vocabulary)([bytes([byte]) for byte in range(256)], [256, 257], size=300)
    compiled = compile(Regex("x"), both)
    processor = ConstraintLogitsProcessor(compiled, eos_token_id=[257, 299])
    processor(torch.tensor([[1]]), torch.zeros((1, 300)))
    masked = processor(torch.tensor([[1, ord("x")]]), torch.zeros((1, 300)))
    assert np.flatnonzero(masked[0].numpy() == 0).tolist() == [257]


def test_contexts_reach_the_matcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default the prompt without leading special tokens; one for each prompt if given."""
    seen: list[tuple[int, ...]] = []
    start = COMPILED.start
    monkeypatch.setattr(COMPILED, "start", lambda context=(), most=None: seen.append(tuple(context)) or start(context))
    rows = torch.tensor([[END, 5, 6], [END, 5, 6], [7, END, 8], [7, END, 8]])
    ConstraintLogitsProcessor(COMPILED, eos_token_id=END)(rows, torch.zeros((4, 257)))
    assert seen == [(5, 6), (7, END, 8)]
    seen.clear()
    given = ConstraintLogitsProcessor(COMPILED, eos_token_id=END, contexts=[(1,), (2,)])
    given(rows, torch.zeros((4, 257)))
    assert seen == [(1,), (2,)]
    with pytest.raises(ModelError, match="contexts: 3, for 4 rows; give one for each prompt"):
        ConstraintLogitsProcessor(COMPILED, eos_token_id=END, contexts=[()] * 3)(rows, torch.zeros((4, 257)))
    with pytest.raises(ModelError, match="constraints: 4, contexts: 2, for 4 rows"):
        ConstraintLogitsProcessor([COMPILED] * 4, contexts=[(), ()])(rows, torch.zeros((4, 257)))
    seen.clear()  # equal prompts are told apart by their places
    ConstraintLogitsProcessor(COMPILED, contexts=[(1,), (2,)])(rows[:2], torch.zeros((2, 257)))
    assert seen == [(1,), (2,)]


def test_errors() -> None:
    with pytest.raises(ModelError, match=r"ends a text with \[2\], but the end tokens of the vocabulary are \[256\]"):
        ConstraintLogitsProcessor(COMPILED, eos_token_id=2)
    made = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    with pytest.raises(ModelError, match="300 logits and the vocabulary 257 tokens; load the tokenizer with size=300"):
        made(torch.tensor([[1]]), torch.zeros((1, 300)))
    with pytest.raises(VocabularyError, match=r"the prompt: token 260 is outside 0\.\.256"):
        made(torch.tensor([[1, 260]]), torch.zeros((1, 264)))
    made = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    made(torch.tensor([[1, 2]]), torch.zeros((1, 257)))
    with pytest.raises(TokenRefused, match="token 122 is not allowed"):
        made(torch.tensor([[1, 2, ord("z")]]), torch.zeros((1, 257)))


def test_tensors_that_do_not_fit_are_named() -> None:
    processor, ids, scores = ConstraintLogitsProcessor(COMPILED), torch.tensor([[1, 2]]), torch.zeros((1, 257))
    for wrong, said in (
        ((ids, scores[0]), r"scores is a tensor of shape \(rows, V\), not"),
        ((ids, scores.numpy()), "scores is a tensor"),
        ((ids.numpy(), scores), "input_ids is a tensor"),
        ((ids[0], scores), "input_ids is a tensor"),
        ((ids, scores.repeat(2, 1)), "input_ids has 1 row and scores 2"),
    ):
        with pytest.raises(ArgumentError, match=said):
            processor(*wrong)
    assert processor(ids, scores).isfinite().sum() == 3


def allowed_after(made: Any, *rows: list[int]) -> list[str]:
    """By row, what may come next: texts of bytes, and "$" for the end."""
    scores = torch.zeros((len(rows), 257))
    masked = made(torch.tensor(rows), scores)
    return [
        "".join("$" if token == END else chr(token) for token in np.flatnonzero(row.numpy() == 0)) for row in masked
    ]


def test_a_call_that_does_not_go_on_begins_anew() -> None:
    made = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    assert allowed_after(made, [1, 2]) == ["abx"]
    assert allowed_after(made, [1, 2, ord("x")]) == ["$"]
    assert allowed_after(made, [1, 2]) == ["abx"]  # the same prompt again
    assert allowed_after(made, [1, 3, ord("x")]) == ["abx"]  # another prompt
    assert allowed_after(made, [1]) == ["abx"]
    assert allowed_after(made, *[[1, ord("x")]] * 2) == ["$", "$"]  # more rows, which go on
    assert allowed_after(made, [1, ord("x"), END, 5]) == ["abx"]  # what follows an end token is a prompt
    assert allowed_after(made, [1, ord("x"), END, 5, *b"aaa"]) == ["abc"]
    assert allowed_after(made, [1, ord("x"), END, 5, *b"aab"], [9] * 7) == ["abx", "abx"]  # one does not go on


def test_drafts_are_taken_back() -> None:
    """As assisted generation asks: every beginning of a draft, and then what follows from what it has accepted."""
    made = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    prompt = [5, 6]
    for text, expected in (
        ("", "abx"), ("a", "ab"), ("ab", "ab"), ("aba", "abc"), ("abac", "$"),  # a draft
        ("ab", "ab"), ("abb", "abc"), ("abba", "abc"),  # two of it were accepted, a third was not
        ("abba", "abc"), ("abbac", "$"), ("abbac$", "$"), ("a", "ab"), ("x", "$"), ("", "abx"),
    ):  # fmt: skip
        row = prompt + [END if character == "$" else ord(character) for character in text]
        assert allowed_after(made, row) == [expected], text


def test_a_constraint_for_each_prompt() -> None:
    """Rows with equal prompts are distinguished by position; a prompt may be empty."""
    one, other = compile(Choice(["ab", "b"]), BYTES.vocabulary), compile(Choice(["c"]), BYTES.vocabulary)
    made = ConstraintLogitsProcessor([one, other, None])
    everything = "".join(chr(byte) for byte in range(256)) + "$"
    prompts = [[7], [7], [7], [7], [7], [7]]
    assert allowed_after(made, *prompts) == ["ab", "ab", "c", "c", everything, everything]
    rows = [[7, ord("b")], [7, ord("a")], [7, ord("c")], [7, ord("c")], [7, 1], [7, ord("c")]]
    assert allowed_after(made, *rows) == ["$", "b", "$", "$", everything, everything]
    assert allowed_after(ConstraintLogitsProcessor([other, one]), [7], [7]) == ["c", "ab"]


def test_a_constraint_for_each_prompt_in_generate(network: Any) -> None:
    patterns = ["[ab]{3,6}c", "x|y", "[0-9]{2}"]
    for way in WAYS.values():
        torch.manual_seed(1)
        made = ConstraintLogitsProcessor([compile(Regex(pattern), BYTES.vocabulary) for pattern in patterns])
        output = network.generate(**PROMPTS, logits_processor=[made], max_new_tokens=12, **way)
        repeats = len(output) // 3
        for k, text in enumerate(texts_of(output, 5)):
            assert re.fullmatch(patterns[k // repeats].encode(), text), (way, k, text)


OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "min_new_tokens": ("a|b", {"min_new_tokens": 9}),
    "bad_words_ids": ("a[bc]", {"bad_words_ids": [[ord("b")], [ord("c")]]}),
    "suppress_tokens": ("a[bc]", {"suppress_tokens": [ord("b"), ord("c")]}),
    "no_repeat_ngram_size": ("aa|bb", {"no_repeat_ngram_size": 1}),
    "prefix_allowed_tokens_fn": ("a[bc]", {"prefix_allowed_tokens_fn": lambda place, row: list(b"an")}),
}


@pytest.mark.parametrize("way", ["greedy", "sampled", "beams", "sampled beams"])
@pytest.mark.parametrize("option", OTHERS)
def test_what_another_processor_has_masked_is_named(network: Any, option: str, way: str) -> None:
    pattern, options = OTHERS[option]
    made = ConstraintLogitsProcessor(compile(Regex(pattern), BYTES.vocabulary))
    torch.manual_seed(1)
    with pytest.raises(EmptyMask, match=option):
        network.generate(**PROMPTS, logits_processor=[made], max_new_tokens=12, **options, **WAYS[way])


def test_a_beam_that_another_processor_kills_is_left_alone(network: Any) -> None:
    made = ConstraintLogitsProcessor(compile(Regex("ab|cde"), BYTES.vocabulary))
    output = network.generate(
        **padded([list(b"hello")], END), logits_processor=[made], max_new_tokens=12, do_sample=False, num_beams=2,
        min_new_tokens=3,
    )  # fmt: skip
    assert texts_of(output, 5) == [b"cde"]


def test_a_finished_row_has_something_to_sample(network: Any) -> None:
    """no_repeat_ngram_size masks the end tokens of a row that has ended, while another goes on."""
    made = ConstraintLogitsProcessor([compile(Regex(pattern), BYTES.vocabulary) for pattern in ("x", "[a-z]{6}", "y")])
    torch.manual_seed(1)
    output = network.generate(
        **padded([list(b"hello"), list(b"12345"), list(b"hello")], END), logits_processor=[made], max_new_tokens=12,
        do_sample=True, no_repeat_ngram_size=1,
    )  # fmt: skip
    texts = texts_of(output, 5)
    assert (texts[0], texts[2]) == (b"x", b"y")
    assert re.fullmatch(b"[a-z]{6}", texts[1])


@pytest.mark.parametrize("drafts", ["assistant", "lookup"])
@pytest.mark.parametrize("way", ["greedy", "sampled"])
def test_assisted_generation(network: Any, drafts: str, way: str) -> None:
    """Greedy: the text without an assistant, which takes the same argmax."""
    config = network.config.to_dict() | {"num_hidden_layers": 1}
    torch.manual_seed(3)
    assistant = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config)).eval()
    how = {"assistant_model": assistant} if drafts == "assistant" else {"prompt_lookup_num_tokens": 3}
    for pattern in ("(abc|abd)*x", "[ab]{3,6}c|x", "(ab){5}"):
        made = ConstraintLogitsProcessor(compile(Regex(pattern), BYTES.vocabulary))
        for prompt in (b"abcabcab", b"hello"):
            call = {**padded([list(prompt)], END), "max_new_tokens": 20, "do_sample": way == "sampled"}
            output = network.generate(**call, logits_processor=[made], **how)
            text = output[0, len(prompt) :].tolist()
            if END in text:
                assert re.fullmatch(pattern, bytes(text[: text.index(END)]).decode())
            if way == "greedy":
                alone = network.generate(**call, logits_processor=[ConstraintLogitsProcessor(made._made_of[0])])
                assert output.tolist() == alone.tolist()


def test_what_is_answered_already(network: Any) -> None:
    compiled = compile(Regex("yes|no|yellow"), BYTES.vocabulary)
    rows = padded([list(b"say: ye"), list(b"s: ye")], END)
    for answered in (2, "ye", [2, "ye"]):
        made = ConstraintLogitsProcessor(compiled, answered=answered)
        output = network.generate(**rows, logits_processor=[made], max_new_tokens=9, do_sample=False)
        assert {b"ye" + text for text in texts_of(output, 7)} <= {b"yes", b"yellow"}
    limited = ConstraintLogitsProcessor(compiled, answered="ye", max_tokens=1)
    assert allowed_after(limited, list(b"say: ye")) == ["s"]
    for answered, said in ((9, "the prompt has 7"), ("yet", "does not end with 'yet', but with b' ye'")):
        with pytest.raises(ArgumentError, match=said):
            allowed_after(ConstraintLogitsProcessor(compiled, answered=answered), list(b"say: ye"))
    with pytest.raises(ParseError, match=r"answered: the prompt ends with 3 tokens that .* does not begin with"):
        allowed_after(ConstraintLogitsProcessor(compiled, answered=3), list(b"say: ye"))
    wide = Vocabulary([b"a", b"b", b": a", b"ab", b""], [4])
    inside = ConstraintLogitsProcessor(compile(Regex("ab"), wide), answered="ab")
    with pytest.raises(ArgumentError, match="begins inside a token of the prompt, which has b': ab'"):
        inside(torch.tensor([[2, 1]]), torch.zeros((1, 5)))
    for same in ([3], [0, 1]):
        assert np.flatnonzero(inside(torch.tensor([same]), torch.zeros((1, 5)))[0].numpy() == 0).tolist() == [4]


def test_pickles_begin_anew() -> None:
    made = ConstraintLogitsProcessor(COMPILED, pad_token_id=7, answered="a")
    allowed_after(made, [5, ord("a")])
    twin = pickle.loads(pickle.dumps(made))
    assert twin.steps == 0
    assert allowed_after(twin, [9, 9, ord("a")]) == ["ab"]


@pytest.mark.parametrize("wrong", [None, "a", Regex("a"), [], [None], ["a"], BYTES])
def test_what_is_no_compiled_constraint(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="compiled"):
        ConstraintLogitsProcessor(wrong)


def test_one_vocabulary_for_all() -> None:
    with pytest.raises(ArgumentError, match="different vocabularies"):
        ConstraintLogitsProcessor([COMPILED, compile(Regex("a"), Vocabulary([b"a", b""], [1]))])


def test_a_dead_row_is_left_alone_while_another_of_its_prompt_lives() -> None:
    made = ConstraintLogitsProcessor(COMPILED, eos_token_id=END)
    made(torch.tensor([[1], [1], [2]]), torch.zeros((3, 257)))
    masked = made(torch.tensor([[1, ord("z")], [1, 97], [2, 97]]), torch.zeros((3, 257)))
    assert bool((masked[0] == 0).all())
    assert [int((row == 0).sum()) for row in masked[1:]] == [2, 2]
    with pytest.raises(TokenRefused, match="dead"):
        made(torch.tensor([[1, ord("z"), 97], [2, 97, 97]]), torch.zeros((2, 257)))


def test_an_empty_mask() -> None:
    compiled = DeadEnd(compile(Regex("x"), BYTES.vocabulary), at_once=True)
    with pytest.raises(EmptyMask, match="no token is allowed after step 0 by token_index for 'x'"):
        ConstraintLogitsProcessor(compiled, eos_token_id=END)(torch.tensor([[1]]), torch.zeros((1, 257)))


def test_transformers_is_imported_by_the_first_processor() -> None:
    code = (
        "import sys, tokdfa, tokdfa.decoding.logits_processor as page; assert 'transformers' not in sys.modules\n"
        "from tokdfa.backends.registry import compile\n"
        "vocabulary = tokdfa.load_tokenizer('bytes').vocabulary\n"
        "made = page.ConstraintLogitsProcessor(compile(tokdfa.Regex('x'), vocabulary), eos_token_id=256)\n"
        "from transformers import LogitsProcessor\n"
        "print(isinstance(made, LogitsProcessor), isinstance(made, page.ConstraintLogitsProcessor))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


@needs_smollm2
def test_a_real_model_in_every_way() -> None:
    from tokdfa.models.smollm2 import load_smollm2

    model = load_smollm2()
    tokenizer = load_tokenizer("smollm2")
    pattern = r" (19|20)\d\d-(0[1-9]|1[0-2]), [A-Z][a-z]{2,8}\."
    prompts = padded(
        [
            tokenizer.encode(text)
            for text in ("The year and month, and the town:", "When and where was she born? Answer:")
        ],
        pad=2,
    )
    width = prompts["input_ids"].shape[1]
    torch.manual_seed(0)
    ways: dict[str, tuple[dict[str, Any], ...]] = {
        "token_index": ({"do_sample": False}, {"do_sample": True}),
        "cartesian_merge": ({"do_sample": True}, {"do_sample": False, "num_beams": 2}),
    }
    for backend, chosen in ways.items():
        compiled = compile(Regex(pattern), model.vocabulary, backend)
        for way in chosen:
            processor = ConstraintLogitsProcessor(compiled, eos_token_id=model.network.generation_config.eos_token_id)
            output = model.network.generate(**prompts, logits_processor=[processor], max_new_tokens=24, **way)
            for row in output[:, width:].tolist():
                tokens = row[: row.index(2)]
                text = tokenizer.decode(tokens)
                assert re.fullmatch(pattern, text), text
                if backend == "cartesian_merge":
                    assert tokenizer.encode(text) == tokens

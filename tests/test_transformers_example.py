"""The example for transformers on a small network with random weights: each row is the answer it is alone."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import tokdfa
from tests.packages import needs_torch

pytest.importorskip("torch", reason="torch is not installed (extra lm)")
transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed (extra lm)")
pytestmark = needs_torch

PAGE = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "examples" / "transformers_batch.py"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_row_is_what_generate_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.decoding.test_constrain_transformers import fast, network_of

    tokenizer = fast()
    network = network_of(len(tokenizer) + 12)
    texts = PAGE["answer"](network, tokenizer, PAGE["REQUESTS"])
    for (prompt, constraint), text in zip(PAGE["REQUESTS"], texts, strict=True):
        constrained = tokdfa.constrain(constraint, tokenizer, network)
        inputs = tokenizer(prompt, return_tensors="pt")
        output = network.generate(
            **inputs, logits_processor=[constrained.logits_processor()], max_new_tokens=32, do_sample=False
        )
        assert text == tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        constrained.parse(text)
    tokenizer.save_pretrained(tmp_path)
    network.save_pretrained(tmp_path)
    capsys.readouterr()
    PAGE["main"]([str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == [
        prompt + text for (prompt, _), text in zip(PAGE["REQUESTS"], texts, strict=True)
    ]

"""What a serving engine needs around masks: compiling in the background, batches of matchers, adapters to engines.

- `compiling`: `compile_async`, a future from a pool of threads that can be cancelled, and `ConstraintCache`, which
  keeps compiled constraints by content within bounds.
- `batch_matcher`: `BatchMatcher`, the masks of a batch in one buffer, filled by threads while the model works.
- `requests`: what engines say in their requests (kind and text) as constraints.
- `vllm_adapter`, `sglang_adapter`: the classes that those engines ask for. They are written against the interfaces, and
  tested with fakes of them; nobody has run them in the engines themselves.
"""

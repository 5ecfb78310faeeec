"""What a serving engine needs around masks: compiling in the background, batches of matchers, and requests.

- `compiling`: `compile_async`, a future from a pool of threads that can be cancelled, and `ConstraintCache`, which
  keeps compiled constraints by content within bounds.
- `batch_matcher`: `BatchMatcher`, the masks of a batch in one buffer, filled by threads while the model works.
- `requests`, `structural_tags`: what engines say in their requests (kind and text) as constraints.

``docs/examples`` has the classes that vLLM and SGLang ask of a backend, one page each.
"""

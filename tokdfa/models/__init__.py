"""Language models, as small as constraints need them: log-probabilities of the next token after a batch of prefixes.

A constraint asks a model for one thing only, p(next token | prefix), so a model is one method,
`LanguageModel.log_probabilities` (`tokdfa.models.base`): prefixes in, one normalised row of natural logarithms for each
out. All of sampling, decoding and skew is written against it, and every row is checked before anyone sees it.

Words.

- A *prefix*: all tokens the model has seen, the *context* (a prompt) and what was generated after it. A prefix is given
  whole every time; a model that can share the work of common beginnings does so inside.
- A *row*: the log-probabilities after one prefix, float64, as long as the vocabulary's size (the model's *logit
  width*). Tokens that cannot come have -inf.
- A *call*: one batch of prefixes. `CallCounts` counts calls, rows, seconds, and the tokens really run through the
  model: the cost of a decoding strategy is quoted in these.
- *End tokens* have probabilities like any other token. Whether a text's probability includes the one of its end is
  a convention of the measurement (`tokdfa.skew`), not of the model.
- A model's *name* is what `load_model` takes (`tokdfa.models.registry`); its *fingerprint* tells whether two models
  give the same probabilities.

The models.

- ``ngram`` (`tokdfa.models.ngram`): an interpolated Kneser-Ney model over the tokens of any tokenizer, trained in less
  than a second. It needs no further package. It has learned from properly tokenized text only, as a large model nearly
  has, so that what a constraint does to a distribution shows here for the same reasons.
- ``smollm2`` (`tokdfa.models.smollm2`): a real model of 135 million weights, small enough for two cores.
- ``hf:NAME-or-path`` (`tokdfa.models.transformers_loader`): any causal model of the package transformers.
- ``table`` (`tokdfa.models.table`): explicit or random distributions over small vocabularies, for exact tests.

`CachedModel` (`tokdfa.models.cache`) wraps any of them and keeps rows by prefix: comparing ten strategies on one prompt
asks for the same rows ten times.

What a model does not do here: it adds no begin token by itself (`LanguageModel.start_tokens` says what belongs before
a context), it applies no temperature (`tokdfa.decoding.sampling`), and it is never trained by gradient.
"""

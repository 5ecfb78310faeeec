"""From a model and a compiled constraint to text: one sampler, one loop, and seven strategies beyond local masks.

Theory. A model p and a constraint with the *token language* A (the token sequences that a backend admits, each closed
by an end token) define a *target*: the model's own distribution under the condition that its sequence is in A,
``P*(x) = P(x) / Z`` with the *constraint's mass* ``Z = sum of P over A``. Sampling through *local masks* (`loop`) draws
each token from p restricted to the mask and renormalised. It divides by the *allowed mass* of every step, that is by
another number for every sequence, and that is the skew: x comes with P(x) divided by the product of its allowed masses.

Each strategy in this package repairs that, and pays for it in something else:

- `rejection`: draw from p without masks, keep what is in A. Exact. Costs 1 / Z drafts for each sequence.
- `smc` (sequential Monte Carlo, importance-weighted resampling; Lew et al. 2023, arXiv 2306.03081): local masks, but a
  sequence carries the product of its allowed masses as a *weight*; sequences with little weight give way to copies of
  those with much. Approaches the target as the number of *particles* grows; estimates Z without bias.
- `adaptive_rejection` (Lipkin et al. 2025, arXiv 2504.05410): the same with no mask at all; tokens are drawn and
  checked one by one, and the number of refusals gives an unbiased weight.
- `asap` (grammar-aligned decoding; Park et al. 2024, arXiv 2405.21047): local masks, times an upper bound on the mass
  that can still be completed after each token, which gets sharper with every sequence drawn. Approaches the target
  as the number of sequences grows.
- `cars` (constrained adaptive rejection sampling; Parys et al. 2025, arXiv 2510.01902): rejection that takes what it
  has learned from refused drafts out of the next ones. Exact from the first sequence on; fewer drafts with each.
- `adaptrack` (Li et al. 2025, arXiv 2510.17376): masks, and going back when the bounds on a prefix fall. Takes away a
  part of the skew with few rows; not exact, as its module shows. `cars` with ``backtrack=True`` is.
- `mcmc` (Anaya Gonzalez et al. 2025, arXiv 2506.05754): a Markov chain over constrained sequences, with local masks as
  its proposal. Approaches the target with the number of steps, and never goes away from it.

Words. A *row* is the model's log-probabilities after one prefix. A *step* appends one token. A step is *forced* if one
token only, or only end tokens, may come; no model is needed there. A *draft* is a sequence that may yet be thrown away.
A *particle* is a weighted sequence in progress. A *weight* is what a sequence counts in an average; the weights of a
strategy are such that sums over its sequences estimate sums under Z times the target (`draws.Draws`). *Single-token
checks* are questions to a matcher about one token, without a mask.

Conventions, in every module:

- Prefixes for the model are its `start_tokens`, the *context* (the prompt's tokens) and the tokens so far. The matcher
  gets the context.
- `max_tokens` counts appended tokens, the end token included. The strategies beyond local masks have as their target
  the sequences of at most that length; a longer one has weight 0, or is a refused draft.
- eos="counted": the end token is drawn as any other. eos="ignored": a text is complete, without a factor, when nothing
  but an end token may come (as Tran-Thien 2024 counts); a constraint with a text that is the beginning of another is
  refused.
- Randomness is a function of the seed alone. In the loop every sequence has a stream of its own, of which a forced
  step takes nothing, so that skipping forced steps does not change what is generated.

What is not here: beam search and other ways to look for one best sequence; and measuring the skew, which is
`tokdfa.skew`'s.
"""

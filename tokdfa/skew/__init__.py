"""What a constraint does to a language model's distribution over texts, measured exactly or estimated.

Theory (002, Tran-Thien 2024, challenge 1). A model gives every sequence of tokens a probability, and a text is spelled
by many sequences. For a context c and a constraint with the texts L:

- The *ideal* distribution is what a constraint should do: ``P*(s) = P(s) / (sum of P over L)``, where P(s) adds up the
  model's probability of **all** token sequences that spell s. It belongs to the model and to L, not to a backend.
- The *masked* distribution of a backend is what sampling through its masks does: at every step the model's row is
  restricted to the mask and renormalised. Q(s) adds up over the sequences of s that the masks admit. Renormalising at
  each step favours texts that begin with a probable token, even if the model would never go on from there to the text:
  " The" is probable, and under the choice of " William" and " Theodore" it can only become the latter.
- The *skew* is the distance of the two: total variation, Kullback-Leibler both ways, Jensen-Shannon
  (`tokdfa.skew.distances`).

Words. The *token language* of a backend is which spellings of a text it admits: "all", or only the "proper" one, which
is what the tokenizer makes of the text after the context. Backends with one token language have one masked
distribution, whatever their speed. The *improper mass* is the probability of sequences that are not proper. A step is
*forced* if only one token, or only end tokens, may come: no model is needed. A *prefix* is a beginning of a sequence;
the model returns one row of probabilities for each.

End of the text. A model ends a text with an end token, but which probability of a text is meant is a convention, with a
name (`tokdfa.skew.eos`). ``ignored``: that of the text's tokens, without an end; this is the published convention of
002, and it needs texts none of which is the beginning of another. ``counted``: times the probability of any end token.

Exact and estimated. For a finite L the distributions are computed over the tree of token prefixes, the most probable
first (`tokdfa.skew.exact`). The spellings of a text are exponentially many, so the walk may stop early. What it has not
seen is then bounded by the probability of the prefixes that it has not followed: the *unresolved* mass. It is part of
every result, and probabilities and distances become intervals; nothing is dropped in silence. For an infinite L the
masked distribution is sampled, and what is estimated has a standard error (`tokdfa.skew.estimate`).

What is not done here: choosing constraints, prompts or models, and plots; they belong to experiments and reports.
"""

"""The mask builder of strategies that know a situation by more than the bytes: a division of the vocabulary by a state.

Words. A strategy's situation is a *row* (what the parser knows) and a *state* of something that reads bytes and knows
only part of the constraint: a lexer, the automaton of a terminal. A token that the state reads to its end, still alive,
is *inside*: allowed, whatever the row is. Where the state cannot go on, the tokens below are *refused*, or they are
*left*, with a *tag* that says what was read up to some depth: then the row decides. That depends on nothing but the
state, so it is found once, by one walk over the trie, and serves all rows. What is left with one tag is a *rest*:
ranges of nodes, each with the depth at which reading goes on. What a rest does then depends on the state in which the
row goes on, and on nothing else: so it is divided, too. The whole trie is the rest of whole tokens (`WHOLE`).

A mask is a walk over divisions: take the tokens inside; for each tag ask the strategy for the row and state behind it,
and go on with the division of its rest by that state, or walk the rest. So what bytes do is worked out once, and what
is left to the parser is a look-up for each string of tags that some token makes.

Two ways to use it. `earley_trie` divides rests again and again, by lexer states, and walks only what is not divided
yet. `pushdown_trie` chooses one of a row's states, divides by it once, and walks the rests, byte by byte, with all that
the row may read; a rest has a trie of its own then, and a walk may leave large subtrees as rests that are divided, too.

**When a division is made.** The first `patience` times that a rest is read from a state it is walked, byte by byte with
the parser; then it is divided, by a walk of the state alone, and what that leaves is walked or known. So no mask costs
more than the walk and the making of what was walked before: who buys when the rent paid comes up to the price pays at
most twice what it would have cost to know in advance (the ski-rental rule). A state that goes on with nearly all of the
trie, as inside a string, leaves little: dividing is the walk, so it is done at once.

In reading order:

- ``division.hpp``: what walks do with tokens, and with what is left; the walk is `tokdfa.vocabulary`'s ``walker.hpp``.
- `branches`: nodes with many children, for walks that read few bytes.
- `divisions`: divisions and rests, interned and kept.
- `builder`: the mask builder, and what a strategy gives it: steps, states, rows behind tags.
- `shared_divisions`: divisions by the name of their state, for other constraints.
- `slices`: an alternative, parts of the vocabulary that are proved to be allowed as a whole (llguidance).

Sources: llguidance asks of regexes chosen in advance whether they stay inside a lexeme; outlines-core makes automata
over tokens; XGrammar splits the vocabulary by what depends on the context. A division is exact, and the state chooses
it.
"""

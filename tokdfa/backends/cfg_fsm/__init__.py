"""CFG-FSM: Lark's LALR(1) parser with its contextual lexer, over tokens (source 003, Outlines issue 669).

A text belongs to a grammar here iff Lark's LALR(1) parser accepts it, with its contextual lexer, no more and no less.
Lark loads the grammar and makes the tables; the rest is ours, on integers.

What Lark's lexer does. At each place it knows the parser's state, and with it the terminals that may come next, the
*context*. It tries them in one order (priority, then the longer possible match, then the longer pattern, then the
name), each by Python's `re`, and takes the first that matches; it never comes back to that decision. A string that a
regex of the context would match as well is left to the regex, and the lexeme becomes the string's if it is equal to it.

Words.

- The *match automaton* of a terminal accepts the texts at which a match may end; the match ends at the last of them
  that is met before the automaton dies. That is how `re` behaves, also for lazy repetition and ordered alternatives.
- A *lexer state* holds the automaton states of the terminals that may still match, and the obligations. It is
  *labelled* if a lexeme may end there. If it does end there, this is right only if none of the terminals still alive
  matches later on: they become *obligations*, automaton states that must die before they accept. What a lexeme leaves
  to those after it is its *residue*, a set of obligations; a later byte breaks them or discharges them.
- A *stack* is the parser's stack of LALR states, a node in a tree of shared stacks, so equal stacks are equal numbers.
- A *hypothesis* is a lexer state and a stack, a *situation* the set of hypotheses that a text leaves open.
- A hypothesis is *live* if some text leads from it to an end; situations hold live ones only. A lexer state says what
  it can still end in; a stack, what leads on from it; a hypothesis is live iff these two sets of bits meet.
- A grammar is *certified* if what the parser takes leads on: the LALR tables have no conflicts, every rule can come to
  an end, and lexing is in no terminal's way: whatever was read before, each terminal of a context can be written next,
  perhaps after ignored text. If it is not, what leads on from a stack is found by a search, once for each stack.

In reading order: `lark_tables` (Lark's tables as arrays), `lark_size` (how much Lark will make of a grammar),
`match_program` and `match_automata` (terminals), `contextual` (lexer states, all of them, before the first byte),
`stacks`, `liveness`, `hypotheses` (lexer and parser together: a table of situations, made as far as it is needed),
`machine` (all of it). Masks, in two ways: by walking the token trie with that table, and by `splits` with
`speculation`: 003's prefix and suffix pairs, vectors for each lexer state, and the tree of terminals that one token may
run through. To look at them: `describe` (situations in words) and `tree_graph`. The design by itself, without Lark:
`regex_fsm`, whose objects are put together by ``+`` and ``|``, by products of packed vectors. `cuts`: the loops of all
these.

Stacks and situations are plain Python: each is made once, and what is asked again and again is a table. Compiled loops
run the rests of a vocabulary through a lexer state, join and unite sets of tokens, and multiply vectors.

Departures from 003. Its vectors belong to the states of terminals; ours to lexer states, which know about the order of
terminals. Its tree is cached by the parser's stack; ours by the terminals passed and the contexts between them, which
many stacks share: a stack only chooses among the branches, and its choice is kept.
"""

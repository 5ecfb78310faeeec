"""Context-free grammars: from a text in Lark's notation to rules over lexemes, and from there to token masks.

A grammar is cut in two, as in programming languages: *lexemes* are regular languages over bytes, *rules* say in which
order lexemes may stand. Between lexemes there may be skipped text. A `Cfg` does not decide where a lexeme ends: it
denotes all texts that can be cut into lexemes in an order that the rules allow. A `Machine` does, by its lexing rule.

In reading order. Grammars as data:

- `cfg`: the grammar as data, and its words; `builder`: making one; `lexemes`: which expressions may be lexemes.
- `repetition`: ``* + ? {m,n}`` as few flat rules; `analysis`: what symbols can derive; `simplify`: fewer symbols for
  the same texts.
- `lark_tree`, `lark_syntax`: the notation, and text -> tree, read with the Lark package; `common_terminals`: what
  ``%import common`` brings; `lark_terminals`: terminals -> expressions; `lark_reader`: all of it, text -> `Cfg`.
- `special`: special tokens in grammars -> ids of a vocabulary.
- `regular`: a regex or a choice -> a grammar of one lexeme.

Grammars at work:

- `lexer_components`, `lexer_states`, `lexer`: bytes -> which lexemes these may be, or become.
- `earley_rows`, `earley_scan`, `earley`: lexemes -> rows, which are found again by content.
- `machine`: both as one recogniser of bytes, where a lexeme ends, and what happens if a longer match fails.
- `partition`: what a lexer state alone says of each token; `partition_masks`: masks out of that; `shared_partitions`:
  equal lexer states of different grammars.
- `walk`: lexer and rows along the token trie, or along the parts of it that a partition leaves open.
- `containment`, `slices`: 000's alternative to partitions, parts of the vocabulary that are proved to be allowed.

Nothing here fills a caller's mask or remembers one: that is `tokdfa.backends.earley_trie`, which has the options.

Source: 000 (llguidance) for the cut in two, the notation's additions, the encodings of repetitions, the contextual
lexer, rows along the walk, and slices.
"""

"""Context-free grammars: from a text in Lark's notation to rules over lexemes.

A grammar is cut in two, as in programming languages: *lexemes* are regular languages over bytes, *rules* say in which
order lexemes may stand. Between lexemes there may be skipped text. Nothing here decides where a lexeme ends: a `Cfg`
denotes all texts that can be cut into lexemes in an order that the rules allow.

In reading order:

- `cfg`: the grammar as data, and its words; `builder`: making one; `lexemes`: what an expression must be to be a lexeme.
- `repetition`: ``* + ? {m,n}`` as few flat rules; `analysis`: what symbols can derive, and which are recursive;
  `simplify`: fewer symbols for the same texts.
- `lark_tree`, `lark_syntax`: the notation, and text -> tree, read with the Lark package; `common_terminals`: what
  ``%import common`` brings; `lark_terminals`: terminals -> expressions; `lark_reader`: all of it, text -> `Cfg`.
- `special`: special tokens in grammars -> ids of a vocabulary.

Source: 000 (llguidance) for the cut in two, the notation's additions and the encodings of repetitions.
"""

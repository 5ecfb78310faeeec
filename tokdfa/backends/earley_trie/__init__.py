"""Grammars at work: a lazy lexer and an Earley parser along the token trie, llguidance's way.

A `tokdfa.grammar.cfg.Cfg` does not decide where a lexeme ends: it denotes all texts that can be cut into lexemes in an
order that the rules allow. A `Machine` does, by its lexing rule. In reading order:

- `strategy`: the options, and what is kept of masks and steps.
- `tokdfa.grammar.lexer`: bytes -> which lexemes these may be, or become.
- `rows`: lexemes -> rows, which are found again by content.
- `machine`: both as one recogniser of bytes, where a lexeme ends, and what happens if a longer match fails.
- `walks`: lexer and rows along the token trie, for the mask builder (`tokdfa.masks`), and where every token leads.
- `lexer_names`: equal lexer states, in different grammars, too.
- `ranks`: how far an end is, for limits on tokens; `spelled_components`: which lexemes can be written where the
  vocabulary lacks bytes.

Source: llguidance for the contextual lexer, rows along the walk, and slices.
"""

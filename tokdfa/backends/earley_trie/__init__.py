"""Grammars at work: a lazy lexer and an Earley parser along the token trie, llguidance's way.

A `tokdfa.grammar.cfg.Cfg` does not decide where a lexeme ends: it denotes all texts that can be cut into lexemes in an
order that the rules allow. A `Machine` does, by its lexing rule. In reading order:

- `strategy`: the options, and what is kept of masks and steps.
- `lexer_components`, `lexer`: bytes -> which lexemes these may be, or become.
- `earley_rows`, `earley_scan`, `earley`: lexemes -> rows, which are found again by content.
- `machine`: both as one recogniser of bytes, where a lexeme ends, and what happens if a longer match fails.
- `walk`: lexer and rows along the token trie, or along a part of it.
- `effects`, `effect_kernels`: what tokens do to a lexer state, in tables that all rows share; `lexer_names`,
  `shared_effects`: equal lexer states, in different grammars, too.
- `slices`: llguidance's alternative to effects, parts of the vocabulary that are proved to be allowed.
- `targets`, `ranks`: where every token leads, and how far an end is, for the proper filter and limits on tokens;
  `spelled_components`: which lexemes can be written where the vocabulary lacks bytes.

Source: 000 (llguidance) for the contextual lexer, rows along the walk, and slices.
"""

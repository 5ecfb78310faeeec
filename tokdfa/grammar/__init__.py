"""Context-free grammars as data: from a text in Lark's notation to rules over lexemes.

A grammar is cut in two, as in programming languages: *lexemes* are regular languages over bytes, *rules* say in which
order lexemes may stand. Between lexemes there may be skipped text. A `Cfg` does not decide where a lexeme ends: it
denotes all texts that can be cut into lexemes in an order that the rules allow. In reading order:

- `cfg`: the grammar as data, and its words; `builder`: making one, with ``* + ? {m,n}`` as few flat rules; `simplify`:
  what symbols can derive, and fewer symbols for the same texts.
- `lark_tree`, `lark_words`, `lark_syntax`: the notation, and text -> tree; `common_terminals`: what
  ``%import common`` brings; `lark_terminals`: terminals -> expressions; `lark_reader`: all of it, text -> `Cfg`.
- `parts`: the same text from Python, with tags in free text; `tool_formats`: how models write calls of tools.
- `gbnf`, `ebnf`: llama.cpp's and xgrammar's notations -> the same text.
- `special`: special tokens in grammars -> ids of a vocabulary.
- `lexeme_automata`: the automata of lexemes; `lexer_components`, `lexer`: all at once, bytes ->
  which lexemes these may be, or become.

What reads bytes by a grammar is a strategy: `tokdfa.backends.earley_trie`, `tokdfa.backends.cfg_fsm`,
`tokdfa.backends.pushdown_trie`.

Source: 000 (llguidance) for the cut in two, the notation's additions and the encodings of repetitions.
"""

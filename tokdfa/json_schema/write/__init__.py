"""Writing: shapes become a program, or a grammar over lexemes.

- `lower`, `lower_value`, `lower_object`, `lower_array`, `lazy_frames`: one builder, which writes the program of shapes;
- `lexemes`, `program_grammar`: the program as a grammar over lexemes, for `earley_trie`; `program_automaton`: as one
  automaton, where it is regular;
- `expand`: schemas in grammars; `survey`: all that a schema is asked before it is used, for ``tokdfa check-schema``.
"""

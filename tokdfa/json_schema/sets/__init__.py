"""Sets of numbers and of strings, which no keyword of a schema leaves, and the automata of the JSON texts in them.

- `number_set`: a set, by bounds and multiples; `number_plan`, `number_rows`, `number_states`, `number_exponents`,
  `number_exploration`: states of its automaton; `number_dfa`: the automaton; `number_texts`: which of its texts are
  written;
- `string_set`: a set, by patterns, formats, lengths and values; `string_demands`, `string_lengths`: its automaton over
  code points; `string_body`, `spelling`, `spelled_automaton`: that of the JSON texts; `string_doubts`: texts on which
  judges differ; `endless`: whether it has endlessly many;
- `patterns`, `listed_patterns`: ECMA-262; `formats`, `class_formats`, `uri_formats`, `regex_format`: ``format``;
  `blanks`: strings without runaway blanks.
"""

"""JSON Schema: from a schema to a program (`tokdfa.program`).

Theory. A schema denotes a set of JSON values, and a constraint the texts that spell them. Keywords of one schema all
hold at once, so sets are intersected, united and complemented all over the place; a program only knows alternatives and
calls. In between stands a *disjunctive normal form*, one level of the value deep: a `Shape` holds, for each JSON type,
alternative *clauses*, each a conjunction of demands on a value of that type. What is said about the parts of a value
(properties, items) is kept as a *state*: a set of *literals*, each a schema of the document or its negation, all of
which hold. A state is brought to its own shape only when somebody needs it, so recursion does no harm; there are
finitely many states. Schemas of a plain scalar type are literals that all documents share. This is how an alternating
tree automaton is made nondeterministic.

- `document`: reads the text, its draft, and what ``$ref`` leads to;
- `clauses`: clauses, shapes, states, and how they intersect; `keyword_names`: which keywords there are;
- `oracle`: what may be asked, of one object: `Oracle` has the state of the schema at some place, `emptiness` adds
  whether a state has a value at all, and `shape_builder` its shape, with the in-place applicators (allOf, anyOf, oneOf,
  not, if);
- `keywords`: the shape of the keywords of one type; `values`: of enum and const; `complement`: of all other values;
  `unevaluated`: what unevaluatedProperties reduces to; `disjoint`: which branches of oneOf may overlap;
- `listed`: what is seen of states of listed scalars; `choices`: alternatives that are settled while an object is read;
- `object_plan`, `object_states`, `array_states`, `ends`: what a clause of an object or array comes to;
- `number_set`, `number_plan`, `number_states`, `number_exponents`, `number_exploration`, `number_dfa`: clauses of
  numbers, and the automata of their texts; `number_texts`: which of these are written;
- `string_set`, `string_doubts`, `string_demands`, `string_lengths`, `string_body`, `spelled_automaton`, `spelling`,
  `patterns`, `listed_patterns`, `formats`, `uri_formats`, `regex_format`: those of strings; `blanks`: those without
  runaway blanks;
- `distinct`: where a name may come twice, if none may (``duplicates="refused"``);
- `unique_items`: where a matcher has to remember items that must differ;
- `lower_value`, `lower_object`, `lower`: one builder, which writes the program of shapes, with `lower_array` and
  `lazy_frames`.
- `lexemes`, `program_grammar`: the program as a grammar over lexemes, for `earley_trie`; `expand`: schemas in grammars.

What cannot be enforced exactly is refused with the JSON pointer and the keyword (`SchemaUnsupported`).
"""

"""JSON Schema: from a schema to the intermediate form of `tokdfa.pushdown`.

Theory. A schema denotes a set of JSON values, and a constraint the texts that spell them. Keywords of one schema all
hold at once, so sets are intersected, united and complemented all over the place; the form only knows alternatives and
calls. In between stands a *disjunctive normal form*, one level of the value deep: a `Shape` holds, for each JSON type,
alternative *clauses*, each a conjunction of demands on a value of that type. What is said about the parts of a value
(properties, items) is kept as a *state*: a set of *literals*, each a schema of the document or its negation, all of
which hold. A state is brought to its own shape only when somebody needs it, so recursion does no harm; there are
finitely many states. This is how an alternating tree automaton is made nondeterministic.

- `document`: reads the text, its draft, and what ``$ref`` leads to;
- `values`: JSON values as sets and keys; `clauses`: clauses, shapes, and how they intersect;
- `keywords`: the shape of one schema; `negation`: of its complement; `expand`: of a state, with the in-place
  applicators (allOf, anyOf, oneOf, not, if); `unevaluated`: what unevaluatedProperties reduces to;
- `emptiness`: whether a state has a value at all;
- `number_set`, `number_dfa`, `string_set`, `string_body`, `patterns`, `formats`: clauses of numbers and strings, and
  their texts;
- `lower`, `lower_object`, `lower_array`: from shapes to the form.

What cannot be enforced exactly is refused with the JSON pointer and the keyword (`SchemaUnsupported`).
"""

"""JSON Schema: from a schema to a program (`tokdfa.program`), in four rooms.

Theory. A schema denotes a set of JSON values, and a constraint the texts that spell them. Keywords of one schema all
hold at once, so sets are intersected, united and complemented all over the place; a program only knows alternatives and
calls. In between stands a *disjunctive normal form*, one level of the value deep: a `Shape` holds, for each JSON type,
alternative *clauses*, each a conjunction of demands on a value of that type. What is said about the parts of a value
(properties, items) is kept as a *state*: a set of *literals*, each a schema of the document or its negation, all of
which hold. A state is brought to its own shape only when somebody needs it, so recursion does no harm; there are
finitely many states. Schemas of a plain scalar type are literals that all documents share. This is how an alternating
tree automaton is made nondeterministic.

Each room imports only those before it:

- `sets`: sets of numbers and of strings, and the automata of their texts;
- `read`: a document, its draft, what ``$ref`` leads to, and what is wrong with it or looks so;
- `solve`: shapes of states, complements, emptiness, and the plans of objects and arrays;
- `write`: the program, for `pushdown_trie` and the others; the same as a grammar over lexemes, for `earley_trie`.

What cannot be enforced exactly is refused with the JSON pointer and the keyword (`SchemaUnsupported`).
"""

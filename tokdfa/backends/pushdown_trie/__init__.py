"""Our own engine: a lazily determinised pushdown automaton over bytes.

A constraint is lowered to a small byte-level program (`tokdfa.program`). Its terminals are automata that all
constraints of a vocabulary share (`automaton_table`). The machine follows all readings of a text at once: a *row* is
the set of places where the program may be, interned by content (`rows`), and what is still owed after the current call
is a *return stack* that rows share (`stacks`). Rows and their transitions are made when they are first needed, so a
matcher's state is one number. A mask is what the terminals that are alive allow by themselves (`row_divisions`,
`slices`), and a walk over what is left of the token trie (`walks`).

JSON has instructions of its own: names as they may be spelled (`names`) and strings of bounded length (`items`,
`lengths`), over the automaton of any string (`tokdfa.program.json_text`); `items` puts them beside terminals. Large
programs are written as they are needed (`bound_program`).

Reading order:

- `strategy`: the options, compile; `compiled`, `matcher`: start, fill_mask, advance; `schema_tables`:
  what schemas find ready;
- the program, bound to a vocabulary: `bound_program`;
- the states of its terminals: `state_table`, `automaton_table`;
- what constraints share: `pool`, which puts these together;
- the machine, each class an extension of the one before: `rows`, `stacks`, `names`, `items`, `closure`, `steps`,
  `machine`;
- how many characters tokens have in a string: `lengths`;
- masks, by the mask builder of `tokdfa.masks`: `row_divisions` with `slices`, `walks`;
- how far an end is, and which rows reach one by the bytes that are tokens: `spelled_rows` with `spelled_items` and
  `spelled_states`.
"""

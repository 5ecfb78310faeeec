"""Our own engine: a lazily determinised pushdown automaton over bytes.

A constraint is lowered to a small byte-level program (`form`, `form_builder`, `lower`; `printing` shows it). Its texts
are automata that all constraints of a vocabulary share (`pool`). The machine follows all readings of a text at once: a
*row* is the set of places where the program may be, interned by content (`rows`), and what is still owed after the
current call is a *return stack* that rows share (`stacks`). Rows and their transitions are made when they are first
needed, so a matcher's state is one number. A mask is what the texts that are alive allow by themselves (`partition`,
`slices`, `exits`), and a walk over what is left of the token trie (`fill`).

JSON has instructions of its own: names as they may be spelled (`names`, `name_trie`) and strings of bounded length
(`counted`, `lengths`), over the automaton of any string (`json_text`); `items` puts them beside texts. Large programs
are written as they are needed (`program`).

Reading order: `form`, `form_builder`, `lower`, `pool`, `program`, `stacks`, `rows`, `machine`, `partition`, `slices`,
`exits`, `serving`, `fill`, `json_text`, `name_trie`, `names`, `name_exits`, `counted`, `store`.
"""

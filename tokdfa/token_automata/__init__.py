"""Automata whose letters are tokens: a byte automaton seen through a vocabulary.

`token_index` is the table DFA state x token -> state, token by token. The other way to it goes by token classes:
`transformations` or `prefix_graphs` classify the tokens and say what each class does to the states (`columns`),
`reduced_table` makes the table, `ready_masks` its masks, `table_file` keeps it on disk; `parallel` splits the work.
`muting`, `fewest_tokens`, `contraction` and `ghosts` are about literals spelled in one way only. `liveness` says which
states tokens can complete, and which bytes a vocabulary lacks.
"""

"""TokensDFA (001, outlines-core pull request 194, "V2Index"): the table DFA state x token -> state by token classes.

`strategy` has the options. `transformations` (or `tokdfa.token_automata.prefix_graphs`) classifies the tokens and says
what each class does to the states; `reduced_table` makes the table, `ready_masks` its masks. `muting`, `fewest_tokens`,
`contraction` and `bound_tokens` are about literals spelled in one way only.
"""

"""Automata whose letters are tokens: a byte automaton seen through a vocabulary.

`token_index` is the table DFA state x token -> state, token by token; `token_rows` its rows as dictionaries.
`prefix_graphs` finds the same by classes of tokens (`columns`), `parallel` splits the work; `word_rows` and
`class_strings` are the compiled loops. `liveness` says which states tokens can complete, and which bytes a vocabulary
lacks.
"""

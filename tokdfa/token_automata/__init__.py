"""Automata whose letters are tokens: a byte automaton seen through a vocabulary.

`token_index` is the table DFA state x token -> state; `liveness` says which states tokens can complete, and which bytes
a vocabulary lacks.
"""

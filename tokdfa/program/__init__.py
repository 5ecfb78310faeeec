"""The byte-level program that grammars and JSON schemas are lowered to: a program of few instructions over bytes.

`program`: the instructions, its terminals as automata, and their keys; `builder`: making a program; `json_text`: the
automata of JSON strings and numbers that all schemas share; `lower`: regexes, choices and grammars -> a program;
`link`: a program as a part of another; `program_file`: a program on disk, with its constraint; `printing`: a program as
text. What runs it is `tokdfa.backends.pushdown_trie`; `tokdfa.json_schema` also makes a grammar of it.
"""

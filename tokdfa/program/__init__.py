"""The byte-level form that grammars and JSON schemas are lowered to: a program of few instructions over bytes.

`form`: the instructions, texts as automata, and their keys; `form_builder`: making a form; `json_text`: the automata of
JSON strings and numbers that all schemas share; `lower`: regexes, choices and grammars -> a form; `form_file`: a form
on disk; `printing`: a form as text. What runs it is `tokdfa.backends.pushdown_trie`; `tokdfa.json_schema` also makes a
grammar of it.
"""

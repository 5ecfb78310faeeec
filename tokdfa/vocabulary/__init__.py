"""Vocabularies, their tokenizers, the flat token trie and its walk.

In reading order: `vocabulary` (id -> bytes), `tokenizer` (encoder, decoder), `tokenizers` (the door: what becomes one),
`markers` (which added tokens are no text), `trie` (flat), `walk_forms` (the walk derived step by step), ``walker.hpp``
(the walk, for any strategy's step), `byte_table` (its simplest use: by a table), `merge_source` (what a tokenizer's
file says about merging).
"""

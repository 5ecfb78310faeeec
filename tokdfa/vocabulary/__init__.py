"""Vocabularies, their tokenizers, the flat token trie and its walk.

In reading order: `vocabulary` (id -> bytes), `tokenizers` (loaded by name), `trie` (flat), `walk_forms` (the walk
derived step by step), `walker` (the walk, for any strategy's step), `walk` (its simplest use: by a table),
`merge_source` (what a tokenizer's file says about merging).
"""

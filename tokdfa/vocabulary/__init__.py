"""Vocabularies, their tokenizers, the flat token trie and its walk.

In reading order: `vocabulary` (id -> bytes), `tokenizers` (loaded by name), `trie` (flat), `walk_forms` (the walk
derived step by step), `walk` (the walk that everything uses).
"""

"""Vocabularies, their tokenizers, the flat token trie and its walk.

In reading order: `vocabulary` (id -> bytes), `tokenizers` (loaded by name), `trie` (flat), `walk_forms` (the walk
derived step by step), `walk` (the walk that everything uses), `merge_source` (what a tokenizer's file says about
merging).
"""

"""Regular expressions over bytes: from a pattern to an automaton.

In reading order: `syntax_tree` (what a pattern says, in code points), `dialects`, `parse`, `parser`, `atoms` and
`library_parser` (pattern -> tree), `char_sets`, `unicode_tables` and `utf8` (sets of code points and their bytes),
`boundaries`, `tree_writer` and `lower` (tree -> expression over bytes, anchors and look-ahead resolved where they
stand), `nodes`, `laws`, `program`,
`expression` (interned, simplified expressions, built in one go), `derivative_classes` and `derivative` (which bytes
leave the same, and what is left after a byte), `lazy_dfa` (states on demand), `compile` (all of it in one call).
"""

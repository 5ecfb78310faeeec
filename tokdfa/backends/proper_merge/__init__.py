"""Proper tokenizations by merging (Tran-Thien 2024, 002): DirectMerge, CartesianMerge, and Vegas for recurring parts.

`direct_merge` and `cartesian_merge` are the two strategies. DirectMerge spells a constraint in the tokenizer's letters
(`letter_automaton`) and applies its merges one after another (`merging`, `merging_stages`, `merging_pieces`,
`merging_state`). CartesianMerge pairs the byte automaton with what the tokenizer allows (`marked_product`): states
settled lazily (`proper_states`, `proper_table`, `proper_rows`), or 002's search over pairs of states
(`relevant_pairs`). `vegas`: states of parts that constraints share.
`context`: tokens before the text; `spellable`: whether any text is left.
"""

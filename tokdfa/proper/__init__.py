"""Byte-pair encoding as automata: which token sequences a tokenizer itself would produce.

Words. A text is cut into *pieces* by a *pre-tokenizer* (without one, it is one piece). Within a piece, tokens begin as
single *letters* (bytes or characters), and adjacent ones *merge* by *merge rules*, the lowest *rank* first, on equal
ranks the leftmost. A sequence of tokens is *proper* (canonical) iff it is what the tokenizer makes of its text:
``encode(decode(tokens)) == tokens``.

Inside a piece, whether a sequence is proper is a matter of its tokens and of its adjacent pairs (002, Tran-Thien 2024,
technical appendix, section 4.1). Tokens: merging a token's own letters must give that token; its *last merge* is the
final step of that. Pairs: t u is not proper iff some rule merges a token on t's *right spine* with one on u's *left
spine* before either becomes a part of something larger. The tokens that may not follow t are a short list of
*intervals* in a fixed numbering of the tokens, so there is no table of tokens x tokens anywhere.

In reading order, for merges: `merge_rules` (from the file to arrays), `derivations` (last merges, levels), `merge_tree`
(the numbering), `bpe` (the loops of these three), `intervals` (forbidden successors), `adjacent_pairs` (one pair, no
lists), `byte_fallback`, `canonical` (all of it for one tokenizer), `explain` (where a sequence is not proper, and why),
`verify` (comparison with the reference library), `rules_cache` (on disk; `load_canonicity` is the front door), `replay`
(the slow twin of merging).
For pieces: `pretokenizer` and the modules it lists.

Measured on one core of a server, without the disk cache: Mistral v1 (32,000 tokens, 58,980 rules) 0.3 s, of which the
interval lists are 0.06 s; Tekken and Llama 3 (131,072 and 128,256 tokens; 269,443 and 280,147 rules) 0.9 s each; from
the disk 0.05 s. 002 reports 20.9 s for Mistral v1.
"""

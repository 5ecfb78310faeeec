r"""Other people's engines behind our mask interface, compared with ours and checked by the same laws.

======================  ================================================================================================
backend                 the engine
======================  ================================================================================================
``llguidance``          derivatives of regexes into a lazy byte automaton, an Earley parser above it, trie walks
``outlines_core``       the Outlines index: automaton state x token -> state, complete before the first mask
``glrmask``             grammars compiled for a vocabulary into an automaton over tokens, or walked as a trie
``xgrammar``            pushdown automata whose states get their masks while compiling (an extra of its own)
``lm_format_enforcer``  a parser of characters and a trie of the characters of tokens, in plain Python
``grid``                LALR(1) tables of a grammar that a schema is lowered to, trie walks whose masks are kept
``maskforge``           byte automata of schemas, or a matcher of JSON values
``xgrammar_cfgzip``     xgrammar over classes of tokens that a grammar treats alike
``syncode``             Lark's LALR(1) parser over masks kept for terminals' states (in an environment of its own)
======================  ================================================================================================

What makes the comparison fair:

- *Same language.* Dialects of regexes differ in details: Unicode versions of ``\d``, case folding, ``{,3}``, anchors.
  With ``dialect="tokdfa"`` (the default) a pattern is parsed by us and printed in a notation that all read alike,
  so its language is exactly ours (`rust_regex`); what a peer cannot express is refused by name. With
  ``dialect="own"`` the peer gets the pattern as it was written and reads it by its own rules.
- *Same buffer.* Each peer writes into the caller's packed mask. End tokens follow our rule: all their bits are set iff
  the text may end. A peer never sees an end token; `peer_matcher.PeerMatcher` takes and takes back end tokens itself.
- *Set-up apart.* What a peer builds once for a vocabulary is kept with the vocabulary (weakly) and made with the
  backend, not while compiling; `setup_seconds` of the backend says how long it took.
- *Rare operations by simple means.* Where a peer has no fork or no rollback, it starts anew and takes the same tokens
  again; so does a peer that a refused token has spoilt. The counter ``tokens_replayed`` says how many were taken
  again.

Grammars and JSON schemas go to the peers that read them as they are; each peer has its own reading of them, which its
module describes, with what it accepts or refuses wrongly. Options of a peer default to the reading that is nearest to
JSON Schema; where its own default is another one, the module says so. Of a constraint's own options (white space,
separators, leniency) each peer gets those that it has a counterpart for, and the others have no effect.
"""

r"""Finite automata over bytes: build them, minimise them, compare them, combine them, look at them.

Words. A *word* is a byte string; a *language* is a set of words. A *deterministic automaton* (DFA) reads a word byte by
byte: from the *start* state each byte leads to one next state, and the word is *accepted* iff the state after the last
byte is *accepting*. Our transition functions are partial: where no accepted word goes on there is no next state, and
the run is *dead* (-1). A state is *live* if it can be reached and acceptance can be reached from it; an automaton with
live states only is *trim*. This matters here more than elsewhere, because a token may be offered to a language model
iff its bytes lead to a live state.

Byte classes. An automaton over bytes has 256 columns, but most of them are equal: ``[0-9]+`` treats all digits alike
and all other bytes alike. Two bytes are in one *class* iff their columns are equal in every state, and we keep one
column a class. `byte_classes` finds the coarsest such partition; classes are numbered by their smallest byte, so that
equal partitions are equal arrays.

The minimal automaton. Two states are *equivalent* iff the same words lead from them to acceptance. Merging equivalent
states of a trim automaton gives the smallest automaton of its language, and the only one of that size up to the names
of its states (Myhill and Nerode). We name states in breadth-first order, the bytes in ascending order, so `minimize`
gives a *canonical form*: two languages are equal iff the arrays are.

Reading order:

- `dfa`: the automaton as frozen arrays, checked once when built.
- `byte_classes`: partitions of the 256 bytes.
- `explore`: one breadth-first builder from "where does this state lead?" to a DFA.
- `liveness`: which states are live, how far they are from acceptance, and trimming.
- `minimize`: the minimal automaton in canonical form.
- `words`: listing and counting the words of a language.
- `algebra`: Boolean operations, equality with a shortest distinguishing word; the front door to the three before.
- `moves`: the compiled searches and the partition refinement that `liveness` and `minimize` use.
- `pairs`: compiled, two automata at once: products, and whether one can read every text of another, within a budget.
- `graph`: networkx and DOT export, and drawings in the manner of a textbook (`drawing`, `layout`).

What this package does not do: parse regular expressions (`tokdfa.regex`) or know tokens.
"""

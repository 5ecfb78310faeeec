"""The automata behind figures 1, 2 and 3 of Tran-Thien 2024: all tokenizations of a text, and the proper one.

The notebook ``03_proper_tokenization`` draws them.

- Figure 1: ``a*b*`` as an automaton over tokens, on a vocabulary of seven.
- Figure 2: the automaton over tokens of ``boolean: ((true)|(false))`` with Mistral v1, as a plain index has it. The
  article leaves the tokens of the byte fallback out.
- Figure 3: the proper tokenizations of the same two texts. The article counts 5 states, as its automaton over
  characters ends in a state for each of the texts and nothing is minimised. A minimal one, and already one made of
  derivatives, has one end, so the backend `direct_merge` has 4 states with any options.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tokdfa.automata.algebra import union
from tokdfa.automata.graph import token_automaton_to_networkx
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import proper_tokenizations
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.constraint import Regex
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Container

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

BOOLEAN = Regex("boolean: ((true)|(false))")
BOOLEAN_TEXTS = ("boolean: true", "boolean: false")
A_THEN_B = Regex("a*b*")


def token_graph(rows: TokenRows, vocab: Vocabulary, leave_out: Container[int] = ()) -> Any:
    """`rows` as a networkx graph for `tokdfa.automata.graph.draw`, edges labelled with the bytes of tokens.

    Transitions by a token of `leave_out` are not in it.
    """
    edges = [
        (state, vocab.token_bytes(token), target)
        for state, row in enumerate(rows.rows)
        for token, target in row.items()
        if token not in leave_out
    ]
    return token_automaton_to_networkx(edges, rows.start, [state for state, end in enumerate(rows.accepting) if end])


def plain_rows(constraint: Constraint, vocab: Vocabulary) -> TokenRows:
    """The automaton of all tokenizations of the constraint's texts, as the backend `token_index` makes it."""
    compiled: Any = compile_constraint(constraint, vocab, backend="token_index")
    states = range(compiled.sizes["states"])
    rows = [compiled.transitions(state) for state in states]
    return TokenRows(rows, [compiled.accepts(state) for state in states], 0)


def proper_boolean_rows(tokenizer: Tokenizer) -> TokenRows:
    """Figure 3 as the article counts it: from an automaton with an end for each text, and not minimised.

    For a tokenizer without pre-tokenizer. Raises as `load_canonicity` does.
    """
    ends_apart = reduce(union, [compile_dfa(Regex(text)) for text in BOOLEAN_TEXTS])
    return proper_tokenizations(marked_product(ends_apart, None), load_canonicity(tokenizer), minimal=False)


def byte_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens of single bytes that byte fallback has, used or not; empty for a tokenizer without byte fallback."""
    tokens = tokenizer.merges.byte_tokens
    return frozenset() if tokens is None else frozenset(tokens[tokens >= 0].tolist())

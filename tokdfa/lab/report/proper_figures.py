"""Figures 1, 2 and 3 of 002, drawn by us from live automata: all tokenizations of a text, and the proper one.

- Figure 1: ``a*b*`` as an automaton over bytes and as one over tokens, on a vocabulary of seven. Highlighted is the
  state after the tokens aaaa, aa, ab, from which only b and bb lead on.
- Figure 2: the automaton over tokens of ``boolean: ((true)|(false))`` with Mistral v1, as a plain index has it. 002
  leaves the tokens of the byte fallback out, and so does the drawing.
- Figure 3: the proper tokenizations of the same two texts. 002 counts 5 states, as its automaton over characters ends
  in a state for each of the texts and nothing is minimised. The drawing is made from such an automaton. A minimal one,
  and already one made of derivatives, has one end, so the backend `direct_merge` has 4 states with any options.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tokdfa.automata.algebra import union
from tokdfa.automata.graph import draw, to_networkx, token_automaton_to_networkx
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.merging import proper_tokenizations
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.constraint import Regex
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.token_rows import TokenRows
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

BOOLEAN = Regex("boolean: ((true)|(false))")
BOOLEAN_TEXTS = ("boolean: true", "boolean: false")
A_THEN_B = Regex("a*b*")
#: The tokens of figure 1 that the regex can use; 002 names these.
A_B_TOKENS = ("a", "aa", "aaaa", "ab", "abb", "b", "bb")
#: What has been written where figure 1 masks tokens.
A_B_WRITTEN = ("aaaa", "aa", "ab")

_DOTS_PER_INCH = 200


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
    """Figure 3 as 002 counts it: from an automaton with an end for each text, and not minimised.

    For a tokenizer without pre-tokenizer. Raises as `load_canonicity` does.
    """
    ends_apart = reduce(union, [compile_dfa(Regex(text)) for text in BOOLEAN_TEXTS])
    return proper_tokenizations(marked_product(ends_apart, None), load_canonicity(tokenizer), minimal=False)


def byte_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens of single bytes that byte fallback has, used or not; empty for a tokenizer without byte fallback."""
    tokens = tokenizer.merges.byte_tokens
    return frozenset() if tokens is None else frozenset(tokens[tokens >= 0].tolist())


def draw_figures(folder: Path) -> list[Path]:
    """Write ``figure1_astar_bstar.png``, ``figure2_plain.png`` and ``figure3_proper.png`` into `folder`; 3 s.

    The folder is made if need be. Raises MissingDependency without the package that holds Mistral's tokenizer.
    """
    tokenizer = load_tokenizer("mistral-v1")
    vocab = tokenizer.vocabulary
    plain = token_graph(plain_rows(BOOLEAN, vocab), vocab, leave_out=byte_tokens(tokenizer))
    proper = token_graph(proper_boolean_rows(tokenizer), vocab)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _save(_draw_a_then_b(), folder / "figure1_astar_bstar.png"),
        _save(draw(plain, title=_title("all tokenizations", plain)).figure, folder / "figure2_plain.png"),
        _save(draw(proper, title=_title("proper tokenizations", proper)).figure, folder / "figure3_proper.png"),
    ]


def _title(what: str, graph: Any) -> str:
    return f"{what}: {graph.number_of_nodes()} states, {graph.number_of_edges()} transitions"


def _draw_a_then_b() -> Any:
    """Figure 1: the automaton over bytes beside the one over tokens."""
    from matplotlib.figure import Figure

    vocab = Vocabulary([*(text.encode() for text in A_B_TOKENS), b""], end_tokens=[len(A_B_TOKENS)], name="seven")
    rows = plain_rows(A_THEN_B, vocab)
    state = rows.start
    for text in A_B_WRITTEN:
        state = rows.rows[state][A_B_TOKENS.index(text)]
    allowed = ", ".join(sorted(A_B_TOKENS[token] for token in rows.rows[state]))
    figure = Figure(figsize=(11.0, 3.0))
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    draw(to_networkx(compile_dfa(A_THEN_B)), left, title=f"{A_THEN_B.pattern} over bytes")
    draw(
        token_graph(rows, vocab),
        right,
        highlight=[state],
        title=f"over tokens; after {', '.join(A_B_WRITTEN)} may come {allowed}",
    )
    return figure


def _save(figure: Any, path: Path) -> Path:
    """Write a figure as PNG and let go of it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=_DOTS_PER_INCH, bbox_inches="tight", pad_inches=0.1, metadata={"Software": None})
    plt.close(figure)
    return path

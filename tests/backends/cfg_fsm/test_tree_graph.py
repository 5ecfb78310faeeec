"""Trees against Lark's lexer, against masks, and by hand."""

from __future__ import annotations

import random
from functools import cache

import lark
import networkx
import pytest
from hypothesis import given, reject, settings

from tests.backends.cfg_fsm.oracles import completion, corpus, letters_of, machine_of, make_machine, run
from tests.backends.cfg_fsm.random_grammars import random_grammars
from tests.backends.cfg_fsm.test_masks import PIECES, filled, pieces_of
from tokdfa.backends.cfg_fsm import tree_graph
from tokdfa.backends.cfg_fsm.describe import IGNORED
from tokdfa.backends.cfg_fsm.speculation import Speculation
from tokdfa.backends.cfg_fsm.tree_graph import tree_to_networkx
from tokdfa.errors import LimitExceeded, TokdfaError
from tokdfa.vocabulary.vocabulary import Vocabulary

ALL = 1_000_000  # examples: all of them


def tree_of(machine, vocab: Vocabulary, text: str = "", examples: int = ALL):
    return tree_to_networkx(
        machine, Speculation(machine.hypotheses, vocab, 1 << 30), vocab, run(machine, text), examples
    )


def paths(graph) -> dict[int, tuple[str, ...]]:
    """Node -> the terminals that end on the way to it."""
    found: dict[int, tuple[str, ...]] = {0: ()}
    for parent, node in networkx.dfs_edges(graph, 0):
        terminal = graph.edges[parent, node]["terminal"]
        found[node] = (*found[parent], terminal) if terminal else found[parent]
    return found


def ways_of_tokens(graph) -> set[tuple[bytes, tuple[str, ...]]]:
    """All pairs of a token's bytes and the terminals that it runs through."""
    return {(token, path) for node, path in paths(graph).items() for token in graph.nodes[node]["examples"]}


@cache
def listening(grammar: str) -> tuple[lark.Lark, list[int]]:
    """Lark, and where the ignored lexemes end that it has met."""
    ends: list[int] = []
    ignored = lark.Lark(grammar, parser="lalr").ignore_tokens
    callbacks = {name: lambda token: ends.append(token.end_pos) for name in ignored}
    return lark.Lark(grammar, parser="lalr", lexer="contextual", lexer_callbacks=callbacks), ends


def seen_by_lark(grammar: str, text: str, begin: int, end: int) -> tuple[str, ...]:
    """The terminals that end between two places of a text, neither included, by Lark's own lexer."""
    parser, ignored = listening(grammar)
    ignored.clear()
    tokens = parser.parse_interactive(text).exhaust_lexer()
    strings = {term.name: term.pattern.value for term in parser.terminals if term.pattern.type == "str"}
    named = [f'"{strings[token.type]}"' if token.type in strings else token.type for token in tokens]
    ends = [*((place, IGNORED) for place in ignored), *zip((token.end_pos for token in tokens), named, strict=True)]
    return tuple(terminal for place, terminal in sorted(ends) if begin < place < end)


@pytest.mark.parametrize("name", ["json", "c_like", "tool_call", "small_sql"])
def test_terminals_are_those_of_larks_lexer(name: str) -> None:
    """Whatever the text after a token may be, Lark cuts the token as one of its ways in the tree does."""
    grammar, accepted, _ = corpus(name)
    rng, machine, checked, cut = random.Random(name), machine_of(grammar), 0, 0
    vocab = pieces_of(accepted, rng)
    tree = Speculation(machine.hypotheses, vocab, 1 << 30)
    text = max((text for text in accepted if text.isascii()), key=len)[:300]
    for place in sorted(rng.sample(range(len(text)), 5)):
        graph = tree_to_networkx(machine, tree, vocab, run(machine, text[:place]), ALL)
        ways = ways_of_tokens(graph)
        for token in rng.sample(sorted({token for token, _ in ways}), min(12, len(ways))):
            longer = text[:place] + token.decode(errors="replace")
            if not longer.isascii():
                continue
            rest = completion(machine, run(machine, longer), letters_of(accepted))
            if rest is not None:
                seen = seen_by_lark(grammar, longer + rest, place, len(longer))
                assert (token, seen) in ways, (longer, rest)
                checked += 1
                cut += len(seen)
    assert checked > 20
    assert cut > 3


@given(random_grammars())
@settings(deadline=None, derandomize=True, max_examples=40)
def test_what_ends_somewhere_is_the_mask(grammar: str) -> None:
    try:
        machine = make_machine(grammar)
        rng, here = random.Random(grammar), machine.start
        for _ in range(3):
            tree = Speculation(machine.hypotheses, PIECES, 1 << 20)
            allowed = filled(tree, here, PIECES)
            graph = tree_to_networkx(machine, tree, PIECES, here, ALL)
            ended = {token for token, _ in ways_of_tokens(graph)}
            assert ended == {PIECES.token_bytes(token) for token in allowed}
            assert graph.nodes[0]["tokens"] == len(allowed)
            assert networkx.is_arborescence(graph)
            for node in graph:
                below = [graph.nodes[child]["tokens"] for child in graph.successors(node)]
                assert max([*below, graph.nodes[node]["ending"]]) <= graph.nodes[node]["tokens"]
                assert graph.nodes[node]["tokens"] <= sum(below) + graph.nodes[node]["ending"]
            if not allowed:
                break
            begin, end = PIECES.offsets[rng.choice(allowed) :][:2].tolist()
            here = machine.run(here, PIECES.byte_data, begin, end)
    except TokdfaError:
        reject()


@cache
def deep():
    """A grammar of brackets, a vocabulary of long runs of them."""
    machine = machine_of('start: "(" start ")" | "a"\n')
    return machine, Vocabulary([*(b"(" * length for length in range(1, 30)), b")", b"a", b""], end_tokens=[31])


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_graph, "MAX_NODES", 10)
    with pytest.raises(LimitExceeded, match="more than 10 nodes"):
        tree_of(*deep())

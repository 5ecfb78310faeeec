"""The speculative terminal tree of a situation as a networkx graph: the terminals that tokens run through.

In `tokdfa.backends.cfg_fsm.speculation` the nodes are shared by all stacks and many paths. Here they are spread out
again for one situation, so that each node is one way for a token to go: node 0 is the situation, below it is a node for
each hypothesis, and below a lexeme is a node for each outcome after which tokens go on in the next lexeme. A token
leaves a hypothesis open iff it ends in some node.

What comes to a node is worked out from the vectors of its lexer state, as 003 does it, with arrays in place of the
kernel's loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.automata.graph import token_label
from tokdfa.backends.cfg_fsm.describe import leading_outcomes, may_become, terminal_name
from tokdfa.core.packages import import_library
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import places_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.machine import Machine
    from tokdfa.backends.cfg_fsm.speculation import Speculation
    from tokdfa.backends.cfg_fsm.splits import RestVectors
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Ids = npt.NDArray[np.int32]

#: More nodes than this are not spread out.
MAX_NODES = 20_000


class _Branch(NamedTuple):
    """A node to be. `tokens`, `rests`: the pairs that come to it; `terminal`, `residue`: what leads to it."""

    parent: int
    state: int
    stack: int
    tokens: Ids
    rests: Ids
    terminal: str
    residue: int


def tree_to_networkx(
    machine: Machine, speculation: Speculation, vocab: Vocabulary, situation: int, examples: int = 4
) -> Any:
    """The tree of `situation` as a networkx DiGraph, parent -> child, numbered depth first.

    Node attributes: ``may_become``, the terminals that the lexeme which begins or goes on here can become; ``state``,
    ``stack`` and ``context`` (numbers, -1 for node 0); ``arriving``, how many pairs (token, rest) come to the node;
    ``ending``, how many tokens end in it; ``tokens``, how many end in it or below it; ``examples``, the bytes of some
    that end in it, from short to long. Edge attributes: ``terminal``, what has ended, and ``residue``; "" and -1 above
    a hypothesis. Nodes without tokens are left out: their pairs were speculated for nothing.

    Cost: a pass over the rests of the vocabulary for each node. LimitExceeded for more than 20,000 nodes.
    """
    networkx = import_library("networkx", "a graph")

    speculation.fill(situation, masks.allocate_mask(vocab.size))  # so that all stacks of the tree are known
    branches, endings = _spread(machine, speculation, situation)
    through: list[Ids] = [*endings]
    for number in range(len(branches) - 1, 0, -1):
        parent = branches[number].parent
        through[parent] = np.union1d(through[parent], through[number])
    graph = networkx.DiGraph()
    numbers = {0: 0}
    graph.add_node(
        0, may_become=(), state=-1, stack=-1, context=-1, arriving=0, ending=0, tokens=len(through[0]), examples=()
    )
    for place, branch in enumerate(branches):
        if place == 0 or not len(through[place]):
            continue
        number = numbers[place] = len(graph)
        graph.add_node(
            number,
            may_become=may_become(machine, branch.state, branch.stack),
            state=branch.state,
            stack=branch.stack,
            context=machine.stacks.context(branch.stack),
            arriving=len(branch.tokens),
            ending=len(endings[place]),
            tokens=len(through[place]),
            examples=_examples(vocab, endings[place], examples),
        )
        graph.add_edge(numbers[branch.parent], number, terminal=branch.terminal, residue=branch.residue)
    return graph


def tree_text(graph: Any, limit: int = 40) -> str:
    """A graph made by `tree_to_networkx` as indented lines: the `limit` nodes that most tokens use."""
    networkx = import_library("networkx", "a tree")

    ranked = sorted(graph, key=lambda node: (-graph.nodes[node]["tokens"], node))
    kept = graph.subgraph(ranked[:limit]).copy()
    for node, data in kept.nodes(data=True):
        terminal = "".join(graph.edges[parent, node]["terminal"] for parent in graph.predecessors(node))
        where = f"past {terminal}: " if terminal else f"{' | '.join(data['may_become'])}: " if node else ""
        data["label"] = f"{where}{data['tokens']:,} token{'s' * (data['tokens'] > 1)}"
        if data["examples"]:
            data["label"] += f"; {data['ending']:,} end here: {'  '.join(map(token_label, data['examples']))}"
    lines = list(networkx.generate_network_text(kept, sources=[0]))
    if len(graph) > len(kept):
        lines.append(f"and {len(graph) - len(kept)} narrower")
    return "\n".join(lines)


def _spread(machine: Machine, speculation: Speculation, situation: int) -> tuple[list[_Branch], list[Ids]]:
    """All branches, parents before children, the first one for the situation; and the tokens that end in each."""
    lexer, stacks, table = machine.lexer, machine.stacks, speculation.table
    nothing = np.zeros(0, dtype=np.int32)
    branches, endings = [_Branch(-1, -1, -1, nothing, nothing, "", -1)], [nothing]
    members = machine.hypotheses.members[situation].tolist()
    agenda = [_Branch(0, state, stack, table.tokens, table.wholes, "", -1) for state, stack in reversed(members)]
    while agenda:
        branch = agenda.pop()
        if len(branches) >= MAX_NODES:
            raise LimitExceeded(
                f"the tree has more than {MAX_NODES:,} nodes; ask for a situation that leaves less open",
                limit="nodes of a tree",
                value=MAX_NODES,
            )
        vectors = speculation.vectors(branch.state)
        after = vectors.after[branch.rests]
        lives = (machine.hypotheses.ends[after] & stacks.taken[branch.stack]).any(axis=1) & (after >= 0)
        endings.append(np.unique(branch.tokens[lives]))
        outcomes, tokens, rests = _leaving(vectors, branch.tokens, branch.rests)
        leads_on = leading_outcomes(machine, branch.stack)
        for outcome in reversed(np.unique(outcomes).tolist()):
            if not leads_on[outcome]:
                continue
            label, residue = lexer.outcomes[outcome].tolist()
            stack = stacks.shift(branch.stack, label)
            state = int(lexer.starts[residue, stacks.context(stack)])
            chosen, name = outcomes == outcome, terminal_name(machine, label)
            agenda.append(_Branch(len(branches), state, stack, tokens[chosen], rests[chosen], name, residue))
        branches.append(branch)
    return branches, endings


def _leaving(vectors: RestVectors, tokens: Ids, rests: Ids) -> tuple[Ids, Ids, Ids]:
    """Each place where the lexeme may end within pairs (tokens[i], rests[i]): the outcome, and the pair then left."""
    places, offsets = places_of(vectors.begins.astype(np.int64), rests)
    pairs = np.repeat(np.arange(len(rests)), np.diff(offsets))
    return vectors.outcomes[places], tokens[pairs], vectors.rests[places]


def _examples(vocab: Vocabulary, tokens: Ids, count: int) -> tuple[bytes, ...]:
    """The bytes of `count` tokens, evenly spaced from the shortest to the longest, each once."""
    spelled = sorted({vocab.token_bytes(token) for token in tokens.tolist()}, key=lambda text: (len(text), text))
    picked = np.unique(np.linspace(0, len(spelled) - 1, min(count, len(spelled))).round().astype(int))
    return tuple(spelled[place] for place in picked.tolist())

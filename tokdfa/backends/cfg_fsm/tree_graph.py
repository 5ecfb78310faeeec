"""The speculative terminal tree of a situation as a networkx graph: the terminals that tokens run through.

In `tokdfa.backends.cfg_fsm.speculation` the nodes are shared by all stacks and many paths. Here they are spread out
again for one situation, so that each node is one way for a token to go: node 0 is the situation, below it is a node for
each hypothesis, and below a lexeme is a node for each outcome after which tokens go on in the next lexeme. A token
leaves a hypothesis open iff it ends in some node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.automata.graph import token_label
from tokdfa.backends.cfg_fsm.describe import may_become, terminal_name
from tokdfa.core.packages import import_library
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.machine import Machine
    from tokdfa.backends.cfg_fsm.speculation import Speculation, TreeNode
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Ids = npt.NDArray[np.int32]

#: More nodes than this are not spread out.
MAX_NODES = 20_000


class _Branch(NamedTuple):
    """A node to be, `node` in the shared tree. `arriving`: how many pairs come to it; `terminal`, `residue`: what leads
    to it.
    """

    parent: int
    state: int
    stack: int
    node: TreeNode | None
    arriving: int
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

    LimitExceeded for more than 20,000 nodes, or if `speculation` has no room for them.
    """
    networkx = import_library("networkx", "a graph")

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
            arriving=branch.arriving,
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
    stacks, leads_on_of = machine.stacks, machine.hypotheses.leads_on
    branches, endings = [_Branch(-1, -1, -1, None, 0, "", -1)], [np.zeros(0, dtype=np.int32)]
    agenda = [
        _Branch(0, state, stack, speculation.root(state), len(speculation.table.tokens), "", -1)
        for state, stack in reversed(machine.hypotheses.members[situation])
    ]
    while agenda:
        branch = agenda.pop()
        if len(branches) >= MAX_NODES or branch.node is None:
            raise LimitExceeded(
                f"the tree has more than {MAX_NODES:,} nodes, or takes more than mask_mb; ask for a situation that "
                "leaves less open",
                limit="nodes of a tree",
                value=MAX_NODES,
            )
        leads_on = leads_on_of(branch.stack)
        groups = [tokens for ends, tokens in branch.node.groups if ends & leads_on]
        endings.append(np.unique(np.concatenate([endings[0], *map(_ids, groups)])))
        for leaving in reversed(branch.node.exits):
            if leads_on & leaving.bit:
                stack = stacks.shift(branch.stack, leaving.label)
                context, name = stacks.context(stack), terminal_name(machine, leaving.label)
                where = len(branches), int(machine.lexer.starts[leaving.residue, context]), stack
                child = speculation.child(leaving, context)
                agenda.append(_Branch(*where, child, len(leaving.tokens), name, leaving.residue))
        branches.append(branch)
    return branches, endings


def _ids(group: npt.NDArray[Any]) -> Ids:
    """The tokens of a group, which may be packed."""
    return masks.mask_to_ids(group.view(np.int32)) if group.dtype == np.uint32 else group


def _examples(vocab: Vocabulary, tokens: Ids, count: int) -> tuple[bytes, ...]:
    """The bytes of `count` tokens, evenly spaced from the shortest to the longest, each once."""
    spelled = sorted({vocab.token_bytes(token) for token in tokens.tolist()}, key=lambda text: (len(text), text))
    picked = np.unique(np.linspace(0, len(spelled) - 1, min(count, len(spelled))).round().astype(int))
    return tuple(spelled[place] for place in picked.tolist())

"""What a grammar's symbols can derive: facts that need no text, each O(size) with work lists.

Words. A symbol is *nullable* if it derives the empty text, *productive* if it derives any text, *reachable* if the
start derives something with it. A symbol that lacks one of the last two is *useless*. A nonterminal is *left-recursive*
if it derives something that begins with itself, *right-recursive* if something that ends with itself (nullable symbols
before or behind do not count), *cyclic* if it derives itself alone.

Size is the number of symbols in the rules. Recursion is found as the strongly connected components of "derives
something that begins with" and its kin (Tarjan 1972, with a list instead of recursion).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.grammar.cfg import Cfg


def nullable_symbols(cfg: Cfg) -> frozenset[int]:
    """The nonterminals that derive the empty text."""
    return _derived_from(cfg, ())


def productive_symbols(cfg: Cfg) -> frozenset[int]:
    """The symbols that derive some text: all lexemes, and nonterminals."""
    return _derived_from(cfg, range(len(cfg.lexemes)))


def reachable_symbols(cfg: Cfg) -> frozenset[int]:
    """The start and the symbols in what it derives."""
    by_left = defaultdict(list)
    for left, right in cfg.rules:
        by_left[left].append(right)
    found, pending = {cfg.start}, [cfg.start]
    while pending:
        for right in by_left[pending.pop()]:
            for symbol in right:
                if symbol not in found:
                    found.add(symbol)
                    pending.append(symbol)
    return frozenset(found)


def left_recursive_symbols(cfg: Cfg) -> frozenset[int]:
    """The nonterminals that derive something that begins with themselves."""
    return _recursive(_edges_to_first(cfg, backwards=False))


def right_recursive_symbols(cfg: Cfg) -> frozenset[int]:
    """The nonterminals that derive something that ends with themselves."""
    return _recursive(_edges_to_first(cfg, backwards=True))


def cyclic_symbols(cfg: Cfg) -> frozenset[int]:
    """The nonterminals that derive themselves alone, by unit rules or with nullable symbols beside them."""
    nullable = nullable_symbols(cfg)
    edges = defaultdict(set)
    for left, right in cfg.rules:
        needed = [symbol for symbol in right if symbol not in nullable]
        if len(needed) == 1:
            edges[left].add(needed[0])
        elif not needed:
            edges[left].update(right)
    return _recursive(edges)


def _derived_from(cfg: Cfg, known: Iterable[int]) -> frozenset[int]:
    """`known`, and every nonterminal with a rule whose right side consists of such symbols (the smallest such set)."""
    found = set(known)
    missing = [len(right) for _, right in cfg.rules]  # symbols of each rule not found yet
    users = defaultdict(list)  # symbol -> a rule for each time it stands in one
    for number, (_, right) in enumerate(cfg.rules):
        for symbol in right:
            users[symbol].append(number)
    pending = list(found)
    for left, right in cfg.rules:
        if not right and left not in found:
            found.add(left)
            pending.append(left)
    while pending:
        for number in users[pending.pop()]:
            missing[number] -= 1
            left = cfg.rules[number][0]
            if not missing[number] and left not in found:
                found.add(left)
                pending.append(left)
    return frozenset(found)


def _edges_to_first(cfg: Cfg, backwards: bool) -> Mapping[int, set[int]]:
    """Nonterminal -> symbols that can come first (`backwards`: last) in what one of its rules derives."""
    nullable = nullable_symbols(cfg)
    edges = defaultdict(set)
    for left, right in cfg.rules:
        for symbol in reversed(right) if backwards else right:
            edges[left].add(symbol)
            if symbol not in nullable:
                break
    return edges


def _recursive(edges: Mapping[int, set[int]]) -> frozenset[int]:
    """The nodes of a graph that reach themselves."""
    order: dict[int, int] = {}  # when a node was first seen
    lowest: dict[int, int] = {}  # the earliest node of its component that it is known to reach
    stack: list[int] = []  # seen, component not complete yet
    on_stack: set[int] = set()
    found: set[int] = set()
    for root in list(edges):
        if root in order:
            continue
        agenda = [(root, iter(edges[root]))]
        while agenda:
            node, targets = agenda[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                stack.append(node)
                on_stack.add(node)
            for target in targets:
                if target not in order:
                    agenda.append((target, iter(edges.get(target, ()))))
                    break
                if target in on_stack:
                    lowest[node] = min(lowest[node], order[target])
            else:
                agenda.pop()
                if agenda:
                    parent = agenda[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == order[node]:
                    component = stack[stack.index(node) :] if stack[-1] != node else [node]
                    del stack[-len(component) :]
                    on_stack.difference_update(component)
                    if len(component) > 1 or node in edges.get(node, ()):
                        found.update(component)
    return frozenset(found)

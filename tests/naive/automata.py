"""Plain automata on dictionaries and sets: slow, obvious, and without a line shared with `tokdfa.automata`."""

from __future__ import annotations

from itertools import product


class PlainDfa:
    """A deterministic automaton: ``table[state][byte]`` is the next state, absent where the run dies."""

    def __init__(self, table: dict[int, dict[int, int]], accepting: set[int], start: int | None) -> None:
        self.table, self.accepting, self.start = table, accepting, start

    @classmethod
    def from_arrays(cls, transitions, byte_class, accepting, start) -> PlainDfa:
        table = {}
        for state in range(len(transitions)):
            row = {}
            for byte in range(256):
                target = int(transitions[state][byte_class[byte]])
                if target >= 0:
                    row[byte] = target
            table[state] = row
        ends = {state for state in range(len(transitions)) if accepting[state]}
        return cls(table, ends, None if start < 0 else start)

    def run(self, word: bytes) -> int | None:
        state = self.start
        for byte in word:
            if state is None:
                return None
            state = self.table[state].get(byte)
        return state

    def accepts(self, word: bytes) -> bool:
        return self.run(word) in self.accepting

    def language(self, alphabet: bytes, longest: int) -> set[bytes]:
        """All accepted words over `alphabet` of at most `longest` bytes."""
        return {word for word in all_words(alphabet, longest) if self.accepts(word)}

    def distance_to_accept(self) -> dict[int, int]:
        """Smallest number of bytes to acceptance, by growing the set of states that accept within n bytes."""
        found = dict.fromkeys(self.accepting, 0)
        for steps in range(1, len(self.table) + 1):
            reaching = {state for state, row in self.table.items() if any(target in found for target in row.values())}
            for state in reaching - set(found):
                found[state] = steps
        return found

    def reachable(self) -> set[int]:
        found = set() if self.start is None else {self.start}
        while True:
            more = {target for state in found for target in self.table[state].values()} - found
            if not more:
                return found
            found |= more

    def live(self) -> set[int]:
        return self.reachable() & set(self.distance_to_accept())

    def minimal_state_count(self) -> int:
        """States of the minimal automaton without the dead one: determinise the reverse, twice (Brzozowski 1962)."""
        if self.start is None:
            return 0
        edges = {(source, byte, target) for source, row in self.table.items() for byte, target in row.items()}
        starts, ends = {self.start}, set(self.accepting)
        for _ in range(2):
            edges, starts, ends = _determinised_reverse(edges, starts, ends)
        states = set(starts) | {state for source, _, target in edges for state in (source, target)}
        return len(states) if ends else 0


def _determinised_reverse(edges, starts, ends):
    """The subset construction of the reversed automaton; sets of states are numbered as they are found."""
    backwards: dict[tuple[int, int], set[int]] = {}
    for source, byte, target in edges:
        backwards.setdefault((target, byte), set()).add(source)
    letters = sorted({byte for _, byte, _ in edges})
    numbers = {frozenset(ends): 0}
    pending = [frozenset(ends)]
    new_edges = set()
    while pending:
        subset = pending.pop()
        for letter in letters:
            following = frozenset().union(*(backwards.get((state, letter), ()) for state in subset))
            if following:
                if following not in numbers:
                    numbers[following] = len(numbers)
                    pending.append(following)
                new_edges.add((numbers[subset], letter, numbers[following]))
    return new_edges, {0}, {number for subset, number in numbers.items() if subset & starts}


def all_words(alphabet: bytes, longest: int):
    """All words over `alphabet` of at most `longest` bytes: shorter ones first, then in the order of their bytes."""
    for length in range(longest + 1):
        for letters in product(sorted(alphabet), repeat=length):
            yield bytes(letters)

"""Both ways to make masks against the definition: a token is allowed iff the machine survives its bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, reject, settings

from tests.backends.cfg_fsm.oracles import NAMES, corpus, machine_of, make_machine
from tests.backends.cfg_fsm.random_grammars import random_grammars
from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm import speculation
from tokdfa.backends.cfg_fsm.speculation import NS_PER_NODE, NS_PER_PAIR, Speculation
from tokdfa.backends.cfg_fsm.splits import SplitTable, split_table
from tokdfa.backends.cfg_fsm.walk import NS_PER_MOVE, Walker
from tokdfa.errors import TokdfaError
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = [
    b"a",
    b"b",
    b"c",
    b"A",
    b"ab",
    b"ba",
    b"aa",
    b"abab",
    b"bca",
    b"cc",
    b"caab",
    b"ab",
    b"aabba",
    b"bcb",
    b"abcabc",
]
#: All bytes, pieces of the corpus, two ids for one text, an end token, padding.
PIECES = Vocabulary([*LETTERS, b""], end_tokens=[len(LETTERS)], size=50)


def hopeful_tokens(machine, vocab: Vocabulary, situation: int) -> list[int]:
    """The tokens that leave a hypothesis open, each run by itself."""
    offsets = vocab.offsets.tolist()
    runs = (
        machine.hypotheses.run(situation, vocab.byte_data, *offsets[token : token + 2]) for token in range(vocab.size)
    )
    return [token for token, left in enumerate(runs) if len(left) and offsets[token] < offsets[token + 1]]


def filled(filler, situation: int, vocab: Vocabulary) -> list[int]:
    out = masks.allocate_mask(vocab.size)
    out.fill(-1)
    filler.fill(situation, out)
    return masks.mask_to_ids(out).tolist()


@given(random_grammars())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_masks_of_random_grammars(grammar: str) -> None:
    try:
        machine = make_machine(grammar)
        fillers = [Walker(machine.hypotheses, PIECES.trie), Speculation(machine.hypotheses, PIECES, 1 << 20)]
        rng, here = random.Random(grammar), machine.start
        for _ in range(8):
            allowed = hopeful_tokens(machine, PIECES, here)
            for filler in fillers:
                assert filled(filler, here, PIECES) == allowed
            if not allowed:
                break
            token = rng.choice(allowed)
            begin, end = PIECES.offsets[token : token + 2].tolist()
            here = machine.run(here, PIECES.byte_data, begin, end)
    except TokdfaError:
        reject()


def pieces_of(texts: tuple[str, ...], rng: random.Random) -> Vocabulary:
    """All bytes, and 300 pieces of the texts."""
    joined = [text.encode() for text in texts if text]
    tokens = [bytes([byte]) for byte in range(256)]
    for _ in range(300):
        text = rng.choice(joined)
        begin = rng.randrange(len(text))
        tokens.append(text[begin : begin + rng.randint(1, 9)])
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)], size=len(tokens) + 40)


@pytest.mark.parametrize("name", NAMES)
def test_masks_of_the_corpus(name: str) -> None:
    grammar, accepted, _ = corpus(name)
    rng, machine = random.Random(name), machine_of(grammar)
    vocab = pieces_of(accepted, rng)
    walker, tree = Walker(machine.hypotheses, vocab.trie), Speculation(machine.hypotheses, vocab, 1 << 30)
    checked = 0
    for text in accepted[:8]:
        here, data = machine.start, np.frombuffer(text.encode()[:80], dtype=np.uint8)
        for place in range(len(data)):
            if place % 3 == 0:
                allowed = hopeful_tokens(machine, vocab, here)
                assert filled(walker, here, vocab) == allowed
                assert filled(tree, here, vocab) == allowed
                checked += 1
            here = machine.run(here, data, place, place + 1)
    assert checked > 5
    assert tree.counters["nodes_made"] > 3
    assert walker.counters["nodes_visited"] > 1_000


def test_nodes_are_shared_by_stacks() -> None:
    """Deeper brackets make no new nodes: the tree knows nothing of stacks."""
    machine = machine_of('start: "(" start ")" | "[" start "]" | "a"\n')
    vocab = Vocabulary([b"(", b"[", b")", b"]", b"a", b"((", b"([", b"a)", b"a))", b"])", b""], end_tokens=[10])
    tree, here, made = Speculation(machine.hypotheses, vocab, 1 << 20), machine.start, []
    for token in [0, 1] * 20:
        assert filled(tree, here, vocab) == hopeful_tokens(machine, vocab, here)
        here = machine.run(here, vocab.byte_data, *vocab.offsets[token : token + 2].tolist())
        made.append(tree.counters["nodes_made"])
    assert made[-1] == made[5]


def test_a_new_mask_takes_no_more_descents_than_the_tree_has_levels() -> None:
    """Children that are lacking are asked for level by level, or as many at once as there is room for."""
    letters = "abcdefghijkl"
    alternatives = " | ".join(f'"{letter}"' for letter in letters)
    machine = machine_of(f"start: ({alternatives})+\n")
    pairs = [one + other for one in letters for other in letters]
    pieces = [*letters, *pairs, *(pair + letter for pair in pairs for letter in "ab")]
    vocab = Vocabulary([*(piece.encode() for piece in pieces), b""], end_tokens=[len(pieces)])
    allowed, made = hopeful_tokens(machine, vocab, machine.start), []
    for room in (1024, 5):
        tree = Speculation(machine.hypotheses, vocab, 1 << 30)
        tree._asked = np.zeros((room, 2), dtype=np.int32)
        assert filled(tree, machine.start, vocab) == allowed
        made.append(tree.counters["nodes_made"])
        levels = 3  # no token is longer: a lexeme, one after it, and one after that
        if room > 5:
            assert tree.counters["nodes_passed"] <= levels * made[0]
    assert made == [1 + 12 + 144] * 2


def test_everything_is_forgotten_past_the_limit() -> None:
    grammar, accepted, _ = corpus("json")
    machine, rng = machine_of(grammar), random.Random(3)
    vocab = pieces_of(accepted, rng)
    tree, large = Speculation(machine.hypotheses, vocab, 3_000), Speculation(machine.hypotheses, vocab, 1 << 30)
    here, data = machine.start, np.frombuffer(max(accepted, key=len).encode()[:60], dtype=np.uint8)
    for place in range(len(data)):
        assert filled(tree, here, vocab) == filled(large, here, vocab)
        assert tree.nbytes < 20_000  # the limit, and the node that passed it
        here = machine.run(here, data, place, place + 1)
    assert large.nbytes > 100_000
    assert tree.counters["masks_walked"] > 0


def test_work_on_a_tree_that_does_not_pay_is_bounded_by_that_of_walking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many lexer states, each met a few times: what goes into nodes and vectors is at most the walks and the credit."""
    rules = 40
    grammar = f"start: ({' | '.join(f'r{k}' for k in range(rules))})*\n" + "".join(
        f'r{k}: "k{k}" "(" (W{k} "," | "x{k}")* ")"\nW{k}: /[a-z ]{{1,{k % 7 + 2}}}[0-9]*/\n' for k in range(rules)
    )
    machine, texts = machine_of(grammar), [f"k{k}(ab1,x{k})" for k in range(rules)]
    vocab = pieces_of(tuple(texts), random.Random(3))
    monkeypatch.setattr(speculation, "CREDIT", 1_000_000)
    tree, walker = Speculation(machine.hypotheses, vocab, 100_000), Walker(machine.hypotheses, vocab.trie)
    for _ in range(3):
        for text in texts:
            here, data = machine.start, np.frombuffer(text.encode(), dtype=np.uint8)
            for place in range(len(data)):
                assert filled(tree, here, vocab) == filled(walker, here, vocab)
                here = machine.run(here, data, place, place + 1)
    counted = tree.counters
    work = NS_PER_PAIR * len(split_table(vocab).where) * counted["vectors_made"] + NS_PER_NODE * counted["nodes_passed"]
    assert counted["masks_walked"] > 100
    assert work <= 1_000_000 + 2 * NS_PER_MOVE * walker.moves


def test_vectors_are_forgotten_before_nodes() -> None:
    grammar, accepted, _ = corpus("json")
    machine, rng = machine_of(grammar), random.Random(3)
    vocab = pieces_of(accepted, rng)
    data = np.frombuffer(max(accepted, key=len).encode()[:60], dtype=np.uint8)
    situations = [here := machine.start, *(here := machine.run(here, data, at, at + 1) for at in range(len(data)))]
    large = Speculation(machine.hypotheses, vocab, 1 << 30)
    expected = [filled(large, situation, vocab) for situation in situations]
    of_nodes = large.nbytes - sum(one.nbytes for one in large._vectors.values())
    assert large.nbytes > 3 * of_nodes
    tree = Speculation(machine.hypotheses, vocab, 2 * of_nodes)
    assert [filled(tree, situation, vocab) for situation in situations] == expected
    assert tree.counters["nodes_made"] == large.counters["nodes_made"]
    assert tree.counters["vectors_made"] > large.counters["vectors_made"]
    assert len(tree._vectors) < len(large._vectors)


# The split table.


def test_rests_are_all_suffixes() -> None:
    table = SplitTable(PIECES)
    spelled = [PIECES.token_bytes(token) for token in range(PIECES.size)]
    suffixes = sorted({token[begin:] for token in spelled for begin in range(len(token))})
    data = PIECES.byte_data.tobytes()
    places = zip(table.where.tolist(), table.lengths.tolist(), strict=True)
    assert [data[begin : begin + length] for begin, length in places] == suffixes
    assert table.tokens.tolist() == [token for token, text in enumerate(spelled) if text]
    assert [suffixes[rest] for rest in table.wholes.tolist()] == [text for text in spelled if text]
    assert [suffixes[rest] for rest in table.rest_at.tolist()] == [
        token[begin:] for token in spelled for begin in range(len(token))
    ]
    for rest, alike in enumerate(table.shared.tolist()[1:], 1):
        assert suffixes[rest - 1][:alike] == suffixes[rest][:alike]
        assert suffixes[rest - 1][alike : alike + 1] != suffixes[rest][alike : alike + 1]
    assert split_table(PIECES) is split_table(PIECES)


@pytest.mark.parametrize("grammar", ['start: (A | "b" | "ba")*\nA: /a+b?/\n', 'start: A "b"\nA: /[ab]*c/\n'])
def test_vectors_say_what_becomes_of_each_rest(grammar: str) -> None:
    machine = machine_of(grammar)
    lexer, tree = machine.lexer, Speculation(machine.hypotheses, PIECES, 1 << 20)
    table, data = tree.table, PIECES.byte_data
    for state in range(lexer.state_count):
        vectors = tree.vectors(state)
        for rest, (begin, length) in enumerate(zip(table.where.tolist(), table.lengths.tolist(), strict=True)):
            here, exits = state, []
            for passed in range(1, length + 1):
                here = int(lexer.transitions[here, lexer.byte_class[data[begin + passed - 1]]])
                if here < 0:
                    break
                if lexer.labels[here] >= 0 and passed < length:
                    outcome = [int(lexer.labels[here]), int(lexer.residues[here])]
                    exits.append((outcome, int(table.rest_at[begin + passed])))
            assert vectors.after[rest] == here
            found = slice(*vectors.begins[rest : rest + 2].tolist())
            outcomes = lexer.outcomes[vectors.outcomes[found]].tolist()
            assert list(zip(outcomes, vectors.rests[found].tolist(), strict=True)) == exits

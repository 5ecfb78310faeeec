"""Partitions between grammars, and on disk: what is taken over is what would have been made."""

from __future__ import annotations

import os
import random
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import compile_cfg, lexed_cfgs, make_cfg, mask_of, short_texts
from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.earley_trie import shared_partitions as module
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.partition import DEPTH, FIRST, PAST, StateNames, divide
from tokdfa.backends.earley_trie.shared_partitions import SharedPartitions, partitions_folder, shared_partitions
from tokdfa.backends.earley_trie.strategy import EarleyTrie
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError, StoreError
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

TOKENS = [*short_texts(b"ab", 4)[1:], b"abababab", b"aab\xff", b"ab"]


def vocabulary(tokens=TOKENS):
    """A new one each time, since partitions are shared by all grammars of one."""
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of files, which is nobody else's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert partitions_folder().parents[1] == tmp_path
    return partitions_folder()


def filled(vocab, pattern="a+b|(ab)+", skip="b+"):
    """Partitions of a few states, kept for a vocabulary."""
    compiled = compile_cfg(make_cfg((pattern, skip), {"s": [(pattern,), ("s", pattern)]}, skip=1), vocab)
    masks_along(compiled, random.Random(5))
    assert len(shared_partitions(vocab)) >= 3
    return shared_partitions(vocab)


def masks_along(compiled, rng, steps=6):
    """The masks along a random walk."""
    matcher, found = compiled.start(), []
    for _ in range(steps):
        found.append(mask_of(matcher))
        tokens = [token for token in found[-1] if token not in compiled.vocab.end_tokens]
        if not tokens:
            break
        matcher.advance(rng.choice(tokens))
    return found


def same(one, other):
    """Whether two partitions are equal."""
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("inside", "exits", "groups"))


def content(store):
    """Everything that a store holds, to be compared."""
    return {
        name: (partition.inside.tolist(), partition.exits.tolist(), partition.groups.tolist(), sets)
        for name, (partition, sets) in store._found.items()
    }


# Between grammars.


def test_what_is_found_is_what_would_be_made():
    """In a second grammar with the same lexemes in another order, among others; the sets are its own."""
    vocab = vocabulary()
    first = make_cfg(("a+b", "(ab)+", "b"), {"s": [("a+b", "s"), ("(ab)+",), ("b",)]})
    second = make_cfg(("bb", "(ab)+", "b", "a+b"), {"s": [("b",), ("a+b", "s"), ("(ab)+", "t")], "t": [("bb",)]})
    compiled = compile_cfg(first, vocab)
    for state in states_of(compiled.machine):
        compiled.partitions.find(state)
    machine, store = Machine(second), shared_partitions(vocab)
    names, states = StateNames(machine, vocab.trie.depth_limit), states_of(machine)
    for state in states:
        made, found = divide(machine, vocab.trie, state), store.find(*names.describe(state), machine.lexer)
        assert found is not None
        assert described(machine, found) == described(machine, made)
    assert len(states) > 5


def states_of(machine):
    """The lexer states in which the letters a and b lead from the start."""
    found = [machine.start_state(0)]
    for state in found:
        targets = [machine.lexer.step(state, byte) for byte in b"ab"]
        found += [target for target in dict.fromkeys(targets) if target >= 0 and target not in found]
    return found


def described(machine, partition):
    """A partition with lexemes in place of accepting sets, whose order is of no account."""
    groups = [
        (sorted(partition.exits[begin:end].tolist()), byte, *machine.lexer.lexemes_of(accepting_set))
        for accepting_set, byte, begin, end in partition.groups.tolist()
    ]
    return partition.inside.tolist(), sorted(groups)


@settings(max_examples=30)
@given(st.lists(lexed_cfgs(), min_size=2, max_size=4), vocabularies(b"abc", 12), st.integers(0, 99))
def test_one_grammar_after_another(cfgs, drawn, seed):
    """Each takes what the others have left, of which it may be nearly all; its masks are those of walks."""
    tokens = [b"a", b"b", b"c", *(drawn.token_bytes(token) for token in range(drawn.size))]
    vocab = vocabulary(tokens)
    for cfg in [*cfgs, cfgs[0]]:
        found = [masks_along(compile_cfg(cfg, vocab, mask=way), random.Random(seed)) for way in ("partition", "walk")]
        assert found[0] == found[1]


def test_counters_of_other_lengths_are_shared():
    """Room for many more letters is the same in both, and room for few is met again; so is a list without end."""
    vocab = vocabulary()
    made = []
    for size, pattern in ((30, "a{0,30}b"), (60, "a{0,60}b"), (70, "a*b"), (9, "a{0,9}b")):
        compiled = compile_cfg(make_cfg((pattern,), {"s": [(pattern,)]}), vocab)
        matcher = compiled.start()
        for _ in range(size):
            assert 0 in mask_of(matcher)
            matcher.advance(0)
        made.append(compiled.partitions.divided)
    assert made[0] > 3
    assert made[1:] == [0, 0, 0]


def test_the_oldest_goes_first():
    vocab = vocabulary()
    store = filled(vocab)
    sizes = [partition.nbytes for partition, _ in store._found.values()]
    names = list(store._found)
    assert store.nbytes == sum(sizes)
    store.limit = sum(sizes) - sizes[1]
    lexer = Machine(make_cfg(("a", "b"), {"s": [("a", "b")]})).lexer
    assert store.find(names[0], (0, 1), lexer) is not None
    store._shrink()
    assert list(store._found) == [*names[2:], names[0]]
    assert store.nbytes == sum(sizes) - sizes[1]


def test_threads_share(folder):
    """Grammars in threads, with a file that is written all the time; masks are those of one alone."""
    vocab = vocabulary()
    patterns = [f"a{{1,{size}}}b|b{{{size}}}" for size in range(2, 12)]
    cfgs = [make_cfg((pattern,), {"s": [(pattern,), ("s", pattern)]}) for pattern in patterns]
    expected = [masks_along(compile_cfg(cfg, vocabulary(), mask="walk"), random.Random(1)) for cfg in cfgs]
    found = [None] * len(cfgs)

    def work(place):
        found[place] = masks_along(compile_cfg(cfgs[place], vocab, disk_partitions=True), random.Random(1))

    threads = [threading.Thread(target=work, args=[place]) for place in range(len(cfgs))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAVE_AFTER", 1)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == expected
    assert len(list(folder.iterdir())) == 1


# On disk.


def reader(vocab, folder):
    """A store that has read the file in `folder`."""
    store = SharedPartitions(vocab)
    store.use_disk(folder)
    lexer = Machine(make_cfg(("a",), {"s": [("a",)]})).lexer
    assert store.find("no name", (), lexer) is None
    return store


def test_a_file_brings_back_what_was_saved(folder):
    vocab = vocabulary()
    store = filled(vocab)
    path = store.save()
    assert path.parent == folder
    assert content(reader(vocab, None)) == content(store)
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_a_file_spares_the_next_process_the_walks():
    """Which is played by another vocabulary object with the same content."""
    cfg = make_cfg(("a{1,30}b", "b+"), {"s": [("a{1,30}b",), ("s", "b+")]})
    made, found = [], []
    for _ in range(2):
        vocab = vocabulary()
        compiled = compile_cfg(cfg, vocab, disk_partitions=True)
        found.append(masks_along(compiled, random.Random(3)))
        made.append(compiled.partitions.divided)
        shared_partitions(vocab).save()
    assert found[0] == found[1]
    assert made[0] > 2
    assert made[1] == 0


def test_nothing_is_read_or_written_unless_asked_for(folder):
    filled(vocabulary())
    assert not folder.exists()
    with pytest.raises(OptionError, match="leave shared_partitions on"):
        EarleyTrie(vocabulary(), disk_partitions=True, shared_partitions=False)


def test_an_empty_store_can_be_saved():
    vocab = vocabulary()
    SharedPartitions(vocab).save()
    assert len(reader(vocab, None)) == 0


def damages(data):
    """(what was done to a file, the file then)."""
    yield "empty", b""
    yield "other", b"PK\x03\x04 something else\n" * 100
    for size in (1, 50, 117, len(data) // 2, len(data) - 1):
        yield f"cut to {size}", data[:size]
    yield "longer", data + b"\0"
    for place in random.Random(0).sample(range(len(data)), 60):
        yield f"flipped at {place}", data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


def test_damaged_files_are_ignored_with_a_warning():
    vocab = vocabulary()
    store = filled(vocab)
    path = store.save()
    for what, data in damages(path.read_bytes()):
        path.write_bytes(data)
        with pytest.warns(UserWarning, match=r"are ignored: .* damaged \(it.* replaced"):
            assert len(reader(vocab, None)) == 0, what
    with pytest.warns(UserWarning, match="are ignored"):
        assert store.save() == path
    assert content(reader(vocab, None)) == content(store)


def test_the_file_of_another_vocabulary_is_ignored():
    """It has another name, so somebody must have renamed it; numbers of nodes would mean something else."""
    ours, other = vocabulary(), vocabulary([*TOKENS[1:], b"a"])
    theirs = filled(other).save()
    assert len(reader(ours, None)) == 0
    mine = SharedPartitions(ours).save()
    assert mine != theirs
    theirs.replace(mine)
    with pytest.warns(UserWarning, match="it belongs to another vocabulary"):
        assert len(reader(ours, None)) == 0


#: Numbers that would make a kernel read outside of its arrays, or that mean nothing.
WRONG = [("exits", column, value) for column in (FIRST, PAST, DEPTH) for value in (-2, 10_000)]
WRONG += [("groups", column, value) for column in range(4) for value in (-2, 10_000)]
WRONG += [("groups", 1, 256), ("places", None, -1), ("exits_end", None, -1), ("groups_end", None, 10_000)]


@pytest.mark.parametrize(("name", "column", "value"), WRONG)
def test_files_that_do_not_fit_together_are_ignored(monkeypatch, name, column, value):
    """With a right digest, as a fault of ours would have."""
    vocab, savez = vocabulary(), np.savez

    def savez_wrong(file, **arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][..., slice(None) if column is None else column][-1] = value
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", savez_wrong)
    store = filled(vocab, "aa(bab)?|b")
    store.save()
    with pytest.warns(UserWarning, match="its parts do not fit together"):
        assert len(reader(vocab, None)) == 0


def test_a_partition_under_the_name_of_another_is_dropped():
    """Its sets name lexemes that the state under whose name it stands does not have."""
    vocab = vocabulary()
    store = filled(vocab)
    name = next(iter(store._found))
    partition, sets = store._found[name]
    store._found[name] = partition, [(7,)] * len(sets)
    lexer = Machine(make_cfg(("a", "b"), {"s": [("a", "b")]})).lexer
    before = store.nbytes
    assert store.find(name, (0, 1), lexer) is None
    assert store.misses
    assert name not in store._found
    assert store.nbytes == before - partition.nbytes


@pytest.mark.parametrize("name", ["exits", "names", "inside", "places"])
def test_arrays_of_other_types_are_ignored(monkeypatch, name):
    vocab, savez = vocabulary(), np.savez
    for change in (lambda array: array.astype(np.float64), lambda array: array[:-1], None):

        def savez_wrong(file, change=change, **arrays):
            array = arrays.pop(name)
            savez(file, **arrays, **({name: change(array)} if change else {}))

        monkeypatch.setattr(np, "savez", savez_wrong)
        path = filled(vocab).save()
        with pytest.warns(UserWarning, match="are ignored"):
            assert len(reader(vocab, None)) == 0
        path.unlink()


def test_two_processes_leave_what_both_have_found():
    one, other = vocabulary(), vocabulary()
    first, second = filled(one), filled(other, "b{2,7}a")
    assert not set(content(first)) >= set(content(second))
    first.save()
    second.save()
    assert content(reader(one, None)) == content(first) | content(second)


def test_the_file_has_a_limit(monkeypatch):
    """The partitions used last stay."""
    vocab = vocabulary()
    store = filled(vocab)
    sizes = [partition.nbytes for partition, _ in store._found.values()]
    monkeypatch.setattr(module, "DISK_LIMIT", sum(sizes[2:]) + 1)
    store.save()
    assert list(reader(vocab, None)._found) == list(store._found)[2:]


def test_it_is_written_by_itself_when_much_is_new(monkeypatch, folder):
    monkeypatch.setattr(module, "SAVE_AFTER", 3)
    vocab, written = vocabulary(), []
    shared_partitions(vocab).use_disk()
    for size in range(2, 30):
        compiled = compile_cfg(make_cfg((f"a{{{size}}}b",), {"s": [(f"a{{{size}}}b",)]}), vocab)
        mask_of(compiled.start())
        written.append(path.stat().st_mtime_ns if folder.exists() and (path := next(folder.iterdir())) else 0)
    saved = len(reader(vocab, None))
    assert 0 < len(shared_partitions(vocab)) - saved < 3
    assert len(set(written)) > 1


def test_a_folder_that_cannot_be_written_to(monkeypatch, tmp_path):
    """Explicit saving says so; by itself it warns once, and goes on without."""
    (tmp_path / "file").write_bytes(b"")
    vocab = vocabulary()
    store = filled(vocab)
    with pytest.raises(StoreError, match="cannot be written"):
        store.save(tmp_path / "file")
    store.use_disk(tmp_path / "file")
    monkeypatch.setattr(module, "SAVE_AFTER", 1)
    with pytest.warns(UserWarning, match="are not kept on disk"):
        filled(vocab, "b{5,9}a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled(vocab, "b{3,9}a")


def test_a_real_vocabulary(folder):
    """Long walks: from memory, from disk, without clipping, and by walking the trie."""
    tokenizer = load_tokenizer("mistral-v1")
    vocab, rng = tokenizer.vocabulary, random.Random(0)
    copies = [Vocabulary([vocab.token_bytes(token) for token in range(vocab.size)], vocab.end_tokens) for _ in range(2)]
    grammar = Grammar(
        'start: (S | N)*\nS: /"([^"\\\\]|\\\\["n]){0,40}"/\nN: /-?[0-9]{1,30}(\\.[0-9]+)?/\n%ignore / {0,40}/'
    )
    ways = [(vocab, {"mask": "walk"}), (vocab, {"mask": "walk", "first_byte": False})]
    ways += [(vocab, {"clip_counters": False}), (copies[0], {"disk_partitions": True})]
    compiled = [EarleyTrie(each, memo=False, **options).compile(grammar) for each, options in ways]
    for _ in range(2):
        matchers = [one.start() for one in compiled]
        for _ in range(25):
            found = [mask_of(matcher) for matcher in matchers]
            assert found[0] == found[1] == found[2] == found[3]
            token = rng.choice([token for token in found[0] if token not in vocab.end_tokens])
            for matcher in matchers:
                matcher.advance(token)
    shared_partitions(copies[0]).save()
    again = EarleyTrie(copies[1], memo=False, disk_partitions=True).compile(grammar)
    mask_of(again.start())
    assert again.partitions.divided == 0
    assert os.path.getsize(next(folder.iterdir())) > 50_000

"""Effects between grammars, and on disk: what is taken over is what would have been made."""

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
from tokdfa.backends.earley_trie import shared_effects as module
from tokdfa.backends.earley_trie.effect_kernels import WHOLE
from tokdfa.backends.earley_trie.effects import Effects
from tokdfa.backends.earley_trie.lexer_names import StateNames
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.shared_effects import SharedEffects, effects_folder, shared_effects
from tokdfa.backends.earley_trie.strategy import EarleyTrie
from tokdfa.backends.earley_trie.walk import FIRST_SHIFT, PAST_SHIFT, Walker
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError, StoreError
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

TOKENS = [*short_texts(b"ab", 4)[1:], b"abababab", b"aab\xff", b"ab"]


def vocabulary(tokens=TOKENS):
    """A new one each time, since effects are shared by all grammars of one."""
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of files, which is nobody else's. States are named though they read few nodes."""
    monkeypatch.setattr("tokdfa.backends.earley_trie.effects.NODES_PER_NAME", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert effects_folder().parents[1] == tmp_path
    return effects_folder()


def filled(vocab, pattern="a+b|(ab)+", skip="b+"):
    """Effects of a few states, kept for a vocabulary."""
    compiled = compile_cfg(make_cfg((pattern, skip), {"s": [(pattern,), ("s", pattern)]}, skip=1), vocab, patience=0)
    masks_along(compiled, random.Random(5))
    assert len(shared_effects(vocab)) >= 3
    return shared_effects(vocab)


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


def content(store):
    """Everything that a store holds, to be compared."""
    return {
        name: (effect.inside.tolist(), effect.ranges.tolist(), effect.ends.tolist(), sets)
        for name, (effect, sets) in store._found.items()
    }


# Between grammars.


def test_what_is_found_is_what_would_be_made():
    """In a second grammar with the same lexemes in another order, among others; the sets are its own."""
    vocab = vocabulary()
    first = make_cfg(("a+b", "(ab)+", "b"), {"s": [("a+b", "s"), ("(ab)+",), ("b",)]})
    second = make_cfg(("bb", "(ab)+", "b", "a+b"), {"s": [("b",), ("a+b", "s"), ("(ab)+", "t")], "t": [("bb",)]})
    names_found = []
    for cfg in (first, second, second):
        store = shared_effects(vocab) if len(names_found) < 2 else None
        machine = Machine(cfg)
        effects = Effects(Walker(machine, vocab.trie), 1 << 24, 0, store)
        states = states_of(machine)
        for state in states:
            effects.fill(machine.intern(0, state, -1))
        names_found.append([described(effects, StateNames(machine, 8).describe(state)[1], state) for state in states])
        if len(names_found) == 2:
            assert store.hits >= len(states) > 5
    assert names_found[1] == names_found[2]


def states_of(machine):
    """The lexer states in which the letters a and b lead from the start."""
    found = [machine.start_state(0)]
    for state in found:
        targets = [machine.lexer.step(state, byte) for byte in b"ab"]
        found += [target for target in dict.fromkeys(targets) if target >= 0 and target not in found]
    return found


def described(effects, lexemes, state):
    """An effect of whole tokens, with lexemes in place of accepting sets, whose order is of no account."""
    assert lexemes
    inside, ends = effects.effect(WHOLE, state)
    return inside, sorted((effects.machine.lexer.lexemes_of(one), effects.ranges(rest)) for one, rest in ends)


@settings(max_examples=30)
@given(st.lists(lexed_cfgs(), min_size=2, max_size=4), vocabularies(b"abc", 12), st.integers(0, 99))
def test_one_grammar_after_another(cfgs, drawn, seed):
    """Each takes what the others have left, of which it may be nearly all; its masks are those of walks."""
    tokens = [b"a", b"b", b"c", *(drawn.token_bytes(token) for token in range(drawn.size))]
    vocab = vocabulary(tokens)
    for cfg in [*cfgs, cfgs[0]]:
        found = [masks_along(compile_cfg(cfg, vocab, mask=way), random.Random(seed)) for way in ("effects", "walk")]
        assert found[0] == found[1]


def test_counters_of_other_lengths_are_shared():
    """Room for many more letters is the same in both, and room for few is met again; so is a list without end."""
    vocab = vocabulary()
    made, store = [], shared_effects(vocab)
    for size, pattern in ((30, "a{0,30}b"), (60, "a{0,60}b"), (70, "a*b"), (9, "a{0,9}b")):
        compiled = compile_cfg(make_cfg((pattern,), {"s": [(pattern,)]}), vocab, patience=0)
        matcher, before = compiled.start(), store.misses
        for _ in range(size):
            assert 0 in mask_of(matcher)
            matcher.advance(0)
        made.append(store.misses - before)
    assert made[0] > 3
    assert made[1:] == [0, 0, 0]


def test_the_oldest_goes_first():
    vocab = vocabulary()
    store = filled(vocab)
    sizes = [effect.nbytes for effect, _ in store._found.values()]
    names = list(store._found)
    assert store.nbytes == sum(sizes)
    store.limit = sum(sizes) - sizes[1]
    lexer = Machine(make_cfg(("a", "b"), {"s": [("a", "b")]})).lexer
    assert store.find(names[0], (0, 1), lexer)[0] is not None
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
        found[place] = masks_along(compile_cfg(cfgs[place], vocab, disk_effects=True, patience=0), random.Random(1))

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
    store = SharedEffects(vocab)
    store.use_disk(folder)
    lexer = Machine(make_cfg(("a",), {"s": [("a",)]})).lexer
    assert store.find("no name", (), lexer)[0] is None
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
        compiled = compile_cfg(cfg, vocab, disk_effects=True, patience=0)
        found.append(masks_along(compiled, random.Random(3)))
        made.append(shared_effects(vocab).misses)
        shared_effects(vocab).save()
    assert found[0] == found[1]
    assert made[0] > 2
    assert made[1] == 0


def test_nothing_is_read_or_written_unless_asked_for(folder):
    filled(vocabulary())
    assert not folder.exists()
    with pytest.raises(OptionError, match="leave shared_effects on"):
        EarleyTrie(vocabulary(), disk_effects=True, shared_effects=False)


def test_an_empty_store_can_be_saved():
    vocab = vocabulary()
    SharedEffects(vocab).save()
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
    mine = SharedEffects(ours).save()
    assert mine != theirs
    theirs.replace(mine)
    with pytest.warns(UserWarning, match="it belongs to another vocabulary"):
        assert len(reader(ours, None)) == 0


#: Numbers that would make a kernel read outside of its arrays, or that mean nothing.
WRONG = [("ranges", None, value) for value in (-2, 10_000 << FIRST_SHIFT, 10_000 << PAST_SHIFT, 0, 3)]
WRONG += [("ends", column, value) for column in range(3) for value in (-2, 10_000)]
WRONG += [("places", None, -1), ("ranges_end", None, -1), ("ends_end", None, 10_000)]


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


def test_an_effect_under_the_name_of_another_is_dropped():
    """Its sets name lexemes that the state under whose name it stands does not have."""
    vocab = vocabulary()
    store = filled(vocab)
    name = next(iter(store._found))
    effect, sets = store._found[name]
    store._found[name] = effect, [(7,)] * len(sets)
    lexer = Machine(make_cfg(("a", "b"), {"s": [("a", "b")]})).lexer
    before = store.nbytes
    assert store.find(name, (0, 1), lexer)[0] is None
    assert store.misses
    assert name not in store._found
    assert store.nbytes == before - effect.nbytes


@pytest.mark.parametrize("name", ["ranges", "names", "inside", "places"])
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
    """The effects used last stay."""
    vocab = vocabulary()
    store = filled(vocab)
    sizes = [effect.nbytes for effect, _ in store._found.values()]
    monkeypatch.setattr(module, "DISK_LIMIT", sum(sizes[2:]) + 1)
    store.save()
    assert list(reader(vocab, None)._found) == list(store._found)[2:]


def test_it_is_written_by_itself_when_much_is_new(monkeypatch, folder):
    monkeypatch.setattr(module, "SAVE_AFTER", 3)
    vocab, written = vocabulary(), []
    shared_effects(vocab).use_disk()
    for size in range(2, 30):
        compiled = compile_cfg(make_cfg((f"a{{{size}}}b",), {"s": [(f"a{{{size}}}b",)]}), vocab, patience=0)
        mask_of(compiled.start())
        written.append(path.stat().st_mtime_ns if folder.exists() and (path := next(folder.iterdir())) else 0)
    saved = len(reader(vocab, None))
    assert 0 < len(shared_effects(vocab)) - saved < 3
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
    ways = [(vocab, {"mask": "walk"}), (vocab, {"patience": 0})]
    ways += [(vocab, {"clip_counters": False}), (copies[0], {"disk_effects": True})]
    compiled = [EarleyTrie(each, memo=False, **options).compile(grammar) for each, options in ways]
    for _ in range(2):
        matchers = [one.start() for one in compiled]
        for _ in range(25):
            found = [mask_of(matcher) for matcher in matchers]
            assert found[0] == found[1] == found[2] == found[3]
            token = rng.choice([token for token in found[0] if token not in vocab.end_tokens])
            for matcher in matchers:
                matcher.advance(token)
    shared_effects(copies[0]).save()
    again = EarleyTrie(copies[1], memo=False, disk_effects=True).compile(grammar)
    mask_of(again.start())
    assert (shared_effects(copies[1]).hits, shared_effects(copies[1]).misses) == (1, 0)
    assert os.path.getsize(next(folder.iterdir())) > 30_000
